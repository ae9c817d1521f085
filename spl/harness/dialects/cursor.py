"""Cursor's agent, `cursor-agent -p --output-format stream-json`.

Lines: `system` (subtype `init`), `user`, `assistant`, `tool_call` (subtypes `started`, `completed`), `result`.
Source of the format: the product's reference of its output formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spl.harness.lenient import count, members, text
from spl.harness.observer import Observer
from spl.harness.usage import Tokens, usage_report

_SUFFIX: Final = "ToolCall"
_FAILED: Final = ("error", "failure", "rejected", "permissionDenied", "timeout")


class Cursor:
    """Reads tool calls and the result."""

    name = "cursor"

    def __init__(self) -> None:
        self._model = ""

    @staticmethod
    def matches(event: Mapping[str, Any]) -> bool:
        """Say whether the line is an opening without tools, or a tool call of this shape."""
        if event.get("type") == "system":
            return event.get("subtype") == "init" and "tools" not in event and "permissionMode" in event
        return (
            event.get("type") == "tool_call"
            and isinstance(event.get("call_id"), str)
            and bool(members(event.get("tool_call")))
        )

    def take(self, event: Mapping[str, Any], observer: Observer) -> None:
        """Read one line."""
        observer.tools.known = True
        kind, subtype = event.get("type"), event.get("subtype")
        if kind == "system":
            self._model = text(event.get("model")) or self._model
        elif kind == "tool_call":
            call = text(event.get("call_id"))
            name, fields = _tool(members(event.get("tool_call")))
            if subtype == "started":
                observer.called(call, name, named=True)
            elif subtype == "completed":
                result = members(fields.get("result"))
                observer.returned(call, name=name, failed=any(key in result for key in _FAILED))
        elif kind == "result":
            if event.get("is_error") is not True:
                observer.answer.whole(text(event.get("result")))
                observer.answer.settle()
            if used := members(event.get("usage")):
                report = usage_report(_tokens(used), model=self._model, requests=None)
                observer.used(report)

    def close(self, observer: Observer) -> None:
        """Do nothing: every line speaks for itself."""


def _tool(call: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of a tool, `read` of `readToolCall`, and the fields of its call."""
    for key, value in call.items():
        if key == "function":
            return text(members(value).get("name")), members(value)
        if key.endswith(_SUFFIX):
            return text(key.removesuffix(_SUFFIX)), members(value)
    return "", {}


def _tokens(fields: Mapping[str, Any]) -> Tokens:
    plain, read, written = (
        count(fields.get(name)) for name in ("inputTokens", "cacheReadTokens", "cacheWriteTokens")
    )
    return Tokens(
        input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
        output_tokens=count(fields.get("outputTokens")),
        cached_input_tokens=read,
        cache_write_tokens=written,
    )
