from __future__ import annotations

import json

import pytest

from spl.harness.events import MAX_LINE, AgentOutput
from spl.harness.usage import account


def output_of(*lines: object) -> AgentOutput:
    output = AgentOutput()
    for line in lines:
        output.feed((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
    output.close()
    return output


def usage(**fields: object) -> dict[str, object]:
    return {"type": "usage", "model": "acme-1", "promptTokens": 10, **fields}


def test_an_events_own_cost_counts_without_a_status_and_is_not_replaced() -> None:
    (sample,) = output_of(usage(model="gpt-4.1", promptTokens=1_000_000, costUsd=0.5)).samples
    assert (sample.cost_usd, sample.cost_status) == (0.5, "priced")
    assert sample.cost_provenance == ""


def test_a_negative_cost_is_an_error_that_is_not_summed() -> None:
    output = output_of(usage(costUsd=-0.5, costStatus="priced"), usage(costUsd=0.25))
    sums = account(output.samples)
    assert (sums.errors, sums.priced, sums.cost_usd, sums.coverage) == (1, 1, 0.25, "partial")


def test_a_model_with_a_list_price_is_priced_with_source_and_date() -> None:
    (sample,) = output_of(usage(model="gpt-4.1", promptTokens=1_000_000)).samples
    assert sample.cost_usd == pytest.approx(2.0)
    assert sample.cost_provenance == "reconstructed_estimate"
    assert sample.cost_estimated is True
    assert sample.pricing_source == "genai-prices"
    assert len(sample.pricing_as_of) == len("2026-01-01")


def test_a_model_without_a_price_is_unpriced_and_never_zero() -> None:
    (sample,) = output_of(usage()).samples
    assert sample.cost_usd is None
    assert sample.unpriced_reason.startswith('price unavailable for model "acme-1": ')


@pytest.mark.parametrize(
    "fields", [{"stage": 3}, {"exitCode": "0"}, {"meta": {"a": 1}}, {"changedFiles": [1]}, {"risk": []}]
)
def test_a_known_field_of_another_type_spoils_the_line(fields: dict[str, object]) -> None:
    assert output_of(usage(**fields)).samples == []


def test_keys_of_usage_match_without_regard_to_case_and_null_is_absent() -> None:
    (sample,) = output_of(b'{"TYPE":"usage","Model":"m","promptTOKENS":4,"stage":null,"costUsd":1}').samples
    assert (sample.model, sample.input_tokens, sample.stage) == ("m", 4, "")


def test_numbers_beyond_a_float_hide_a_trace_event_only() -> None:
    assert output_of(
        b'{"type":"tool","x":1e999}', b'{"type":"tool","x":NaN}', b'{"type":"kept"}'
    ).trace_events == ["kept"]


def test_a_line_is_found_however_the_bytes_are_cut() -> None:
    data = (
        b'{"type":"tool","name":"a"}\n{"event":"verify"}\r\n  {"type":"usage","model":"m","promptTokens":1}'
    )
    output = AgentOutput()
    for byte in data:
        output.feed(bytes([byte]))
    output.close()
    assert output.trace_events == ["tool:a", "usage", "verify"]
    assert len(output.samples) == 1


def test_a_long_line_blocks_only_when_it_is_an_event() -> None:
    text, event = AgentOutput(), AgentOutput()
    for output, first in ((text, b"x"), (event, b"{")):
        output.feed(b"first\n" + first)
        for _ in range(MAX_LINE // 65536 + 1):
            output.feed(b"y" * 65536)
        output.feed(b'\n{"type":"late"}\n')
        output.close()
        assert output.trace_events == ["late"]
    assert text.error == ""
    assert event.error.startswith("usage accounting: JSONL line 2 exceeds 8388608-byte limit (")


def test_deep_nesting_and_repeated_keys_do_no_harm() -> None:
    output = output_of(b'{"type":"tool","a":' + b"[" * 200_000, b'{"type":"a","type":"b"}')
    assert output.trace_events == ["b"]


def test_the_first_final_event_with_stages_counts() -> None:
    stages = json.dumps({"stages": [{"name": "plan", "model": "m", "cost_usd": 0.5}]})
    output = output_of(
        {"type": "final", "text": "[]"}, {"type": "final", "text": stages}, {"type": "final", "text": "{}"}
    )
    (stage,) = output.stages
    assert (stage.name, stage.model, stage.cost_usd, stage.latency_ms) == ("plan", "m", 0.5, 0)
