"""Output: one document, two renderings, failures too."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import TypeVar

from spl.cli.context import current
from spl.cli.sanitize import visible
from spl.errors import SplError, UsageError

D = TypeVar("D")

_RED, _GREEN, _PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[0m"
_MOVED = re.compile(r"▲ \+[0-9.]+|▼ -[0-9.]+")


def emit(document: D, render: Callable[[D], str]) -> None:
    """Print a document: as JSON with `--json`, else as text.

    Args:
        document: A contract Struct.
        render: Makes the text, with untrusted parts already sanitised.
    """
    if current().json:
        from spl.codec.jsontext import format_json  # noqa: PLC0415 - text output does not need the encoder

        _write_bytes(format_json(document))
    else:
        write(_painted(render(document)))


def write(text: str) -> None:
    """Print text and a line break on standard output."""
    sys.stdout.write(text + "\n")


def write_content(data: bytes) -> None:
    """Print content as it is; on a terminal, with everything visible that could act on it.

    Raises:
        UsageError: One JSON document was asked for.
    """
    if current().json:
        raise UsageError("content is printed as it is, not as a JSON document", hint="leave out --json")
    if sys.stdout.isatty():
        write(visible(data.decode("utf-8", "replace"), lines=True))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def write_json(value: object) -> None:
    """Print plain values as one JSON document: valid UTF-8 on one line, whatever the locale."""
    _write_bytes(json.dumps(value, ensure_ascii=False, default=str))


def _write_bytes(text: str) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "replace") + b"\n")


def emit_error(error: SplError) -> None:
    """Print a failure: as a document on standard output with `--json`, else in words on standard error."""
    if current().json:
        document: dict[str, object] = {
            "contract": "spl.error.v1",
            "code": error.code,
            "message": error.message,
        }
        if error.hint:
            document["hint"] = error.hint
        document["exit_status"] = error.exit_status
        if error.details:
            document["details"] = error.details
        write_json(document)
        return
    label = f"{_RED}spl:{_PLAIN}" if _coloured(sys.stderr.isatty()) else "spl:"
    sys.stderr.write(f"{label} {visible(error.message, lines=True)}\n")
    if error.hint:
        sys.stderr.write(f"hint: {visible(error.hint, lines=True)}\n")


def progress(what: str) -> Callable[[int, int], None]:
    """Return a function that shows how much is done, on standard error and only where progress is shown."""
    from spl.cli.progress import shown  # noqa: PLC0415 - most commands show none

    def show(done: int, of: int) -> None:
        end = "\r\x1b[K" if done == of else ""
        sys.stderr.write(f"\r{what}: {done:,} of {of:,}{end}")
        sys.stderr.flush()

    return show if shown() else lambda _done, _of: None


def _painted(text: str) -> str:
    """Return text with its arrows in colour; colour comes last, so that it does not count in a table's widths."""
    if ("▲" not in text and "▼" not in text) or not _coloured(sys.stdout.isatty()):
        return text
    return _MOVED.sub(lambda m: f"{_GREEN if m[0][0] == '▲' else _RED}{m[0]}{_PLAIN}", text)


def _coloured(terminal: bool) -> bool:
    from spl import environment  # noqa: PLC0415 - most output has nothing to colour

    return environment.wants_colour(terminal=terminal)
