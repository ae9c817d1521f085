"""`spl eval bench` without an agent command: the built-in agent over the offline example, before a scripted server."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from agent.started import KEY
from conftest import ROOT, Ran
from servers.chat import ChatServer

from spl.agent.defaults import default_behaviour
from spl.codec import digest
from spl.records.wire import to_map

pytest.importorskip("pydantic_ai", reason="the built-in agent is an extra")

SUITE = ROOT / "examples" / "offline" / "suite.json"
MODEL = "openai:gpt-4.1-mini"  # a model whose price is known
USAGE = {"prompt_tokens": 1200, "completion_tokens": 80, "cached_tokens": 200}


def call(name: str, **arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}], "usage": USAGE}


def says(text: str) -> dict[str, Any]:
    return {"text": text, "usage": USAGE}


def work(*turns: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the turns of one task: a plan, the work, what it answers, and the verdict of its last stage."""
    return [says("A plan."), *turns, says("It is done."), says("PASS")]


# By a part of the task's prompt.
SCRIPT = {
    "by_prompt": {
        "last page": work(call("patch", path="pages.py", old="len(items) - size", new="len(items)")),
        "--quiet": work(
            call(
                "write",
                path="tool.py",
                content="import argparse\n\nparser = argparse.ArgumentParser()\n"
                'parser.add_argument("--quiet", action="store_true")\n'
                'if not parser.parse_args().quiet:\n    print("working ...")\n',
            )
        ),
        "`colour`": work(
            call("patch", path="save.py", old='"colour"', new='"color"'),
            call(
                "patch",
                path="paint.py",
                old='return json.load(file)["colour"]',
                new='found = json.load(file)\n    return found.get("color") or found["colour"]',
            ),
        ),
        "nobody maintains": work(
            call(
                "write",
                path="dates.py",
                content="from datetime import date\n\n\ndef weekday(text):\n"
                "    return date.fromisoformat(text).weekday()\n",
            )
        ),
        "linear": work(call("read", path="search.py")),  # changes nothing, and so fails
        "1.1.0.md": work(
            call("write", path="../1.1.0.md", content="# 1.1.0\n"),  # outside of the workspace: refused
            call("write", path="1.1.0.md", content="# 1.1.0\n\nIt is faster.\n"),
        ),
    }
}


