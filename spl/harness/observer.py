"""What is seen of an agent while it works: tool calls, answer, usage and trace, in bounded memory."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from spl.contracts.harness import Stage, UsageSample
from spl.harness.jsonlines import JsonLines
from spl.harness.tool_tally import ToolTally
from spl.harness.usage import UsageReport
from spl.harness.usage_totals import UsageTotals, usage_of
from spl.records.runs import Usage

MAX_ANSWER: Final = 1_048_576
MAX_SAMPLES: Final = 20_000
MAX_KEYS_BYTES: Final = 4_194_304
_KEY_COST: Final = 96


class Answer:
    """The final answer: what was said last, once the agent says that it has finished.

    Of an answer beyond 1 MiB nothing is kept, since a part of it would be judged as if it were the whole.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._settled: str | None = None

    def start(self) -> None:
        """Forget what was said: it was not the last word."""
        self._pieces = []
        self._size = 0

    def add(self, piece: str) -> None:
        """Take the next piece."""
        self._size += len(piece.encode())
        if self._size > MAX_ANSWER:
            self._pieces = []
        elif piece:
            self._pieces.append(piece)
            if len(self._pieces) > 1000:  # noqa: PLR2004 - many small strings cost more than their text
                self._pieces = ["".join(self._pieces)]

    def whole(self, text: str) -> None:
        """Take a whole text in place of what was said before."""
        self.start()
        self.add(text)

    def settle(self) -> None:
        """Take note that the agent has finished: what was said last is its answer."""
        self._settled = "".join(self._pieces) or None

    def text(self) -> str | None:
        """Return the answer, or None when there is none."""
        return self._settled


class Observer:
    """Takes what a dialect reads from the agent's lines.

    Attributes:
        samples: The usage reports in their published form, in order; past 20,000 only the totals grow.
        stages: The stages of the first final event that has any.
        too_many_samples: Whether there were more samples than are kept.
        trace: The trace as JSON lines.
        usage_events: The usage reports as JSON lines.
        tools: The tool calls.
        answer: The final answer.
        totals: The usage.
        keys: The keys of trace events, without repeats; past 4 MiB of them no more are taken.
        model: The model that the agent was told to use, for streams that do not name theirs; empty when unknown.
    """

    def __init__(self, model: str = "") -> None:
        self.model = model
        self.samples: list[UsageSample] = []
        self.stages: list[Stage] = []
        self.too_many_samples = False
        self.trace = JsonLines()
        self.usage_events = JsonLines()
        self.tools = ToolTally()
        self.answer = Answer()
        self.totals = UsageTotals()
        self.keys: set[str] = set()
        self._keys_bytes = 0
        self._lost = ""

    def named(self, key: str) -> None:
        """Take the key of a trace event."""
        if key and key not in self.keys and self._keys_bytes < MAX_KEYS_BYTES:
            self._keys_bytes += _KEY_COST + len(key.encode())
            self.keys.add(key)
            self.trace.add({"event": "trace", "key": key})

    def called(self, call: str, name: str, *, named: bool = False) -> None:
        """Take a tool call, with its id where it has one; `named` makes it the trace event `tool:NAME` as well."""
        if self.tools.called(call, name):
            self.trace.add({"event": "tool_call", "id": call, "name": name})
        if named and name:
            self.named(f"tool:{name}")

    def returned(self, call: str, *, name: str = "", failed: bool) -> None:
        """Take the outcome of a tool call."""
        if self.tools.returned(call, name, failed=failed):
            self.trace.add({"event": "tool_result", "id": call, "name": name, "failed": failed})

    def used(self, report: UsageReport) -> None:
        """Take a usage report."""
        if len(self.samples) < MAX_SAMPLES:
            self.samples.append(report.sample)
        else:
            self.too_many_samples = True
        usage = usage_of(report)
        self.totals.add(usage)
        event = msgspec.to_builtins(usage)
        for name in ("iteration", "usage_sequence"):
            if (value := getattr(report.sample, name)) is not None:
                event[name] = value
        self.usage_events.add(event)

    def lost(self, reason: str) -> None:
        """Take note that a line which may have told of usage could not be read."""
        self._lost = self._lost or reason

    def usage(self) -> list[Usage] | None:
        """Return the totals, or None when nothing was reported.

        Where a line was lost, one more total says so, as a request whose cost is an error: no cost looks complete.
        """
        totals = self.totals.result()
        if self._lost:
            totals = totals or []
            totals.append(Usage(reported=0, cost_status="error", unpriced_reason=self._lost))
        return totals

    def staged(self, stages: list[Stage]) -> None:
        """Take the stages of a final event; those of a later one do not count."""
        if self.stages:
            return
        self.stages = stages
        for stage in stages:
            event: dict[str, Any] = {"event": "stage", **msgspec.to_builtins(stage)}
            self.trace.add(event)
