"""stream-json, schema version 2: the events of the published agents, and those that any program may print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spl.harness.lenient import text
from spl.harness.observer import Observer
from spl.harness.usage import final_answer, final_stages

SCHEMA_VERSION: Final = 2
_TELLS_OF_TOOLS: Final = frozenset({"run_start", "tool_call", "tool_result", "final", "run_end"})
_FAILED: Final = frozenset(
    {"error", "failed", "failure", "denied", "rejected", "blocked", "timeout", "timed_out", "cancelled"}
)


class StreamJson:
    """Lines with `schemaVersion` 2 and a `type`; usage events are read whatever the dialect is."""

    name = "stream-json"

    @staticmethod
    def matches(event: Mapping[str, Any]) -> bool:
        """Say whether the line carries the schema version."""
        return event.get("schemaVersion") == SCHEMA_VERSION and isinstance(event.get("type"), str)

    def take(self, event: Mapping[str, Any], observer: Observer) -> None:
        """Read tool calls and their results, text, and the end.

        The text after the last tool call is the answer, unless the final event brings one of its own. The document of
        a pipeline, which holds stages, is none, but its `answer` is.
        """
        kind = event.get("type")
        if kind in _TELLS_OF_TOOLS:
            observer.tools.known = True
        if kind == "tool_call":
            observer.called(text(event.get("id")), text(event.get("name")))
            observer.answer.start()
        elif kind == "tool_result":
            failed = text(event.get("status")).strip().lower() in _FAILED
            observer.returned(text(event.get("id")), name=text(event.get("name")), failed=failed)
        elif kind == "text":
            observer.answer.add(text(event.get("delta")) or text(event.get("text")))
        elif kind == "final":
            final = text(event.get("text"))
            answer = final_answer(final) if final_stages(final) else final
            if answer:
                observer.answer.whole(answer)
            observer.answer.settle()
        elif kind == "run_end":
            observer.answer.settle()

    def close(self, observer: Observer) -> None:
        """Do nothing: every line speaks for itself."""
