"""What an agent's standard output says: lines, read while it runs, in bounded memory."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from typing import Final

from spl.contracts.harness import Stage, UsageSample
from spl.harness.dialects import Dialect, recognized
from spl.harness.lenient import EACH_BYTE, Pairs, is_too_complex, without_surrogates
from spl.harness.observer import MAX_SAMPLES, Observer
from spl.harness.paths import WHITE_SPACE
from spl.harness.trace import trace_key
from spl.harness.usage import final_stages, usage_event

MAX_LINE: Final = 8_388_608
_NEWLINE: Final = b"\n"
# A long line takes several times its size while it is read: whatever runs side by side, one at a time.
_LONG: Final = 1_048_576
_LONG_LINES: Final = threading.Lock()


class AgentOutput:
    """Consumes standard output in chunks; what it found is there after `close`.

    Attributes:
        error: Why usage could not be accounted for, or empty: an event's line beyond the limit, or too many events.
        observer: All that was seen.

    Args:
        model: The model that the agent was told to use, for streams that do not name theirs.
    """

    def __init__(self, model: str = "") -> None:
        self.error = ""
        self.observer = Observer(model)
        self._dialect: Dialect | None = None
        self._reader = _Reader()
        self._held = bytearray()
        self._length = 0
        self._line = 1

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        start = 0
        while (end := chunk.find(_NEWLINE, start)) >= 0:
            self._hold(chunk[start:end])
            self._finish()
            start = end + 1
        self._hold(chunk[start:])

    def close(self) -> None:
        """Take what stands behind the last line break as a line."""
        if self._length:
            self._finish()
        if self._dialect is not None:
            self._dialect.close(self.observer)
        if self.observer.too_many_samples and not self.error:
            self.error = f"usage accounting: more than {MAX_SAMPLES} usage events"

    @property
    def samples(self) -> list[UsageSample]:
        """Return the usage events, priced, in order."""
        return self.observer.samples

    @property
    def stages(self) -> list[Stage]:
        """Return the stages of the first final event that has any."""
        return self.observer.stages

    @property
    def trace_events(self) -> list[str]:
        """Return the keys of all trace events, without repeats, sorted by code point."""
        return sorted(self.observer.keys)

    def _hold(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= MAX_LINE:
            self._held += piece
        elif len(self._held) > 64:  # noqa: PLR2004 - enough to see whether it would have been an event
            del self._held[64:]
        elif not self._held:
            self._held += piece[:64]

    def _finish(self) -> None:
        line, self._held = self._held, bytearray()
        if self._length > MAX_LINE:
            if bytes(line[:64]).lstrip()[:1] == b"{":
                self._lose(self._length)
        elif b"{" in line[:256]:
            self._take(line)
        self._length = 0
        self._line += 1

    def _lose(self, length: int) -> None:
        self.observer.lost("a line was too long to be read")
        if not self.error:
            self.error = (
                f"usage accounting: JSONL line {self._line} exceeds {MAX_LINE}-byte limit "
                f"({length} bytes): JSONL line exceeds the collector limit"
            )

    def _take(self, line: bytearray) -> None:
        if is_too_complex(line):
            self.observer.lost("a line held too many values to be read")
            return
        with _LONG_LINES if len(line) > _LONG else contextlib.nullcontext():
            of_usage = _USAGE.match(line) is not None
            event = self._reader.read(line)
            if event is not None:
                self._tell(event, hides_trace=self._reader.infinite)
            elif of_usage:
                self.observer.lost("a usage event could not be read")

    def _tell(self, event: Pairs, *, hides_trace: bool) -> None:
        fields = dict(event)
        if not hides_trace:
            self.observer.named(without_surrogates(trace_key(fields)))
        report = usage_event(event)
        if report is not None:
            self.observer.used(report)
        elif fields.get("type") == "usage":
            self.observer.lost("a usage event could not be read")
        if fields.get("type") == "final":
            self.observer.staged(final_stages(fields.get("text")))
        if isinstance(fields.get("type"), str):
            if self._dialect is None:
                self._dialect = recognized(fields)
            if self._dialect is not None:
                self._dialect.take(fields, self.observer)


_USAGE: Final = re.compile(
    rb'\s*\{[^{}]{0,4096}"type"\s*:\s*"usage"'
)  # of a line that is no object, perhaps cut


class _Reader:
    """Reads JSON objects, keeps repeated keys, and says whether a number was beyond what a float holds."""

    def __init__(self) -> None:
        self.infinite = False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=Pairs, parse_int=self._integer, parse_float=self._number, parse_constant=_refuse
        )

    def read(self, line: bytearray) -> Pairs | None:
        """Return the object of a line, which is emptied, or None when it holds no object."""
        self.infinite = False
        source = line.decode("utf-8", EACH_BYTE).strip(WHITE_SPACE)
        line.clear()
        if not source.startswith("{"):
            return None
        try:
            event = self._decoder.decode(source)
        except (ValueError, RecursionError):
            return None
        return event if isinstance(event, Pairs) else None

    def _number(self, literal: str) -> float:
        value = float(literal)
        self.infinite |= value in (float("inf"), float("-inf"))
        return value

    def _integer(self, literal: str) -> int | float:
        return int(literal) if len(literal) <= 20 else self._number(literal)  # noqa: PLR2004 - digits of 2^63


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
