"""The documents of scores and of an actor's history."""

from __future__ import annotations

from spl.contracts.document import Document, Part
from spl.ids import CaseFacet, Digest, Facet, RecordId
from spl.records.evals import Axis, Cost, CostCoverage, Observed, RunCounts, Scorer, UsageTotals
from spl.records.verdicts import AxisName


class ReasonPart(Part, frozen=True):
    """An expectation that did not pass, and what was found."""

    kind: str
    id: str
    found: str


class GradePart(Part, frozen=True):
    """The grade of one run; the marks are pass, fail or ungraded."""

    case: RecordId
    case_facet: CaseFacet
    run: RecordId
    structure: str
    substance: str
    key: str | None = None
    reasons: list[ReasonPart] = []


class RatePart(Part, frozen=True):
    """How an axis reads.

    Attributes:
        repeats: Some case was attempted more than once; then `rate` is the mean of the per-case rates.
        low: Lower end of the 95% interval (Wilson, or cluster-robust over cases with repeats).
        high: Its upper end.
        worst: The rate if every uncovered case had failed.
        best: The rate if every uncovered case had passed.
        pass_at: pass@k for k from 1, means over the covered cases; empty without repeats.
        pass_all: pass^k, likewise.
    """

    repeats: bool
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    worst: float | None = None
    best: float | None = None
    pass_at: list[float] = []
    pass_all: list[float] = []


class FlakyPart(Part, frozen=True):
    """A case with both outcomes under one definition: all attempts count, nobody can rerun until green."""

    key: str
    facet: CaseFacet
    axis: AxisName
    passed: int
    of: int


class SpentPart(Part, frozen=True):
    """What the matched runs cost, against what passed on substance.

    Attributes:
        coverage: Whether every request has a price; `partial` makes both amounts lower bounds.
        priced: Requests with a price.
        of: All requests; an ended run without usage is one.
        nusd: Nano-US-dollars of all matched runs; absent where nothing is known.
        passed: Runs that passed on substance.
        per_passed_nusd: Nano-US-dollars for each of those, rounded half to even; absent where nothing is known or
            none passed.
    """

    coverage: CostCoverage
    priced: int
    of: int
    passed: int
    nusd: int | None = None
    per_passed_nusd: int | None = None


class ScoreDocument(Document, frozen=True, tag="spl.score.v1"):
    """One score: the record's figures, how they read, and the grade of each run.

    Attributes:
        appended: False when the latest score of the same suite, actor and facet says the same; then that one is
            returned and nothing was written.
        spent: What the matched runs cost, for each that passed on substance.
        recovered: Keys of cases that have a cancelled attempt and a later graded one.
        flaky: Cases with both outcomes, by axis, then by key.
        excluded: What was left out, by reason.
    """

    id: RecordId
    appended: bool
    suite: RecordId
    suite_name: str
    actor: RecordId
    actor_name: str
    definition: RecordId
    facet: Facet
    suite_revision: Digest
    scorer: Scorer
    structure: Axis
    substance: Axis
    structure_rate: RatePart
    substance_rate: RatePart
    runs: RunCounts
    observed: Observed
    usage: UsageTotals
    cost: Cost
    as_of: int
    spent: SpentPart
    recovered: list[str]
    flaky: list[FlakyPart]
    grades: list[GradePart]
    excluded: dict[str, int]


class ChangePart(Part, frozen=True):
    """The change of one axis against the predecessor: a difference of rates, or why there is none."""

    difference: float | None = None
    not_comparable: str | None = None


class HistoryLine(Part, frozen=True):
    """One facet of the actor on one suite: one definition, whatever records carry it.

    Attributes:
        definitions: Ids of all its records, in log order.
        states: candidate, installed, or both.
        looks: How many scores were taken under any revision of the suite.
        score: The latest under the revision; absent when it has none there.
        scored_at: When that was taken, in milliseconds since 1970 UTC.
        predecessor: The facet that its first install succeeded, else the incumbent at its first run.
        won: Verdicts that prefer it.
        lost: Verdicts that prefer another.
        spent: What the matched runs cost, for each that passed on substance.
    """

    facet: Facet
    definitions: list[RecordId]
    states: list[str]
    incumbent: bool
    looks: int
    won: int
    lost: int
    label: str | None = None
    score: RecordId | None = None
    scored_at: int | None = None
    structure: Axis | None = None
    substance: Axis | None = None
    structure_rate: RatePart | None = None
    substance_rate: RatePart | None = None
    structure_change: ChangePart | None = None
    substance_change: ChangePart | None = None
    predecessor: Facet | None = None
    cost: Cost | None = None
    spent: SpentPart | None = None


class HistoryRevision(Part, frozen=True):
    """The lines under one revision of a suite, by facet in order of first appearance.

    Attributes:
        cases: How many cases it has.
        left_out: How many further lines there are, which were not asked for.
    """

    revision: Digest
    cases: int
    lines: list[HistoryLine]
    left_out: int = 0


class HistorySuite(Part, frozen=True):
    """The history on one suite: the lines under the latest revision that was scored, and under those before it.

    Attributes:
        lines: Of every facet that was scored on the suite; one that has no score under this revision has no figures.
        left_out: How many further lines there are, which were not asked for.
        earlier: The other revisions that were scored, the latest first.
    """

    suite: RecordId
    name: str
    revision: Digest
    cases: int
    lines: list[HistoryLine]
    left_out: int = 0
    earlier: list[HistoryRevision] = []


class HistoryDocument(Document, frozen=True, tag="spl.history.v1"):
    """Is it getting better, and on which axis."""

    actor: RecordId
    actor_name: str
    suites: list[HistorySuite]
    unscored: list[HistoryLine]
    foreign_scores: list[RecordId]
    excluded: dict[str, int]
