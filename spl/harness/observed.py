"""What an agent's output says, as the end record of its run holds it."""

from __future__ import annotations

from msgspec import Struct

from spl.harness.events import AgentOutput
from spl.records.runs import ToolCalls, Usage


class Observed(Struct, frozen=True, kw_only=True):
    """What was seen of an agent; whatever it did not say is None, and no blob is needed for empty contents.

    Attributes:
        tool_calls: How many calls, how many failed, and how often each tool was called; None when the output was of no
            shape that tells of them.
        answer: The final answer; None when the output holds none, or one of more than 1 MiB.
        usage: One total for each provider, model, stage and cost status; None when nothing was reported.
        usage_events: Content of the blob `usage`: single reports as JSON lines, with the fields of `usage`.
        trace: Content of the blob `trace`: what happened, in order, as JSON lines.
    """

    tool_calls: ToolCalls | None = None
    answer: str | None = None
    usage: list[Usage] | None = None
    usage_events: bytes = b""
    trace: bytes = b""


def observed(output: AgentOutput) -> Observed:
    """Return what an agent's output says, once it is closed."""
    seen = output.observer
    return Observed(
        tool_calls=seen.tools.result(),
        answer=seen.answer.text(),
        usage=seen.usage(),
        usage_events=seen.usage_events.content(),
        trace=seen.trace.content(),
    )
