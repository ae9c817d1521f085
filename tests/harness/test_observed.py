from __future__ import annotations

import json
from typing import Any

import pytest

from spl.harness import jsonlines, observer, tool_tally
from spl.harness.events import MAX_LINE, AgentOutput
from spl.harness.observed import Observed, observed
from spl.records.runs import ToolCalls, Usage


def output_of(*lines: object) -> AgentOutput:
    output = AgentOutput()
    for line in lines:
        output.feed((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
    output.close()
    return output


def seen(*lines: object) -> Observed:
    return observed(output_of(*lines))


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"schemaVersion": 2, "type": kind, "runId": "r", **fields}


def usage(**fields: Any) -> dict[str, Any]:
    return event("usage", **{"model": "acme-1", "promptTokens": 10, "completionTokens": 3, **fields})


def lines_of(content: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in content.splitlines()]


def test_tool_calls_are_counted_by_name_and_paired_with_their_results_by_id() -> None:
    calls = seen(
        event("run_start"),
        event("tool_call", id="1", name="read_file"),
        event("tool_call", id="2", name="edit_file"),
        event("tool_result", id="2", name="edit_file", status="error"),
        event("tool_result", id="1", name="read_file", status="ok"),
        event("tool_call", id="3", name="read_file"),
        event("tool_result", id="3", name="read_file", status="completed"),
        event("tool_result", id="3", name="read_file", status="error"),
    ).tool_calls
    assert calls == ToolCalls(total=3, failed=1, names={"edit_file": 1, "read_file": 2})


def test_results_without_ids_belong_to_earlier_calls_of_their_name() -> None:
    calls = seen(
        event("tool_call", name="a"),
        event("tool_result", name="a", status="denied"),
        event("tool_result", name="b", status="failed"),
    ).tool_calls
    assert calls == ToolCalls(total=2, failed=2, names={"a": 1, "b": 1})


def test_a_result_whose_call_was_not_announced_is_a_call() -> None:
    calls = seen(event("tool_result", id="9", name="run", status="error")).tool_calls
    assert calls == ToolCalls(total=1, failed=1, names={"run": 1})


def test_a_stream_that_would_tell_of_tool_calls_and_has_none_says_so() -> None:
    assert seen(event("run_start"), event("run_end", status="ok")).tool_calls == ToolCalls(
        total=0, failed=0, names={}
    )


@pytest.mark.parametrize(
    "line",
    [b"plain text", b"\xff\xfe\x00", b"{broken", {"type": "tool", "name": "read_file"}, usage(), [1], "text"],
)
def test_output_that_does_not_tell_of_tool_calls_leaves_them_unknown(line: object) -> None:
    found = seen(line)
    assert found.tool_calls is None
    assert found.answer is None


def test_nothing_reported_is_none_and_not_zero() -> None:
    assert seen(b"hello") == Observed()


def test_the_names_of_tools_fit_into_a_record_whatever_they_are() -> None:
    calls = seen(
        *(event("tool_call", id=str(n), name=f"t{n}" + "é" * 500) for n in range(300)), event("tool_call")
    ).tool_calls
    assert calls is not None
    assert calls.total == 301
    assert len(calls.names) <= tool_tally.MAX_NAMES + 1
    assert calls.names[tool_tally.OTHERS] == 201
    assert all(len(name.encode()) <= tool_tally.MAX_NAME_BYTES for name in calls.names)


def test_ids_beyond_those_that_are_remembered_still_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_tally, "MAX_IDS", 1)
    calls = seen(
        event("tool_call", id="1", name="a"),
        event("tool_call", id="2", name="a"),
        event("tool_result", id="2", status="error"),
        event("tool_result", id="1", status="ok"),
    ).tool_calls
    assert calls == ToolCalls(total=2, failed=1, names={"a": 2})


def test_the_text_after_the_last_tool_call_is_the_answer() -> None:
    assert seen(event("text", delta="I look.")).answer is None  # it did not say that it had finished
    found = seen(
        event("text", delta="I look."),
        event("tool_call", id="1", name="a"),
        event("text", delta="It is "),
        event("text", delta="done."),
        event("final", text=json.dumps({"status": "ok", "stages": [{"name": "s"}]})),
    )
    assert found.answer == "It is done."


def test_the_answer_of_a_pipeline_stands_in_its_document() -> None:
    document = {"status": "completed", "answer": "42", "stages": [{"name": "s"}]}
    assert seen(event("text", delta="PASS"), event("final", text=json.dumps(document))).answer == "42"


def test_the_text_of_a_final_event_is_the_answer() -> None:
    assert seen(event("text", delta="draft"), event("final", text="42")).answer == "42"


