from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from records.samples import DRAFTS, rid

from spl.codec import canonical, digest
from spl.errors import EncodingError, ReservedKindError, SchemaError
from spl.records.definitions import Definition
from spl.records.envelope import Draft, check_record, encode_record, read_record
from spl.records.evals import Case, Expect, case_facet
from spl.records.registry import KINDS
from spl.records.runs import Result, RunEnd

PINNED = Path(__file__).parent.parent / "vectors" / "records.json"
AT, SALT = 1_790_000_000_000, bytes(range(16))


def encoded(draft: Draft) -> bytes:
    return encode_record(draft, at=AT, salt=SALT)


def test_there_is_a_sample_of_every_kind() -> None:
    assert set(DRAFTS) == set(KINDS)


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_bytes_and_the_id_of_every_kind_are_pinned(kind: str) -> None:
    pinned = json.loads(PINNED.read_text("utf-8"))[kind]
    data = encoded(DRAFTS[kind])
    assert data.hex() == pinned["record"]
    assert digest.record_id(data).hex() == pinned["id"]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_record_reads_back_as_it_was_written(kind: str) -> None:
    data = encoded(DRAFTS[kind])
    record = check_record(data)
    assert record == read_record(data)
    assert record.kind == kind
    assert record.body == DRAFTS[kind].body
    assert record.opaque is None


def _changed(sample: str, /, **changes: Any) -> bytes:
    """Return the sample's bytes with keys of the envelope replaced, or removed where the change is None."""
    value: Any = canonical.decode(encoded(DRAFTS[sample]))
    value.update(changes)
    return canonical.encode({key: item for key, item in value.items() if item is not None})


