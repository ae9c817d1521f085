"""Turn rows of published results into the lines that `spl run import` reads.

Usage: python convert.py RUNS.jsonl SYSTEMS.json OUT

A row is `{"model", "instance_id", "resolved", "cost_usd", "api_calls"}`; it becomes a run of the case `instance_id`
whose only outcome is `resolved`. What was published about each system becomes its definition: work that is run
elsewhere has the adapter `external`, and its facet is the hash of system, version and model. OUT receives
`runs.jsonl` and `definitions.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def run_line(row: dict[str, Any]) -> dict[str, Any]:
    """Return the import line of one published row."""
    return {
        "id": f"{row['model']}/{row['instance_id']}",
        "model": row["model"],
        "case": row["instance_id"],
        "results": [{"id": "resolved", "status": "pass" if row["resolved"] else "fail"}],
        "usage": [{"model": row["model"], "requests": row["api_calls"], "cost_usd": row["cost_usd"]}],
    }


def behaviour(system: dict[str, Any]) -> dict[str, Any]:
    """Return the behaviour map of one published system."""
    return {
        "adapter": "external",
        "system": system["agent"],
        "version": system["agent_version"],
        "model": system["model"],
    }


def main(runs: Path, systems: Path, out: Path) -> None:
    """Write the two files that the import reads."""
    out.mkdir(parents=True, exist_ok=True)
    with runs.open(encoding="utf-8") as rows, (out / "runs.jsonl").open("w", encoding="utf-8") as lines:
        for row in rows:
            lines.write(json.dumps(run_line(json.loads(row))) + "\n")
    published = sorted(json.loads(systems.read_text("utf-8")), key=lambda system: system["date"])
    definitions = {system["model"]: behaviour(system) for system in published}
    (out / "definitions.json").write_text(json.dumps(definitions, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
