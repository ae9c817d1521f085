"""A scripted coding agent: it knows the sample suite by heart, and handles each task in its own way.

    agent.py TASK_ID [MODEL]

It works in the current directory and prints what it does as JSON lines, as agents of this kind do. No model is called;
the costs are made up.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path


def emit(**event: object) -> None:
    """Print one event."""
    print(json.dumps(event), flush=True)


def edit(path: str, old: str, new: str) -> None:
    """Replace text in a file, and say so."""
    emit(type="tool", name="read_file", path=path)
    text = Path(path).read_text()
    Path(path).write_text(text.replace(old, new))
    emit(type="tool", name="edit_file", path=path)


def fix_slug() -> int:
    """Do the task."""
    edit("slug.py", 'title.lower().replace(" ", "-")', '"-".join(title.lower().split())')
    emit(event="verify", name="check_slug")
    return 0


def write_note() -> int:
    """Do the task."""
    Path("1.1.0.md").write_text("# 1.1.0\n\nFaster.\n")
    emit(type="tool", name="write_file", path="1.1.0.md")
    return 0


def edit_check() -> int:
    """Make the check agree with the mistake: it passes, and the change is not allowed."""
    edit("check_slug.py", '"Two  Words": "two-words", " ends ": "ends"', '"Two Words": "two-words"')
    return 0


def rename_option() -> int:
    """Forget the second file."""
    edit("settings.ini", "time_out", "timeout_s")
    return 0


def give_up() -> int:
    """Fail."""
    print("I cannot prove this.", file=sys.stderr)
    return 1


TASKS: dict[str, Callable[[], int]] = {
    "fix-slug": fix_slug,
    "write-note": write_note,
    "edit-check": edit_check,
    "rename-option": rename_option,
    "give-up": give_up,
}


def main() -> int:
    """Do the task that the command line names."""
    task, model = sys.argv[1], (sys.argv[2:] or [""])[0] or "scripted-1"
    time.sleep(0.05)
    emit(
        type="usage",
        schemaVersion=2,
        runId="sample",
        model=model,
        promptTokens=100 * len(task),
        completionTokens=20,
        costStatus="priced",
        costUsd=0.0001 * len(task),
    )
    return TASKS[task]()


if __name__ == "__main__":
    sys.exit(main())