def test_an_answer_of_more_than_a_mebibyte_is_unknown() -> None:
    whole = "é" * (observer.MAX_ANSWER // 2)
    assert seen(event("final", text=whole)).answer == whole
    assert seen(event("final", text=whole + "x")).answer is None
    assert seen(*(event("text", delta=part) for part in (whole, "x", "y")), event("run_end")).answer is None


def test_an_answer_in_many_pieces_is_whole() -> None:
    assert seen(*(event("text", delta=f"{n} ") for n in range(2500)), event("run_end")).answer == "".join(
        f"{n} " for n in range(2500)
    )


def test_usage_adds_up_by_provider_model_stage_and_cost_status() -> None:
    found = seen(
        usage(provider="p", costUsd=0.1, pricingSource="list", pricingAsOf="2026-01-02"),
        usage(provider="p", costUsd=0.2, pricingSource="list", pricingAsOf="2026-01-03", cachedInputTokens=4),
        usage(provider="p"),
        usage(provider="p", stage="plan", costUsd=0, cachedInputTokens=0),
    ).usage
    assert found is not None
    priced, unpriced, plan = found
    assert priced == Usage(
        provider="p",
        model="acme-1",
        requests=2,
        reported=2,
        input_tokens=20,
        output_tokens=6,
        cached_input_tokens=4,
        cost_nusd=300_000_000,
        cost_status="priced",
        pricing_source="list",
    )
    assert (unpriced.cost_status, unpriced.cost_nusd, unpriced.requests) == ("unpriced", None, 1)
    assert unpriced.unpriced_reason is not None
    assert (plan.stage, plan.cost_nusd, plan.cached_input_tokens, plan.reasoning_tokens) == (
        "plan",
        0,
        0,
        None,
    )


def test_a_request_that_reported_nothing_is_a_request_without_figures() -> None:
    (total,) = seen(usage(usageReported=False, promptTokens=None, completionTokens=None)).usage or []
    assert (total.requests, total.reported, total.input_tokens, total.cost_nusd) == (1, 0, None, None)


def test_a_list_price_carries_its_source_and_date() -> None:
    (total,) = seen(usage(model="gpt-4.1", promptTokens=1_000_000, completionTokens=0)).usage or []
    assert total.cost_nusd == 2_000_000_000
    assert (total.cost_provenance, total.cost_estimated) == ("reconstructed_estimate", True)
    assert total.pricing_source == "genai-prices"
    assert total.pricing_as_of


@pytest.mark.parametrize(("cost", "reason"), [(-1, "the cost is negative"), (1e300, "more than a record")])
def test_a_cost_that_no_record_can_hold_is_an_error(cost: float, reason: str) -> None:
    (total,) = seen(usage(costUsd=cost)).usage or []
    assert (total.cost_status, total.cost_nusd) == ("error", None)
    assert reason in (total.unpriced_reason or "")


def test_tokens_that_no_record_can_hold_are_unknown() -> None:
    (total,) = seen(usage(promptTokens=-5, completionTokens=2**62, costUsd=1)).usage or []
    assert (total.input_tokens, total.output_tokens) == (None, None)


def test_totals_past_the_hundredth_count_by_cost_status_alone() -> None:
    found = seen(*(usage(model=f"m{n}", costUsd=1) for n in range(150))).usage or []
    assert len(found) == 101
    assert (found[-1].model, found[-1].requests, found[-1].cost_nusd) == (None, 50, 50_000_000_000)


def test_a_line_that_was_lost_keeps_the_cost_from_looking_complete() -> None:
    output = AgentOutput()
    output.feed(json.dumps(usage(costUsd=1)).encode() + b"\n{")
    for _ in range(MAX_LINE // 65_536 + 1):
        output.feed(b"y" * 65_536)
    output.close()
    known, lost = observed(output).usage or []
    assert known.cost_nusd == 1_000_000_000
    assert (lost.cost_status, lost.reported) == ("error", 0)
    assert output.error


def test_a_line_of_too_many_values_is_not_read() -> None:
    many = b'{"schemaVersion":2,"type":"tool_call","args":[' + b"[]," * 60_000 + b"[]]}"
    assert seen(many).tool_calls is None
    text = event("tool_call", name="write", args={"text": ",[{" * 300_000})
    assert seen(text).tool_calls == ToolCalls(total=1, failed=0, names={"write": 1})


def test_single_reports_are_lines_of_the_usage_blob() -> None:
    found = seen(usage(costUsd=0.5, iteration=2, usageSequence=7), usage())
    first, second = lines_of(found.usage_events)
    assert first == {
        "cost_nusd": 500_000_000,
        "cost_status": "priced",
        "input_tokens": 10,
        "iteration": 2,
        "model": "acme-1",
        "output_tokens": 3,
        "reported": 1,
        "requests": 1,
        "usage_sequence": 7,
    }
    assert second["cost_status"] == "unpriced"


def test_the_trace_blob_tells_in_order_what_happened() -> None:
    stages = json.dumps({"stages": [{"name": "plan", "status": "ok", "latency_ms": 5}]})
    found = seen(
        {"type": "tool", "name": "read_file"},
        event("tool_call", id="1", name="edit"),
        event("tool_result", id="1", status="error"),
        event("final", text=stages),
    )
    told = lines_of(found.trace)
    assert [line["event"] for line in told] == [
        *("trace", "trace", "tool_call", "trace", "tool_result", "trace", "stage")
    ]
    assert told[0]["key"] == "tool:read_file"
    assert told[4] == {"event": "tool_result", "id": "1", "name": "", "failed": True}
    assert told[6]["name"] == "plan"


def test_what_exceeds_a_blob_is_counted() -> None:
    lines = jsonlines.JsonLines(limit=30)
    for number in range(5):
        lines.add({"n": number})
    assert lines.content() == b'{"n": 0}\n{"n": 1}\n{"n": 2}\n{"dropped": 2}\n'


def test_usage_events_beyond_those_that_are_kept_are_an_error_and_still_add_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(observer, "MAX_SAMPLES", 3)
    output = output_of(*(usage(costUsd=1) for _ in range(5)))
    assert len(output.samples) == 3
    assert output.error == "usage accounting: more than 20000 usage events"
    (total,) = observed(output).usage or []
    assert (total.requests, total.cost_nusd) == (5, 5_000_000_000)


def test_trace_keys_stop_growing_at_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "MAX_KEYS_BYTES", 500)
    assert len(output_of(*({"type": f"t{n}"} for n in range(100))).trace_events) < 10
