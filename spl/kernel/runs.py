"""Runs as the log holds them: listed, shown, and ended where a crash left them open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from spl.contracts.runs import RunDocument, RunList, RunPart, RunsClosed
from spl.errors import ConflictError, InputError, UnknownNameError
from spl.ids import BlobId, RecordId
from spl.kernel.content import unfold_end, unfold_text
from spl.kernel.home import Kernel
from spl.kernel.names import (
    found_of,
    record_of,
    resolve_actor,
    resolve_definition,
    resolve_record,
    resolve_suite,
)
from spl.records.envelope import Draft, Record
from spl.records.evals import Case
from spl.records.registry import RUN_END, RUN_START
from spl.records.runs import RunEnd, RunStart
from spl.records.wire import to_map
from spl.store.layout import Layout
from spl.store.log import RunRow, Transaction, View
from spl.store.remains import WITHDRAWN, Remains
from spl.store.running import running

OPEN = "open"


def list_runs(
    kernel: Kernel,
    *,
    actor: str | None = None,
    suite: str | None = None,
    definition: str | None = None,
    limit: int | None = None,
) -> RunList:
    """Return the runs that match, in log order, those that began last where there is a limit.

    Args:
        kernel: The open home.
        actor: Only this actor's.
        suite: Only runs of this suite's current cases.
        definition: Only under this definition's facet.
        limit: How many at the most.

    Raises:
        UnknownNameError, UnknownIdError, AmbiguousNameError, AmbiguousIdError: A filter names nothing, or several.
    """
    view = kernel.log
    owner = None if actor is None else resolve_actor(view, actor).id
    facet = None if definition is None else resolve_definition(view, definition, owner).facet
    cases = None
    if suite is not None:
        cases = [row.facet for row in view.cases(resolve_suite(view, suite).id)]
    last = None if limit is None else limit + 1
    found = list(view.runs(actor=owner, facet=facet, case_facets=cases, last=last))
    more = limit is not None and len(found) > limit
    return RunList(runs=list(run_parts(kernel, found[1:] if more else found)), more=more)


def show_run(kernel: Kernel, text: str) -> RunDocument:
    """Return one run, by the id of its start or its end.

    Raises:
        UnknownIdError, AmbiguousIdError, InputError: It is not a run.
    """
    view = kernel.log
    record = resolve_record(view, text)
    if record.kind == RUN_END and record.thread is not None:
        record = record_of(view, record.thread)
    if record.kind != RUN_START:
        raise InputError(f"{text} is a {record.kind}, not a run")
    row = _row(view, record)
    start: dict[str, Any] = to_map(_start(record))
    if isinstance(start.get("goal"), bytes):
        start["goal"] = unfold_text(kernel.blobs, start["goal"])
    end_record = None if row.end_position is None else _end_record(view, row)
    blobs = {ref.r: ref.h.hex() for ref in end_record.blobs} if end_record else {}
    return RunDocument(
        id=record.id,
        run=next(run_parts(kernel, [row])),
        start=start,
        end=to_map(unfold_end(kernel.blobs, end_record)) if end_record and not _gone(end_record) else None,
        blobs=blobs,
    )


def run_evidence(kernel: Kernel, text: str, role: str) -> bytes:
    """Return what is kept of a run under a role: what it printed, its events, what its checks found.

    Raises:
        UnknownIdError, AmbiguousIdError, InputError: It is not a run.
        UnknownNameError: Nothing is kept under the role; the hint names those that are.
        DamagedError: The blob is missing or altered.
    """
    blobs = show_run(kernel, text).blobs
    if role not in blobs:
        kept = ", ".join(blobs) or "nothing"
        raise UnknownNameError(f"the run keeps no {role!r}", hint=f"it keeps {kept}")
    return kernel.blobs.get(BlobId(bytes.fromhex(blobs[role])))


def close_runs(kernel: Kernel, texts: Iterable[str], cause: str) -> RunsClosed:
    """End open runs as `cancelled`; without ids, all that no living process executes.

    Args:
        kernel: The open home.
        texts: Ids or prefixes of runs; every open run when empty.
        cause: Why they are ended.

    Raises:
        InputError: One of them has an end already, or is not a run.
        ConflictError: One of them is being executed.
    """
    wanted = [resolve_record(kernel.log, text) for text in texts]
    alive = set() if kernel.path is None else running(Layout(kernel.path).tmp)
    for record in wanted:
        if record.id in alive:
            raise ConflictError(
                f"the run {record.id.hex()[:12]} is being executed by another process",
                hint="interrupt that process: it records the end",
            )

    def append(tx: Transaction) -> list[RunRow]:
        rows = [_row(tx, record) for record in wanted]
        rows = rows or [row for row in tx.open_runs() if row.id not in alive]
        for row in rows:
            if row.end_position is not None:
                raise InputError(f"the run {row.id.hex()[:12]} has ended")
            by = record_of(tx, row.id).by
            tx.append(
                Draft(
                    body=RunEnd(status="cancelled", cause=cause),
                    by=by,
                    thread=row.id,
                    refs={"start": (row.id,)},
                )
            )
        return rows

    closed = kernel.transact(append)
    again = [next(kernel.log.runs(run=row.id)) for row in closed]
    left = [row.id for row in kernel.log.open_runs() if row.id in alive]
    return RunsClosed(closed=list(run_parts(kernel, again)), running=left)


def _row(view: View, record: Record) -> RunRow:
    if record.kind != RUN_START:
        raise InputError(f"{record.id.hex()[:12]} is a {record.kind}, not a run")
    return next(view.runs(run=record.id))


def _gone(record: Record) -> bool:
    return isinstance(record.body, Remains)


def _start(record: Record) -> RunStart:
    assert isinstance(record.body, RunStart)  # noqa: S101 - the caller has looked at the kind
    return record.body


def _end_record(view: View, row: RunRow) -> Record:
    assert row.end_position is not None  # noqa: S101 - the caller has looked
    entry = view.at([row.end_position])[0]
    return found_of(view, entry.id)


def run_parts(kernel: Kernel, rows: Sequence[RunRow]) -> Iterator[RunPart]:
    """Yield the part that each run has in a list."""
    view = kernel.log
    keys: dict[RecordId, str | None] = {}
    attempts: dict[tuple[Any, ...], int] = {}
    for row in rows:
        record = found_of(view, row.id)
        end = None if row.end_position is None else _end_record(view, row)
        case = record.ref("case")
        if case is not None and case not in keys:
            body = found_of(view, case).body
            keys[case] = body.key if isinstance(body, Case) else None
        attempt = None
        if row.case_facet is not None:
            place = (row.actor, row.facet, row.case_facet)
            attempts[place] = attempts.get(place, _earlier(view, row)) + 1
            attempt = attempts[place]
        yield _part(record, row, end, keys.get(case) if case else None, attempt)


def _earlier(view: View, row: RunRow) -> int:
    assert row.case_facet is not None  # noqa: S101 - the caller has looked
    rows = view.runs(actor=row.actor, facet=row.facet, case_facets=[row.case_facet])
    return sum(other.position < row.position for other in rows)


def _part(
    record: Record, row: RunRow, end_record: Record | None, case_key: str | None, attempt: int | None
) -> RunPart:
    end = end_record.body if end_record is not None else None
    definition = record.ref("definition")
    assert definition is not None  # noqa: S101 - a run's start names its definition
    common = RunPart(
        id=row.id,
        position=row.position,
        at=record.at,
        actor=row.actor,
        definition=definition,
        facet=row.facet,
        status=OPEN if end_record is None and not _gone(record) else WITHDRAWN,
        trial=isinstance(record.body, RunStart) and record.body.trial,
        case=record.ref("case"),
        case_key=case_key,
        suite=record.ref("suite"),
        attempt=attempt,
    )
    if not isinstance(end, RunEnd) or end_record is None:
        return common
    priced = [usage.cost_nusd for usage in end.usage or () if usage.cost_nusd is not None]
    return msgspec.structs.replace(
        common,
        status=end.status,
        end=end_record.id,
        exit_code=end.exit_code,
        latency_ms=end.latency_ms,
        cost_nusd=sum(priced) if priced else None,
        tool_calls=end.tool_calls.total if end.tool_calls else None,
        tool_calls_failed=end.tool_calls.failed if end.tool_calls else None,
        cause=end.cause,
    )
