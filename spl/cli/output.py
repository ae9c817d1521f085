"""Output: one document, two renderings, failures too."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from spl.cli.context import current
from spl.cli.sanitize import visible
from spl.errors import SplError, UsageError

D = TypeVar("D")


def emit(document: D, render: Callable[[D], str]) -> None:
    """Print a document: as JSON with `--json`, else as text.

    Args:
        document: A contract Struct.
        render: Makes the text, with untrusted parts already sanitised.
    """
    if current().json:
        from spl.codec.jsontext import format_json  # noqa: PLC0415 - text output does not need the encoder

        write(format_json(document))
    else:
        write(render(document))


def write(text: str) -> None:
    """Print text and a line break on standard output."""
    sys.stdout.write(text + "\n")


def emit_error(error: SplError) -> None:
    """Print a failure: as a document on standard output with `--json`, else in words on standard error."""
    if current().json:
        import json  # noqa: PLC0415 - only failures need it here

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
        write(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace").decode())
        return
    name = "spl" if not isinstance(error, UsageError) else "spl: usage"
    sys.stderr.write(f"{name}: {visible(error.message, lines=True)}\n")
    if error.hint:
        sys.stderr.write(f"hint: {visible(error.hint, lines=True)}\n")
