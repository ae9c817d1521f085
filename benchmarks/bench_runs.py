"""What `spl run suite` costs for each case beyond its processes, and how much memory it takes whatever agents print.

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

CASES = 200
OWN_MS = 60.0
FSYNCS = 20
MEMORY_KIB = 64 * 1024
LOUD = "import sys\nfor _ in range(64): sys.stdout.buffer.write(b'{\"x\": \"' + b'y' * (1 << 20))"
SPL = [sys.executable, "-m", "spl"]


def home(root: Path, cases: int, argv: list[str]) -> dict[str, str]:
    """Make a home with a suite of equal cases and an actor that runs `argv`; return the environment of its use."""
    environment = {**os.environ, "SPL_HOME": str(root / "home")}
    (root / "fx").mkdir()
    (root / "fx" / "a.txt").write_text("a")
    command = {"id": "c", "name": "C", "command": ["true"]}
    tasks = [
        {
            "id": f"t{number}",
            "name": "T",
            "prompt": "p",
            "workspaceFixture": "fx",
            "expectedChangedFiles": ["a.txt"],
            "verificationCommands": [command],
        }
        for number in range(cases)
    ]
    (root / "suite.json").write_text(json.dumps({"id": "s", "name": "S", "tasks": tasks}))
    (root / "d.json").write_text(json.dumps({"adapter": "command", "argv": argv}))
    for words in (
        ["actor", "add", "bot"],
        ["suite", "import", str(root / "suite.json")],
        ["definition", "install", "bot", str(root / "d.json")],
    ):
        subprocess.run([*SPL, *words], env=environment, check=True, stdout=subprocess.DEVNULL)
    return environment


def run(environment: dict[str, str], *words: str) -> tuple[float, int]:
    """Return the seconds of a run of the suite, and the greatest resident size of spl itself in KiB."""
    started = time.monotonic()
    process = subprocess.Popen(
        [*SPL, "run", "suite", "s", "--actor", "bot", *words], env=environment, stdout=subprocess.DEVNULL
    )
    peak = 0
    while process.poll() is None:
        try:
            lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
            peak = max([peak, *(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))])
        except OSError:
            pass
        time.sleep(0.02)
    if process.returncode:
        sys.exit(f"spl run suite ended with {process.returncode}")
    return time.monotonic() - started, peak


def bare_s(cases: int) -> float:
    """Return the seconds that agent and check of some cases take by themselves, one after another."""
    started = time.monotonic()
    for _ in range(2 * cases):
        subprocess.run(["true"], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return time.monotonic() - started


def fsync_s(root: Path) -> float:
    """Return the seconds of one fsync of a small file where the home lies."""
    with (root / "sync").open("wb", buffering=0) as file:
        started = time.monotonic()
        for _ in range(50):
            file.write(b"x" * 512)
            os.fsync(file.fileno())
        return (time.monotonic() - started) / 50


def idle_kib() -> int:
    """Return the resident size of an interpreter that does nothing, in KiB."""
    program = "print(next(l.split()[1] for l in open('/proc/self/status') if l.startswith('VmHWM')))"
    return int(subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout)


def main() -> int:
    """Measure, print, and return the exit status."""
    kept = True
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        environment = home(root, CASES, ["true"])
        start, _ = run(environment, "--case", "t0")
        whole, _ = run(environment, "--jobs", "2")
        sync = fsync_s(root)
        own = (whole - start - bare_s(CASES) / 2) / CASES * 1000  # two jobs: the processes run side by side
        allowed = OWN_MS + FSYNCS * sync * 1000
        kept &= own <= allowed
        print(f"own time per case, {CASES} cases, two jobs: {own:.1f} ms (at most {allowed:.1f} ms: ", end="")
        print(f"{OWN_MS:.0f} ms and {FSYNCS} fsyncs of {sync * 1000:.2f} ms), ratio {own / allowed:.2f}")
    with tempfile.TemporaryDirectory() as directory:
        environment = home(Path(directory), 4, [sys.executable, "-c", LOUD])
        _, peak = run(environment, "--jobs", "2")
        above = peak - idle_kib()
        kept &= above <= MEMORY_KIB
        print(f"memory above an idle interpreter, agents that print 64 MB: {above / 1024:.0f} MB ", end="")
        print(f"(at most {MEMORY_KIB // 1024} MB), ratio {above / MEMORY_KIB:.2f}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
