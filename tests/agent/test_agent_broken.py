"""What the built-in agent does when its model, its server or its prompt misbehaves: it says so, and counts on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent.started import KEY, told

pytest.importorskip("pydantic_ai")

FAILED = 3
READ = {"tool_calls": [{"name": "read", "arguments": {"path": "note.txt"}}]}
DONE = {"text": "done"}
TURNS = {"max_turns": 12}


def call(name: str, arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def asked(server: Any) -> str:
    """Everything that was said to the model."""
    return json.dumps([request.body for request in server.requests])


def test_without_its_key_it_names_the_variable_and_asks_nobody(tmp_path: Path) -> None:
    run, server = told([DONE], tmp_path, key=None)
    assert (run.status, server.requests) == (FAILED, [])
    assert KEY in run.errors


def test_an_unknown_model_is_named(tmp_path: Path) -> None:
    run, _ = told({"by_model": {"large": [DONE]}}, tmp_path)
    assert run.status == FAILED
    assert "small" in run.errors


def test_a_server_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    run, _ = told([DONE], tmp_path, model="nowhere:small")
    assert run.status != 0
    assert "nowhere" in run.errors


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_trouble_is_tried_again_and_said(tmp_path: Path, status: int) -> None:
    trouble = {"error": {"status": status, "headers": {"retry-after": "0"}}, "repeat": 2}
    run, server = told([trouble, DONE], tmp_path)
    assert (run.status, len(server.requests)) == (0, 3)
    assert str(status) in json.dumps(run.of("warning"))
    assert run.tokens == (10, 5)


@pytest.mark.parametrize("status", [429, 500])
def test_a_trouble_that_stays_ends_the_run(tmp_path: Path, status: int) -> None:
    trouble = {"error": {"status": status, "headers": {"retry-after": "0"}}, "repeat": "forever"}
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "note.txt").write_text("a note")
    run, server = told([READ, trouble], tmp_path)
    assert run.status == FAILED
    assert str(status) in run.errors
    assert 3 <= len(server.requests) <= 12
    assert run.tokens == (10, 5)


def test_a_refused_request_is_not_repeated(tmp_path: Path) -> None:
    refusal = {"error": {"status": 401, "body": {"error": {"message": "no such key"}}}, "repeat": "forever"}
    run, server = told([refusal], tmp_path)
    assert (run.status, len(server.requests)) == (FAILED, 1)
    assert "no such key" in run.errors


def test_broken_arguments_are_told_to_the_model_and_do_no_harm(tmp_path: Path) -> None:
    broken = [
        "{bro",
        "[]",
        "3",
        "",
        '{"path": 7}',
        "{}",
        '{"path": "x", "more": 1}',
        '{"path": "\\ud800"}',
        "[" * 9999,
    ]
    run, server = told([*(call("read", arguments) for arguments in broken), DONE], tmp_path)
    assert run.status == 0, run.errors
    assert [result["status"] for result in run.of("tool_result")] == ["error"] * len(broken)
    assert len(server.requests) == len(broken) + 1
    assert run.tokens == (10 * len(server.requests), 5 * len(server.requests))


def test_arguments_that_stay_broken_end_the_run(tmp_path: Path) -> None:
    run, server = told([{**call("read", "{bro"), "repeat": "forever"}], tmp_path, params=TURNS)
    assert (run.status, len(server.requests)) == (FAILED, 12)
    assert "12 turns" in run.errors
    assert run.tokens == (120, 60)


def test_a_tool_that_does_not_exist_is_told_to_the_model(tmp_path: Path) -> None:
    run, server = told([call("fly", {}), DONE], tmp_path)
    assert run.status == 0
    assert "fly" in json.dumps(server.requests[1].body["messages"][-1])


def test_an_endless_loop_of_tools_ends(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "note.txt").write_text("a note")
    run, server = told([{**READ, "repeat": "forever"}], tmp_path, params=TURNS)
    assert (run.status, len(server.requests)) == (FAILED, 12)
    assert "12 turns" in run.errors
    assert run.tokens == (120, 60)


def test_a_limit_of_tokens_ends_it(tmp_path: Path) -> None:
    run, server = told([{**call("list", {}), "repeat": "forever"}], tmp_path, limits={"tokens": 50})
    assert run.status == FAILED
    assert "token" in run.errors
    assert 3 <= len(server.requests) <= 5


def test_a_limit_of_time_ends_it(tmp_path: Path) -> None:
    run, server = told([{"text": "late", "delay_s": 50}], tmp_path, limits={"time_ms": 1500})
    assert run.status == FAILED
    assert "time" in run.errors
    assert len(server.requests) <= 1


def test_a_model_that_says_nothing_ends_it(tmp_path: Path) -> None:
    run, server = told([{"text": "", "repeat": "forever"}], tmp_path)
    assert run.status == FAILED
    assert run.errors
    assert len(server.requests) < 20
    assert run.tokens == (10 * len(server.requests), 5 * len(server.requests))


@pytest.mark.parametrize("cut_after", [0, 250])
def test_a_cut_answer_ends_it_or_is_asked_for_again(tmp_path: Path, cut_after: int) -> None:
    run, server = told([{"text": "long" * 500, "cut_after": cut_after, "repeat": "forever"}], tmp_path)
    assert run.status == FAILED
    assert run.errors
    assert 1 <= len(server.requests) <= 12


def test_one_cut_answer_does_not_lose_what_was_used_before(tmp_path: Path) -> None:
    cut = {"text": "long" * 500, "cut_after": 250, "repeat": "forever"}
    run, _ = told([call("list", {}), cut], tmp_path)
    assert run.status == FAILED
    assert run.tokens == (10, 5)


def test_a_server_that_tells_no_usage_is_unknown_and_not_zero(tmp_path: Path) -> None:
    run, _ = told([{"text": "done", "usage": None}], tmp_path)
    assert run.status == 0
    (usage,) = run.of("usage")
    assert usage["usageReported"] is False
    assert usage["costStatus"] != "priced"
    assert usage["unpricedReason"]
    assert usage.get("costUsd") is None


@pytest.mark.parametrize(
    "path", ["../outside.txt", "/etc/hostname", "link/outside.txt", "file-link", "a/../../x"]
)
def test_files_outside_the_workspace_are_neither_read_nor_written(tmp_path: Path, path: str) -> None:
    workspace, outside = tmp_path / "workspace", tmp_path / "outside.txt"
    workspace.mkdir()
    outside.write_text("what-nobody-may-see")
    (workspace / "link").symlink_to(tmp_path)
    (workspace / "file-link").symlink_to(outside)
    calls = [call("read", {"path": path}), call("write", {"path": path, "content": "changed"}), DONE]
    run, server = told(calls, tmp_path, prompt=f"Read and change {path}")
    assert run.status == 0
    assert [result["status"] for result in run.of("tool_result")] == ["error", "error"]
    assert "what-nobody-may-see" not in asked(server)
    assert outside.read_text() == "what-nobody-may-see"
    assert not (tmp_path / "x").exists()


def test_settings_of_other_agents_in_the_workspace_are_files_like_others(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    planted = "planted-instruction"
    names = [
        *(
            ".claude/settings.json",
            ".claude/CLAUDE.md",
            "CLAUDE.md",
            "AGENTS.md",
            "opencode.json",
            ".cursorrules",
        ),
        *(
            ".mcp.json",
            ".env",
            "config.toml",
            "spl/config.toml",
            ".spl/config.toml",
            "pydantic_ai.py",
            "msgspec.py",
        ),
        *(
            "sitecustomize.py",
            "spl.py",
            "pyproject.toml",
            ".codex/config.toml",
            ".github/copilot-instructions.md",
        ),
    ]
    for name in names:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        text = f"raise SystemExit('{planted}')" if name.endswith(".py") else planted
        (workspace / name).write_text(text)
    run, server = told([DONE], tmp_path)
    assert run.status == 0
    assert planted not in asked(server)
    assert planted not in run.err


def test_the_key_is_never_said(tmp_path: Path) -> None:
    refusal = {"error": {"status": 401, "body": {"error": {"message": "bad key secret-of-the-test"}}}}
    for script in ([DONE], [refusal], [call("run", {"command": ["env"]}), DONE]):
        run, server = told(script, tmp_path, permissions="full")
        assert "secret-of-the-test" not in json.dumps(run.events)
        assert "secret-of-the-test" not in asked(server)
