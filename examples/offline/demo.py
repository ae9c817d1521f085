"""The first minutes with spl, offline: two definitions of one actor, their runs, scores, a history and a verdict.

Runs the same commands that README.md shows, in a home of its own that is removed at the end (or kept: `--keep DIR`).
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SPL = [sys.executable, "-m", "spl"]


def spl(home: str, *words: str, quiet: bool = False) -> str:
    """Run one command, show it with what it printed, and return that."""
    if not quiet:
        sys.stdout.write(f"\n$ spl {shlex.join(words)}\n")
        sys.stdout.flush()
    done = subprocess.run(
        [*SPL, *words],
        cwd=HERE,
        env={**os.environ, "SPL_HOME": home},
        capture_output=True,
        text=True,
        check=False,
    )
    if not quiet:
        sys.stdout.write(done.stdout + done.stderr)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout


def demo(home: str) -> None:
    """Walk from an empty home to a history of two definitions."""
    spl(home, "init")
    spl(home, "actor", "add", "coder")
    spl(home, "suite", "create", "smoke", "--description", "six small tasks")
    spl(home, "suite", "add", "smoke", "cases.json")
    spl(home, "definition", "install", "coder", "v1.toml")
    spl(home, "run", "import", "runs-v1.jsonl", "--actor", "coder")
    spl(home, "eval", "score", "smoke", "--actor", "coder", "--definition", "incumbent")
    spl(home, "definition", "propose", "coder", "v2.toml")
    spl(home, "run", "import", "runs-v2.jsonl", "--actor", "coder", "--definition", "latest")
    spl(home, "eval", "score", "smoke", "--actor", "coder", "--definition", "latest")
    listed = json.loads(spl(home, "definition", "list", "coder", "--json", quiet=True))
    first, second = (definition["id"] for definition in listed["definitions"])
    spl(
        home,
        "judge",
        first[:12],
        "over",
        second[:12],
        "--feature",
        "keeps old files readable",
        "--axis",
        "substance",
    )
    spl(home, "eval", "history", "coder")
    spl(home, "verify")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--keep"]:
        demo(sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as directory:
            demo(str(Path(directory) / "home"))
