"""No secret reaches the files of a home, through whichever command it comes."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from spl.errors import DoorClosedError, InputError
from spl.kernel.actors import add_actor
from spl.kernel.define import Source, parse_behaviour, propose
from spl.kernel.home import Kernel, open_home
from spl.kernel.records import put_record, show_record
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.suites import NewCase, NewFile, create_suite, import_suite
from spl.records.evals import Case, Expect
from spl.records.secrets import Secrets

CANARY = "canary-7f3a9c1b/+x"
LONG = "many words " * 3000


@pytest.fixture
def home(tmp_path: Path) -> Kernel:
    return open_home(tmp_path / "home", create=True, secrets=Secrets({"CANARY_KEY": CANARY}))


def everything(path: Path) -> bytes:
    """Return all that the files of a home hold, blobs unpacked."""
    parts = []
    for file in path.rglob("*"):
        if file.is_file() and file.parent.name != "keys":
            raw = file.read_bytes()
            parts.append(zlib.decompress(raw[1:]) if raw[:1] == b"\1" and "blobs" in file.parts else raw)
    return b"\n".join(parts)


def leaked(path: Path) -> bool:
    found = everything(path)
    return CANARY.encode() in found or base64.b64encode(CANARY.encode())[:20] in found


def grown(home: Kernel) -> None:
    add_actor(home, "a", note=f"note {CANARY}")
    case = NewCase(Case(key="k", name="k", goal=f"{LONG}{CANARY}", expect=Expect(outcomes=["o"])))
    import_suite(home, "s", [case], f"about {CANARY}")
    propose(home, "a", Source(behaviour={"adapter": "external", "system": "x"}, note=CANARY))
    facet = home.log.definitions(actor=home.log.actors("a")[0].id)[0].id.hex()
    run = {
        "case": "k",
        "answer": LONG + base64.b64encode(b"u:" + CANARY.encode()).decode(),
        "results": [
            {"id": f"o{n}", "status": "pass", "message": CANARY if n % 2 else "fine"} for n in range(900)
        ],
        "cause": CANARY,
    }
    import_runs(home, "a", [json.dumps(run).encode()], Batch(source="f", suite="s", definition=facet))
    put_record(home, json.dumps({"kind": "acme.note.v1", "body": {"text": CANARY}}).encode(), "n")


def test_a_planted_secret_is_nowhere_in_the_home(home: Kernel) -> None:
    grown(home)
    assert home.path is not None
    assert not leaked(home.path)
    assert b"[withheld: CANARY_KEY]" in everything(home.path)


def test_without_the_filter_the_canary_is_found(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", create=True)
    grown(home)
    assert leaked(tmp_path / "home")


def test_a_record_counts_what_was_withheld(home: Kernel) -> None:
    body = {"a": f"{CANARY} and {CANARY}", "b": [CANARY]}
    put = put_record(home, json.dumps({"kind": "acme.note.v1", "body": body}).encode(), "n")
    shown = show_record(home, put.id.hex())
    assert shown.withheld == 3
    assert shown.body["b"] == ["[withheld: CANARY_KEY]"]


def test_a_run_counts_what_was_withheld_from_its_blobs(home: Kernel) -> None:
    grown(home)
    ends = [
        show_record(home, entry.id.hex())
        for entry in home.log.at(range(home.log.size()))
        if show_record(home, entry.id.hex()).entry.kind == "core.run.end.v1"
    ]
    assert [end.withheld for end in ends] == [1 + 450 + 1]


def test_importing_a_suite_with_a_secret_again_appends_nothing(home: Kernel) -> None:
    grown(home)
    size = home.log.size()
    case = NewCase(Case(key="k", name="k", goal=f"{LONG}{CANARY}", expect=Expect(outcomes=["o"])))
    assert import_suite(home, "s", [case]).unchanged == 1
    assert home.log.size() == size


def test_the_define_door_refuses_a_behaviour_with_a_secret(home: Kernel) -> None:
    add_actor(home, "a")
    size = home.log.size()
    text = json.dumps({"adapter": "command", "argv": ["agent", f"--key={CANARY}"]})
    source = parse_behaviour(text.encode(), "d.json", {"prompt": b"use " + CANARY.encode()})
    with pytest.raises(DoorClosedError) as refused:
        propose(home, "a", source)
    assert refused.value.details["reasons"] == [
        "$.argv[1]: holds a secret (CANARY_KEY)",
        "the pinned file prompt: holds a secret (CANARY_KEY)",
    ]
    assert home.log.size() == size
    assert CANARY not in refused.value.message


def test_a_fixture_with_a_secret_is_refused(home: Kernel) -> None:
    create_suite(home, "s")
    case = Case(key="k", name="k", goal="g", expect=Expect(outcomes=["o"]))
    with pytest.raises(InputError, match=r"its file \.env holds a secret \(CANARY_KEY\)"):
        import_suite(home, "s", [NewCase(case, [NewFile(".env", 644, CANARY.encode())])])


def test_the_command_line_takes_the_values_from_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spl.api import Home

    monkeypatch.setenv("SOME_TOKEN", CANARY)
    with Home.open(tmp_path / "home") as home:
        put = home.append("acme.note.v1", {"text": CANARY})
        assert home.get(put.id.hex()).body == {"text": "[withheld: SOME_TOKEN]"}


def test_the_log_shows_how_much_was_withheld(spl: Callable[..., object], tmp_path: Path) -> None:
    note = tmp_path / "note.json"
    note.write_text(json.dumps({"kind": "acme.note.v1", "body": {"text": "ghp_" + "a1" * 18}}))
    shown = spl("put", str(note), "--json")
    found = spl("show", shown.document["id"])  # type: ignore[attr-defined]
    assert "withheld" in found.out  # type: ignore[attr-defined]


def test_a_line_whose_id_is_a_secret_is_imported_once(home: Kernel) -> None:
    grown(home)
    facet = home.log.definitions(actor=home.log.actors("a")[0].id)[0].id.hex()
    batch = Batch(source="f", suite="s", definition=facet)
    lines = [json.dumps({"case": "k", "id": CANARY}).encode()]
    assert import_runs(home, "a", lines, batch).appended == 1
    assert import_runs(home, "a", lines, batch).appended == 0
    assert home.path is not None
    assert not leaked(home.path)
