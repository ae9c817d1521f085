"""What the built-in agent costs beyond the library that it is built on: its start, its turns, its memory.

A scripted model server on the loopback address answers; no model is called. Times are processor time of the agent's
process, so that a busy machine changes them little; where nothing else runs, they are the time that passes.

Prints one line for each promise: what was measured, what is promised. Exit status 1 when a promise is broken.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
SERVER = ROOT / "tests" / "servers" / "chat.py"
ROUNDS = 5
TURNS = 100
LONG = 1000

LIBRARY = """
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
"""
LOOP = (
    LIBRARY
    + """
import sys
from pydantic_ai.usage import UsageLimits

agent = Agent(OpenAIChatModel("small", provider=OpenAIProvider(base_url=sys.argv[1], api_key="none")))

@agent.tool_plain
def read(path: str) -> str:
    return open(path).read()

agent.run_sync("go", usage_limits=UsageLimits(request_limit=None))
"""
)
CALL = {"tool_calls": [{"name": "read", "arguments": {"path": "note.txt"}}]}


@contextmanager
def serving(script: object, directory: Path) -> Iterator[str]:
    """Serve a script from a process of its own, and give its address."""
    path = directory / "script.json"
    path.write_text(json.dumps(script))
    process = subprocess.Popen([sys.executable, SERVER, path], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()


def agent_words(directory: Path, turns: int) -> list[str]:
    """Return the agent's command: one stage that may take as many turns as it likes."""
    behaviour = {
        "adapter": "pipeline",
        "model": "local:small",
        "instructions": "Do what is asked.",
        "stages": [{"name": "work"}],
        "max_iterations": 1,
        "params": {"max_turns": turns + 10},
    }
    path = directory / "definition.json"
    path.write_text(json.dumps(behaviour))
    words = [sys.executable, "-P", "-m", "spl", "--no-trust", "exec", "--output-format", "stream-json"]
    return [*words, "--definition", str(path), "go"]


def environment(directory: Path, url: str) -> dict[str, str]:
    """Return an environment in which the agent finds the server and nothing of the caller."""
    configured = directory / "spl"
    configured.mkdir(exist_ok=True)
    (configured / "config.toml").write_text(f'[providers.local]\nbase_url = "{url}"\napi_key_env = "KEY"\n')
    kept = {"PATH": os.environ["PATH"], "KEY": "none", "XDG_CONFIG_HOME": str(directory)}
    return kept | {"HOME": str(directory), "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT)}


def spent(pid: int) -> float:
    """Return the processor seconds that a process has taken so far, from the scheduler's own count."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def resident_kib(pid: int) -> int:
    """Return the resident size of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def whole(words: list[str], directory: Path, variables: dict[str, str]) -> float:
    """Run a program to its end, and return the processor seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, cwd=directory, env=variables, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def to_first_request(directory: Path) -> float:
    """Return the processor seconds of the agent from its start to its first request."""
    sys.path.insert(0, str(ROOT / "tests"))
    from servers.chat import ChatServer  # noqa: PLC0415 - the tests are not a package

    with ChatServer([{"text": "late", "delay_s": 60}]) as server:
        variables = environment(directory, server.url)
        process = subprocess.Popen(
            agent_words(directory, 1), cwd=directory, env=variables, stdout=subprocess.DEVNULL
        )
        try:
            while not server.requests:
                assert process.poll() is None, "the agent ended before it asked"
                time.sleep(0.002)
            return spent(process.pid)
        finally:
            process.kill()
            process.wait()


def start_ratio(directory: Path) -> float:
    """Return how long the agent takes to its first request, against importing the library; the best of each."""
    library, agent = [], []
    for _ in range(ROUNDS):
        library.append(whole([sys.executable, "-c", LIBRARY], directory, dict(os.environ)))
        agent.append(to_first_request(directory))
    return min(agent) / min(library)


def turn_ms(directory: Path) -> tuple[float, float]:
    """Return the milliseconds of one turn in the agent and in the library's loop alone."""
    took: dict[str, list[float]] = {"agent": [], "loop": []}
    for _ in range(3):
        each: dict[str, list[float]] = {"agent": [], "loop": []}
        for turns in (1, TURNS + 1):
            script = [{**CALL, "repeat": turns}, {"text": "done"}]
            for name, words in (("agent", agent_words(directory, turns)), ("loop", [])):
                with serving(script, directory) as url:
                    command = words or [sys.executable, "-c", LOOP, url]
                    each[name].append(whole(command, directory, environment(directory, url)))
        for name, (short, long) in each.items():
            took[name].append((long - short) / TURNS * 1000)
    return median(took["agent"]), median(took["loop"])


def memory_kib(directory: Path) -> tuple[int, int]:
    """Return the resident size of the agent after 100 turns and after 1,000."""
    sizes = {}
    with serving([{**CALL, "repeat": LONG}, {"text": "done"}], directory) as url:
        process = subprocess.Popen(
            agent_words(directory, LONG),
            cwd=directory,
            env=environment(directory, url),
            stdout=subprocess.PIPE,
        )
        assert process.stdout
        turn = 0
        for line in process.stdout:
            turn += json.loads(line)["type"] == "usage"
            if turn in {TURNS, LONG} and turn not in sizes:
                sizes[turn] = resident_kib(process.pid)
        assert process.wait() == 0
    return sizes[TURNS], sizes[LONG]


def main() -> int:
    """Measure, print, and say whether every promise holds."""
    kept = True
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "note.txt").write_text("a note\n")
        ratio = start_ratio(directory)
        kept &= ratio <= 1.5
        print(f"start to first request: {ratio:.2f} times importing the library (promised: at most 1.5)")
        agent, loop = turn_ms(directory)
        kept &= agent - loop <= 15
        print(
            f"a turn with a tool call: {agent:.1f} ms, the library's loop {loop:.1f} ms, "
            f"beyond it {agent - loop:.1f} ms (promised: at most 15)"
        )
        early, late = memory_kib(directory)
        kept &= late <= 1.2 * early
        print(
            f"memory after {TURNS} turns {early / 1024:.0f} MB, after {LONG} {late / 1024:.0f} MB: "
            f"{late / early:.2f} times (promised: flat, at most 1.2)"
        )
    return os.EX_OK if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
