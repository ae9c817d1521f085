"""The document of an actor's report: figures, comparisons, cases, costs and verdicts, with the ids behind them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from spl.contracts.comparison import FoldPart, StepPart
from spl.contracts.document import Document, Part
from spl.contracts.scores import FlakyPart, HistoryLine, ReasonPart
from spl.contracts.verdicts import VerdictList
from spl.ids import CaseFacet, Digest, RecordId
from spl.records.evals import Observed, RunCounts, Scorer

Flip: TypeAlias = Literal["improved", "regressed"]


class CellAxis(Part, frozen=True):
    """How the runs of one definition on one case stand on one axis.

    Attributes:
        passed: Runs that passed.
        of: Runs that were graded; 0 where none was.
        ungraded: Runs that could not be graded; with `of` at 0 too, there was no run.
        flip: How the case's rate moved against the predecessor's; absent where it did not, where one side does not
            cover the case, and where the two may not be compared.
    """

    passed: int = 0
    of: int = 0
    ungraded: int = 0
    flip: Flip | None = None


class CellPart(Part, frozen=True):
    """One definition on one case; both axes, never blended.

    Attributes:
        reasons: What did not pass, each said once, over all attempts.
    """

    structure: CellAxis
    substance: CellAxis
    reasons: list[ReasonPart] = []


class CaseRow(Part, frozen=True):
    """One case against every line of its suite, in the order of the lines."""

    key: str
    facet: CaseFacet
    cells: list[CellPart]


class ReportLine(Part, frozen=True):
    """One definition on the suite: its line of the history, and what the report adds.

    All but `line` is absent where the definition has no score under the suite's latest scored revision.

    Attributes:
        scorer: What graded.
        as_of: The size of the log that the score was folded over.
        flaky: Cases with both outcomes, by axis, then in the order of the cases.
    """

    line: HistoryLine
    scorer: Scorer | None = None
    runs: RunCounts | None = None
    observed: Observed | None = None
    as_of: int | None = None
    flaky: list[FlakyPart] = []


class ReportSuite(Part, frozen=True):
    """One suite under the latest revision that was scored.

    Attributes:
        current: Whether that is the revision that the suite has now.
        cases: How many cases that revision has.
        lines: By definition, in order of first appearance.
        rows: Its cases by key; cases that no score of this revision attempted are missing where it is not current.
        steps: Every install against what it succeeded, then every candidate against the incumbent.
    """

    suite: RecordId
    name: str
    revision: Digest
    current: bool
    cases: int
    lines: list[ReportLine]
    rows: list[CaseRow]
    steps: list[StepPart]


class ReportDocument(Document, frozen=True, tag="spl.report.v1"):
    """Everything that is known of whether an actor gets better, and on which axis: what the renderings are made of.

    Attributes:
        unscored: Definitions without any score.
        verdicts: Those about the actor's definitions.
        foreign_scores: Scores by others; they do not count.
        fold: What concluded the cells, flips and costs.
        excluded: What was left out, by reason.
    """

    actor: RecordId
    actor_name: str
    suites: list[ReportSuite]
    unscored: list[HistoryLine]
    verdicts: VerdictList
    foreign_scores: list[RecordId]
    fold: FoldPart
    excluded: dict[str, int]
