"""From what was executed to the end of its run: the status, and the evidence in blobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from spl.contracts.harness import CheckResult, Text
from spl.harness.document import write_json
from spl.harness.execution import Executed
from spl.harness.observed import observed
from spl.ids import BlobId
from spl.kernel.tasks import results_of
from spl.records.evals import Expect
from spl.records.runs import RunEnd, RunStatus, Trees

OUTPUT: Final = "text/plain"
DIFF: Final = "text/x-diff"
JSON: Final = "application/json"
JSON_LINES: Final = "application/x-ndjson"
MAX_SHOWN: Final = 65_536
MAX_CAUSE: Final = 1024


class Item(NamedTuple):
    """Content of a blob that is kept as evidence."""

    role: str
    media_type: str
    data: bytes


def ended(
    executed: Executed, expect: Expect, *, tree: BlobId | None, interrupted: bool, timeout_ms: int | None
) -> RunEnd:
    """Return the end of a run, with every list in place.

    Args:
        executed: What came of the run.
        expect: What its case demands.
        tree: The files that the workspace began with, where the case names them.
        interrupted: Whether the operator stopped it.
        timeout_ms: The time limit, for the words of the cause.
    """
    status, cause = _status(executed, interrupted=interrupted, timeout_ms=timeout_ms)
    ran = executed.ran
    if ran is None:
        return RunEnd(status=status, cause=cause)
    seen = observed(ran.output)
    judged = status == "completed"
    return RunEnd(
        status=status,
        cause=cause,
        exit_code=ran.outcome.exit_code if ran.outcome.exit_code >= 0 else None,
        answer=seen.answer,
        tool_calls=seen.tool_calls,
        results=(results_of(executed.report, expect) or None) if judged else None,
        changed_files=executed.changed,
        usage=seen.usage,
        latency_ms=None if ran.outcome.not_started else ran.outcome.latency_ms,
        trees=None if tree is None else Trees(before=tree),
    )


def evidence(executed: Executed, end: RunEnd) -> Iterator[Item]:
    """Yield what is kept of a run beside its end: what it printed, its events, and what its checks found."""
    ran = executed.ran
    if ran is None:
        return
    for role, spool in (("stdout", ran.outcome.stdout), ("stderr", ran.outcome.stderr)):
        if spool:
            yield Item(role, OUTPUT, spool.read())
    if executed.diff:
        yield Item("diff", DIFF, executed.diff)
    seen = observed(ran.output)
    if seen.trace:
        yield Item("trace", JSON_LINES, seen.trace)
    if seen.usage_events:
        yield Item("usage", JSON_LINES, seen.usage_events)
    if end.results:
        shown = msgspec.structs.replace(executed.report, results=[_shown(c) for c in executed.report.results])
        pieces: list[bytes] = []
        write_json(shown, pieces.append)
        yield Item("checks", JSON, b"".join(pieces))


def _status(executed: Executed, *, interrupted: bool, timeout_ms: int | None) -> tuple[RunStatus, str | None]:
    """Return how an execution counts, and why, by the table in which an exit becomes a status."""
    ran = executed.ran
    if ran is None:
        return ("cancelled", "interrupted") if interrupted else ("blocked", cut(executed.problem))
    outcome = ran.outcome
    if outcome.cancelled:
        return "cancelled", "interrupted"
    if outcome.not_started or not outcome.latency_ms:
        return "blocked", cut(ran.stopped)
    if outcome.timed_out:
        limit = "the time limit" if timeout_ms is None else f"the time limit of {timeout_ms / 1000:g} s"
        return "timed_out", f"{limit} ended it"
    if outcome.signal is not None:
        return "failed", f"ended by signal {outcome.signal}"
    if outcome.exit_code:
        return "failed", cut(f"exit status {outcome.exit_code}: {ran.failure}")
    if executed.report.status == "blocked":  # its checks could not be carried out
        if interrupted:
            return "cancelled", "interrupted"
        why = next((check.message for check in executed.report.results), "")
        return "failed", cut(f"it left a workspace that cannot be read: {why}")
    return "completed", None


def cut(text: str) -> str | None:
    """Return a text as a cause: its beginning, or None when it says nothing."""
    cut = text.encode("utf-8", "replace")[:MAX_CAUSE].decode("utf-8", "ignore").strip()
    return cut or None


def _shown(check: CheckResult) -> CheckResult:
    """Return a check with the beginning of what it printed: its whole output may be long."""
    out, err = _beginning(check.stdout), _beginning(check.stderr)
    cut = check.truncated or len(out) >= MAX_SHOWN or len(err) >= MAX_SHOWN
    return msgspec.structs.replace(check, stdout=out, stderr=err, truncated=cut)


def _beginning(text: Text) -> str:
    if isinstance(text, str):
        return text
    data = bytearray()
    for piece in text.chunks():
        data += piece
        if len(data) >= MAX_SHOWN:
            break
    return bytes(data[:MAX_SHOWN]).decode("utf-8", "replace")
