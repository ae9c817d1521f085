"""Histories: revisions, windows, costs for each pass, flaky cases, and which verdicts are read."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from kernel.test_first_scores import prepared

from spl.contracts.scores import HistoryDocument
from spl.folds.history import Window
from spl.kernel.actors import add_actor
from spl.kernel.compare import Asked, compare
from spl.kernel.define import Source, install, propose
from spl.kernel.history import history
from spl.kernel.home import Kernel
from spl.kernel.judge import judge, list_verdicts, retract, verdicts_about
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import score_suite
from spl.kernel.suites import NewCase, add_cases, create_suite, retire_case
from spl.records.evals import Case, Expect
from spl.records.verdicts import PairVerdict

CALLS = {"total": 1, "failed": 0, "names": {"read": 1}}


def labels(found: HistoryDocument) -> list[str | None]:
    return [line.label for line in found.suites[0].lines]


def versions(kernel: Kernel, count: int) -> None:
    """Install so many versions of one actor, each with a run of one case and a score."""
    add_actor(kernel, "bot")
    create_suite(kernel, "s")
    add_cases(kernel, "s", [NewCase(Case(key="a", name="A", goal="g", expect=Expect(outcomes=["t"])))])
    for number in range(count):
        install(kernel, "bot", Source(behaviour={"adapter": "external", "system": f"v{number}"}))
        imported(kernel, ["pass"])
        score_suite(kernel, "s", "bot", "incumbent")


def imported(kernel: Kernel, statuses: Sequence[str], costs: Sequence[str | None] = ()) -> None:
    """Import a run of the case `a` under the incumbent for each status."""
    rows = []
    for number, status in enumerate(statuses):
        row = {
            "id": f"{kernel.log.size()}-{number}",
            "case": "a",
            "results": [{"id": "t", "status": status}],
            "tool_calls": CALLS,
        }
        if costs:
            cost = costs[number]
            row["usage"] = [
                {"requests": 1, "input_tokens": 5, **({} if cost is None else {"cost_usd": cost})}
            ]
        rows.append(json.dumps(row).encode())
    import_runs(kernel, "bot", rows, Batch(source="f", suite="s", definition="incumbent"))


def test_scores_of_earlier_revisions_stay_in_sight(kernel: Kernel) -> None:
    prepared(kernel)
    for word in ("incumbent", "latest"):
        score_suite(kernel, "smoke", "coder", word)
    before = history(kernel, "coder").suites[0]
    assert before.earlier == []
    retire_case(kernel, "smoke", "add-flag", "old")
    score_suite(kernel, "smoke", "coder", "latest")
    now = history(kernel, "coder").suites[0]
    assert (now.cases, [line.score is None for line in now.lines]) == (5, [True, False])
    assert now.lines[1].substance_change is not None
    assert now.lines[1].substance_change.not_comparable is not None
    (earlier,) = now.earlier
    assert (earlier.revision, earlier.cases) == (before.revision, 6)
    assert [line.substance_change for line in earlier.lines] == [
        line.substance_change for line in before.lines
    ]
    assert [line.looks for line in earlier.lines] == [1, 2]


def test_a_limit_keeps_the_last_definitions_and_counts_the_others(kernel: Kernel) -> None:
    versions(kernel, 4)
    assert labels(history(kernel, "bot")) == ["v0", "v1", "v2", "v3"]
    cut = history(kernel, "bot", None, Window(limit=2)).suites[0]
    assert ([line.label for line in cut.lines], cut.left_out) == (["v2", "v3"], 2)
    assert cut.lines[0].substance_change is not None
    assert cut.lines[0].substance_change.difference == 0  # against v1, which is not shown


def test_since_keeps_what_was_scored_then_or_later(kernel: Kernel) -> None:
    versions(kernel, 3)
    whole = history(kernel, "bot").suites[0]
    times = [line.scored_at for line in whole.lines]
    assert times == sorted(times, key=lambda at: at or 0)
    assert times[1] is not None
    cut = history(kernel, "bot", None, Window(since_ms=times[1])).suites[0]
    assert ([line.label for line in cut.lines], cut.left_out) == (["v1", "v2"], 1)
    later = history(kernel, "bot", None, Window(since_ms=times[1] + 10**9)).suites[0]
    assert (later.lines, later.left_out) == ([], 3)


def test_what_a_pass_costs_is_a_lower_bound_where_a_price_is_missing(kernel: Kernel) -> None:
    versions(kernel, 1)
    imported(kernel, ["pass", "fail", "pass"], ["0.30", "0.10", None])
    scored = score_suite(kernel, "s", "bot", "incumbent")
    # 0.40 for three passes, of which one (from `versions`) has no usage at all and one no price
    assert (scored.spent.coverage, scored.spent.priced, scored.spent.of) == ("partial", 2, 4)
    assert (scored.spent.nusd, scored.spent.per_passed_nusd) == (400_000_000, 133_333_333)
    assert history(kernel, "bot").suites[0].lines[0].spent == scored.spent


def test_cases_with_both_outcomes_are_listed_with_how_often_they_passed(kernel: Kernel) -> None:
    versions(kernel, 1)
    assert score_suite(kernel, "s", "bot", "incumbent").flaky == []
    imported(kernel, ["fail", "pass"])
    flaky = score_suite(kernel, "s", "bot", "incumbent").flaky
    assert [(part.key, part.axis, part.passed, part.of) for part in flaky] == [("a", "substance", 2, 3)]


@pytest.fixture
def preferred(kernel: Kernel) -> dict[str, str]:
    """Definitions a to e of three actors: a over b over c over a; d over a; e over d; and a second verdict b over c."""
    ids = {}
    for name in "abcde":
        add_actor(kernel, name)
        ids[name] = propose(kernel, name, Source(behaviour={"adapter": "external", "system": name})).id.hex()
    for winner, loser in ("ab", "bc", "ca", "da", "ed", "bc"):
        judge(kernel, ids[winner], ids[loser], PairVerdict(features=[f"{winner}{loser}"], loser_features=[]))
    return ids


def test_only_verdicts_that_say_how_the_sides_stand_are_read(
    kernel: Kernel, preferred: dict[str, str]
) -> None:
    facet = {name: kernel.log.facets(show)[0] for name, show in _facets(kernel, preferred).items()}

    def about(names: str) -> list[str]:
        return [part.features[0] for part in verdicts_about(kernel, {facet[name] for name in names})]

    assert about("ab") == ["ab", "bc", "ca", "bc"]  # the cycle runs through c, which was not asked about
    assert about("ad") == ["ab", "bc", "ca", "da", "bc"]
    assert about("de") == ["ed"]
    assert about("be") == ["ab", "bc", "ca", "da", "ed", "bc"]
    retract(kernel, list_verdicts(kernel).verdicts[2].id.hex(), "a mistake")  # c over a
    assert [part.retracted for part in verdicts_about(kernel, {facet["a"], facet["b"]})] == [
        False,
        False,
        True,
        False,
    ]


def _facets(kernel: Kernel, ids: dict[str, str]) -> dict[str, str]:
    return {name: kernel.log.definitions(actor=kernel.log.actors(name)[0].id)[0].facet.hex() for name in ids}


def test_a_cycle_through_a_third_definition_is_reported_by_a_comparison(kernel: Kernel) -> None:
    prepared(kernel)
    for word in ("incumbent", "latest"):
        score_suite(kernel, "smoke", "coder", word)
    one, two = (part.definitions[0].hex() for part in history(kernel, "coder").suites[0].lines)
    add_actor(kernel, "third")
    third = propose(kernel, "third", Source(behaviour={"adapter": "external", "system": "x"})).id.hex()
    feature = PairVerdict(features=["f"], loser_features=[])
    judge(kernel, one, two, feature)
    asked = Asked(suite="smoke", actor="coder")
    assert compare(kernel, "incumbent", "latest", asked).preferences.cycles == []
    judge(kernel, two, third, feature)
    judge(kernel, third, one, feature)
    found = compare(kernel, "incumbent", "latest", asked).preferences
    assert [len(group) for group in found.cycles] == [3]
    assert (found.won, found.lost) == ({}, {"unspecified": 1})
