from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spl.harness.dialects import DIALECTS, recognized
from spl.harness.events import AgentOutput
from spl.harness.observed import Observed, observed
from spl.records.runs import ToolCalls, Usage


def output_of(*lines: object, model: str = "") -> AgentOutput:
    output = AgentOutput(model)
    for line in lines:
        output.feed(json.dumps(line).encode() + b"\n")
    output.close()
    return output


def seen(*lines: object, model: str = "") -> Observed:
    return observed(output_of(*lines, model=model))


def only(found: Observed) -> Usage:
    (total,) = found.usage or []
    return total


# --- Claude Code -----------------------------------------------------------------------------------------

CLAUDE_INIT: dict[str, Any] = {
    "type": "system",
    "subtype": "init",
    "session_id": "s-1",
    "cwd": "/w",
    "tools": ["Bash", "Edit", "Read"],
    "mcp_servers": [],
    "model": "claude-sonnet-4-5",
    "permissionMode": "acceptEdits",
}
CLAUDE_CALLS: list[dict[str, Any]] = [
    {
        "type": "assistant",
        "message": {
            "id": "msg_1",
            "model": "claude-sonnet-4-5",
            "role": "assistant",
            "content": [{"type": "text", "text": "I read it."}],
            "usage": {
                "input_tokens": 4,
                "cache_creation_input_tokens": 100,
                "cache_read_input_tokens": 20,
                "output_tokens": 1,
            },
        },
        "parent_tool_use_id": None,
        "session_id": "s-1",
    },
    {
        "type": "assistant",
        "message": {
            "id": "msg_1",
            "model": "claude-sonnet-4-5",
            "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.py"}},
                {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {"command": "false"}},
            ],
            "usage": {"input_tokens": 4, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 20},
        },
        "session_id": "s-1",
    },
    {
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x = 1"},
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_2",
                    "is_error": True,
                    "content": "Exit code 1",
                },
            ],
        },
        "session_id": "s-1",
    },
    {
        "type": "assistant",
        "message": {
            "id": "msg_2",
            "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": "It is fixed."}],
            "usage": {"input_tokens": 10, "cache_read_input_tokens": 120, "output_tokens": 2},
        },
        "session_id": "s-1",
    },
]
CLAUDE_RESULT: dict[str, Any] = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "duration_ms": 9000,
    "num_turns": 2,
    "result": "It is fixed.",
    "session_id": "s-1",
    "total_cost_usd": 0.0123,
    "usage": {
        "input_tokens": 14,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 140,
        "output_tokens": 60,
    },
    "modelUsage": {
        "claude-sonnet-4-5": {
            "inputTokens": 14,
            "outputTokens": 60,
            "cacheReadInputTokens": 140,
            "cacheCreationInputTokens": 100,
            "webSearchRequests": 0,
            "costUSD": 0.012,
        },
        "claude-haiku-4-5": {"inputTokens": 300, "outputTokens": 10, "costUSD": 0.0003},
    },
}


def test_claude_code_tells_its_tool_calls_and_which_of_them_failed() -> None:
    found = seen(CLAUDE_INIT, *CLAUDE_CALLS, CLAUDE_RESULT)
    assert found.tool_calls == ToolCalls(total=2, failed=1, names={"Bash": 1, "Read": 1})
    assert found.answer == "It is fixed."


def test_claude_code_tells_its_usage_by_model_with_its_own_estimate() -> None:
    sonnet, haiku = seen(CLAUDE_INIT, *CLAUDE_CALLS, CLAUDE_RESULT).usage or []
    assert sonnet == Usage(
        model="claude-sonnet-4-5",
        requests=2,
        reported=2,
        input_tokens=254,
        output_tokens=60,
        cached_input_tokens=140,
        cache_write_tokens=100,
        cost_nusd=12_000_000,
        cost_status="priced",
        cost_estimated=True,
        cost_provenance="agent_estimate",
    )
    assert (haiku.model, haiku.requests, haiku.input_tokens, haiku.cost_nusd) == (
        *("claude-haiku-4-5", None, 300),
        300_000,
    )


