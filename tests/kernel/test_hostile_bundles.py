"""Whatever is thrown at an import: a clear message, the documented status, and nothing appended."""

from __future__ import annotations

import io
import json
import os
import random
import re
import resource
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundles import Stranger, exported, home_at, imported, items, joined

from spl.codec import canonical, digest
from spl.errors import BundleError, DamagedError, InputError, SplError
from spl.ids import BlobId, RecordId
from spl.kernel.home import Kernel
from spl.kernel.verify import verify_home
from spl.records.definitions import Actor, Definition
from spl.records.envelope import BlobRef, Draft
from spl.records.evals import Case, Expect, Suite
from spl.records.runs import RunStart
from spl.store import bundle
from spl.store.blobs import MAX_BLOB_BYTES, ZLIB, BlobStore
from spl.store.log import Selection

Made = tuple[bytes, bytes]


@pytest.fixture
def home(tmp_path: Path) -> Kernel:
    kernel = home_at(tmp_path / "home")
    kernel.transact(lambda tx: tx.append(Draft(kind="acme.note.v1", body={"t": "mine"}, by=kernel.operator)))
    return kernel


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A bundle with a suite, a fixture, runs and blobs."""
    from spl.kernel.suites import NewCase, NewFile, import_suite

    kernel = home_at(tmp_path_factory.mktemp("good") / "home")
    files = [NewFile("a/f.txt", 644, b"content " * 200), NewFile("g.sh", 755, b"echo")]
    case = NewCase(Case(key="k", name="k", goal="g" * 20_000, expect=Expect(outcomes=["o"])), files)
    import_suite(kernel, "s", [case])
    for text in "abc":
        draft = Draft(kind="acme.note.v1", body={"t": text}, by=kernel.operator)
        kernel.transact(lambda tx, draft=draft: tx.append(draft))  # type: ignore[misc]
    return exported(kernel)


def refused(home: Kernel, data: bytes, **options: Any) -> SplError:
    """Demand that an import is refused and changes nothing, and return why."""
    before = [entry.id for entry in home.log.scan(Selection())]
    blobs = set(home.blobs.ids()) if isinstance(home.blobs, BlobStore) else set()
    with pytest.raises(SplError) as caught:
        imported(home, data, **options)
    assert [entry.id for entry in home.log.scan(Selection())] == before
    assert isinstance(home.blobs, BlobStore)
    assert set(home.blobs.ids()) == blobs
    assert caught.value.exit_status == 2
    return caught.value


def test_the_good_bundle_is_good(home: Kernel, good: bytes) -> None:
    assert imported(home, good).appended == 5
    assert verify_home(home).clean


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"\x80",
        b"PK\x03\x04",
        b"\xff" * 100,
        b"SQLite format 3\x00" + b"\x00" * 200,
        zlib.compress(b"x" * 10_000),
        b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x84\x6cspl-bundle 1\x7b\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x84\x6cspl-bundle 1\x7a\xff\xff\xff\xff" + b"x" * 100,
        b"[" * 100_000,
        b"\x81" * 100_000,
        json.dumps({"contract": "spl.record.v1"}).encode(),
    ],
)
def test_what_is_no_bundle_is_refused(home: Kernel, data: bytes) -> None:
    assert "bundle" in refused(home, data).message


def test_a_bundle_of_another_version_says_so(home: Kernel, good: bytes) -> None:
    head, *rest = items(good)
    error = refused(home, joined([["spl-bundle 2", *head[1:]], *rest]))
    assert "spl-bundle 2" in error.message


def test_a_bundle_is_refused_wherever_it_is_cut(home: Kernel, good: bytes) -> None:
    generator = random.Random(1)
    cuts = {
        *range(0, len(good), max(1, len(good) // 60)),
        *(generator.randrange(len(good)) for _ in range(40)),
    }
    for cut in sorted(cuts):
        error = refused(home, good[:cut])
        if named := re.search(r"begins at offset (\d+): .* at offset (\d+)", error.message):
            began, ended = map(int, named.groups())
            assert began <= ended <= cut


def test_every_flipped_bit_is_refused(home: Kernel, good: bytes) -> None:
    generator = random.Random(2)
    for _ in range(150):
        flipped = bytearray(good)
        flipped[generator.randrange(len(flipped))] ^= 1 << generator.randrange(8)
        refused(home, bytes(flipped))


@pytest.mark.parametrize("change", ["swap", "twice", "drop", "drop blob", "more", "behind", "blobs first"])
def test_items_in_another_order_or_number_are_refused(home: Kernel, good: bytes, change: str) -> None:
    parts = items(good)
    count = int(parts[0][2])
    match change:
        case "swap":
            parts[1], parts[2] = parts[2], parts[1]
        case "twice":
            parts.insert(2, parts[1])
            parts[0][2] = count + 1
        case "drop":
            del parts[1]
            parts[0][2] = count - 1
        case "drop blob":
            del parts[-2:]
            parts[0][3] = int(parts[0][3]) - 1
        case "more":
            parts[0][2] = count + 1
        case "behind":
            parts.append(["part", b"x"])
        case "blobs first":
            parts = [parts[0], *parts[1 + count :], *parts[1 : 1 + count]]
    error = refused(home, joined(parts))
    assert error.code == "bundle"


def test_the_first_faulty_record_is_named_by_item_position_and_id(home: Kernel, good: bytes) -> None:
    parts = items(good)
    record, signature = bytes(parts[3][2]), bytearray(bytes(parts[3][3]))  # type: ignore[arg-type]
    signature[5] ^= 1
    parts[3][3] = bytes(signature)
    error = refused(home, joined(parts))
    rid = digest.record_id(record).hex()
    assert error.details == {"item": 3, "position": 2, "id": rid, "code": "signature"}
    assert f"position 2, {rid}" in error.message


def test_counts_and_lengths_beyond_the_limits_are_refused_before_they_are_read(
    home: Kernel, good: bytes
) -> None:
    head = items(good)[0]
    for counts in ((bundle.MAX_RECORDS + 1, 0), (0, bundle.MAX_BLOBS + 1), (2**53 - 1, 2**53 - 1)):
        assert "more than" in refused(home, joined([[*head[:2], *counts]])).message
    long = joined([["record", 0, b"x" * (2 << 20), b"", b""]])
    assert "at most" in refused(home, joined([head]) + long).message


def test_a_blob_without_end_is_refused_in_bounded_memory(
    home: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "MAX_BLOB_BYTES", 4 << 20)
    stranger = Stranger()
    content = b"x" * (5 << 20)
    ref = BlobRef(h=digest.blob_id(content), n=len(content), t="text/plain", r="x")
    record = stranger.record(Draft(kind="acme.note.v1", body={}, by=stranger.did, blobs=(ref,)))
    assert "a blob of more than" in refused(home, stranger.bundle([record], [content])).message


def test_a_blobs_file_cannot_stand_for_more_than_a_blob_holds(
    home: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home.path is not None
    assert MAX_BLOB_BYTES == 1 << 30
    monkeypatch.setattr("spl.store.blobs.MAX_BLOB_BYTES", 8 << 20)
    blob = home.blobs.put(b"x" * 1000)
    bomb = ZLIB + zlib.compress(b"\0" * (256 << 20))
    (home.path / "blobs" / blob.hex()[:2] / blob.hex()).write_bytes(bomb)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DamagedError, match="has more than"):
        home.blobs.get(blob)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def note(stranger: Stranger, **more: Any) -> Made:
    return stranger.record(Draft(kind="acme.note.v1", body={"t": "x"}, by=stranger.did, **more))


def bad_signature(stranger: Stranger) -> bytes:
    record, _ = note(stranger)
    return stranger.bundle([(record, bytes(64))])


def no_signature(stranger: Stranger) -> bytes:
    return stranger.bundle([(note(stranger)[0], b"")])


def somebody_else(stranger: Stranger) -> bytes:
    record, _ = note(Stranger(9))
    return stranger.bundle([(record, stranger.signature(record))])


def dangling_reference(stranger: Stranger) -> bytes:
    return stranger.bundle([note(stranger, refs={"about": (RecordId(bytes(32)),)})])


def dangling_thread(stranger: Stranger) -> bytes:
    return stranger.bundle([note(stranger, thread=RecordId(bytes(32)))])


def forward_reference(stranger: Stranger) -> bytes:
    first = note(stranger)
    second = note(stranger, refs={"about": (digest.record_id(first[0]),)})
    return stranger.bundle([second, first])


def missing_blob(stranger: Stranger) -> bytes:
    ref = BlobRef(h=digest.blob_id(b"x"), n=1, t="text/plain", r="x")
    return stranger.bundle([note(stranger, blobs=(ref,))])


def wrong_blob(stranger: Stranger) -> bytes:
    ref = BlobRef(h=digest.blob_id(b"x"), n=1, t="text/plain", r="x")
    return stranger.bundle([note(stranger, blobs=(ref,))], named=[(ref.h, b"y")])


def wrong_size(stranger: Stranger) -> bytes:
    ref = BlobRef(h=digest.blob_id(b"x"), n=7, t="text/plain", r="x")
    return stranger.bundle([note(stranger, blobs=(ref,))], [b"x"])


def unnamed_blob(stranger: Stranger) -> bytes:
    return stranger.bundle([note(stranger)], [b"smuggled"])


def the_same_blob_twice(stranger: Stranger) -> bytes:
    ref = BlobRef(h=digest.blob_id(b"x"), n=1, t="text/plain", r="x")
    return stranger.bundle([note(stranger, blobs=(ref,))], named=[(ref.h, b"x"), (ref.h, b"x")])


def the_same_record_twice(stranger: Stranger) -> bytes:
    record = note(stranger)
    return stranger.bundle([record, record])


def not_canonical(stranger: Stranger) -> bytes:
    record, _ = note(stranger)
    data = record.replace(b"\x61v\x01", b"\x61v\x18\x01")
    return stranger.bundle([(data, stranger.signature(data))])


def too_large(stranger: Stranger) -> bytes:
    value = {"v": 1, "kind": "acme.note.v1", "by": stranger.did, "at": 1, "body": {"t": "x" * 70_000}}
    data = canonical.encode(value)
    return stranger.bundle([(data, stranger.signature(data))])


def unknown_envelope_key(stranger: Stranger) -> bytes:
    value = {"v": 1, "kind": "acme.note.v1", "by": stranger.did, "at": 1, "body": {}, "extra": 1}
    data = canonical.encode(value)
    return stranger.bundle([(data, stranger.signature(data))])


def not_a_map(stranger: Stranger) -> bytes:
    data = canonical.encode([1, 2, 3])
    return stranger.bundle([(data, stranger.signature(data))])


def wrong_role(stranger: Stranger) -> bytes:
    suite = stranger.record(Draft(body=Suite(name="s"), by=stranger.did))
    rid = digest.record_id(suite[0])
    start = RunStart(facet=digest.facet({}), trial=False, adapter="external")
    run = stranger.record(Draft(body=start, by=stranger.did, refs={"actor": (rid,), "definition": (rid,)}))
    return stranger.bundle([suite, run])


def wrong_thread(stranger: Stranger) -> bytes:
    suite = stranger.record(Draft(body=Suite(name="s"), by=stranger.did))
    body = Definition(
        behaviour={"adapter": "external", "system": "x"}, state="candidate", origin="x", trust="untrusted"
    )
    draft = Draft(body=body, by=stranger.did, thread=digest.record_id(suite[0]))
    return stranger.bundle([suite, stranger.record(draft)])


def wrong_facet(stranger: Stranger) -> bytes:
    actor = stranger.record(Draft(body=Actor(did=stranger.did, name="a"), by=stranger.did))
    root = digest.record_id(actor[0])
    body = Definition(
        behaviour={"adapter": "external", "system": "x"}, state="candidate", origin="x", trust="untrusted"
    )
    definition = stranger.record(Draft(body=body, by=stranger.did, thread=root))
    start = RunStart(facet=digest.facet({"other": 1}), trial=False, adapter="external")
    refs = {"actor": (root,), "definition": (digest.record_id(definition[0]),)}
    run = stranger.record(Draft(body=start, by=stranger.did, refs=refs))
    return stranger.bundle([actor, definition, run])


def manifest_that_leads_elsewhere(stranger: Stranger) -> bytes:
    manifest = canonical.encode([["../../etc/passwd", 644]])
    suite = stranger.record(Draft(body=Suite(name="s"), by=stranger.did))
    tree = digest.blob_id(manifest)
    case = Case(key="k", name="k", goal="g", expect=Expect(outcomes=["o"]), tree=tree)
    ref = BlobRef(h=tree, n=len(manifest), t="application/cbor", r="tree")
    draft = Draft(body=case, by=stranger.did, thread=digest.record_id(suite[0]), blobs=(ref,))
    return stranger.bundle([suite, stranger.record(draft)], [manifest])


def manifest_without_its_file(stranger: Stranger) -> bytes:
    manifest = digest.encode_tree([digest.TreeFile("f", 644, digest.blob_id(b"gone"))])
    suite = stranger.record(Draft(body=Suite(name="s"), by=stranger.did))
    tree = digest.blob_id(manifest)
    case = Case(key="k", name="k", goal="g", expect=Expect(outcomes=["o"]), tree=tree)
    ref = BlobRef(h=tree, n=len(manifest), t="application/cbor", r="tree")
    draft = Draft(body=case, by=stranger.did, thread=digest.record_id(suite[0]), blobs=(ref,))
    return stranger.bundle([suite, stranger.record(draft)], [manifest])


SAYS: list[tuple[Callable[[Stranger], bytes], str]] = [
    (bad_signature, "signature of a record by .* is wrong"),
    (no_signature, "must be signed"),
    (somebody_else, "signature of a record by .* is wrong"),
    (dangling_reference, "about names 0000.* missing"),
    (dangling_thread, "thread begins with 0000.* missing"),
    (forward_reference, "about names .* missing"),
    (missing_blob, "the blob .* is missing"),
    (wrong_blob, "its content has the id"),
    (wrong_size, "has 1 bytes, and .* says 7"),
    (unnamed_blob, "no record names the blob"),
    (the_same_blob_twice, "does not stand behind"),
    (the_same_record_twice, "stands twice"),
    (not_canonical, "head is not the shortest"),
    (too_large, "at most 61440 bytes"),
    (unknown_envelope_key, "unknown field"),
    (not_a_map, "record"),
    (wrong_role, "actor names a core.suite.v1"),
    (wrong_thread, "not a core.actor.v1"),
    (wrong_facet, "facet is not that of its definition"),
    (manifest_that_leads_elsewhere, "not the manifest"),
    (manifest_without_its_file, "the blob .* which the fixture .* names, is missing"),
]


@pytest.mark.parametrize(("make", "says"), SAYS, ids=[make.__name__ for make, _ in SAYS])
def test_a_bundle_with_right_proofs_and_wrong_content_is_refused(
    home: Kernel, make: Callable[[Stranger], bytes], says: str
) -> None:
    error = refused(home, make(Stranger()))
    assert isinstance(error, BundleError)
    with pytest.raises(BundleError, match=says):
        raise error


def test_the_stranger_can_make_a_bundle_that_enters(home: Kernel) -> None:
    stranger = Stranger()
    assert imported(home, stranger.bundle([note(stranger)])).appended == 1


def test_a_proof_of_another_place_or_tree_is_refused(home: Kernel, good: bytes) -> None:
    for change in ("path", "shorter", "longer", "odd", "position"):
        parts = items(good)
        path = bytes(parts[1][4])  # type: ignore[arg-type]
        match change:
            case "position":
                del parts[1]
                parts[0][2] = int(parts[0][2]) - 1
                parts[1][1] = 0
            case "path":
                parts[1][4] = bytes(32) + path[32:]
            case "shorter":
                parts[1][4] = path[:-32]
            case "longer":
                parts[1][4] = path + bytes(32 * 70)
            case "odd":
                parts[1][4] = path + b"x"
        assert re.search("proof|proved", refused(home, joined(parts)).message)


def test_a_checkpoint_that_somebody_else_signed_is_refused(home: Kernel, good: bytes) -> None:
    parts = items(good)
    other = items(Stranger().bundle([note(Stranger())]))[0]
    for text in (str(other[1]), "", "x", str(parts[0][1]).replace("spl/z6Mk", "spl/z6Mj"), "\n\n\n"):
        assert "checkpoint" in refused(
            home, joined([[parts[0][0], text, *parts[0][2:]], *parts[1:]])
        ).message or (text == other[1])
    with pytest.raises(InputError, match="verifier key"):
        imported(home, good, key="nonsense")


def test_a_bundle_that_changes_while_it_is_read_is_refused(home: Kernel) -> None:
    stranger = Stranger()
    drafts = [Draft(kind="acme.note.v1", body={"t": text}, by=stranger.did) for text in "xy"]
    first, second = (stranger.bundle([stranger.record(draft)]) for draft in drafts)
    assert len(first) == len(second)

    class Changing(io.BytesIO):
        begun = 0

        def seek(self, offset: int, whence: int = 0) -> int:
            self.begun += offset > 0
            if self.begun == 3:  # records, blobs, and now the blobs again
                super().seek(0)
                self.write(second)
            return super().seek(offset, whence)

    size = home.log.size()
    from spl.kernel.bundle_import import import_bundle

    with pytest.raises(BundleError, match="changed"):
        import_bundle(home, Changing(first))
    assert home.log.size() == size


def test_hostile_bytes_are_refused_in_linear_time(home: Kernel, good: bytes) -> None:
    head = joined([items(good)[0]])
    started = time.perf_counter()
    for filler in (b"\x00", b"\x80", b"\x81\x60", b"\x83" * 3, b"\xff"):
        refused(home, head + filler * 200_000)
    assert time.perf_counter() - started < 10


@pytest.mark.parametrize("what", ["directory", "missing", "unreadable", "device"])
def test_a_file_that_cannot_be_read_is_named(spl: Callable[..., Any], tmp_path: Path, what: str) -> None:
    path = tmp_path / "bundle"
    if what == "directory":
        path.mkdir()
    elif what == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
        path.touch(0o000)
    elif what == "device":
        path = Path("/dev/zero")
    done = spl("import", str(path), "--json")
    assert done.status == 2
    assert done.document["code"] in ("file_input", "bundle")
    assert "Traceback" not in done.err


def test_the_command_refuses_with_one_document_and_no_traceback(
    spl: Callable[..., Any], tmp_path: Path
) -> None:
    stranger = Stranger()
    for number, (make, _) in enumerate(SAYS[:6]):
        (tmp_path / f"{number}.spl").write_bytes(make(stranger))
        done = spl("import", f"{number}.spl", "--json")
        assert (done.status, done.document["code"]) == (2, "bundle")
        assert "Traceback" not in done.err
    assert spl("status", "--json").document["size"] == 0
    assert spl("verify", "--json").document["ok"]


def blob_record(stranger: Stranger, blob: bytes, size: int, role: str, text: str) -> Made:
    ref = BlobRef(h=digest.blob_id(blob), n=size, t="text/plain", r=role)
    return stranger.record(Draft(kind="acme.note.v1", body={"t": text}, by=stranger.did, blobs=(ref,)))


@pytest.mark.parametrize("held", [False, True])
def test_a_false_size_of_a_blob_is_refused_whoever_holds_the_blob(home: Kernel, *, held: bool) -> None:
    stranger, blob = Stranger(), b"evidence " * 9
    true = blob_record(stranger, blob, len(blob), "x", "true")
    false = blob_record(stranger, blob, 999, "x", "false")
    if held:
        imported(home, stranger.bundle([true], [blob]))
        refused(home, stranger.bundle([false], []))
    error = refused(home, stranger.bundle([true, false], [blob]))
    assert "999" in error.message
    assert verify_home(home).ok


@pytest.mark.parametrize(
    "blob", [b"no manifest", digest.encode_tree([digest.TreeFile("f", 644, BlobId(bytes(32)))])]
)
def test_a_blob_of_this_home_is_no_fixture_because_a_bundle_says_so(home: Kernel, blob: bytes) -> None:
    stranger = Stranger()
    imported(home, stranger.bundle([blob_record(stranger, blob, len(blob), "x", "first")], [blob]))
    refused(home, stranger.bundle([blob_record(stranger, blob, len(blob), "tree", "second")], []))
    assert verify_home(home).ok
