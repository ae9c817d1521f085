"""What the end of a run holds of an agent's events, for the scripted agent and for shapes of others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from spl.kernel.actors import add_actor
from spl.kernel.define import install, parse_behaviour
from spl.kernel.execute import How
from spl.kernel.home import Kernel
from spl.kernel.run_cases import run_goal
from spl.kernel.trial import Choice

AGENT = (Path(__file__).parent.parent.parent / "examples" / "agent.py").read_bytes()
TOOLS: list[dict[str, Any]] = [{"write": "a", "text": "a"}, {"read": "missing"}]
CODEX: list[dict[str, Any]] = [
    {"event": {"type": "thread.started", "thread_id": "t"}},
    {
        "event": {
            "type": "item.completed",
            "item": {"id": "i", "type": "command_execution", "exit_code": 1, "status": "failed"},
        }
    },
    {"event": {"type": "turn.completed", "usage": {"input_tokens": 1_000_000, "output_tokens": 0}}},
]


def end_of(kernel: Kernel, steps: list[dict[str, Any]], **more: Any) -> tuple[dict[str, Any], list[str]]:
    """Run the scripted agent once on a goal, pinned with its script; return the end and the roles of its blobs."""
    add_actor(kernel, "bot")
    argv = ["{files}/agent.py", "{files}/script.json", "{task_id}", *(["{model}"] if "model" in more else [])]
    behaviour = json.dumps({"adapter": "command", "argv": argv, **more}).encode()
    pins = {"agent.py": AGENT, "script.json": json.dumps(steps).encode()}
    install(kernel, "bot", parse_behaviour(behaviour, "d.json", pins))
    shown = run_goal(kernel, "do it", "bot", Choice(), How(environment={"PATH": os.environ["PATH"]}))
    assert shown.end is not None
    return shown.end, sorted(shown.blobs)


def test_the_end_of_a_run_holds_what_its_agent_told(kernel: Kernel) -> None:
    usage = {"promptTokens": 10, "completionTokens": 3, "costUsd": 0.5}
    end, roles = end_of(kernel, [*TOOLS, {"usage": usage}, {"answer": "Done."}], model="acme-1")
    assert end["status"] == "completed"
    assert end["tool_calls"] == {"total": 2, "failed": 1, "names": {"read_file": 1, "write_file": 1}}
    assert end["answer"] == "Done."
    (total,) = end["usage"]
    assert (total["model"], total["cost_nusd"], total["cost_status"]) == ("acme-1", 500_000_000, "priced")
    assert end["changed_files"] == ["a"]
    assert roles == ["diff", "stdout", "trace", "usage"]


def test_usage_without_a_model_counts_under_that_of_the_definition(kernel: Kernel) -> None:
    end, _ = end_of(kernel, [{"silent": True}, *CODEX], model="gpt-4.1")
    assert end["tool_calls"] == {"total": 1, "failed": 1, "names": {"command_execution": 1}}
    (total,) = end["usage"]
    assert (total["model"], total["input_tokens"], total["cost_nusd"]) == (
        "gpt-4.1",
        1_000_000,
        2_000_000_000,
    )
    assert total["pricing_source"] == "genai-prices"


@pytest.mark.parametrize(
    "steps", [[{"silent": True}], [{"garbage": 5000}], [{"line": 100_000, "begin": "{"}, {"print": "{}"}]]
)
def test_what_an_agent_does_not_tell_is_not_in_the_record(
    kernel: Kernel, steps: list[dict[str, Any]]
) -> None:
    end, roles = end_of(kernel, steps)
    assert end["status"] == "completed"
    assert not {"tool_calls", "answer", "usage"} & end.keys()
    assert not {"trace", "usage"} & set(roles)


def test_a_line_of_an_event_that_is_too_long_does_not_change_how_the_run_ended(kernel: Kernel) -> None:
    steps: list[dict[str, Any]] = [
        {"usage": {"promptTokens": 10, "costUsd": 0.5}},
        {"line": 9_000_000, "begin": "{"},
        {"answer": "Done."},
    ]
    end, _ = end_of(kernel, steps, model="acme-1")
    assert (end["status"], end["answer"]) == ("completed", "Done.")
    assert [total["cost_status"] for total in end["usage"]] == ["priced", "error"]
