"""The shapes of JSON lines that agents print: one module each, chosen by the first line that can be of only one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from spl.harness.dialects.claude_code import ClaudeCode
from spl.harness.dialects.codex import Codex
from spl.harness.dialects.cursor import Cursor
from spl.harness.dialects.gemini import Gemini
from spl.harness.dialects.goose import Goose
from spl.harness.dialects.opencode import OpenCode
from spl.harness.dialects.stream_json import StreamJson
from spl.harness.observer import Observer


class Dialect(Protocol):
    """Reads the lines of one agent's output that have a `type` of text."""

    name: str

    @staticmethod
    def matches(event: Mapping[str, Any], /) -> bool:
        """Say whether the line, parsed, is of this dialect and of no other."""

    def take(self, event: Mapping[str, Any], observer: Observer, /) -> None:
        """Tell the observer what a line says; lines of unknown types say nothing."""

    def close(self, observer: Observer, /) -> None:
        """Tell the observer what only the end decides."""


DIALECTS: Final[tuple[type[Dialect], ...]] = (
    StreamJson,
    ClaudeCode,
    Codex,
    Gemini,
    OpenCode,
    Goose,
    Cursor,
)


def recognized(event: Mapping[str, Any]) -> Dialect | None:
    """Return a new reader for the dialect that a line shows, or None when it shows none."""
    return next((dialect() for dialect in DIALECTS if dialect.matches(event)), None)
