from __future__ import annotations

import json

import pytest
from kernel.test_first_scores import prepared

from spl.errors import InputError, RefusedError
from spl.folds.regression import Question
from spl.kernel.compare import Asked, Gate, actor_regressions, compare
from spl.kernel.define import Source, install
from spl.kernel.home import Kernel
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import score_suite
from spl.kernel.suites import retire_case

SMOKE = Asked(suite="smoke", actor="coder")


def scored(kernel: Kernel) -> tuple[str, str]:
    prepared(kernel)
    return tuple(score_suite(kernel, "smoke", "coder", word).id.hex() for word in ("incumbent", "latest"))  # type: ignore[return-value]


def test_the_imported_example_is_inconclusive_on_six_cases_and_lists_what_flipped(kernel: Kernel) -> None:
    scored(kernel)
    found = compare(kernel, "incumbent", "latest", SMOKE)
    assert (found.structure.difference, found.substance.difference) == (0.5, -0.5)
    assert found.structure.verdict == found.substance.verdict == "inconclusive"
    assert [change.key for change in found.substance.regressed] == [
        "drop-dependency",
        "explain-timeout",
        "rename-field",
    ]
    assert found.substance.test is not None
    assert (found.substance.test.p, found.substance.test.p_adjusted) == (0.25, 0.5)


def test_two_scores_compare_as_their_definitions_do(kernel: Kernel) -> None:
    base, candidate = scored(kernel)
    by_score = compare(kernel, base, candidate, Asked())
    assert by_score == compare(kernel, "incumbent", "latest", SMOKE)


def test_what_is_not_there_is_refused_with_the_command_that_makes_it(kernel: Kernel) -> None:
    prepared(kernel)
    with pytest.raises(RefusedError) as refused:
        compare(kernel, "incumbent", "latest", SMOKE)
    assert refused.value.hint is not None
    assert refused.value.hint.startswith("spl eval score smoke")
    with pytest.raises(InputError, match="suite"):
        compare(kernel, "incumbent", "latest", Asked(actor="coder"))
    with pytest.raises(InputError, match="actor"):
        compare(kernel, "incumbent", "latest", Asked(suite="smoke"))


def test_different_revisions_are_not_comparable_and_common_cases_are(kernel: Kernel) -> None:
    prepared(kernel)
    score_suite(kernel, "smoke", "coder", "incumbent")
    retire_case(kernel, "smoke", "add-flag", "old")
    score_suite(kernel, "smoke", "coder", "latest")
    found = compare(kernel, "incumbent", "latest", SMOKE)
    assert found.structure.verdict == found.substance.verdict == "not_comparable"
    assert found.tested == 0
    assert found.substance.only_base == ["add-flag"]


def test_a_gate_fails_refuses_or_stays_open(kernel: Kernel) -> None:
    scored(kernel)

    def outcome(gate: Gate) -> str:
        document = compare(kernel, "incumbent", "latest", Asked(suite="smoke", actor="coder", gate=gate))
        assert document.gate is not None
        return document.gate.outcome

    assert outcome(Gate()) == "pass"
    assert outcome(Gate(inconclusive=True)) == "inconclusive"
    calls = {"total": 1, "failed": 0, "names": {}}
    failed = [{"id": "tests", "status": "fail"}]
    many = [
        {"id": f"{case}{attempt}", "case": case, "results": failed, "tool_calls": calls}
        for case in ("add-flag", "fix-off-by-one")
        for attempt in range(2)
    ]
    import_runs(
        kernel, "coder", [json.dumps(row).encode() for row in many], Batch(source="m", definition="latest")
    )
    score_suite(kernel, "smoke", "coder", "latest")
    question = Question(alpha=0.5)
    lenient = Asked(suite="smoke", actor="coder", question=question, gate=Gate())
    document = compare(kernel, "incumbent", "latest", lenient)
    assert document.substance.verdict == "worse"
    assert document.gate is not None
    assert document.gate.outcome == "fail"
    allowed = Asked(suite="smoke", actor="coder", question=question, gate=Gate(allow={"substance": 0.9}))
    lenient_gate = compare(kernel, "incumbent", "latest", allowed).gate
    assert lenient_gate is not None
    assert lenient_gate.outcome == "pass"


def test_regressions_follow_the_installs_and_the_candidates(kernel: Kernel) -> None:
    scored(kernel)
    steps = actor_regressions(kernel, "coder", Asked()).suites[0].steps
    assert [step.change for step in steps] == ["candidate"]
    install(kernel, "coder", Source(behaviour={"adapter": "external", "system": "third"}))
    steps = actor_regressions(kernel, "coder", Asked(gate=Gate())).suites[0].steps
    assert [(step.change, step.comparison is None) for step in steps] == [
        ("install", True),
        ("candidate", True),
    ]
