"""Scores that the log holds: which of them count, and the table of grades beside each."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from spl.codec import canonical
from spl.errors import DamagedError
from spl.folds.grade import Mark
from spl.folds.score import GradedRun
from spl.ids import CaseFacet, RecordId
from spl.kernel.home import Kernel
from spl.kernel.names import found_of
from spl.records.envelope import Record
from spl.records.evals import Score
from spl.store.log import ScoreRow, View

GRADES = "grades"


def own_scores(kernel: Kernel, rows: Sequence[ScoreRow], view: View | None = None) -> list[ScoreRow]:
    """Return the scores by this home's kernel that were not withdrawn; only those count."""
    looked = kernel.log if view is None else view
    found = [(row, found_of(looked, row.id)) for row in rows]
    return [row for row, record in found if record.by == kernel.kernel and isinstance(record.body, Score)]


def encode_grades(graded: Sequence[GradedRun]) -> bytes:
    """Return the table of grades, canonical CBOR: case facet, case id, run id, two marks, reasons."""
    return canonical.encode(
        [
            [
                item.case.facet,
                item.case.id,
                item.run.id,
                item.grade.structure,
                item.grade.substance,
                [[reason.kind, reason.id, reason.found] for reason in item.grade.reasons],
            ]
            for item in graded
        ]
    )


class GradeRow(msgspec.Struct, frozen=True, array_like=True):
    """One line of a stored table of grades."""

    case_facet: CaseFacet
    case: RecordId
    run: RecordId
    structure: Mark
    substance: Mark
    reasons: list[tuple[str, str, str]]


def decode_grades(kernel: Kernel, record: Record) -> list[GradeRow]:
    """Return the table of grades of a score.

    Raises:
        DamagedError: Its blob is missing, altered or malformed.
    """
    ref = record.blob(GRADES)
    if ref is None:
        return []
    try:
        return msgspec.convert(
            canonical.decode(kernel.blobs.get(ref.h)), list[GradeRow], builtin_types=(bytes,)
        )
    except msgspec.ValidationError as error:
        raise DamagedError(f"the grades of score {record.id.hex()} are not readable: {error}") from error
