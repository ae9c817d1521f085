"""goose, `goose run --output-format stream-json`.

Lines: `message`, `notification`, `error`, `complete`. Source of the format: the types of the program's own event stream
and of its messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spl.harness.lenient import amount, count, items, members, text
from spl.harness.observer import Observer
from spl.harness.usage import Tokens, usage_report


class Goose:
    """Reads messages, which may come in pieces; the last completion tells the usage of the session.

    The stream names no model: usage counts under the model that the agent was told to use. Versions that tell nothing
    but a total of tokens report no usage, since it does not say what went in and what came out.
    """

    name = "goose"

    def __init__(self) -> None:
        self._complete: Mapping[str, Any] | None = None
        self._has_failed = False

    @staticmethod
    def matches(event: Mapping[str, Any]) -> bool:
        """Say whether the line is a message with a role and a list of contents, or the completion."""
        if event.get("type") == "complete":
            return "total_tokens" in event
        message = members(event.get("message"))
        return event.get("type") == "message" and "role" in message and type(message.get("content")) is list

    def take(self, event: Mapping[str, Any], observer: Observer) -> None:
        """Read one line."""
        observer.tools.known = True
        kind = event.get("type")
        if kind == "message":
            message = members(event.get("message"))
            for block in map(members, items(message.get("content"))):
                _block(block, observer, is_answer=message.get("role") == "assistant")
        elif kind == "error":
            self._has_failed = True
        elif kind == "complete":
            self._complete = event
            if not self._has_failed:
                observer.answer.settle()

    def close(self, observer: Observer) -> None:
        """Tell the usage, where the completion says more than a total."""
        fields = self._complete or {}
        if fields.get("input_tokens") is None:
            return
        tokens = Tokens(
            input_tokens=count(fields.get("input_tokens")),
            output_tokens=count(fields.get("output_tokens")),
            cached_input_tokens=count(fields.get("cache_read_input_tokens")),
            cache_write_tokens=count(fields.get("cache_write_input_tokens")),
        )
        cost_usd = amount(fields.get("cost_usd"))
        observer.used(usage_report(tokens, model=observer.model, cost_usd=cost_usd, requests=None))


def _block(block: Mapping[str, Any], observer: Observer, *, is_answer: bool) -> None:
    kind = block.get("type")
    if kind == "text" and is_answer:
        observer.answer.add(text(block.get("text")))
    elif kind == "toolRequest":
        call = members(block.get("toolCall"))
        name = text(members(call.get("value")).get("name")) or text(call.get("name"))
        observer.called(text(block.get("id")), name, named=True)
        observer.answer.start()
        if call.get("status") == "error":
            observer.returned(text(block.get("id")), failed=True)
    elif kind == "toolResponse":
        result = members(block.get("toolResult"))
        failed = result.get("status") == "error" or members(result.get("value")).get("isError") is True
        observer.returned(text(block.get("id")), failed=failed)
