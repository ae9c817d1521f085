"""A process that outlives a killed `spl`, ends the agents that it left, and removes its temporary directories.

It reads its standard input, a pipe that only `spl` holds. When the pipe ends without the word that all is well, nobody
is left who would end the agents: every process that carries the session's marker in its environment is ended (Linux
shows environments in /proc; elsewhere only the directories are removed).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from spl.harness.descendants import MARKER, send
from spl.harness.removal import remove_tree

WELL: Final = b"well\n"
_PROC: Final = Path("/proc")
_ROUNDS: Final = 50
_ROUND_S: Final = 0.1


def main(words: list[str]) -> None:
    """Wait for the end of `spl`, and clear up after it unless it has done so itself.

    Args:
        words: The session of the markers, and the directories.
    """
    if sys.stdin.buffer.read() == WELL:
        return
    session, *directories = words
    prefix = f"{MARKER}={session}".encode()
    for _ in range(_ROUNDS):
        left = list(_marked(prefix))
        if not left:
            break
        send(left, signal.SIGKILL)
        time.sleep(_ROUND_S)
    for directory in directories:
        remove_tree(Path(directory))


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
