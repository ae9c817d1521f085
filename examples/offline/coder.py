"""A scripted coding agent: it works through the steps that a plan has for a task, and prints what it does.

    coder.py PLAN TASK

Its tools are real: a file is read or it is not there, a text is replaced or it is not found. Every step is one request,
whose tokens and cost are made up. No model is called. The output is stream-json, as docs/agents.md describes it.
"""

import json
import sys
from pathlib import Path

TOKENS = {"in": 1500, "out": 200}
COST_USD = 0.0021


def emit(kind: str, **fields: object) -> None:
    """Print one event."""
    print(json.dumps({"schemaVersion": 2, "type": kind, "runId": "run", **fields}), flush=True)


def read_file(path: str) -> None:
    """Read a file."""
    Path(path).read_text()


def write_file(path: str, text: str) -> None:
    """Write a file."""
    Path(path).write_text(text)


def edit_file(path: str, old: str, new: str) -> None:
    """Replace a text, which must be there."""
    text = Path(path).read_text()
    if old not in text:
        raise ValueError(f"{path} does not hold {old!r}")
    Path(path).write_text(text.replace(old, new))


TOOLS = {tool.__name__: tool for tool in (read_file, write_file, edit_file)}


def work(steps: list[dict[str, str]]) -> None:
    """Take the steps one by one; one that fails is told, and does not end the work."""
    for number, step in enumerate(steps, start=1):
        name, words = step["tool"], {key: value for key, value in step.items() if key != "tool"}
        emit("tool_call", id=str(number), name=name)
        try:
            TOOLS[name](**words)
        except (OSError, ValueError) as error:
            emit("tool_result", id=str(number), name=name, status="error", output=str(error))
        else:
            emit("tool_result", id=str(number), name=name, status="ok")
        emit(
            "usage",
            provider="sample",
            model="sample-small",
            promptTokens=TOKENS["in"],
            completionTokens=TOKENS["out"],
            costUsd=COST_USD,
        )


plan, task = sys.argv[1:]
emit("run_start")
work(json.loads(Path(plan).read_text())[task])
emit("final", text="done")
emit("run_end", status="success", exitCode=0)
