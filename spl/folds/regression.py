"""The comparison: is the candidate better than the base, on which axis, and how sure is that.

The data's way: the kernel takes a score of each side with its table of grades; `compare` checks on each axis that like
stands against like, averages the marks within each case, tests the per-case differences, and says so in one document.
`regressions` does it along an actor's installs, and `gate` turns documents into an answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Literal

import msgspec
from msgspec import Struct

from spl.contracts.comparison import (
    AxisComparison,
    CaseChangePart,
    CellsPart,
    CompareDocument,
    DirectionsPart,
    FoldPart,
    GatePart,
    Outcome,
    PreferencePart,
    SideAxisPart,
    SidePart,
    StepPart,
    TestPart,
)
from spl.contracts.verdicts import VerdictPart
from spl.folds import statistics
from spl.folds.comparable import why_not
from spl.folds.grade import Mark
from spl.folds.history import DefinitionInput
from spl.folds.score import rates
from spl.folds.statistics import Interval, rounded
from spl.folds.verdicts import UNSPECIFIED, cycles
from spl.ids import CaseFacet, Facet, RecordId
from spl.records.evals import Score
from spl.records.verdicts import AxisName

NAME = "spl.regression"
VERSION = 1
AXES: tuple[AxisName, AxisName] = ("structure", "substance")


class MarkInput(Struct, frozen=True):
    """The marks of one run of a score, from its table of grades."""

    case_facet: CaseFacet
    structure: Mark
    substance: Mark


class SideInput(Struct, frozen=True):
    """One side: a score of a definition with the marks of its runs."""

    actor: RecordId
    definition: RecordId
    score: RecordId
    body: Score
    marks: Sequence[MarkInput]


class SuiteInput(Struct, frozen=True):
    """The suite, with the keys of its cases: of every revision that a side may cover."""

    id: RecordId
    name: str
    keys: Mapping[CaseFacet, str]


class Question(Struct, frozen=True, kw_only=True):
    """How to compare.

    Attributes:
        alpha: The level of each test, after Holm.
        margin: The difference that does not matter; without it nothing is ever `equivalent`.
        common: Compare on the cases that both sides cover.
        allow_mixed: Accept sides whose runs were made with several programs or time limits.
    """

    alpha: float = 0.05
    margin: float | None = None
    common: bool = False
    allow_mixed: bool = False


class _Paired(Struct, frozen=True):
    """An axis on which the sides may be compared, before the correction over axes."""

    comparison: AxisComparison
    p: float
    equivalence: Interval | None


def compare(
    suite: SuiteInput,
    base: SideInput,
    candidate: SideInput,
    verdicts: Iterable[VerdictPart] = (),
    question: Question | None = None,
) -> CompareDocument:
    """Return the comparison of two sides on one suite, axis by axis.

    Args:
        suite: What both were scored on.
        base: What the candidate is measured against.
        candidate: What is asked about.
        verdicts: All that are known; those between the two sides count.
        question: How to compare.
    """
    asked = question or Question()
    paired = {axis: _axis(axis, suite, base, candidate, asked) for axis in AXES}
    tested = [axis for axis in AXES if isinstance(paired[axis], _Paired)]
    adjusted = dict(zip(tested, statistics.holm([_p(paired[axis]) for axis in tested]), strict=True))
    concluded = {axis: _concluded(paired[axis], adjusted.get(axis, 1.0), asked) for axis in AXES}
    preferences, excluded = _preferences(base.body.facet, candidate.body.facet, verdicts)
    return CompareDocument(
        suite=suite.id,
        suite_name=suite.name,
        base=_side(base),
        candidate=_side(candidate),
        structure=concluded["structure"],
        substance=concluded["substance"],
        preferences=preferences,
        alpha=asked.alpha,
        margin=asked.margin,
        common=asked.common,
        allow_mixed=asked.allow_mixed,
        tested=len(tested),
        fold=FoldPart(name=NAME, version=VERSION),
        excluded=excluded,
    )


def _side(side: SideInput) -> SidePart:
    return SidePart(
        actor=side.actor,
        definition=side.definition,
        facet=side.body.facet,
        score=side.score,
        suite_revision=side.body.suite_revision,
    )


def _p(paired: _Paired | AxisComparison) -> float:
    return paired.p if isinstance(paired, _Paired) else 1.0


def _tallies(axis: AxisName, side: SideInput) -> dict[CaseFacet, list[Mark]]:
    """Return the graded marks of each covered case."""
    found: dict[CaseFacet, list[Mark]] = {}
    for row in side.marks:
        mark: Mark = getattr(row, axis)
        if mark != "ungraded":
            found.setdefault(row.case_facet, []).append(mark)
    return found


def _axis(
    axis: AxisName, suite: SuiteInput, base: SideInput, candidate: SideInput, asked: Question
) -> _Paired | AxisComparison:
    old, new = _tallies(axis, base), _tallies(axis, candidate)
    named = {facet: suite.keys.get(facet, facet.hex()) for facet in {*old, *new}}
    order = sorted(old.keys() & new.keys(), key=lambda facet: (named[facet], facet))
    only_base = sorted(named[facet] for facet in old.keys() - new.keys())
    only_candidate = sorted(named[facet] for facet in new.keys() - old.keys())
    reason = why_not(axis, base.body, candidate.body, common=asked.common, allow_mixed=asked.allow_mixed)
    if reason is None and not order:
        reason = "no case is covered by both"
    if reason is not None:
        return AxisComparison(
            verdict="not_comparable",
            reason=reason,
            cases=0,
            only_base=only_base,
            only_candidate=only_candidate,
        )
    seed = _seed(base.body, candidate.body, order, old, new)
    found = _paired([(facet, old[facet], new[facet]) for facet in order], named, asked, seed)
    listed = msgspec.structs.replace(found.comparison, only_base=only_base, only_candidate=only_candidate)
    return msgspec.structs.replace(found, comparison=listed)


def _seed(
    base: Score,
    candidate: Score,
    order: Sequence[CaseFacet],
    old: Mapping[CaseFacet, Sequence[Mark]],
    new: Mapping[CaseFacet, Sequence[Mark]],
) -> bytes:
    """Return what draws follow from: suite revision, both facets, and the counts of cases and attempts."""
    attempts = [sum(len(side[facet]) for facet in order) for side in (old, new)]
    counts = b"".join(count.to_bytes(8) for count in (len(order), *attempts))
    return base.suite_revision + base.facet + candidate.facet + counts


def _rate(marks: Sequence[Mark]) -> Fraction:
    return Fraction(marks.count("pass"), len(marks))


class _Tested(Struct, frozen=True, kw_only=True):
    """The test of the differences with its interval, and the one that decides `equivalent`."""

    test: TestPart
    p: float
    interval: Interval | None
    equivalence: Interval | None
    cells: CellsPart | None = None
    directions: DirectionsPart | None = None


def _single(before: Sequence[Fraction], after: Sequence[Fraction], asked: Question) -> _Tested:
    """Test one run per case on both sides: McNemar, exactly."""
    counts = Counter(zip(before, after, strict=True))
    table = (counts[1, 1], counts[1, 0], counts[0, 1], counts[0, 0])  # type: ignore[index] # 1 == Fraction(1)
    p = statistics.mcnemar_exact(table[1], table[2])
    return _Tested(
        test=TestPart(name="mcnemar_exact", p=rounded(p), p_adjusted=1.0),
        p=p,
        interval=statistics.bonett_price(*table),
        equivalence=statistics.bonett_price(*table, level=1 - 2 * asked.alpha),
        cells=CellsPart(both_pass=table[0], regressed=table[1], improved=table[2], both_fail=table[3]),
    )


def _repeated(differences: Sequence[Fraction], asked: Question, seed: bytes) -> _Tested:
    """Test the differences of per-case rates: sign flips, exactly where the size allows it."""
    p, draws = statistics.sign_flip(differences, seed)
    lower, higher = sum(d < 0 for d in differences), sum(d > 0 for d in differences)
    name: Literal["sign_flip_exact", "sign_flip_drawn"] = (
        "sign_flip_exact" if draws is None else "sign_flip_drawn"
    )
    return _Tested(
        test=TestPart(name=name, p=rounded(p), p_adjusted=1.0, draws=draws),
        p=p,
        interval=statistics.t_interval(differences),
        equivalence=statistics.t_interval(differences, 1 - 2 * asked.alpha),
        directions=DirectionsPart(lower=lower, higher=higher, equal=len(differences) - lower - higher),
    )


def _paired(
    cases: Sequence[tuple[CaseFacet, list[Mark], list[Mark]]],
    named: Mapping[CaseFacet, str],
    asked: Question,
    seed: bytes,
) -> _Paired:
    """Return the figures of cases that both sides cover; the verdict waits for the correction over axes."""
    before, after = [_rate(old) for _, old, _ in cases], [_rate(new) for _, _, new in cases]
    differences = [new - old for old, new in zip(before, after, strict=True)]
    n = len(cases)
    repeats = any(len(old) > 1 or len(new) > 1 for _, old, new in cases)
    tested = _repeated(differences, asked, seed) if repeats else _single(before, after, asked)
    square = float(sum((d * d for d in differences), Fraction()) / n)
    reach = float(sum((abs(d) for d in differences), Fraction()) / n)
    detectable = statistics.detectable_difference(n, square, reach, asked.alpha)
    changes = [
        CaseChangePart(
            key=named[facet], facet=facet, base=rounded(float(before[i])), candidate=rounded(float(after[i]))
        )
        for i, (facet, _, _) in enumerate(cases)
    ]
    comparison = AxisComparison(
        verdict="inconclusive",
        cases=n,
        only_base=[],
        only_candidate=[],
        base=_side_axis([(facet, old) for facet, old, _ in cases]),
        candidate=_side_axis([(facet, new) for facet, _, new in cases]),
        difference=rounded(float(sum(differences, Fraction()) / n)),
        low=rounded(tested.interval.low) if tested.interval else None,
        high=rounded(tested.interval.high) if tested.interval else None,
        cells=tested.cells,
        directions=tested.directions,
        regressed=[change for change, d in zip(changes, differences, strict=True) if d < 0],
        improved=[change for change, d in zip(changes, differences, strict=True) if d > 0],
        test=tested.test,
        detectable=None if detectable is None else rounded(detectable),
    )
    return _Paired(comparison, tested.p, tested.equivalence)


def _side_axis(cases: Sequence[tuple[CaseFacet, list[Mark]]]) -> SideAxisPart:
    marks = [(facet, mark) for facet, found in cases for mark in found]
    figures = rates(len(cases), marks)
    attempts = [len(found) for _, found in cases]
    return SideAxisPart(
        passed=sum(mark == "pass" for _, mark in marks),
        of=len(marks),
        rate=figures,
        attempts_min=min(attempts),
        attempts_max=max(attempts),
    )


def _concluded(paired: _Paired | AxisComparison, adjusted: float, asked: Question) -> AxisComparison:
    if isinstance(paired, AxisComparison):
        return paired
    found = paired.comparison
    bounds = paired.equivalence if asked.margin is not None else None
    assert found.test is not None  # noqa: S101 - every paired axis has one
    return msgspec.structs.replace(
        found,
        verdict=_verdict(paired, adjusted, asked),
        test=msgspec.structs.replace(found.test, p_adjusted=rounded(adjusted)),
        equivalence_low=rounded(bounds.low) if bounds else None,
        equivalence_high=rounded(bounds.high) if bounds else None,
    )


def _verdict(paired: _Paired, adjusted: float, asked: Question) -> Outcome:
    """Return the verdict: the p-value decides, the interval informs; flips that cancel out are not `unchanged`."""
    found = paired.comparison
    if adjusted <= asked.alpha:
        return "better" if (found.difference or 0) > 0 else "worse"
    if not found.regressed and not found.improved:
        return "unchanged"
    bounds = paired.equivalence
    if asked.margin is not None and bounds and -asked.margin <= bounds.low and bounds.high <= asked.margin:
        return "equivalent"
    return "inconclusive"


def _preferences(
    base: Facet, candidate: Facet, verdicts: Iterable[VerdictPart]
) -> tuple[PreferencePart, dict[str, int]]:
    """Return the verdicts between the sides, and how many of those did not count."""
    known = list(verdicts)
    won, lost, excluded = Counter[str](), Counter[str](), Counter[str]()
    features: dict[Facet | None, Counter[str]] = {base: Counter(), candidate: Counter()}
    for part in known:
        if base == candidate or {part.winner_facet, part.loser_facet} != {base, candidate}:
            continue
        if part.retracted or part.foreign:
            excluded["retracted" if part.retracted else "foreign"] += 1
            continue
        (won if part.winner_facet == candidate else lost)[part.axis or UNSPECIFIED] += 1
        features[part.winner_facet].update(part.features)
        features[part.loser_facet].update(part.loser_features)
    groups = cycles(part for part in known if not part.retracted and not part.foreign)
    preferences = PreferencePart(
        won=dict(won),
        lost=dict(lost),
        base_features=dict(features[base]),
        candidate_features=dict(features[candidate]),
        cycles=[group for group in groups if base in group and candidate in group],
    )
    return preferences, dict(excluded)


def regressions(
    suite: SuiteInput,
    definitions: Sequence[DefinitionInput],
    sides: Mapping[Facet, SideInput],
    verdicts: Sequence[VerdictPart] = (),
    question: Question | None = None,
) -> list[StepPart]:
    """Return every install against the one that it succeeded, then the candidates against the incumbent.

    Installs are taken one by one, so that a rollback is two steps; a candidate that was never installed is one step,
    whatever number of records carry its facet. A step whose sides are not both scored names the facets that are not.

    Args:
        suite: What the scores are on.
        definitions: All of the actor's, in log order.
        sides: The latest score of each facet on the suite.
        verdicts: All that are known.
        question: How to compare.
    """
    installs = [definition for definition in definitions if definition.incumbent]
    installed = {definition.facet for definition in installs}
    candidates = {d.facet: d for d in reversed(definitions) if d.facet not in installed}
    pairs = [("install", old, new) for old, new in pairwise(installs)]
    if installs:
        first = sorted(candidates.values(), key=lambda definition: definition.position)
        pairs += [("candidate", installs[-1], definition) for definition in first]
    steps = []
    for change, old, new in pairs:
        base, candidate = sides.get(old.facet), sides.get(new.facet)
        step = StepPart(change=change, base=old.id, candidate=new.id)  # type: ignore[arg-type] # one of the two words
        if base is not None and candidate is not None:
            found = compare(suite, base, candidate, verdicts, question)
            steps.append(msgspec.structs.replace(step, comparison=found))
        else:
            missing = [facet for facet in dict.fromkeys((old.facet, new.facet)) if facet not in sides]
            steps.append(msgspec.structs.replace(step, unscored=missing))
    return steps


def gate(
    comparisons: Iterable[CompareDocument],
    allow: Mapping[str, float] | None = None,
    *,
    inconclusive: bool = False,
) -> GatePart:
    """Return the answer of a gate: fail, else refused, else (when asked for) inconclusive, else pass.

    Args:
        comparisons: What it stands on; there is no gate over both axes together.
        allow: By axis, how much worse is still accepted, as a difference of rates.
        inconclusive: Whether an inconclusive axis is an answer of its own.
    """
    allowed = allow or {}
    found: dict[str, dict[str, None]] = {"worse": {}, "not_comparable": {}, "inconclusive": {}}
    for comparison in comparisons:
        for axis in AXES:
            figures: AxisComparison = getattr(comparison, axis)
            within = figures.verdict == "worse" and -(figures.difference or 0) <= allowed.get(axis, 0)
            if figures.verdict in found and not within:
                found[figures.verdict][axis] = None
    failed, refused, unsure = (list(axes) for axes in found.values())
    outcome = (
        "fail" if failed else "refused" if refused else "inconclusive" if unsure and inconclusive else "pass"
    )
    return GatePart(outcome=outcome, failed=failed, refused=refused, inconclusive=unsure)  # type: ignore[arg-type]
