"""One sample of every kind, and drafts that break each rule."""

from __future__ import annotations

from spl.ids import BlobId, CaseFacet, Did, Digest, Facet, RecordId
from spl.records.definitions import Actor, Definition
from spl.records.envelope import BlobRef, Draft
from spl.records.evals import (
    Answer,
    Axis,
    Case,
    ChangedFiles,
    Command,
    Context,
    Cost,
    Expect,
    Observed,
    Retire,
    RunCounts,
    Score,
    Scorer,
    Suite,
    Tools,
    Total,
    UsageTotals,
)
from spl.records.runs import Imported, Result, RunEnd, RunObserved, RunStart, ToolCalls, Trees, Usage
from spl.records.verdicts import PairVerdict, Redaction, Retraction

BY = Did("did:web:example.org")


def rid(number: int) -> RecordId:
    """Return an id that no record has."""
    return RecordId(bytes([number]) * 32)


_COVERAGE = Digest(bytes([9]) * 32)
_AXIS = Axis(passed=1, of=2, covered=2, ungraded=0, no_run=1, coverage=_COVERAGE)

DRAFTS: dict[str, Draft] = {
    "core.actor.v1": Draft(body=Actor(did=Did("did:web:bot.example"), name="bot"), by=BY),
    "core.definition.v1": Draft(
        body=Definition(
            behaviour={
                "adapter": "command",
                "argv": ["agent", "{prompt}"],
                "params": {"t": {"dec": [7, -1]}},
            },
            state="installed",
            origin="local",
            trust="reviewed",
        ),
        by=BY,
        thread=rid(1),
        refs={"succeeds": (rid(2),)},
    ),
    "core.suite.v1": Draft(body=Suite(name="smoke", description="small"), by=BY),
    "core.eval.case.v1": Draft(
        body=Case(
            key="k",
            name="K",
            goal="do it",
            expect=Expect(
                commands=[Command(id="t", name="tests", argv=["pytest", "-q"])],
                changed_files=ChangedFiles(expected=["a.py"], forbidden=["b.py"]),
                context=Context(required=["c"]),
                trace=["tool:read"],
                answer=Answer(contains=["yes"], matches="^y"),
                tools=Tools(called=["edit"], not_called=["rm"]),
                outcomes=["resolved"],
            ),
            tree=bytes(rid(7)),
        ),
        by=BY,
        thread=rid(3),
        refs={"replaces": (rid(4),)},
    ),
    "core.eval.retire.v1": Draft(body=Retire(reason="old"), by=BY, thread=rid(3), refs={"case": (rid(4),)}),
    "core.run.start.v1": Draft(
        body=RunStart(
            facet=Facet(bytes([5]) * 32),
            trial=False,
            adapter="external",
            observed=RunObserved(timeout_ms=1000, env=["PATH"]),
            imported=Imported(source="a.jsonl", format="spl.run_import.v1", key="1"),
        ),
        by=BY,
        refs={"actor": (rid(1),), "definition": (rid(2),), "case": (rid(4),), "suite": (rid(3),)},
    ),
    "core.run.end.v1": Draft(
        body=RunEnd(
            status="completed",
            exit_code=0,
            answer="yes",
            tool_calls=ToolCalls(total=3, failed=1, names={"read": 2, "edit": 1}),
            results=[Result(kind="command", id="t", status="pass")],
            changed_files=["a.py"],
            usage=[Usage(reported=2, requests=2, cost_status="priced", input_tokens=10, cost_nusd=5)],
            latency_ms=12,
            trees=Trees(before=BlobId(bytes([6]) * 32)),
        ),
        by=BY,
        thread=rid(5),
        refs={"start": (rid(5),)},
        blobs=(BlobRef(h=BlobId(bytes([8]) * 32), n=3, t="text/plain", r="stdout"),),
        withheld=2,
    ),
    "core.eval.run.v1": Draft(
        body=Score(
            facet=Facet(bytes([5]) * 32),
            suite_revision=_COVERAGE,
            scorer=Scorer(name="spl.grade", version=1, regex="google-re2 1"),
            structure=_AXIS,
            substance=_AXIS,
            runs=RunCounts(
                matched=2,
                open=0,
                completed=2,
                failed=0,
                timed_out=0,
                cancelled=0,
                blocked=0,
                trials=0,
                tool_calls_unknown=0,
            ),
            observed=Observed(programs=1, timeouts=1, mixed=False),
            usage=UsageTotals(requests=Total(total=4, runs=2)),
            cost=Cost(coverage="complete", priced=4, unpriced=0, error=0, nusd=9),
            as_of=12,
        ),
        by=BY,
        thread=rid(3),
        refs={"suite": (rid(3),), "actor": (rid(1),), "definition": (rid(2),)},
    ),
    "core.verdict.pair.v1": Draft(
        body=PairVerdict(features=["asks first"], loser_features=[], basis="read both", axis="substance"),
        by=BY,
        refs={"winner": (rid(5),), "loser": (rid(6),)},
    ),
    "core.verdict.retract.v1": Draft(body=Retraction(reason="mistaken"), by=BY, refs={"verdict": (rid(7),)}),
    "core.redaction.v1": Draft(
        body=Redaction(position=3, leaf=_COVERAGE, record=rid(4), blobs=[], reason="a token"), by=BY
    ),
}

CASE_FACET = CaseFacet(bytes([4]) * 32)
