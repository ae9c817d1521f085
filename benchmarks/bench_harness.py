"""What a row of a bench costs beyond its agent and its checks, what a second job gains, and how memory behaves.

Prints one line for each promise: what was measured, what is promised. Exit status 1 when a promise is broken.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 40
AGENT = "import sys; open('hello.txt', 'w').write('changed')"
CHECK = ["true"]


def suite(root: Path, rows: int) -> Path:
    """Write a suite of equal tasks over one small fixture."""
    (root / "fx").mkdir()
    for name in ("hello.txt", "keep.txt"):
        (root / "fx" / name).write_text(name)
    tasks = [
        {
            "id": f"t{number}",
            "name": "T",
            "prompt": "p",
            "workspaceFixture": "fx",
            "expectedChangedFiles": ["hello.txt"],
            "verificationCommands": [{"id": "c", "name": "C", "command": CHECK}],
        }
        for number in range(rows)
    ]
    path = root / "suite.json"
    path.write_text(json.dumps({"id": "s", "name": "S", "tasks": tasks}))
    return path


def bench(path: Path, agent: list[str], *, jobs: int = 1) -> tuple[float, int]:
    """Return the seconds of a bench and its greatest resident size in KiB, checks and agents not counted."""
    words = [
        sys.executable,
        "-m",
        "spl",
        "eval",
        "bench",
        "--suite",
        str(path),
        "--json",
        "--jobs",
        str(jobs),
    ]
    started = time.monotonic()
    process = subprocess.Popen(
        [*words, "--agent-command", *agent], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    peak = 0
    while process.poll() is None:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))])
        except OSError:
            pass
        time.sleep(0.02)
    return time.monotonic() - started, peak


def bare(rows: int, agent: list[str]) -> float:
    """Return the seconds that the agents and checks take by themselves."""
    with tempfile.TemporaryDirectory() as directory:
        started = time.monotonic()
        for _ in range(rows):
            for argv in (agent, CHECK):
                subprocess.run(argv, cwd=directory, check=True, stdin=subprocess.DEVNULL, capture_output=True)
        return time.monotonic() - started


def main() -> int:
    """Measure, print, and say whether every promise holds."""
    kept = True
    with tempfile.TemporaryDirectory() as directory:
        small, single, loud = (Path(directory) / name for name in ("small", "single", "loud"))
        for path in (small, single, loud):
            path.mkdir()
        agent = [sys.executable, "-c", AGENT]
        one, _ = bench(suite(single, 1), agent)
        many, _ = bench(suite(small, ROWS), agent)
        row_ms = ((many - one) - bare(ROWS - 1, agent)) / (ROWS - 1) * 1000
        kept &= row_ms <= 40
        print(f"beyond agent and checks: {row_ms:.1f} ms a row (promised: at most 40)")
        waiting = Path(directory) / "waiting"
        waiting.mkdir()
        sleeper = suite(waiting, 12)
        slow = ["sh", "-c", "sleep 0.5; echo changed > hello.txt"]
        ratio = bench(sleeper, slow)[0] / bench(sleeper, slow, jobs=2)[0]
        kept &= ratio >= 1.7
        print(f"two jobs against one, agents that wait: {ratio:.2f} times the rows (promised: at least 1.7)")
        noise = "import sys\nfor _ in range(200): sys.stdout.write('x' * (1 << 20))"
        _, peak = bench(suite(loud, 6), [sys.executable, "-c", noise])
        kept &= peak < 120 * 1024
        print(
            f"six agents that print 200 MB in one line: {peak / 1024:.0f} MB resident (promised: under 120)"
        )
    return os.EX_OK if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
