"""One stage's conversation: the model asks for tools until it has said what it has to say."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from msgspec import Struct
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from spl.agent.events import Events, Failure
from spl.agent.requests import Requests
from spl.agent.tools import CATALOG, Result, Tools, description, schema

MAX_EMPTY: Final = 3
_NUDGE: Final = "You said nothing. Go on, or say in a sentence what came of it."


class Manner(Struct, frozen=True, kw_only=True):
    """How a model is asked.

    Attributes:
        tools: The names of the tools that it has.
        max_turns: How many requests one stage may take.
        settings: Settings of the library, such as the temperature.
    """

    tools: list[str]
    max_turns: int
    settings: dict[str, Any]


class Conversation:
    """Speaks with a model and calls the tools that it asks for, in their order.

    Args:
        requests: Asks the model.
        tools: Does what it asks for.
        events: Learns all of it.
        manner: How it is asked.
    """

    def __init__(self, requests: Requests, tools: Tools, events: Events, manner: Manner) -> None:
        self._requests, self._tools, self._events, self._manner = requests, tools, events, manner
        self._parameters = ModelRequestParameters(
            function_tools=[
                ToolDefinition(name=name, description=description(name), parameters_json_schema=schema(name))
                for name in manner.tools
            ]
        )

    async def run(self, instructions: str, prompt: str) -> str:
        """Return what the model says at the end.

        Raises:
            Failure: It cannot be asked, goes on for ever, says nothing, or a limit is spent.
        """
        messages: list[ModelMessage] = [
            ModelRequest(parts=[UserPromptPart(prompt)], instructions=instructions)
        ]
        settings = ModelSettings(**self._manner.settings)  # type: ignore[typeddict-item]
        empty = 0
        for _ in range(self._manner.max_turns):
            response = await self._requests.ask(messages, self._parameters, settings)
            calls, text = self._heard(response)
            if calls:
                empty = 0
                messages.append(response)
                returned = [await self._call(call) for call in calls]
                messages.append(ModelRequest(parts=returned))
            elif text.strip():
                if response.finish_reason == "length":
                    self._events.emit(
                        "warning", code="cut_answer", message="the model's answer was cut at its limit"
                    )
                return text
            else:
                empty += 1
                if empty == MAX_EMPTY:
                    raise Failure("empty_answer", f"{self._named} said nothing, {empty} times")
                self._events.emit(
                    "warning", code="empty_answer", message=f"{self._named} said nothing; asking again"
                )
                messages.append(ModelRequest(parts=[UserPromptPart(_NUDGE)]))
        raise Failure("tool_loop", f"{self._named} did not come to an end in {self._manner.max_turns} turns")

    @property
    def _named(self) -> str:
        return ":".join(self._requests.route)

    def _heard(self, response: ModelResponse) -> tuple[list[ToolCallPart], str]:
        calls: list[ToolCallPart] = []
        texts: list[str] = []
        for part in response.parts:
            if isinstance(part, ThinkingPart) and part.content:
                self._events.emit("reasoning", delta=part.content)
            elif isinstance(part, TextPart) and part.content:
                texts.append(part.content)
                self._events.emit("text", delta=part.content)
            elif isinstance(part, ToolCallPart):
                calls.append(part)
        return calls, "".join(texts)

    async def _call(self, call: ToolCallPart) -> ToolReturnPart:
        """Call a tool, and tell the call, its trace event and its result."""
        identity = {"id": call.tool_call_id, "name": call.tool_name}
        self._events.emit("tool_call", **identity, args=_arguments(call.args))
        result = await self._result(call)
        text = self._events.hide(result.text)
        self._events.emit("tool", name=call.tool_name)
        self._events.emit(
            "tool_result",
            **identity,
            status=result.status,
            output=text,
            truncated=result.truncated or None,
            changedFiles=None if result.changed is None else [result.changed],
        )
        return ToolReturnPart(tool_name=call.tool_name, content=text, tool_call_id=call.tool_call_id)

    async def _result(self, call: ToolCallPart) -> Result:
        name = call.tool_name
        if name not in self._manner.tools:
            there = ", ".join(self._manner.tools) or "none"
            if name in CATALOG:
                return Result(
                    text=f"the tool {name} is not permitted here; there are: {there}", status="denied"
                )
            return Result(text=f"there is no tool {name}; there are: {there}", status="error")
        if name == "run":  # the loop goes on meanwhile, so that an interrupt is heard
            return await asyncio.to_thread(self._tools.call, name, call.args)
        return self._tools.call(name, call.args)


def _arguments(given: str | dict[str, Any] | None) -> object:
    """Return the arguments as they are told: what they say, or the text that says nothing."""
    if not isinstance(given, str):
        return given or {}
    try:
        return json.loads(given) if given else {}
    except (ValueError, RecursionError):
        return given
