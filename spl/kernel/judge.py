"""Preferences: recorded, retracted, folded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from spl.contracts.verdicts import VerdictDocument, VerdictList, VerdictPart
from spl.errors import ConflictError, InputError
from spl.folds.verdicts import on_the_way
from spl.folds.verdicts import verdicts as fold_verdicts
from spl.ids import Facet, RecordId, is_prefix
from spl.kernel.content import fit, unfold_text
from spl.kernel.home import Kernel
from spl.kernel.names import (
    INCUMBENT,
    LATEST,
    found_of,
    record_of,
    resolve_actor,
    resolve_definition,
    resolve_record,
)
from spl.records.envelope import Draft, Record
from spl.records.registry import DEFINITION, RUN_END, RUN_START, SCORE, VERDICT
from spl.records.verdicts import PairVerdict, Retraction
from spl.store.log import Transaction, VerdictRow, View

JUDGED = (RUN_START, RUN_END, SCORE, DEFINITION)


def judge(
    kernel: Kernel, winner: str, loser: str, verdict: PairVerdict, *, actor: str | None = None
) -> VerdictDocument:
    """Append the preference of one record over another, signed by the operator.

    Args:
        kernel: The open home.
        winner: The preferred run, score or definition: an id or prefix; of a definition also its facet, `incumbent`
            or `latest`.
        loser: The other.
        verdict: What the winner had, what the loser had, why, and the axis that it is about.
        actor: Whose definition `incumbent`, `latest` or a shared facet means.

    Raises:
        UnknownIdError, AmbiguousIdError: A side is not there.
        InputError: The sides are one record, or cannot be judged; a feature is blank, repeated or on both sides; or
            there is neither a feature nor a basis.
    """
    owner = None if actor is None else resolve_actor(kernel.log, actor).id
    won, lost = _side(kernel.log, winner, owner), _side(kernel.log, loser, owner)
    if won.id == lost.id:
        raise InputError("a record cannot be preferred to itself")
    for record in (won, lost):
        if record.kind not in JUDGED:
            raise InputError(
                f"{record.id.hex()[:12]} is a {record.kind}; runs, scores and definitions are judged"
            )
    basis = verdict.basis if isinstance(verdict.basis, str) else None
    _check_features(verdict.features, verdict.loser_features, basis)
    fitted, blobs, withheld = fit(kernel, verdict, texts=("basis",))

    def append(tx: Transaction) -> VerdictDocument:
        refs = {"winner": (won.id,), "loser": (lost.id,)}
        entry = tx.append(Draft(body=fitted, by=kernel.operator, refs=refs, blobs=blobs, withheld=withheld))
        row = next(tx.verdicts(verdict=entry.id))
        return VerdictDocument(id=entry.id, verdict=_part(kernel, tx, row))

    return kernel.transact(append)


def _side(view: View, text: str, actor: RecordId | None) -> Record:
    if text in (INCUMBENT, LATEST) or (is_prefix(text) and view.facets(text) and not view.resolve(text)):
        return record_of(view, resolve_definition(view, text, actor).id)
    return resolve_record(view, text)


def _check_features(features: Sequence[str], loser_features: Sequence[str], basis: str | None) -> None:
    for side, names in (("the winner", features), ("the loser", loser_features)):
        if any(not name.strip() for name in names):
            raise InputError(f"a feature of {side} is blank")
        if len(set(names)) != len(names):
            raise InputError(f"a feature of {side} is named twice")
    both = sorted(set(features) & set(loser_features))
    if both:
        raise InputError(f"on both sides, so it did not differ: {', '.join(both)}")
    if not features and not loser_features and not (basis or "").strip():
        raise InputError(
            "a verdict needs at least one feature or a basis",
            hint="add --feature, --loser-feature or --basis",
        )


def retract(kernel: Kernel, text: str, reason: str) -> VerdictDocument:
    """Append the retraction of a verdict; the verdict itself stays as it is.

    Raises:
        UnknownIdError, AmbiguousIdError, InputError: It is not a verdict, or the reason is blank.
        ConflictError: It was retracted before.
    """
    record = resolve_record(kernel.log, text)
    if record.kind != VERDICT:
        raise InputError(f"{text} is a {record.kind}, not a verdict")
    if not reason.strip():
        raise InputError("a retraction needs a reason", hint="add --reason")

    def append(tx: Transaction) -> VerdictDocument:
        if tx.referrers(record.id, "verdict"):
            raise ConflictError(f"the verdict {record.id.hex()[:12]} was retracted before")
        draft = Draft(body=Retraction(reason=reason), by=kernel.operator, refs={"verdict": (record.id,)})
        entry = tx.append(draft)
        row = next(tx.verdicts(verdict=record.id))
        return VerdictDocument(id=record.id, verdict=_part(kernel, tx, row), retraction=entry.id)

    return kernel.transact(append)


def list_verdicts(kernel: Kernel, actor: str | None = None) -> VerdictList:
    """Return the fold of all verdicts, or of those about an actor's definitions.

    Raises:
        UnknownNameError, AmbiguousNameError: The actor is not one.
    """
    view = kernel.log
    if actor is None:
        rows: list[VerdictRow] = list(view.verdicts())
    else:
        facets = {row.facet for row in view.definitions(actor=resolve_actor(view, actor).id)}
        found = {row.position: row for facet in facets for row in view.verdicts(facet=facet)}
        rows = [found[position] for position in sorted(found)]
    living = [row for row in rows if view.withdrawn(row.id) is None]
    return fold_verdicts((_part(kernel, view, row) for row in living), withdrawn=len(rows) - len(living))


def verdicts_about(kernel: Kernel, facets: Collection[Facet]) -> list[VerdictPart]:
    """Return the verdicts that say how some facets stand to each other, in log order.

    They are those between two of the facets, and those on a way of preferences that leads from one of them back to
    one of them, since a cycle may run through others. What is not connected with them is not read.
    """
    view = kernel.log
    rows: dict[int, VerdictRow] = {}
    reached, waiting = set(facets), list(facets)
    while waiting:
        winner = waiting.pop()
        for row in view.verdicts(facet=winner):
            if row.winner == winner and row.loser is not None:
                rows[row.position] = row
                if row.loser not in reached:
                    reached.add(row.loser)
                    waiting.append(row.loser)
    wanted = on_the_way(((row.winner, row.loser) for row in rows.values()), facets)
    found = [row for _, row in sorted(rows.items()) if row.winner in wanted and row.loser in wanted]
    return [_part(kernel, view, row) for row in found if view.withdrawn(row.id) is None]


def _part(kernel: Kernel, view: View, row: VerdictRow) -> VerdictPart:
    record: Record = record_of(view, row.id)
    body: Any = record.body
    winner, loser = record.ref("winner"), record.ref("loser")
    assert winner is not None  # noqa: S101 - the kind demands it
    assert loser is not None  # noqa: S101 - the kind demands it
    retractions = [found_of(view, rid) for rid in view.referrers(row.id, "verdict")]
    return VerdictPart(
        id=row.id,
        winner=winner,
        loser=loser,
        features=body.features,
        loser_features=body.loser_features,
        axis=body.axis,
        basis=unfold_text(kernel.blobs, body.basis),
        winner_facet=row.winner,
        loser_facet=row.loser,
        retracted=any(retraction.by == record.by for retraction in retractions),
        foreign=record.by != kernel.operator,
    )
