"""The table of grades, cell by cell."""

from __future__ import annotations

from typing import Any

import pytest

from spl.folds.grade import Grade, grade, scorer
from spl.records.evals import Answer, ChangedFiles, Command, Context, Expect, Tools
from spl.records.runs import Result, RunEnd, ToolCalls

ONE = Expect(outcomes=["a"])
TWO = Expect(outcomes=["a", "b"])


def end(status: Any = "completed", calls: tuple[int, int] | None = (2, 0), **results: str) -> RunEnd:
    return RunEnd(
        status=status,
        tool_calls=None
        if calls is None
        else ToolCalls(total=calls[0], failed=calls[1], names={"edit": calls[0]}),
        results=[Result(kind="outcome", id=name, status=found) for name, found in results.items()] or None,  # type: ignore[arg-type]
    )


def marks(found: Grade) -> tuple[str, str]:
    return found.structure, found.substance


@pytest.mark.parametrize(
    ("expect", "run", "structure", "substance"),
    [
        (ONE, None, "fail", "ungraded"),
        (ONE, end("cancelled", a="pass"), "ungraded", "ungraded"),
        (ONE, end("blocked", a="pass"), "ungraded", "ungraded"),
        (ONE, end(a="pass"), "pass", "pass"),
        (ONE, end(a="fail"), "pass", "fail"),
        (ONE, end(calls=(3, 1), a="pass"), "fail", "pass"),
        (ONE, end(calls=None, a="pass"), "pass", "pass"),
        (ONE, end(), "pass", "ungraded"),
        (ONE, end(a="error"), "pass", "ungraded"),
        (ONE, end(a="blocked"), "pass", "ungraded"),
        (TWO, end(a="fail", b="error"), "pass", "fail"),
        (TWO, end(a="fail"), "pass", "fail"),
        (TWO, end(a="pass"), "pass", "ungraded"),
        (TWO, end(a="pass", b="pass"), "pass", "pass"),
        (ONE, end("failed"), "fail", "fail"),
        (ONE, end("failed", a="fail"), "fail", "fail"),
        (ONE, end("failed", a="pass"), "fail", "pass"),
        (TWO, end("timed_out", a="pass"), "fail", "fail"),
        (TWO, end("timed_out", a="pass", b="pass"), "fail", "pass"),
        (ONE, end("timed_out", a="error"), "fail", "fail"),
    ],
)
def test_each_row_of_the_table(expect: Expect, run: RunEnd | None, structure: str, substance: str) -> None:
    assert marks(grade(expect, run)) == (structure, substance)


def test_every_kind_of_expectation_finds_its_own_evidence() -> None:
    expect = Expect(
        commands=[Command(id="t", name="T", argv=["true"])],
        changed_files=ChangedFiles(expected=["a"], forbidden=["b"]),
        context=Context(required=["c"]),
        trace=["tool:x"],
    )
    evidence = [
        ("command", "t"),
        ("changed_files", "changed_files"),
        ("forbidden_changed_files", "forbidden_changed_files"),
        ("context", "context_checks"),
        ("trace", "trace_events"),
    ]
    results = [Result(kind=kind, id=name, status="pass") for kind, name in evidence]  # type: ignore[arg-type]
    assert grade(expect, RunEnd(status="completed", results=results)).substance == "pass"
    for missing in range(len(results)):
        rest = results[:missing] + results[missing + 1 :]
        found = grade(expect, RunEnd(status="completed", results=rest))
        assert found.substance == "ungraded"
        assert (found.reasons[0].kind, found.reasons[0].id, found.reasons[0].found) == (
            *evidence[missing],
            "missing",
        )


@pytest.mark.parametrize(
    ("wanted", "answer", "substance"),
    [
        (Answer(equals="42"), "42", "pass"),
        (Answer(equals="42"), "42 ", "fail"),
        (Answer(contains=["4", "2"]), "42", "pass"),
        (Answer(contains=["4", "3"]), "42", "fail"),
        (Answer(matches="(?i)YES$"), "oh yes", "pass"),
        (Answer(matches="^no"), "oh yes", "fail"),
        (Answer(matches="(a+)+$"), "a" * 50_000 + "b", "fail"),
        (Answer(matches="(?<=a)b"), "ab", "ungraded"),
        (Answer(matches="(unclosed"), "x", "ungraded"),
        (Answer(equals="42"), None, "ungraded"),
    ],
)
def test_answers_are_judged_by_the_fold(wanted: Answer, answer: str | None, substance: str) -> None:
    assert grade(Expect(answer=wanted), RunEnd(status="completed", answer=answer)).substance == substance


@pytest.mark.parametrize(
    ("wanted", "calls", "substance"),
    [
        (Tools(called=["edit"]), {"edit": 1}, "pass"),
        (Tools(called=["edit"]), {"read": 1}, "fail"),
        (Tools(not_called=["rm"]), {"read": 1}, "pass"),
        (Tools(not_called=["rm"]), {"rm": 1}, "fail"),
        (Tools(called=["edit"]), None, "ungraded"),
    ],
)
def test_tools_are_judged_by_the_calls(wanted: Tools, calls: dict[str, int] | None, substance: str) -> None:
    tool_calls = None if calls is None else ToolCalls(total=1, failed=0, names=calls)
    assert (
        grade(Expect(tools=wanted), RunEnd(status="completed", tool_calls=tool_calls)).substance == substance
    )


def test_the_scorer_names_its_engine() -> None:
    assert scorer().regex.startswith("google-re2 ")
