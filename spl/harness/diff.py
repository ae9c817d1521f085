"""What an agent changed, as a unified diff: of texts, in bounded time and size."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

MAX_FILE_BYTES: Final = 65_536
MAX_FILE_LINES: Final = 1_000  # the comparison of lines is quadratic
MAX_BYTES: Final = 1_048_576
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ABSENT: Final = "/dev/null"


def unified(before: Path, after: Path, names: Iterable[str]) -> bytes:
    """Return the differences of some files below two directories.

    A file that is no text, or a long one, is named only, and so is what is no regular file. What goes beyond 1 MiB is
    left out, and the last line says so.

    Args:
        before: The fixture's copy.
        after: The workspace.
        names: The changed names, relative, with `/`.
    """
    found = bytearray()
    for name in names:
        for piece in _differences(name, _content(before, name), _content(after, name)):
            found += piece
        if len(found) > MAX_BYTES:
            return bytes(found[:MAX_BYTES]) + b"\n... and more\n"
    return bytes(found)


def _differences(name: str, old: bytes | str | None, new: bytes | str | None) -> Iterator[bytes]:
    left, right = _ABSENT if old is None else f"a/{name}", _ABSENT if new is None else f"b/{name}"
    if isinstance(old, bytes) or isinstance(new, bytes):
        yield f"{left} and {right} differ\n".encode("utf-8", "replace")
        return
    before, after = ((text or "").splitlines(keepends=True) for text in (old, new))
    for line in difflib.unified_diff(before, after, left, right):
        end = "" if line.endswith("\n") else "\n\\ No newline at end of file\n"
        yield (line + end).encode("utf-8", "replace")


def _content(root: Path, name: str) -> bytes | str | None:
    """Return a text, bytes for what is shown by its name only, or None for what is not there."""
    try:
        descriptor = os.open(root / name, _FILE)
    except FileNotFoundError:
        return None
    except OSError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return b""
        data = file.read(MAX_FILE_BYTES + 1)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return b""
    if len(data) > MAX_FILE_BYTES or "\0" in text or text.count("\n") > MAX_FILE_LINES:
        return b""
    return text
