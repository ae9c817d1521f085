"""What an agent's standard output says: lines, read while it runs, in bounded memory."""

from __future__ import annotations

import json
from typing import Final

from spl.contracts.harness import Stage, UsageSample
from spl.harness.lenient import EACH_BYTE, Pairs, without_surrogates
from spl.harness.paths import WHITE_SPACE
from spl.harness.trace import trace_key
from spl.harness.usage import final_stages, usage_sample

MAX_LINE: Final = 8_388_608
MAX_KEYS: Final = 100_000
_NEWLINE: Final = b"\n"


class AgentOutput:
    """Consumes standard output in chunks; what it found is there after `close`.

    Attributes:
        error: Why usage could not be accounted for, or empty: an event's line beyond the limit.
        samples: The usage events, priced, in order.
        stages: The stages of the first final event that has any.
    """

    def __init__(self) -> None:
        self.error = ""
        self.samples: list[UsageSample] = []
        self.stages: list[Stage] = []
        self._keys: set[str] = set()
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

    @property
    def trace_events(self) -> list[str]:
        """Return the keys of all trace events, without repeats, sorted by code point."""
        return sorted(self._keys)

    def _hold(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= MAX_LINE:
            self._held += piece
        elif len(self._held) > 64:  # noqa: PLR2004 - enough to see whether it would have been an event
            del self._held[64:]
        elif not self._held:
            self._held += piece[:64]

    def _finish(self) -> None:
        if self._length > MAX_LINE:
            if not self.error and bytes(self._held).lstrip()[:1] == b"{":
                self.error = (
                    f"usage accounting: JSONL line {self._line} exceeds {MAX_LINE}-byte limit "
                    f"({self._length} bytes): JSONL line exceeds the collector limit"
                )
        elif b"{" in self._held[:256]:
            self._take(bytes(self._held))
        self._held = bytearray()
        self._length = 0
        self._line += 1

    def _take(self, line: bytes) -> None:
        text = line.decode("utf-8", EACH_BYTE).strip(WHITE_SPACE)
        if not text.startswith("{"):
            return
        reader = _Reader()
        try:
            event = reader.decoder.decode(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, Pairs):
            return
        fields = dict(event)
        if not reader.infinite:
            key = without_surrogates(trace_key(fields))
            if key and len(self._keys) < MAX_KEYS:
                self._keys.add(key)
        sample = usage_sample(event)
        if sample is not None:
            self.samples.append(sample)
        if not self.stages and fields.get("type") == "final":
            self.stages = final_stages(fields.get("text"))


class _Reader:
    """A JSON decoder that keeps repeated keys and says whether a number was beyond what a float holds."""

    def __init__(self) -> None:
        self.infinite = False
        self.decoder = json.JSONDecoder(
            object_pairs_hook=Pairs, parse_int=self._integer, parse_float=self._number, parse_constant=_refuse
        )

    def _number(self, literal: str) -> float:
        value = float(literal)
        self.infinite |= value in (float("inf"), float("-inf"))
        return value

    def _integer(self, literal: str) -> int | float:
        return int(literal) if len(literal) <= 20 else self._number(literal)  # noqa: PLR2004 - digits of 2^63


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