def test_a_result_of_claude_code_without_models_counts_as_a_whole() -> None:
    result = {key: value for key, value in CLAUDE_RESULT.items() if key != "modelUsage"}
    total = only(seen(CLAUDE_INIT, *CLAUDE_CALLS, result))
    assert (total.model, total.requests, total.input_tokens, total.cost_nusd) == (
        *("claude-sonnet-4-5", 2, 254),
        12_300_000,
    )


def test_of_a_claude_code_that_was_ended_only_requests_and_input_are_known() -> None:
    found = seen(CLAUDE_INIT, *CLAUDE_CALLS)
    total = only(found)
    assert (total.requests, total.input_tokens, total.output_tokens) == (2, 254, None)
    assert (total.cost_status, total.cost_nusd) == ("unpriced", None)
    assert found.answer is None


def test_the_last_result_of_claude_code_counts() -> None:
    assert len(seen(CLAUDE_INIT, CLAUDE_RESULT, CLAUDE_RESULT).usage or []) == 2


def test_a_claude_code_that_failed_has_no_answer() -> None:
    assert seen(CLAUDE_INIT, {**CLAUDE_RESULT, "is_error": True, "result": "limit reached"}).answer is None


def test_a_claude_code_that_prints_only_its_result_does_not_tell_of_tool_calls() -> None:
    found = seen(CLAUDE_RESULT)
    assert found.tool_calls is None
    assert found.answer == "It is fixed."
    assert found.usage


# --- Codex -----------------------------------------------------------------------------------------------


