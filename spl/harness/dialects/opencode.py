"""OpenCode, `opencode run --format json`.

Lines: `step_start`, `text`, `reasoning`, `tool_use`, `step_finish`, `error`, each with `sessionID` and, but for
errors, a `part`. Source of the format: the program's own `run` command and the types of its parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spl.harness.lenient import amount, count, members, text
from spl.harness.observer import Observer
from spl.harness.usage import Tokens, usage_report

_LINES: Final = frozenset({"step_start", "text", "reasoning", "tool_use", "step_finish"})


class OpenCode:
    """Reads parts; each step is one request.

    The stream names no model: usage counts under the model that the agent was told to use, `provider/model`.
    """

    name = "opencode"

    @staticmethod
    def matches(event: Mapping[str, Any]) -> bool:
        """Say whether the line is a part of a session."""
        return (
            event.get("type") in _LINES
            and isinstance(event.get("sessionID"), str)
            and bool(members(event.get("part")))
        )

    def take(self, event: Mapping[str, Any], observer: Observer) -> None:
        """Read one line."""
        observer.tools.known = True
        kind = event.get("type")
        part = members(event.get("part"))
        if kind == "step_start":
            observer.answer.start()
        elif kind == "text":
            observer.answer.add(text(part.get("text")))
        elif kind == "tool_use":
            call, name = text(part.get("callID")), text(part.get("tool"))
            status = members(part.get("state")).get("status")
            observer.called(call, name, named=True)
            if status in ("completed", "error"):
                observer.returned(call, name=name, failed=status == "error")
        elif kind == "step_finish":
            _used(part, observer)
            if part.get("reason") == "stop":
                observer.answer.settle()

    def close(self, observer: Observer) -> None:
        """Do nothing: every line speaks for itself."""


def _used(part: Mapping[str, Any], observer: Observer) -> None:
    provider, slash, model = observer.model.partition("/")
    tokens = members(part.get("tokens"))
    cache = members(tokens.get("cache"))
    plain, read, written = count(tokens.get("input")), count(cache.get("read")), count(cache.get("write"))
    report = usage_report(
        Tokens(
            input_tokens=None if plain is None else plain + (read or 0) + (written or 0),
            output_tokens=count(tokens.get("output")),
            cached_input_tokens=read,
            cache_write_tokens=written,
            reasoning_tokens=count(tokens.get("reasoning")),
        ),
        provider=provider if slash else "",
        model=model if slash else provider,
        cost_usd=amount(part.get("cost")),
    )
    observer.used(report)
