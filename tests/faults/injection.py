"""Lets system calls of a real command fail: which calls touch a home, and the command with one of them failing.

`strace --inject` counts the calls of one name in a process, so a first run without failure says which of them touch
the home. Hash seeds are fixed and no bytecode is written, so that the next run makes the same calls.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

# What may fail, and how: the errors that file systems give for each of them.
ERRORS: Final = {
    "openat": ("EMFILE", "EIO"),
    "write": ("ENOSPC", "EIO"),
    "pwrite64": ("ENOSPC", "EIO"),
    "ftruncate": ("EIO",),
    "fsync": ("EIO",),
    "fdatasync": ("EIO",),
    "linkat": ("ENOSPC",),
    "unlink": ("EIO",),
    "mkdir": ("ENOSPC",),
    "flock": ("ENOLCK",),
}
SYNCS: Final = ("fsync", "fdatasync")
_LINE: Final = re.compile(r"^\d+\s+(\w+)\((.*)\)\s+= (-?\d+)(.*)$")


class Call(NamedTuple):
    """A system call of a traced command.

    Attributes:
        name: Of the call.
        nth: The how-manieth of its name in the process, from 1.
        arguments: As strace prints them, descriptors with their paths.
        result: What it returned.
        injected: Whether its failure was arranged.
    """

    name: str
    nth: int
    arguments: str
    result: int
    injected: bool


class Injection(NamedTuple):
    """A failure to arrange: at one call, or at that and all later ones of its name."""

    call: Call
    error: str
    for_ever: bool

    @property
    def option(self) -> str:
        """Return it as strace wants it."""
        return (
            f"--inject={self.call.name}:error={self.error}:when={self.call.nth}{'+' if self.for_ever else ''}"
        )


class Traced(NamedTuple):
    """What a traced command did."""

    status: int
    out: str
    err: str
    calls: list[Call]


PROGRAM: Final = ("-m", "spl")


def traced(
    strace: str,
    home: Path,
    words: list[str],
    injection: Injection | None = None,
    program: Sequence[str] = PROGRAM,
) -> Traced:
    """Return what the real program did, with one of its system calls failing.

    Args:
        strace: The program that traces.
        home: The home; the trace is kept beside it, and the command runs there.
        words: Of the command line.
        injection: What is to fail.
        program: Another program than the real one, for a negative control.
    """
    trace = home.with_name("calls")
    options = ["-f", "-y", "-s", "0", "-o", str(trace), f"--trace={','.join(ERRORS)}"]
    if injection is not None:
        options.append(injection.option)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home.parent),
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
    }
    done = subprocess.run(
        [strace, *options, sys.executable, *program, "--home", str(home), "--json", *words],
        capture_output=True,
        text=True,
        cwd=home.parent,
        env=environment,
        timeout=120,
        check=False,
    )
    return Traced(done.returncode, done.stdout, done.stderr, _calls(trace.read_text(errors="replace")))


def _calls(trace: str) -> list[Call]:
    seen: Counter[str] = Counter()
    found = []
    for line in trace.splitlines():
        match = _LINE.match(line)
        if match is not None:
            name, arguments, result, rest = match.groups()
            seen[name] += 1
            found.append(Call(name, seen[name], arguments, int(result), "(INJECTED)" in rest))
    return found


def synced_again(calls: list[Call]) -> str | None:
    """Return a file whose sync failed and was tried again although nothing had been written anew, or None.

    What a failed sync did not write may be gone from memory too; only what is written again can be synced. That is
    what SQLite does when it rolls back: every page that the transaction changed comes again from the journal.
    """
    failed: set[str] = set()
    for call in calls:
        path = call.arguments.partition("<")[2].rpartition(">")[0]
        if call.name == "fdatasync" and path.endswith("/home"):
            continue  # by SQLite, which takes no notice when it fails: every name there was durable before
        if call.name in ("write", "pwrite64", "ftruncate") and call.result >= 0:
            failed.discard(path)
        elif call.name in SYNCS and path in failed:
            return path
        elif call.name in SYNCS and call.injected:
            failed.add(path)
    return None


def injections(calls: list[Call], home: Path) -> list[Injection]:
    """Return every failure of every call that touched a home, once and for ever, in order of the calls."""
    return [
        Injection(call, error, for_ever)
        for call in calls
        if str(home) in call.arguments
        for error in ERRORS[call.name]
        for for_ever in (False, True)
    ]
