"""How long commands take to start, against a process that only imports typer, measured side by side.

Targets: `spl --version` within 2.5 times of it, `spl judge` (two signed records behind it, one appended) within 4.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 25
SPL = [sys.executable, "-m", "spl"]
TARGETS = {"spl --version": 2.5, "spl judge": 4.0}


def run(words: list[str], environment: dict[str, str]) -> str:
    """Run one process and return its standard output."""
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


def two_definitions(directory: Path, environment: dict[str, str]) -> list[str]:
    """Return the ids of two definitions in a new home."""
    run([*SPL, "actor", "add", "a"], environment)
    ids = []
    for version in ("1", "2"):
        file = directory / f"v{version}.toml"
        file.write_text(f'adapter = "external"\nsystem = "s"\nversion = "{version}"\n', "utf-8")
        ids.append(
            json.loads(run([*SPL, "definition", "propose", "a", str(file), "--json"], environment))["id"]
        )
    return ids


def main() -> None:
    """Print medians and ratios; exit 1 when a target is missed."""
    with tempfile.TemporaryDirectory() as name:
        environment = {**os.environ, "SPL_HOME": str(Path(name) / "home")}
        winner, loser = two_definitions(Path(name), environment)
        commands = {
            "import typer": [sys.executable, "-c", "import typer"],
            "spl --version": [*SPL, "--version"],
            "spl --help": [*SPL, "--help"],
            "spl judge": [*SPL, "judge", winner, "over", loser, "--basis", "measured"],
        }
        taken_ms: dict[str, list[float]] = {label: [] for label in commands}
        for _ in range(ROUNDS):  # in turns, so that a noisy moment meets every command
            for label, words in commands.items():
                start = time.perf_counter()
                run(words, environment)
                taken_ms[label].append((time.perf_counter() - start) * 1000)
    medians = {label: statistics.median(times) for label, times in taken_ms.items()}
    missed = False
    for label, median_ms in medians.items():
        ratio = median_ms / medians["import typer"]
        target = TARGETS.get(label)
        missed = missed or (target is not None and ratio > target)
        wanted = "" if target is None else f"  (at most {target})"
        print(f"{label:<14} {median_ms:7.1f} ms  {ratio:4.2f} times a bare import of typer{wanted}")
    sys.exit(missed)


if __name__ == "__main__":
    main()