BROKEN: dict[str, tuple[str, dict[str, Any], str]] = {
    "unknown key": ("core.suite.v1", {"extra": 1}, "$.extra"),
    "wrong version": ("core.suite.v1", {"v": 2}, "$.v"),
    "kind in capitals": ("core.suite.v1", {"kind": "Acme.note.v1"}, "$.kind"),
    "no salt": ("core.suite.v1", {"salt": None}, "$.salt"),
    "salt on a score": ("core.eval.run.v1", {"salt": SALT}, "$.salt"),
    "short salt": ("core.suite.v1", {"salt": b"x"}, "$.salt"),
    "thread on a root": ("core.suite.v1", {"thread": rid(1)}, "$.thread"),
    "no thread": ("core.eval.case.v1", {"thread": None}, "$.thread"),
    "unknown role": ("core.suite.v1", {"refs": {"friend": [rid(1)]}}, "$.refs.friend"),
    "missing role": ("core.run.end.v1", {"refs": None}, "$.refs.start"),
    "two ids in a role": ("core.run.end.v1", {"refs": {"start": [rid(1), rid(2)]}}, "$.refs.start"),
    "short id": ("core.run.end.v1", {"refs": {"start": [b"short"]}}, "$.refs.start[0]"),
    "empty refs": ("core.suite.v1", {"refs": {}}, "$.refs"),
    "empty blobs": ("core.suite.v1", {"blobs": []}, "$.blobs"),
    "unknown field": ("core.suite.v1", {"body": {"name": "a", "colour": "red"}}, "$.body.colour"),
    "missing field": ("core.suite.v1", {"body": {}}, "$.body.name"),
    "null field": ("core.suite.v1", {"body": {"name": "a", "description": None}}, "$.body.description"),
    "not a DID": ("core.suite.v1", {"by": "somebody"}, "$.by"),
    "wrong key": ("core.suite.v1", {"by": "did:key:zAbc"}, "$.by"),
    "withheld nothing": ("core.suite.v1", {"withheld": 0}, "$.withheld"),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_every_rule_of_the_envelope_refuses_with_its_path(name: str) -> None:
    kind, changes, path = BROKEN[name]
    with pytest.raises(SchemaError) as refused:
        check_record(_changed(kind, **changes))
    assert path in [problem["path"] for problem in refused.value.details["problems"]]


def test_every_problem_is_named_at_once() -> None:
    body = {"status": "done", "exit_code": "0", "colour": 1, "results": [{"kind": "command", "id": "a"}]}
    with pytest.raises(SchemaError) as refused:
        check_record(_changed("core.run.end.v1", body=body, refs={"x": [rid(1)]}))
    paths = {problem["path"] for problem in refused.value.details["problems"]}
    assert {
        "$.body.status",
        "$.body.exit_code",
        "$.body.colour",
        "$.body.results[0].status",
        "$.refs.x",
    } <= paths


def test_a_behaviour_is_checked_by_its_adapter() -> None:
    behaviour = {"adapter": "command", "argv": ["a", "{model}"], "params": {"a": [{"dec": [1]}]}, "speed": 1}
    body = Definition(behaviour=behaviour, state="candidate", origin="l", trust="untrusted")
    with pytest.raises(SchemaError) as refused:
        check_record(encoded(Draft(body=body, by=DRAFTS["core.actor.v1"].by, thread=rid(1))))
    paths = {problem["path"] for problem in refused.value.details["problems"]}
    assert {"$.body.behaviour.speed", "$.body.behaviour.params.a[0].dec"} <= paths


def test_unknown_core_kinds_are_refused_here_and_opaque_on_import() -> None:
    data = _changed("core.suite.v1", kind="core.novelty.v1", body={"anything": 1})
    with pytest.raises(ReservedKindError):
        check_record(data)
    assert check_record(data, foreign=True).opaque is not None
    later = _changed(
        "core.eval.case.v1", body={"key": "k", "name": "n", "goal": "g", "expect": {"vibes": ["good"]}}
    )
    with pytest.raises(SchemaError):
        check_record(later)
    assert check_record(later, foreign=True).opaque is not None


def test_other_namespaces_are_free_and_a_plain_map_cannot_claim_core() -> None:
    by = DRAFTS["core.actor.v1"].by
    note = Draft(kind="acme.note.v1", body={"any": ["thing", None]}, by=by, refs={"about": (rid(1), rid(2))})
    assert check_record(encoded(note)).body == {"any": ["thing", None]}
    with pytest.raises(ReservedKindError):
        encoded(Draft(kind="core.suite.v1", body={"name": "x"}, by=by))


def test_long_texts_and_lists_belong_in_blobs() -> None:
    case = Case(key="k", name="n", goal="g" * 16_385, expect=Expect(outcomes=["r"]))
    by = DRAFTS["core.actor.v1"].by
    with pytest.raises(SchemaError, match=r"\$\.body"):
        check_record(encoded(Draft(body=case, by=by, thread=rid(1))))
    short = msgspec.structs.replace(case, goal=bytes(rid(9)))
    with pytest.raises(SchemaError, match="not named"):
        check_record(encoded(Draft(body=short, by=by, thread=rid(1))))
    results = [Result(kind="outcome", id=f"outcome-{i}", status="pass", message="m" * 90) for i in range(200)]
    end = Draft(
        body=RunEnd(status="completed", results=results), by=by, thread=rid(1), refs={"start": (rid(1),)}
    )
    with pytest.raises(SchemaError, match="belongs in a blob"):
        check_record(encoded(end))
    with pytest.raises(EncodingError, match="61440"):
        encoded(Draft(kind="acme.note.v1", body={"text": "x" * 61_440}, by=by))


def test_a_check_stands_once_in_a_run() -> None:
    results = [Result(kind="outcome", id="a", status="pass"), Result(kind="outcome", id="a", status="fail")]
    body = RunEnd(status="completed", results=results)
    draft = Draft(body=body, by=DRAFTS["core.actor.v1"].by, thread=rid(1), refs={"start": (rid(1),)})
    with pytest.raises(SchemaError, match="twice"):
        check_record(encoded(draft))


def test_only_what_makes_a_case_the_case_it_is_moves_its_facet() -> None:
    case = DRAFTS["core.eval.case.v1"].body
    assert isinstance(case, Case)
    assert case_facet(msgspec.structs.replace(case, name="N", description="d", tags=["t"])) == case_facet(
        case
    )
    for change in ({"key": "other"}, {"goal": "else"}, {"tree": None}, {"expect": Expect(outcomes=["x"])}):
        assert case_facet(msgspec.structs.replace(case, **change)) != case_facet(case)
