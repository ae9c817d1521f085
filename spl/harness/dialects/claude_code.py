"""Claude Code, `claude -p --output-format stream-json --verbose`, and agents that print the same shape.

Lines: `system` (subtype `init`), `assistant` and `user` with a message of the Messages API, `result`. Source of the
format: the Agent SDK's reference of messages and its page on cost tracking.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from spl.harness.lenient import amount, count, items, members, text
from spl.harness.observer import Observer
from spl.harness.usage import Tokens, usage_report

MAX_MESSAGES: Final = 20_000
_UNFINISHED: Final = "the agent ended before it told its usage; only what went in is known"


class ClaudeCode:
    """Reads messages; the last result tells the usage of all requests.

    Several lines may carry one message, and their output tokens are those of its beginning: when there is no result,
    requests and input tokens are known, output tokens and cost are not.
    """

    name = "claude-code"

    def __init__(self) -> None:
        self._model = ""
        self._inputs: dict[str, tuple[str, Tokens]] = {}
        self._result: Mapping[str, Any] | None = None

    @staticmethod
    def matches(event: Mapping[str, Any]) -> bool:
        """Say whether the line is an opening with tools, a message with an id, or a result with its cost."""
        kind = event.get("type")
        if kind == "system":
            return event.get("subtype") == "init" and "tools" in event
        if kind == "assistant":
            return isinstance(members(event.get("message")).get("id"), str)
        return kind == "result" and ("total_cost_usd" in event or "modelUsage" in event)

    def take(self, event: Mapping[str, Any], observer: Observer) -> None:
        """Read one line."""
        kind = event.get("type")
        message = members(event.get("message"))
        if kind == "system" and event.get("subtype") == "init":
            observer.tools.known = True
            self._model = text(event.get("model"))
        elif kind == "assistant":
            observer.tools.known = True
            self._seen(message, observer)
            for block in map(members, items(message.get("content"))):
                if block.get("type") == "tool_use":
                    observer.called(text(block.get("id")), text(block.get("name")), named=True)
        elif kind == "user":
            for block in map(members, items(message.get("content"))):
                if block.get("type") == "tool_result":
                    failed = block.get("is_error") is True
                    observer.returned(text(block.get("tool_use_id")), failed=failed)
        elif kind == "result":
            self._result = event
            observer.answer.whole("" if event.get("is_error") is True else text(event.get("result")))
            observer.answer.settle()

    def close(self, observer: Observer) -> None:
        """Tell the usage: by model where the result has it, else in total, else what the messages said."""
        if self._result is None:
            for model, tokens in self._inputs.values():
                observer.used(usage_report(tokens, model=model, unpriced_reason=_UNFINISHED))
            return
        by_model = members(self._result.get("modelUsage"))
        for model, used in by_model.items():
            fields = members(used)
            tokens = _tokens(
                *("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"), fields
            )
            self._tell(observer, text(model), tokens, amount(fields.get("costUSD")))
        if not by_model:
            fields = members(self._result.get("usage"))
            tokens = _tokens(
                *("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
                fields,
            )
            self._tell(observer, self._model, tokens, amount(self._result.get("total_cost_usd")))

    def _seen(self, message: Mapping[str, Any], observer: Observer) -> None:
        used = message.get("usage")
        if used is None:
            return
        if len(self._inputs) >= MAX_MESSAGES:
            observer.lost("there were more messages than are remembered")
            return
        tokens = _tokens(
            *("input_tokens", "", "cache_read_input_tokens", "cache_creation_input_tokens"), members(used)
        )
        self._inputs[text(message.get("id"))[:128]] = (text(message.get("model")), tokens)

    def _tell(self, observer: Observer, model: str, tokens: Tokens, cost_usd: float | None) -> None:
        seen = sum(1 for named, _ in self._inputs.values() if named == model)
        observer.used(usage_report(tokens, model=model, cost_usd=cost_usd, requests=seen or None))


def _tokens(plain: str, output: str, read: str, written: str, fields: Mapping[str, Any]) -> Tokens:
    """Return tokens whose input includes what was read from and written to the cache, which this API counts apart."""
    parts = [count(fields.get(name)) for name in (plain, read, written)]
    return Tokens(
        input_tokens=None if parts[0] is None else sum(part or 0 for part in parts),
        output_tokens=count(fields.get(output)),
        cached_input_tokens=parts[1],
        cache_write_tokens=parts[2],
    )