def item(kind: str, number: str, what: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{kind}", "item": {"id": f"item_{number}", "type": what, **fields}}


CODEX = [
    {"type": "thread.started", "thread_id": "t-1"},
    {"type": "turn.started"},
    item("completed", "0", "reasoning", text="**Look**"),
    item("started", "1", "command_execution", command="bash -lc ls", exit_code=None, status="in_progress"),
    item("completed", "1", "command_execution", command="bash -lc ls", exit_code=0, status="completed"),
    item("started", "2", "command_execution", command="make", exit_code=None, status="in_progress"),
    item("completed", "2", "command_execution", command="make", exit_code=2, status="failed"),
    item("completed", "3", "file_change", changes=[{"path": "a", "kind": "add"}], status="completed"),
    item("started", "4", "mcp_tool_call", server="docs", tool="search", status="in_progress"),
    item(
        *("completed", "4", "mcp_tool_call"),
        server="docs",
        tool="search",
        status="failed",
        error={"message": "x"},
    ),
    item("completed", "5", "command_execution", command="rm x", exit_code=None, status="declined"),
    item("completed", "6", "agent_message", text="Half done."),
    item("completed", "7", "agent_message", text="Done."),
    {
        "type": "turn.completed",
        "usage": {"input_tokens": 1200, "cached_input_tokens": 200, "output_tokens": 345},
    },
]


def test_codex_tells_its_items_as_tool_calls() -> None:
    found = seen(*CODEX)
    assert found.tool_calls == ToolCalls(
        total=5, failed=3, names={"command_execution": 3, "docs.search": 1, "file_change": 1}
    )
    assert found.answer == "Done."


def test_codex_usage_counts_under_the_model_that_it_was_told_to_use() -> None:
    total = only(seen(*CODEX, model="gpt-4.1"))
    assert (total.model, total.requests, total.reported) == ("gpt-4.1", None, 1)
    assert (total.input_tokens, total.cached_input_tokens, total.output_tokens) == (1200, 200, 345)
    assert total.cost_nusd
    assert total.pricing_source == "genai-prices"


def test_codex_usage_without_a_model_is_unpriced() -> None:
    total = only(seen(*CODEX))
    assert (total.cost_status, total.unpriced_reason) == ("unpriced", "model identity is missing")
    assert total.input_tokens == 1200


def test_codex_usage_is_of_the_whole_thread_and_not_added_up() -> None:
    again = {"type": "turn.completed", "usage": {"input_tokens": 2000, "output_tokens": 500}}
    assert only(seen(*CODEX, again)).input_tokens == 2000


def test_codex_usage_of_nothing_but_zeros_was_never_filled_in() -> None:
    zeros = {
        "type": "turn.completed",
        "usage": {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0},
    }
    total = only(seen(CODEX[0], zeros, model="m"))
    assert (total.reported, total.input_tokens, total.unpriced_reason) == (0, None, "usage was not reported")


def test_a_codex_turn_that_failed_reports_nothing() -> None:
    found = seen(CODEX[0], {"type": "turn.failed", "error": {"message": "stream error"}})
    assert (found.usage, found.answer) == (None, None)
    assert found.tool_calls == ToolCalls(total=0, failed=0, names={})


# --- Gemini CLI ------------------------------------------------------------------------------------------


def gemini(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": "2026-01-02T03:04:05.000Z", **fields}


GEMINI = [
    gemini("init", session_id="s", model="gemini-2.5-pro"),
    gemini("message", role="user", content="Fix it."),
    gemini("message", role="assistant", content="I look.", delta=True),
    gemini("tool_use", tool_name="read_file", tool_id="read-1", parameters={"path": "a"}),
    gemini("tool_result", tool_id="read-1", status="success", output="x"),
    gemini("tool_use", tool_name="run_shell_command", tool_id="run-1", parameters={}),
    gemini("tool_result", tool_id="run-1", status="error", error={"type": "E", "message": "no"}),
    gemini("message", role="assistant", content="It is ", delta=True),
    gemini("message", role="assistant", content="fixed.", delta=True),
]
GEMINI_STATS = {"total_tokens": 1500, "input_tokens": 1000, "output_tokens": 200, "cached": 400, "input": 600}


def test_gemini_tells_tool_calls_answer_and_usage_with_its_thoughts() -> None:
    found = seen(*GEMINI, gemini("result", status="success", stats={**GEMINI_STATS, "tool_calls": 2}))
    assert found.tool_calls == ToolCalls(total=2, failed=1, names={"read_file": 1, "run_shell_command": 1})
    assert found.answer == "It is fixed."
    total = only(found)
    assert (total.model, total.input_tokens, total.cached_input_tokens) == ("gemini-2.5-pro", 1000, 400)
    assert (total.output_tokens, total.reasoning_tokens) == (500, 300)
    assert total.cost_status == "priced"


def test_gemini_tells_usage_by_model_where_it_has_that() -> None:
    stats = {**GEMINI_STATS, "models": {"a-1": GEMINI_STATS, "b-1": {"input_tokens": 3}}}
    first, second = seen(*GEMINI, gemini("result", status="success", stats=stats)).usage or []
    assert (first.model, second.model, second.input_tokens, second.output_tokens) == ("a-1", "b-1", 3, None)


def test_a_gemini_that_failed_has_no_answer() -> None:
    assert seen(*GEMINI, gemini("result", status="error", stats=GEMINI_STATS)).answer is None
    assert seen(*GEMINI).usage is None


# --- OpenCode --------------------------------------------------------------------------------------------


def part(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": 1, "sessionID": "ses_1", "part": {"id": "prt_1", **fields}}


def step(reason: str, cost: float, **tokens: Any) -> dict[str, Any]:
    return part("step_finish", type="step-finish", reason=reason, cost=cost, tokens=tokens)


OPENCODE = [
    part("step_start", type="step-start"),
    part("text", type="text", text="I look."),
    part("tool_use", type="tool", callID="c1", tool="read", state={"status": "completed"}),
    part("tool_use", type="tool", callID="c2", tool="bash", state={"status": "error", "error": "no"}),
    step("tool-calls", 0.001, input=10, output=5, reasoning=0, cache={"read": 30, "write": 2}),
    part("step_start", type="step-start"),
    part("text", type="text", text="Done."),
    step("stop", 0.002, input=20, output=6, reasoning=1, cache={"read": 40, "write": 0}),
]


def test_opencode_tells_tool_calls_answer_and_the_usage_of_each_step() -> None:
    found = seen(*OPENCODE, model="acme/acme-1")
    assert found.tool_calls == ToolCalls(total=2, failed=1, names={"bash": 1, "read": 1})
    assert found.answer == "Done."
    total = only(found)
    assert (total.provider, total.model, total.requests, total.cost_nusd) == ("acme", "acme-1", 2, 3_000_000)
    assert (total.input_tokens, total.cached_input_tokens, total.cache_write_tokens) == (102, 70, 2)


def test_a_cost_of_zero_for_tokens_is_no_statement() -> None:
    free = [step("stop", 0, input=20, output=6)]
    total = only(seen(*free, model="acme/acme-1"))
    assert (total.cost_status, total.cost_nusd) == ("unpriced", None)
    assert only(seen(*free, model="gpt-4.1")).cost_provenance == "reconstructed_estimate"


# --- goose -----------------------------------------------------------------------------------------------


def goose(role: str, *content: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "created": 1, "content": list(content)}}


GOOSE = [
    goose("user", {"type": "text", "text": "Fix it."}),
    goose("assistant", {"type": "text", "text": "I look."}),
    goose(
        "assistant",
        {
            "type": "toolRequest",
            "id": "t1",
            "toolCall": {"status": "success", "value": {"name": "developer__shell", "arguments": {}}},
        },
    ),
    goose("user", {"type": "toolResponse", "id": "t1", "toolResult": {"status": "success", "value": []}}),
    goose("assistant", {"type": "toolRequest", "id": "t2", "toolCall": {"status": "error", "error": "bad"}}),
    goose(
        "assistant",
        {"type": "toolRequest", "id": "t3", "toolCall": {"status": "success", "value": {"name": "edit"}}},
    ),
    goose(
        "user",
        {"type": "toolResponse", "id": "t3", "toolResult": {"status": "success", "value": {"isError": True}}},
    ),
    goose("assistant", {"type": "text", "text": "Do"}),
    goose("assistant", {"type": "text", "text": "ne."}),
]
GOOSE_END: dict[str, Any] = {
    "type": "complete",
    "total_tokens": 1290,
    "input_tokens": 1234,
    "output_tokens": 56,
    "cache_read_input_tokens": 1000,
    "cache_write_input_tokens": 0,
    "cost_usd": 0.004,
}


def test_goose_tells_tool_calls_answer_and_usage() -> None:
    found = seen(*GOOSE, GOOSE_END, model="acme-1")
    assert found.tool_calls == ToolCalls(
        total=3, failed=2, names={"(unnamed)": 1, "developer__shell": 1, "edit": 1}
    )
    assert found.answer == "Done."
    total = only(found)
    assert (total.model, total.input_tokens, total.output_tokens, total.cost_nusd) == (
        *("acme-1", 1234, 56),
        4_000_000,
    )


def test_a_goose_that_tells_nothing_but_a_total_reports_no_usage() -> None:
    assert seen(*GOOSE, {"type": "complete", "total_tokens": 1290}).usage is None


def test_a_goose_that_failed_completes_without_an_answer() -> None:
    failed = seen(
        *GOOSE, {"type": "error", "error": "rate limit"}, {"type": "complete", "total_tokens": None}
    )
    assert failed.answer is None


# --- Cursor ----------------------------------------------------------------------------------------------


def cursor(call: str, subtype: str, **tool: Any) -> dict[str, Any]:
    return {"type": "tool_call", "subtype": subtype, "call_id": call, "tool_call": tool, "session_id": "s"}


CURSOR: list[dict[str, Any]] = [
    {
        "type": "system",
        "subtype": "init",
        "apiKeySource": "login",
        "cwd": "/w",
        "session_id": "s",
        "model": "Acme 1",
        "permissionMode": "default",
    },
    cursor("c1", "started", readToolCall={"args": {"path": "a"}}),
    cursor("c1", "completed", readToolCall={"args": {"path": "a"}, "result": {"success": {"content": "x"}}}),
    cursor("c2", "started", shellToolCall={"args": {"command": "make"}}),
    cursor("c2", "completed", shellToolCall={"result": {"rejected": {"reason": "no"}}}),
    cursor("c3", "started", function={"name": "search", "arguments": "{}"}),
]
CURSOR_END = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "Done.",
    "session_id": "s",
    "usage": {"inputTokens": 4, "outputTokens": 2, "cacheReadTokens": 6},
}


def test_cursor_tells_tool_calls_answer_and_usage() -> None:
    found = seen(*CURSOR, CURSOR_END)
    assert found.tool_calls == ToolCalls(total=3, failed=1, names={"read": 1, "search": 1, "shell": 1})
    assert found.answer == "Done."
    total = only(found)
    assert (total.model, total.input_tokens, total.output_tokens) == ("Acme 1", 10, 2)


def test_a_cursor_without_usage_reports_none() -> None:
    assert seen(*CURSOR, {**CURSOR_END, "usage": None}).usage is None


# --- all of them -----------------------------------------------------------------------------------------

SAMPLES: dict[str, list[dict[str, Any]]] = {
    "stream-json": [{"schemaVersion": 2, "type": "run_start", "runId": "r"}],
    "claude-code": [CLAUDE_INIT, *CLAUDE_CALLS, CLAUDE_RESULT],
    "codex": CODEX,
    "gemini": [*GEMINI, gemini("result", status="success", stats=GEMINI_STATS)],
    "opencode": OPENCODE,
    "goose": [*GOOSE, GOOSE_END],
    "cursor": CURSOR,
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_line_is_of_one_dialect_at_most_and_the_first_line_decides(name: str) -> None:
    for line in SAMPLES[name]:
        assert {dialect.name for dialect in DIALECTS if dialect.matches(_parsed(line))} <= {name}
    found = recognized(_parsed(SAMPLES[name][0]))
    assert found is not None
    assert found.name == name


def test_a_dialect_is_chosen_once() -> None:
    found = seen(*CODEX, *GEMINI, *CLAUDE_CALLS)
    assert found.tool_calls is not None
    assert found.tool_calls.total == 5


@pytest.mark.parametrize(
    "line",
    [
        {"type": "message", "role": "assistant", "content": "x"},
        {"type": "tool", "name": "read_file"},
        {"type": "result", "ok": True},
        {"type": "error", "message": "x"},
        {"type": "tool_call", "name": "x"},
        {"type": "system", "subtype": "hook"},
        {"type": "usage", "schemaVersion": 1},
    ],
)
def test_lines_of_no_known_shape_choose_no_dialect(line: dict[str, Any]) -> None:
    assert recognized(_parsed(line)) is None


@pytest.mark.parametrize(("name", "key"), [("claude-code", "tool:Read"), ("codex", "tool:file_change")])
def test_tools_are_trace_events_beside_the_published_keys(name: str, key: str) -> None:
    keys = output_of(*SAMPLES[name]).trace_events
    assert key in keys
    assert str(SAMPLES[name][0]["type"]) in keys


def _parsed(line: dict[str, Any]) -> dict[str, Any]:
    output = AgentOutput()
    taken: list[dict[str, Any]] = []

    class Spy:
        name = "spy"

        def take(self, event: Any, _observer: Any) -> None:
            taken.append(event)

        def close(self, _observer: Any) -> None:
            pass

    output._dialect = Spy()  # type: ignore[assignment]
    output.feed(json.dumps(line).encode())
    output.close()
    return taken[0]


_WORDS = sorted(
    {word for sample in SAMPLES.values() for line in sample for word in json.dumps(line).split('"')[1::2]}
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_WORDS) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=6),
    max_leaves=12,
)


@given(
    name=st.sampled_from(sorted(SAMPLES)),
    lines=st.lists(st.dictionaries(st.sampled_from(_WORDS), _JSON, max_size=6), max_size=4),
    types=st.lists(st.sampled_from(_WORDS), min_size=4, max_size=4),
)
def test_no_line_upsets_a_dialect(name: str, lines: list[dict[str, Any]], types: list[str]) -> None:
    typed = [{**line, "type": kind} for line, kind in zip(lines, types, strict=False)]
    found = seen(SAMPLES[name][0], *typed, *lines)
    assert found.tool_calls is None or 0 <= found.tool_calls.failed <= found.tool_calls.total
