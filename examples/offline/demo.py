"""The first minutes with spl, offline: two definitions of one actor, their runs, scores, a comparison and a verdict.

Runs the same commands that README.md shows, in a home of its own that is removed at the end (or kept: `--keep DIR`).
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
COMMANDS = """
spl actor add coder
spl suite import suite.json
spl definition install coder v1.toml --pin coder.py --pin v1.json
spl run suite smoke --actor coder --jobs 2
spl eval score smoke --actor coder --definition incumbent
spl run suite smoke --actor coder --jobs 2 --trial v2.toml --pin coder.py --pin v2.json
spl eval score smoke --actor coder --definition latest
spl eval compare incumbent latest --suite smoke --actor coder
spl judge incumbent over latest --actor coder --feature "keeps old files readable" --axis substance
spl eval history coder
spl verify
"""


def demo(home: str) -> None:
    """Walk from an empty home to the history of two definitions; a command that fails ends it."""
    for line in COMMANDS.strip().splitlines():
        sys.stdout.write(f"\n$ {line}\n")
        sys.stdout.flush()
        words = [sys.executable, "-m", *shlex.split(line)]
        done = subprocess.run(words, cwd=HERE, env={**os.environ, "SPL_HOME": home}, check=False)
        if done.returncode:
            sys.exit(done.returncode)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--keep"]:
        demo(sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as directory:
            demo(str(Path(directory) / "home"))
