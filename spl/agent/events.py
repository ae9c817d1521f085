"""The agent's events, in the stream-json format, schema version 2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

SCHEMA_VERSION: Final = 2

Event = dict[str, object]


class Failure(Exception):  # noqa: N818 - how a run ends, told as an event, never as a traceback
    """The work failed.

    Args:
        code: One word for programs.
        message: What is wrong and what can be done, in one sentence.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Events:
    """Writes events, each with the schema version and the run's id; a field that is None is left out.

    Args:
        write: Takes one event.
        run_id: Names the run.
    """

    def __init__(self, write: Callable[[Event], None], run_id: str) -> None:
        self._write = write
        self._run_id = run_id
        self.secrets: list[str] = []

    def emit(self, kind: str, **fields: object) -> None:
        """Write one event; whatever stands in it, no key does."""
        event: Event = {"schemaVersion": SCHEMA_VERSION, "type": kind, "runId": self._run_id}
        for name, value in fields.items():
            if value is not None:
                event[name] = self._hidden(value)
        self._write(event)

    def hide(self, text: str) -> str:
        """Return a text without the keys that the agent holds."""
        for secret in self.secrets:
            text = text.replace(secret, "[key]")
        return text

    def _hidden(self, value: object) -> object:
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, dict):
            return {name: self._hidden(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self._hidden(item) for item in value]
        return value
