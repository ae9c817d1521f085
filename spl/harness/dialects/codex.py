"""Codex CLI, `codex exec --json`.

Lines: `thread.started`, `turn.started`, `item.started`, `item.updated`, `item.completed`, `turn.completed`,
`turn.failed`, `error`. Source of the format: the types of the program's own event stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spl.harness.lenient import count, members, text
from spl.harness.observer import Observer
from spl.harness.usage import Tokens, usage_report

_LINES: Final = frozenset(
    {"thread.started", "turn.started", "turn.completed", "item.started", "item.updated", "item.completed"}
)
_TOOLS: Final = frozenset(
    {"command_execution", "file_change", "mcp_tool_call", "collab_tool_call", "web_search"}
)
_FAILED: Final = frozenset({"failed", "declined"})


class Codex:
    """Reads items; a turn tells the usage of its whole thread, so that the last one counts.

    The stream names no model: usage counts under the model that the agent was told to use.
    """

    name = "codex"

    def __init__(self) -> None:
        self._usage: Mapping[str, Any] | None = None

    @staticmethod
    def matches(event: Mapping[str, Any]) -> bool:
        """Say whether the line is of a thread, a turn or an item."""
        kind = event.get("type")
        if kind == "thread.started":
            return isinstance(event.get("thread_id"), str)
        return kind in _LINES and (
            kind == "turn.started" or bool(members(event.get("item")) or event.get("usage"))
        )

    def take(self, event: Mapping[str, Any], observer: Observer) -> None:
        """Read one line."""
        observer.tools.known = True
        kind = event.get("type")
        item = members(event.get("item"))
        if kind in ("item.started", "item.completed") and text(item.get("type")) in _TOOLS:
            call, name = text(item.get("id")), _tool(item)
            observer.called(call, name, named=True)
            if kind == "item.completed":
                observer.returned(call, name=name, failed=_has_failed(item))
        elif kind == "item.completed" and item.get("type") == "agent_message":
            observer.answer.whole(text(item.get("text")))
        elif kind == "turn.completed":
            self._usage = members(event.get("usage"))
            observer.answer.settle()

    def close(self, observer: Observer) -> None:
        """Tell the usage of the thread; one of nothing but zeros was never filled in."""
        if self._usage is None:
            return
        names = ("input_tokens", "output_tokens", "cached_input_tokens", "reasoning_output_tokens")
        given, answered, cached, reasoned = (count(self._usage.get(name)) for name in names)
        tokens = Tokens(
            input_tokens=given,
            output_tokens=answered,
            cached_input_tokens=cached,
            reasoning_tokens=reasoned,
        )
        if not (given or answered):
            tokens = Tokens()
        observer.used(usage_report(tokens, model=observer.model, requests=None))


def _tool(item: Mapping[str, Any]) -> str:
    if item.get("type") == "mcp_tool_call":
        return f"{text(item.get('server'))}.{text(item.get('tool'))}"
    if item.get("type") == "collab_tool_call":
        return text(item.get("tool"))
    return text(item.get("type"))


def _has_failed(item: Mapping[str, Any]) -> bool:
    return text(item.get("status")) in _FAILED or bool(item.get("exit_code")) or bool(item.get("error"))
