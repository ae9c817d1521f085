"""The pipeline as a process: stages, routes, repeats until the check passes, limits, both protocols, interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agent.started import KEY, definition, told, variables
from servers.chat import ChatServer

pytest.importorskip("pydantic_ai", reason="the built-in agent is an extra")

STAGES = [{"name": "plan"}, {"name": "write"}, {"name": "verify"}]
FAILED = 3


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"text": text, **more}


def writes(path: str, content: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "write", "arguments": {"path": path, "content": content}}]}


def stages_of(final: Any) -> list[tuple[str, int, str]]:
    return [(stage["name"], stage["iteration"], stage["status"]) for stage in final["stages"]]


def test_the_stages_go_one_after_the_other_and_are_told_with_what_they_used(tmp_path: Path) -> None:
    script = [says("The plan."), writes("a.txt", "x"), says("Written."), says("PASS")]
    run, server = told(script, tmp_path, stages=STAGES)
    assert run.status == 0
    assert run.end["status"] == "completed"
    assert [(event["stage"], event["iteration"], event["usageSequence"]) for event in run.of("usage")] == [
        ("plan", 1, 1), ("write", 1, 2), ("write", 1, 3), ("verify", 1, 4),
    ]  # fmt: skip
    assert stages_of(run.final) == [
        ("plan", 1, "completed"),
        ("write", 1, "completed"),
        ("verify", 1, "completed"),
    ]
    assert run.final["answer"] == "Written."
    assert [stage["tokens_input"] for stage in run.final["stages"]] == [10, 20, 10]
    assert (tmp_path / "workspace" / "a.txt").read_text() == "x"
    assert "The plan." in json.dumps(server.requests[1].body)  # what was planned is told to who writes


def test_what_did_not_pass_is_told_and_tried_again_without_a_new_plan(tmp_path: Path) -> None:
    script = [
        says("The plan."), says("Nothing done."), says("FAIL: the file is missing"),
        writes("a.txt", "x"), says("Done."), says("PASS"),
    ]  # fmt: skip
    run, server = told(script, tmp_path, stages=STAGES, max_iterations=2)
    assert run.status == 0
    assert [(name, iteration) for name, iteration, _ in stages_of(run.final)] == [
        ("plan", 1), ("write", 1), ("verify", 1), ("write", 2), ("verify", 2),
    ]  # fmt: skip
    assert "the file is missing" in json.dumps(server.requests[3].body)


def test_a_check_decides_and_no_model_is_asked_whether_it_passed(tmp_path: Path) -> None:
    script = [says("I guess."), writes("a.txt", "x"), says("Now it is there.")]
    check = [sys.executable, "-c", "import sys, os; sys.exit(not os.path.exists('a.txt'))"]
    run, server = told(script, tmp_path, stages=[{"name": "work"}], check=check, max_iterations=3)
    assert run.status == 0
    assert len(server.requests) == 3
    assert [(name, iteration) for name, iteration, _ in stages_of(run.final)] == [
        ("work", 1), ("verify", 1), ("work", 2), ("verify", 2),
    ]  # fmt: skip


def test_iterations_that_are_spent_end_it_as_not_verified(tmp_path: Path) -> None:
    run, server = told(
        [says("Tried.", repeat="forever")],
        tmp_path,
        check=["false"],
        max_iterations=2,
        stages=[{"name": "work"}],
    )
    assert (run.status, run.end["status"], len(server.requests)) == (FAILED, "failed", 2)
    assert [event["code"] for event in run.of("error")] == ["not_verified"]


def test_each_stage_asks_its_own_model_and_the_option_sets_the_primary(tmp_path: Path) -> None:
    stages = [{"name": "plan", "model": "local:planner"}, {"name": "write"}]
    run, server = told([says("One."), says("Two.")], tmp_path, "--model", "local:chosen", stages=stages)
    assert run.status == 0
    assert [request.body["model"] for request in server.requests] == ["planner", "chosen"]
    assert [(event["provider"], event["model"]) for event in run.of("usage")] == [
        ("local", "planner"), ("local", "chosen"),
    ]  # fmt: skip


def test_a_limit_of_cost_ends_it_when_a_cost_is_unknown(tmp_path: Path) -> None:
    run, server = told([says("x", repeat="forever")], tmp_path, stages=STAGES, limits={"cost_nusd": 10**9})
    assert run.status == FAILED
    assert [event["code"] for event in run.of("error")] == ["limit_cost"]
    assert "unknown" in run.errors
    assert len(server.requests) == 1
    assert run.of("usage")[0]["costStatus"] == "unpriced"
    assert run.of("usage")[0]["unpricedReason"]


def test_a_mode_that_only_reads_offers_no_tool_that_writes(tmp_path: Path) -> None:
    run, server = told([writes("a.txt", "x"), says("I could not.")], tmp_path, permissions="read-only")
    assert run.status == 0
    offered = {tool["function"]["name"] for tool in server.requests[0].body["tools"]}
    assert offered == {"list", "read", "search"}
    assert not (tmp_path / "workspace" / "a.txt").exists()
    assert [event["status"] for event in run.of("tool_result")] == ["denied"]


def test_the_messages_protocol_is_spoken_too(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    usage = {"prompt_tokens": 30, "completion_tokens": 5, "cached_tokens": 20, "cache_write_tokens": 4}
    script = [{**writes("a.txt", "x"), "usage": usage}, {**says("Done."), "usage": usage}]
    with ChatServer(script) as server:
        environment = variables(tmp_path, server.url)
        (tmp_path / "config" / "spl" / "config.toml").write_text(
            f'[providers.mirror]\nkind = "anthropic"\nbase_url = "{server.url.removesuffix("/v1")}"\n'
            f'api_key_env = "{KEY}"\n'
        )
        done = subprocess.run(
            [
                *(sys.executable, "-m", "spl", "exec", "--output-format", "stream-json", "--definition"),
                *(str(definition(tmp_path, model="mirror:claude-x")), "Do it."),
            ],
            cwd=tmp_path / "workspace",
            env=environment,
            capture_output=True,
            check=False,
        )
        paths = {request.path.partition("?")[0] for request in server.requests}
        headers = [request.headers for request in server.requests]
    assert done.returncode == 0, done.stdout
    assert paths == {"/v1/messages"}
    assert {found["authorization"] for found in headers} == {
        "Bearer secret-of-the-test"
    }  # as the SDK sends it
    told_usage = [
        event for line in done.stdout.splitlines() if (event := json.loads(line))["type"] == "usage"
    ]
    assert len(told_usage) == 2
    assert told_usage[0]["cachedInputTokens"] == 20
    assert told_usage[0]["completionTokens"] == 5
    assert (tmp_path / "workspace" / "a.txt").read_text() == "x"


def test_a_person_reads_the_answer_on_standard_output_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with ChatServer([says("It is \x1b[31mdone.")]) as server:
        done = subprocess.run(
            [sys.executable, "-m", "spl", "exec", "--definition", str(definition(tmp_path)), "Do it."],
            cwd=tmp_path / "workspace",
            env=variables(tmp_path, server.url),
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith("It is ")
    assert done.stdout.rstrip().endswith("done.")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_is_told_and_ends_what_it_runs(tmp_path: Path, number: signal.Signals) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    run = {"tool_calls": [{"name": "run", "arguments": {"command": ["sleep", "29.75"]}}]}
    with ChatServer([run, says("late")]) as server:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "spl", "exec", "--output-format", "stream-json", "--definition"),
                *(str(definition(tmp_path, permissions="full")), "Do it."),
            ],
            cwd=workspace,
            env=variables(tmp_path, server.url),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        for line in process.stdout:
            if json.loads(line)["type"] == "tool_call":
                break
        time.sleep(0.3)
        process.send_signal(number)
        events = [json.loads(line) for line in process.stdout]
        process.stdout.close()
        assert process.wait(timeout=20) == 130
    assert (events[-1]["type"], events[-1]["status"], events[-1]["exitCode"]) == ("run_end", "cancelled", 130)
    assert not _running("29.75")


def _running(word: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words and int(path.parent.name) != os.getpid():
            found.append(path.parent.name)
    return found
