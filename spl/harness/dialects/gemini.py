"""Gemini CLI, `gemini -p … --output-format stream-json`.

Lines: `init`, `message`, `tool_use`, `tool_result`, `error`, `result`, each with a time stamp.
Source of the format: the types of the program's own output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spl.harness.lenient import count, members, text
from spl.harness.observer import Observer
from spl.harness.usage import Tokens, usage_report


class Gemini:
    """Reads events; the result tells the usage of the session, by model where it has that."""

    name = "gemini"

    def __init__(self) -> None:
        self._model = ""
        self._stats: Mapping[str, Any] | None = None

    @staticmethod
    def matches(event: Mapping[str, Any]) -> bool:
        """Say whether the line is an opening with a model, a tool's use or result, or a result with statistics."""
        kind = event.get("type")
        if kind == "init":
            return isinstance(event.get("session_id"), str) and isinstance(event.get("model"), str)
        if kind in ("tool_use", "tool_result"):
            return isinstance(event.get("tool_id"), str)
        return kind == "result" and bool(members(event.get("stats")))

    def take(self, event: Mapping[str, Any], observer: Observer) -> None:
        """Read one line."""
        observer.tools.known = True
        kind = event.get("type")
        if kind == "init":
            self._model = text(event.get("model"))
        elif kind == "message" and event.get("role") == "assistant":
            if event.get("delta") is True:
                observer.answer.add(text(event.get("content")))
            else:
                observer.answer.whole(text(event.get("content")))
        elif kind == "tool_use":
            observer.called(text(event.get("tool_id")), text(event.get("tool_name")), named=True)
            observer.answer.start()
        elif kind == "tool_result":
            observer.returned(text(event.get("tool_id")), failed=event.get("status") == "error")
        elif kind == "result":
            self._stats = members(event.get("stats"))
            if event.get("status") != "error":
                observer.answer.settle()

    def close(self, observer: Observer) -> None:
        """Tell the usage."""
        if not self._stats:
            return
        by_model = members(self._stats.get("models"))
        for model, stats in (by_model or {self._model: self._stats}).items():
            fields = stats if stats is self._stats else members(stats)
            observer.used(usage_report(_tokens(fields), model=text(model) or observer.model, requests=None))


def _tokens(fields: Mapping[str, Any]) -> Tokens:
    """Return tokens in which what was thought counts as output, as it is charged.

    The program's `output_tokens` leave thoughts out, and its total holds them.
    """
    names = ("total_tokens", "input_tokens", "output_tokens", "cached")
    total, given, answered, cached = (count(fields.get(name)) for name in names)
    thought = None
    if total is not None and given is not None and answered is not None and total >= given + answered:
        thought = total - given - answered
    return Tokens(
        input_tokens=given,
        output_tokens=None if answered is None else answered + (thought or 0),
        cached_input_tokens=cached,
        reasoning_tokens=thought,
    )
