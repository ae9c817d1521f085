#!/usr/bin/env python3
"""A scripted coding agent: it does in the current directory what a script says, well or badly. No model is called.

    agent.py SCRIPT [TASK [MODEL]]

SCRIPT is a file, or the JSON itself: a list of steps, or an object that has one for each task (and `*` for the others).
A step is an object whose first key says what to do. Tool calls, usage and the answer are printed as events, as real
agents of this kind do (stream-json, schema version 2).

Tools, each of which can fail, and is told either way:
    {"read": PATH}  {"write": PATH, "text": T}  {"edit": PATH, "old": A, "new": B}  {"delete": PATH}
    {"commit": MESSAGE}  {"tool": NAME}, with "fails": true for a call that fails
Events:
    {"usage": {"promptTokens": N, ...}}  {"say": TEXT}  {"answer": TEXT}  {"verify": NAME}  {"event": {...}}
    {"silent": true}    print no more events
Output that is no event:
    {"print": TEXT}  {"complain": TEXT} (on standard error)  {"garbage": BYTES}  {"line": BYTES, "begin": TEXT}
Time and processes:
    {"sleep": SECONDS}  {"hang": "politely" or "deaf"}  {"pid": FILE}
    {"spawn": [STEP, ...]}    start another of this program; "wait": true waits for it, "session": true gives it a
                              session of its own, "hidden": true also takes its environment away
    {"repeat": N, "steps": [...]}    N times, or for ever when N is 0
Its end:
    {"exit": STATUS}  {"signal": NUMBER}
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Step = dict[str, Any]
_PIECE = 1 << 16
_GARBAGE = bytes(range(255, -1, -1)) * 256


class Agent:
    """One run of a script."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._calls = 0
        self._begun = False
        self._silent = False

    def run(self, steps: Iterable[Step]) -> None:
        """Do the steps, and say that it has finished if it said anything."""
        self._steps(steps)
        if self._begun:
            self._emit("run_end", status="success", exitCode=0)

    def _steps(self, steps: Iterable[Step]) -> None:
        for step in steps:
            verb = next(iter(step), "")
            action = _ACTIONS.get(verb)
            if action is None:
                sys.exit(f"agent.py: no step begins with {verb!r}")
            action(self, step[verb], step)

    # --- events ---------------------------------------------------------------------------------------------

    def _emit(self, kind: str, **fields: object) -> None:
        if self._silent:
            return
        if not self._begun:
            self._begun = True
            self._emit("run_start")
        _print({"schemaVersion": 2, "type": kind, "runId": "scripted", **fields})

    def _call(self, name: str, work: Callable[[], object]) -> None:
        self._calls += 1
        call = f"call-{self._calls}"
        self._emit("tool_call", id=call, name=name)
        status, output = "ok", ""
        try:
            work()
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            status, output = "error", str(error)
        self._emit("tool_result", id=call, name=name, status=status, output=output)
        if not self._silent:
            _print({"type": "tool", "name": name})

    def usage(self, fields: Step, _step: Step) -> None:
        """Report the usage of one request."""
        self._emit("usage", **{"model": self._model, **fields})

    def say(self, words: str, _step: Step) -> None:
        """Say something on the way."""
        self._emit("text", delta=words)

    def answer(self, words: str, _step: Step) -> None:
        """Give the final answer."""
        self._emit("final", text=words)

    def verify(self, name: str, _step: Step) -> None:
        """Say that something was verified."""
        _print({"event": "verify", "name": name})

    def event(self, fields: Step, _step: Step) -> None:
        """Print any event."""
        _print(fields)

    def silent(self, value: bool, _step: Step) -> None:  # noqa: FBT001 - the value of a step
        """Print no more events, or print them again."""
        self._silent = value

    # --- tools ----------------------------------------------------------------------------------------------

    def read(self, path: str, _step: Step) -> None:
        """Read a file."""
        self._call("read_file", Path(path).read_text)

    def write(self, path: str, step: Step) -> None:
        """Write a file, with its directories."""

        def work() -> None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_text(step["text"])

        self._call("write_file", work)

    def edit(self, path: str, step: Step) -> None:
        """Replace text in a file; the call fails when it is not there."""

        def work() -> None:
            text = Path(path).read_text()
            if step["old"] not in text:
                raise ValueError("the text to replace is not there")
            Path(path).write_text(text.replace(step["old"], step["new"]))

        self._call("edit_file", work)

    def delete(self, path: str, _step: Step) -> None:
        """Delete a file."""
        self._call("delete_file", Path(path).unlink)

    def commit(self, message: str, _step: Step) -> None:
        """Commit all that has changed."""
        git = ["git", "-c", "user.name=agent", "-c", "user.email=agent@example.invalid"]

        def work() -> None:
            subprocess.run([*git, "add", "--all"], check=True, capture_output=True)
            subprocess.run([*git, "commit", "--message", message], check=True, capture_output=True)

        self._call("git_commit", work)

    def tool(self, name: str, step: Step) -> None:
        """Call a tool that does nothing, and fails if it is told to."""

        def work() -> None:
            if step.get("fails"):
                raise ValueError("as the script wants it")

        self._call(name, work)

    # --- output that is no event ----------------------------------------------------------------------------

    def print(self, text: str, _step: Step) -> None:
        """Print a line of text."""
        _write(text.encode() + b"\n")

    def complain(self, text: str, _step: Step) -> None:
        """Print a line on standard error."""
        print(text, file=sys.stderr, flush=True)

    def garbage(self, size: int, _step: Step) -> None:
        """Print bytes that are not text."""
        for begin in range(0, size, len(_GARBAGE)):
            _write(_GARBAGE[: size - begin])

    def line(self, size: int, step: Step) -> None:
        """Print a long line."""
        begin = step.get("begin", "").encode()
        _write(begin)
        for written in range(len(begin), size, _PIECE):
            _write(b"x" * min(_PIECE, size - written))
        _write(b"\n")

    # --- time and processes ---------------------------------------------------------------------------------

    def sleep(self, seconds: float, _step: Step) -> None:
        """Wait."""
        time.sleep(seconds)

    def hang(self, how: str, _step: Step) -> None:
        """Never go on; a deaf agent also ignores being asked to end."""
        if how == "deaf":
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(3600)

    def pid(self, path: str, _step: Step) -> None:
        """Write the number of this process to a file, which appears whole."""
        beside = Path(f"{path}.{os.getpid()}")
        beside.write_text(str(os.getpid()))
        beside.rename(path)

    def spawn(self, steps: list[Step], step: Step) -> None:
        """Start another of this program."""
        started = subprocess.Popen(
            [sys.executable, __file__, json.dumps(steps)],
            start_new_session=bool(step.get("session") or step.get("hidden")),
            env={} if step.get("hidden") else None,
        )
        if step.get("wait"):
            started.wait()

    def repeat(self, times: int, step: Step) -> None:
        """Do steps again and again."""
        done = 0
        while not times or done < times:
            self._steps(step["steps"])
            done += 1

    def exit(self, status: int, _step: Step) -> None:
        """End with a status."""
        if self._begun:
            self._emit("run_end", status="error" if status else "success", exitCode=status)
        sys.exit(status)

    def signal(self, number: int, _step: Step) -> None:
        """End by a signal of its own."""
        os.kill(os.getpid(), number)


_ACTIONS: dict[str, Callable[[Agent, Any, Step], None]] = {
    name: action
    for name, action in vars(Agent).items()
    if callable(action) and not name.startswith("_") and name != "run"
}


def _print(event: Step) -> None:
    _write(json.dumps(event).encode() + b"\n")


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def steps_of(script: str, task: str) -> list[Step]:
    """Return the steps that a script has for a task."""
    text = script if script.lstrip()[:1] in ("[", "{") else Path(script).read_text()
    found = json.loads(text)
    if isinstance(found, dict):
        found = found.get(task, found.get("*"))
    if found is None:
        sys.exit(f"agent.py: the script has no steps for {task!r}")
    return found


def main() -> None:
    """Do what the command line says."""
    if len(sys.argv) < 2:
        sys.exit("usage: agent.py SCRIPT [TASK [MODEL]]")
    script, task, model = (*sys.argv[1:4], "", "")[:3]
    with contextlib.suppress(BrokenPipeError):
        Agent(model or "scripted-1").run(steps_of(script, task))


if __name__ == "__main__":
    main()
