"""A process that outlives a killed `spl`, ends the agents that it left, and removes its temporary directories.

It reads its standard input, a pipe that only `spl` holds. When the pipe ends without the word that all is well, nobody
is left who would end the agents: every process that carries the session's marker in its environment is ended, and
those that were seen below `spl` a moment before, whatever they made of their environment (Linux shows both in /proc;
elsewhere only the directories are removed).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from spl.harness.descendants import MARKER, descendants, send
from spl.harness.removal import remove_tree

WELL: Final = b"well\n"
_PROC: Final = Path("/proc")
_ROUNDS: Final = 50
_ROUND_S: Final = 0.1
_LOOK_S: Final = 0.25


def main(words: list[str]) -> None:
    """Wait for the end of `spl`, and clear up after it unless it has done so itself.

    Args:
        words: The session of the markers, and the directories.
    """
    below = _Below(os.getppid())
    while not select.select([sys.stdin], [], [], _LOOK_S)[0]:
        below.look()
    if sys.stdin.buffer.read() == WELL:
        return
    session, *directories = words
    prefix = f"{MARKER}={session}".encode()
    for _ in range(_ROUNDS):
        left = [*_marked(prefix), *below.left()]
        if not left:
            break
        send(left, signal.SIGKILL)
        time.sleep(_ROUND_S)
    for directory in directories:
        remove_tree(Path(directory))


class _Below:
    """The processes below `spl` that left its session, as they were seen while it lived.

    Args:
        parent: The process id of `spl`.
    """

    def __init__(self, parent: int) -> None:
        self._parent = parent
        self._seen: dict[int, str] = {}

    def look(self) -> None:
        """Take note of those that are there."""
        found = {}
        for pid in descendants(self._parent):
            with contextlib.suppress(OSError):
                if pid != os.getpid() and os.getsid(pid) != os.getsid(self._parent):
                    found[pid] = _began(pid)
        self._seen = found or self._seen

    def left(self) -> list[int]:
        """Return those of the last look that are still the same processes."""
        return [pid for pid, began in self._seen.items() if began and _began(pid) == began]


def _began(pid: int) -> str:
    """Return when a process began, in ticks since boot (proc(5), field 22 of stat); empty when it has ended."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def _marked(prefix: bytes) -> Iterator[int]:
    """Yield the processes whose environment carries a marker that begins so."""
    for path in _PROC.glob("[0-9]*"):
        try:
            environment = (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # gone, or not ours
        if any(entry.startswith(prefix) for entry in environment) and int(path.name) != os.getpid():
            yield int(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
