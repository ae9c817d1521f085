"""Suites, cases, and the scores that folds conclude."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from spl.codec import digest
from spl.ids import Bytes32, CaseFacet, Digest, Facet
from spl.records.definitions import Argv, Body, Count, LongText, Name, check_long_text
from spl.records.wire import to_map

CostCoverage: TypeAlias = Literal["complete", "partial", "unavailable", "not_applicable"]


class Suite(Body, frozen=True):
    """`core.suite.v1`: root of a thread of cases."""

    name: Name
    description: str | None = None


class Command(Body, frozen=True):
    """A verification command: passes when it exits with status 0."""

    id: Name
    name: Name
    argv: Argv


class ChangedFiles(Body, frozen=True):
    """The files that a run must change, all and no others, and those that it must leave alone."""

    expected: list[str]
    forbidden: list[str] | None = None


class Context(Body, frozen=True):
    """Files that must, and must not, exist after the run."""

    required: list[str] | None = None
    forbidden: list[str] | None = None


class Answer(Body, frozen=True):
    """What the final answer must be, hold, or match (an RE2 pattern, found anywhere)."""

    equals: str | None = None
    contains: list[str] | None = None
    matches: str | None = None


class Tools(Body, frozen=True):
    """Tools that must, and must not, have been called."""

    called: list[str] | None = None
    not_called: list[str] | None = None


class Expect(Body, frozen=True):
    """What a case demands; at least one field is present."""

    commands: list[Command] | None = None
    changed_files: ChangedFiles | None = None
    context: Context | None = None
    trace: list[str] | None = None
    answer: Answer | None = None
    tools: Tools | None = None
    outcomes: list[Name] | None = None


class Case(Body, frozen=True):
    """`core.eval.case.v1`: one thing to test; a later case with the same key replaces the earlier one."""

    key: Name
    name: str
    goal: LongText
    expect: Expect
    description: str | None = None
    tags: list[str] | None = None
    difficulty: str | None = None
    fixture: str | None = None
    tree: Bytes32 | None = None

    def __post_init__(self) -> None:
        check_long_text(self.goal)


def case_facet(case: Case) -> CaseFacet:
    """Return the hash of what makes a case the case it is: key, goal, files, expectations.

    Name, description, tags and difficulty may change without a new facet; runs of the case keep counting.
    """
    identity: dict[str, object] = {"key": case.key, "goal": case.goal, "expect": to_map(case.expect)}
    if case.tree is not None:
        identity["tree"] = case.tree
    return digest.case_facet(identity)


class Retire(Body, frozen=True):
    """`core.eval.retire.v1`: the case named in `refs.case` leaves its suite."""

    reason: Annotated[str, Meta(min_length=1)]


class Scorer(Body, frozen=True):
    """The fold that graded: its name and version, and the regular expression engine with its version."""

    name: Name
    version: Count
    regex: Name


class Axis(Body, frozen=True):
    """The figures of one axis. Covered, ungraded and no_run sum to the cases of the suite."""

    passed: Count
    of: Count
    covered: Count
    ungraded: Count
    no_run: Count
    coverage: Digest

    @property
    def cases(self) -> int:
        """Return how many cases the suite had."""
        return self.covered + self.ungraded + self.no_run


class RunCounts(Body, frozen=True):
    """How the matched runs ended."""

    matched: Count
    open: Count
    completed: Count
    failed: Count
    timed_out: Count
    cancelled: Count
    blocked: Count
    trials: Count
    tool_calls_unknown: Count


class Observed(Body, frozen=True):
    """How many different programs and time limits the runs were made with."""

    programs: Count
    timeouts: Count
    mixed: bool


class Total(Body, frozen=True):
    """A sum and the number of runs that reported it."""

    total: int
    runs: Count


class UsageTotals(Body, frozen=True):
    """What the matched runs used; a total that no run reported is absent."""

    requests: Total | None = None
    input_tokens: Total | None = None
    output_tokens: Total | None = None
    cached_input_tokens: Total | None = None
    cache_write_tokens: Total | None = None
    reasoning_tokens: Total | None = None
    latency_ms: Total | None = None


class Cost(Body, frozen=True):
    """What the matched runs cost; `nusd` only where the coverage is complete or partial."""

    coverage: CostCoverage
    priced: Count
    unpriced: Count
    error: Count
    nusd: int | None = None


class Score(Body, frozen=True):
    """`core.eval.run.v1`: the figures of one suite, actor and definition, written by the kernel."""

    facet: Facet
    suite_revision: Digest
    scorer: Scorer
    structure: Axis
    substance: Axis
    runs: RunCounts
    observed: Observed
    usage: UsageTotals
    cost: Cost
    as_of: Count
