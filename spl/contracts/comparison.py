"""The documents of a comparison, and of an actor's regressions."""

from __future__ import annotations

from typing import Literal, TypeAlias

from spl.contracts.document import Document, Part
from spl.contracts.scores import RatePart
from spl.ids import CaseFacet, Digest, Facet, RecordId

Outcome: TypeAlias = Literal["better", "worse", "unchanged", "equivalent", "inconclusive", "not_comparable"]
GateOutcome: TypeAlias = Literal["pass", "fail", "refused", "inconclusive"]


class FoldPart(Part, frozen=True):
    """The fold that concluded this: a change of meaning is a new version."""

    name: str
    version: int


class SidePart(Part, frozen=True):
    """One side of a comparison: a definition by its facet, through one of its scores."""

    actor: RecordId
    definition: RecordId
    facet: Facet
    score: RecordId
    suite_revision: Digest


class SideAxisPart(Part, frozen=True):
    """The figures of one side on one axis, over the cases that were compared.

    Attributes:
        attempts_min: Fewest graded attempts of a case.
        attempts_max: Most graded attempts of a case; several are averaged within the case.
    """

    passed: int
    of: int
    rate: RatePart
    attempts_min: int
    attempts_max: int


class CellsPart(Part, frozen=True):
    """The four cells, with one run per case on both sides."""

    both_pass: int
    regressed: int
    improved: int
    both_fail: int


class DirectionsPart(Part, frozen=True):
    """What stands in place of the cells with repeats: cases whose rate is lower, higher or equal."""

    lower: int
    higher: int
    equal: int


class CaseChangePart(Part, frozen=True):
    """A case whose rate differs between the sides."""

    key: str
    facet: CaseFacet
    base: float
    candidate: float


class TestPart(Part, frozen=True):
    """The test of the difference.

    Attributes:
        p: Two-sided.
        p_adjusted: After Holm over the comparable axes; nothing more is corrected for.
        draws: How many sign patterns were drawn; absent where the test is exact.
    """

    __test__ = False  # not a class of tests, whatever pytest thinks of its name

    name: Literal["mcnemar_exact", "sign_flip_exact", "sign_flip_drawn"]
    p: float
    p_adjusted: float
    draws: int | None = None


class AxisComparison(Part, frozen=True):
    """One axis: the verdict first, then what it rests on.

    Attributes:
        reason: Why the axis is not comparable.
        cases: How many cases were compared.
        only_base: Keys of cases that only the base covers; with `common` they were left out.
        only_candidate: Keys of cases that only the candidate covers, likewise.
        difference: Candidate less base, of the means of the per-case rates.
        low: Lower end of the 95% interval of the difference (Bonett-Price, or Student's with repeats).
        high: Its upper end.
        equivalence_low: Lower end of the 1 - 2 alpha interval, which decides `equivalent` where a margin is given.
        equivalence_high: Its upper end.
        detectable: The smallest difference that this many cases could have shown with power 0.8 at the discordance
            seen; absent where none could.
    """

    verdict: Outcome
    cases: int
    only_base: list[str]
    only_candidate: list[str]
    reason: str | None = None
    base: SideAxisPart | None = None
    candidate: SideAxisPart | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    equivalence_low: float | None = None
    equivalence_high: float | None = None
    cells: CellsPart | None = None
    directions: DirectionsPart | None = None
    regressed: list[CaseChangePart] = []
    improved: list[CaseChangePart] = []
    test: TestPart | None = None
    detectable: float | None = None


class PreferencePart(Part, frozen=True):
    """The verdicts between the two sides, by axis or `unspecified`, from the candidate's point of view.

    Attributes:
        base_features: How often each feature was named as one of the base.
        candidate_features: How often each was named as one of the candidate.
        cycles: Groups of facets with both sides among them, of which each is preferred to every other.
    """

    won: dict[str, int]
    lost: dict[str, int]
    base_features: dict[str, int]
    candidate_features: dict[str, int]
    cycles: list[list[Facet]]


class GatePart(Part, frozen=True):
    """The answer of a gate: fail goes before refused, and refused before inconclusive.

    Attributes:
        failed: Axes that are worse, by more than what was allowed.
        refused: Axes that are not comparable.
        inconclusive: Axes that are inconclusive; an answer of its own only when asked for.
    """

    outcome: GateOutcome
    failed: list[str]
    refused: list[str]
    inconclusive: list[str]


class CompareDocument(Document, frozen=True, tag="spl.compare.v1"):
    """Is the candidate better than the base: one answer for each axis, never one for both.

    Attributes:
        common: Only the cases that both sides cover were compared.
        tested: How many axes Holm's correction was over; nothing more is corrected for.
        excluded: What was left out, by reason.
    """

    suite: RecordId
    suite_name: str
    base: SidePart
    candidate: SidePart
    structure: AxisComparison
    substance: AxisComparison
    preferences: PreferencePart
    alpha: float
    common: bool
    allow_mixed: bool
    tested: int
    fold: FoldPart
    excluded: dict[str, int]
    margin: float | None = None
    gate: GatePart | None = None


class StepPart(Part, frozen=True):
    """A definition against the one that it succeeded, or a candidate against the incumbent.

    Attributes:
        unscored: The facets of the two that have no score on the suite, so that nothing was compared.
    """

    change: Literal["install", "candidate"]
    base: RecordId
    candidate: RecordId
    comparison: CompareDocument | None = None
    unscored: list[Facet] = []


class RegressionSuite(Part, frozen=True):
    """The steps on one suite, installs in log order, then the candidates."""

    suite: RecordId
    name: str
    steps: list[StepPart]


class RegressionsDocument(Document, frozen=True, tag="spl.regressions.v1"):
    """Every install against what it succeeded, and every candidate against the incumbent."""

    actor: RecordId
    actor_name: str
    suites: list[RegressionSuite]
    excluded: dict[str, int]
    gate: GatePart | None = None
