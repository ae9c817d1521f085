"""Scores, folded again from the log as it was: whoever has the records can compute every figure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from spl.contracts.verify import Finding, RefoldPart
from spl.errors import SplError
from spl.folds.grade import scorer
from spl.folds.inputs import CaseInput
from spl.folds.score import graded_runs, score
from spl.ids import RecordId
from spl.kernel.grades import GRADES, decode_grades, encode_grades
from spl.kernel.home import Kernel
from spl.kernel.names import found_of
from spl.kernel.score import read_runs
from spl.records.envelope import Record
from spl.records.evals import Case, Retire, Score, case_facet
from spl.store.log import ScoreRow, Selection, View
from spl.store.remains import Remains


class Refolded(Struct, frozen=True):
    """What became of one score: nothing is said where it was reproduced, else what differs, or why nobody can say."""

    row: ScoreRow
    differs: str = ""
    unknown: str = ""


def refold(kernel: Kernel) -> Iterator[Refolded]:
    """Yield what becomes of every score when its fold is done again over the log of its time, in log order.

    The very function that made it is given the cases that were current and the runs that matched then. Only a score by
    this kernel and this version of the fold can be reproduced, and only while its evidence has not been withdrawn.
    """
    for row in kernel.log.scores():
        record = found_of(kernel.log, row.id)
        try:
            yield _refolded(kernel, row, record)
        except SplError as error:
            yield Refolded(row, differs=error.message)


def counted(results: Iterator[Refolded]) -> tuple[RefoldPart, list[Finding], list[Finding]]:
    """Return how many scores were reproduced, with a fault for each that differs and a notice for each other."""
    counts = {"reproduced": 0, "differing": 0, "not_reproducible": 0}
    faults: list[Finding] = []
    notices: list[Finding] = []
    for result in results:
        where = {"check": "score", "position": result.row.position, "id": result.row.id.hex()}
        if result.differs:
            counts["differing"] += 1
            faults.append(Finding(message=result.differs, **where))  # type: ignore[arg-type]
        elif result.unknown:
            counts["not_reproducible"] += 1
            notices.append(Finding(message=f"not reproducible: {result.unknown}", **where))  # type: ignore[arg-type]
        else:
            counts["reproduced"] += 1
    return RefoldPart(**counts), faults, notices


def _refolded(kernel: Kernel, row: ScoreRow, record: Record) -> Refolded:
    body = record.body
    if isinstance(body, Remains):
        return Refolded(row, unknown="it was withdrawn")
    if record.by != kernel.kernel:
        return Refolded(row, unknown=f"it is by {record.by}, another kernel")
    if not isinstance(body, Score):
        return Refolded(row, unknown="it has a field that this version does not know")
    if body.scorer != scorer():
        name = f"{body.scorer.name} {body.scorer.version} with {body.scorer.regex}"
        return Refolded(row, unknown=f"it was made by {name}")
    view = kernel.log
    cases = _cases_at(view, row.suite, body.as_of)
    runs, _ = read_runs(kernel, view, row.actor, row.facet, cases, body.as_of)
    graded = graded_runs(cases, runs)
    again = score(row.facet, cases, graded, body.as_of)
    table = record.blob(GRADES)
    same_table = table is not None and kernel.blobs.get(table.h) == encode_grades(graded)
    if again == body and same_table:
        return Refolded(row)
    if _withdrawn(kernel, record, body.as_of):
        return Refolded(row, unknown="some of its evidence was withdrawn")
    parts = [name for name in body.__struct_fields__ if getattr(again, name) != getattr(body, name)]
    return Refolded(
        row, differs=f"the fold gives another result: {', '.join(parts) or 'the table of grades'}"
    )


def _cases_at(view: View, suite: RecordId, size: int) -> list[CaseInput]:
    """Return the cases of a suite that were current when the log had a size, in the order of their keys' last change.

    A later case with the same key replaces the earlier one in its place, and a retired case leaves.
    """
    current: dict[str, CaseInput] = {}
    for entry in view.scan(Selection(thread=suite, stop=size)):
        record = found_of(view, entry.id)
        if isinstance(record.body, Case):
            body = record.body
            current[body.key] = CaseInput(record.id, body.key, case_facet(body), body.expect)
        elif isinstance(record.body, Retire):
            retired = record.ref("case")
            current = {key: case for key, case in current.items() if case.id != retired}
    return list(current.values())


def _withdrawn(kernel: Kernel, record: Record, as_of: int) -> bool:
    """Say whether a run of a score, the end of one, or a case of its suite has been withdrawn."""
    view = kernel.log
    runs = {grade.run for grade in decode_grades(kernel, record)}
    ends = [row.end_position for run in runs for row in view.runs(run=run) if row.end_position is not None]
    thread = view.scan(Selection(thread=record.thread, stop=as_of))
    found = (*(view.get(run) for run in runs), *view.at(ends), *thread)
    return any(entry is None or entry.record is None for entry in found)
