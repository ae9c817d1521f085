"""The grade: one run against its case, on both axes, with the reasons kept."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import metadata
from typing import Literal, TypeAlias

from msgspec import Struct

from spl.records.evals import Answer, Expect, Scorer, Tools
from spl.records.runs import RunEnd

NAME = "spl.grade"
VERSION = 1

Mark: TypeAlias = Literal["pass", "fail", "ungraded"]


class Reason(Struct, frozen=True):
    """Why an axis is not a plain pass: the expectation by (kind, id), and what was found."""

    kind: str
    id: str
    found: str


class Grade(Struct, frozen=True):
    """What the fold says of one run; the axes are never blended."""

    structure: Mark
    substance: Mark
    reasons: list[Reason]


def scorer() -> Scorer:
    """Return the name and version of this fold, with the regular expression engine that it uses."""
    return Scorer(name=NAME, version=VERSION, regex=f"google-re2 {metadata.version('google-re2')}")


def grade(expect: Expect, end: RunEnd | None) -> Grade:
    """Return the grade of a run that ended so, or that is open.

    Args:
        expect: What its case demands.
        end: How it ended, with its answer and lists in place; None while it is open.
    """
    if end is None:
        return Grade("fail", "ungraded", [Reason("run", "end", "open: it is not terminal")])
    if end.status in ("cancelled", "blocked"):
        return Grade("ungraded", "ungraded", [Reason("run", "status", end.status)])
    found = list(_judged(expect, end))
    reasons = [Reason(kind, name, outcome) for kind, name, outcome in found if outcome != "pass"]
    if end.status == "completed":
        structure: Mark = "pass"
        if end.tool_calls is not None and end.tool_calls.failed:
            structure = "fail"
            count = f"{end.tool_calls.failed} of {end.tool_calls.total} failed"
            reasons.append(Reason("run", "tool_calls", count))
        outcomes = {outcome for _, _, outcome in found}
        substance: Mark = "fail" if "fail" in outcomes else "pass" if outcomes <= {"pass"} else "ungraded"
        return Grade(structure, substance, reasons)
    reasons.append(Reason("run", "status", end.status))
    # It ran and did not deliver: only evidence for every expectation can say otherwise.
    return Grade("fail", "fail" if any(outcome != "pass" for _, _, outcome in found) else "pass", reasons)


def _judged(expect: Expect, end: RunEnd) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, id, outcome) for each expectation; an outcome without evidence is `missing`."""
    results: dict[tuple[str, str], str] = {
        (result.kind, result.id): result.status for result in end.results or ()
    }

    def evidence(kind: str, name: str) -> tuple[str, str, str]:
        return kind, name, results.get((kind, name), "missing")

    for command in expect.commands or ():
        yield evidence("command", command.id)
    if expect.changed_files is not None:
        yield evidence("changed_files", "changed_files")
        if expect.changed_files.forbidden:
            yield evidence("forbidden_changed_files", "forbidden_changed_files")
    if expect.context is not None:
        yield evidence("context", "context_checks")
    if expect.trace is not None:
        yield evidence("trace", "trace_events")
    for outcome in expect.outcomes or ():
        yield evidence("outcome", outcome)
    if expect.answer is not None:
        yield from _judged_answer(expect.answer, end.answer)  # type: ignore[arg-type]
    if expect.tools is not None:
        yield from _judged_tools(expect.tools, end)


def _judged_answer(wanted: Answer, answer: str | None) -> Iterator[tuple[str, str, str]]:
    def verdict(name: str, holds: bool | None) -> tuple[str, str, str]:  # noqa: FBT001 - a private closure
        return "answer", name, "missing" if holds is None else "pass" if holds else "fail"

    unknown = answer is None
    text = answer or ""
    if wanted.equals is not None:
        yield verdict("equals", None if unknown else text == wanted.equals)
    for index, part in enumerate(wanted.contains or ()):
        yield verdict(f"contains[{index}]", None if unknown else part in text)
    if wanted.matches is not None:
        yield verdict("matches", None if unknown else _matches(wanted.matches, text))


def _judged_tools(wanted: Tools, end: RunEnd) -> Iterator[tuple[str, str, str]]:
    names = None if end.tool_calls is None else end.tool_calls.names
    for name in wanted.called or ():
        yield "tools", f"called:{name}", "missing" if names is None else "pass" if name in names else "fail"
    for name in wanted.not_called or ():
        found = "missing" if names is None else "fail" if name in names else "pass"
        yield "tools", f"not_called:{name}", found


def _matches(pattern: str, text: str) -> bool | None:
    compiled = _compiled(pattern)
    return None if compiled is None else compiled.search(text) is not None  # type: ignore[attr-defined]


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> object | None:
    """Return the pattern for the linear-time engine; None where it is not one, which leaves the case ungraded."""
    import re2  # noqa: PLC0415 - only suites with `matches` need it

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)  # type: ignore[no-any-return]
    except re2.error:
        return None