class Desk:
    """A directory with a configuration, from which the command line is called."""

    def __init__(self, directory: Path, url: str) -> None:
        self.directory = directory
        (directory / "config.toml").write_text(
            f'[providers.openai]\nbase_url = "{url}"\napi_key_env = "{KEY}"\n'
        )

    def __call__(self, *words: str, **more: str) -> Ran:
        kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        kept |= {"PATH": os.environ["PATH"], "HOME": str(self.directory), "LC_ALL": "C.UTF-8"}
        kept |= {"SPL_CONFIG": "config.toml", "SPL_HOME": str(self.directory / "home"), KEY: "open sesame"}
        done = subprocess.run(
            [sys.executable, "-m", "spl", *words],
            cwd=self.directory,
            env=kept | more,
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Traceback" not in done.stderr
        return Ran(done.returncode, done.stdout, done.stderr)


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    with path.open(newline="") as file:
        return {row["taskId"]: row for row in csv.DictReader(file)}


def told(row: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the events of a type that the agent of a row printed."""
    events = [json.loads(line) for line in row["agent"]["stdout"].splitlines()]
    return [event for event in events if event["type"] == kind]


@pytest.mark.parametrize("clean", [[], ["--clean-env"]])
def test_the_whole_example_runs_and_what_the_table_costs_is_what_the_events_say(
    tmp_path: Path, clean: list[str]
) -> None:
    with ChatServer(SCRIPT) as server:
        ran = Desk(tmp_path, server.url)(
            "eval", "bench", "--suite", str(SUITE), "--model", MODEL, "--jobs", "2",
            "--csv-output", "rows.csv", "--json", *clean,
        )  # fmt: skip
        keys = {request.headers["authorization"] for request in server.requests}
    assert ran.status == 3, ran.err  # one task of six fails
    document = json.loads(ran.out)
    assert keys == {"Bearer open sesame"}
    assert (document["runner_kind"], document["requested_model"]) == ("splice_pipeline", MODEL)
    assert document["models_used"] == ["gpt-4.1-mini"]
    assert document["definition_facets"] == {MODEL: digest.facet(to_map(default_behaviour(MODEL))).hex()}
    assert (document["passed"], document["failed"], document["cost_coverage"]) == (5, 1, "complete")
    table = rows_of(tmp_path / "rows.csv")
    assert len(table) == 6
    for row in document["benchmark"]["tasks"]:
        usage = told(row, "usage")
        line = table[row["taskId"]]
        assert len(usage) == len(row["agent"]["usageSamples"]) == int(line["pricedUsageRecords"]) >= 4
        spent = sum(Decimal(str(event["costUsd"])) for event in usage)
        assert spent > 0
        assert abs(Decimal(line["estimatedCostUSD"]) - spent) <= Decimal("0.0000005")
        assert int(line["inputTokens"]) == sum(event["promptTokens"] for event in usage)
        assert line["stageBreakdown"].count("costStatus=priced") == 3
    (refused,) = [
        result
        for row in document["benchmark"]["tasks"]
        for result in told(row, "tool_result")
        if result["status"] == "error"
    ]
    assert "1.1.0.md" in refused["output"]
    assert not list(tmp_path.glob("1.1.0.md"))


def test_the_same_agent_as_an_actor_is_recorded_and_graded(tmp_path: Path) -> None:
    (tmp_path / "v1.json").write_text(
        json.dumps({"adapter": "pipeline", "model": MODEL, "instructions": "Work."})
    )
    with ChatServer(SCRIPT) as server:
        desk = Desk(tmp_path, server.url)
        assert desk("actor", "add", "bot").status == 0
        installed = json.loads(desk("definition", "install", "bot", "v1.json", "--json").out)
        ran = desk(
            "eval", "bench", "--suite", str(SUITE), "--actor", "bot", "--csv-output", "rows.csv", "--json"
        )
    document = json.loads(ran.out)
    assert (ran.status, document["runner_kind"], document["passed"]) == (3, "splice_pipeline", 5), ran.err
    assert document["definition_facets"] == {MODEL: installed["facet"]}
    score = json.loads(
        desk("eval", "score", "smoke", "--actor", "bot", "--definition", "incumbent", "--json").out
    )
    assert (score["substance"]["passed"], score["substance"]["of"]) == (5, 6)
    assert (score["structure"]["passed"], score["structure"]["of"]) == (5, 6)  # one call of a tool failed
    assert score["cost"]["coverage"] == "complete"
    table = rows_of(tmp_path / "rows.csv")
    listed = sum(Decimal(row["estimatedCostUSD"]) for row in table.values())
    assert abs(Decimal(score["cost"]["nusd"]) / 10**9 - listed) < Decimal("0.00001")
    priced = sum(int(row["pricedUsageRecords"]) for row in table.values())
    assert priced == score["cost"]["priced"] == document["priced_usage_records"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "name an agent with --agent-command, or a model of the built-in agent with --model"),
        (("--model", "nobody:m"), "there is no provider nobody"),
        (("--model", "m"), ""),
    ],
)
def test_a_model_that_cannot_be_asked_is_refused_before_any_work(
    tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    with ChatServer([]) as server:
        ran = Desk(tmp_path, server.url)("eval", "bench", "--suite", str(SUITE), *words)
        if says:
            assert (ran.status, ran.out) == (2, "")
            assert says in ran.err
            assert server.requests == []
        else:  # the only provider of the file serves models that name none
            assert ran.status == 3
            assert len(server.requests) >= 6


def test_without_the_extra_bench_and_exec_say_how_it_is_installed(tmp_path: Path) -> None:
    """The library is hidden from the process, as if it had not been installed."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "find = util.find_spec\n"
        "util.find_spec = lambda name, package=None: None if name == 'pydantic_ai' else find(name, package)\n"
    )
    desk = Desk(tmp_path, "http://127.0.0.1:9")
    bench = ("eval", "bench", "--suite", str(SUITE), "--model", MODEL)
    for words in (bench, ("exec", "--model", MODEL, "Do it.")):
        ran = desk(*words, PYTHONPATH=str(tmp_path / "hidden"))
        assert (ran.status, ran.out) == (1, "")
        assert "pip install 'spl-kernel[agent]'" in ran.err


def test_a_prompt_that_begins_with_a_dash_is_a_prompt(tmp_path: Path) -> None:
    task = {
        "id": "t",
        "name": "T",
        "prompt": "--quiet",
        "workspaceFixture": "fx",
        "expectedChangedFiles": ["a.txt"],
    }
    (tmp_path / "fx").mkdir()
    (tmp_path / "fx" / "a.txt").write_text("a\n")
    check = {"id": "c", "name": "C", "command": ["true"]}
    suite = {"id": "s", "name": "S", "tasks": [task | {"verificationCommands": [check]}]}
    (tmp_path / "s.json").write_text(json.dumps(suite))
    with ChatServer(work(call("write", path="a.txt", content="b\n"))) as server:
        ran = Desk(tmp_path, server.url)("eval", "bench", "--suite", "s.json", "--model", MODEL, "--json")
    assert ran.status == 0, ran.out + ran.err
    assert "--quiet" in json.dumps(server.requests[0].body)
