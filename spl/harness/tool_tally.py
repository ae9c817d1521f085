"""Tool calls of one run: how many, which, and how many failed."""

from __future__ import annotations

from typing import Final

from spl.records.runs import ToolCalls

MAX_NAMES: Final = 100
MAX_NAME_BYTES: Final = 120
MAX_IDS: Final = 20_000
_MAX_ID: Final = 128
UNNAMED: Final = "(unnamed)"
OTHERS: Final = "(others)"


class ToolTally:
    """Counts calls and pairs them with their results, in bounded memory.

    The pair has one id; without ids a result belongs to an earlier call of the same name. A call without a result has
    not failed: nobody said so. A result whose call was not announced is a call as well, and a second result for one
    call changes nothing. The names fit into a record: past 100 of them, calls count as `(others)`. Ids are remembered
    for the first 20,000 calls.

    Attributes:
        known: Whether anything was printed that tells of tool calls; without it there are no counts.
    """

    def __init__(self) -> None:
        self.known = False
        self._total = 0
        self._failed = 0
        self._names: dict[str, int] = {}
        self._is_open: dict[str, bool] = {}
        self._unpaired: dict[str, int] = {}

    def called(self, call: str, name: str) -> bool:
        """Count a call, unless one of this id is known. Return whether it was counted."""
        self.known = True
        call = call[:_MAX_ID]
        if call in self._is_open:
            return False
        kept = self._kept(name)
        self._total += 1
        self._names[kept] = self._names.get(kept, 0) + 1
        if not call:
            self._unpaired[kept] = self._unpaired.get(kept, 0) + 1
        elif len(self._is_open) < MAX_IDS:
            self._is_open[call] = True
        return True

    def returned(self, call: str, name: str, *, failed: bool) -> bool:
        """Count the outcome of a call; `name` is needed where there is no id. Return whether it was counted."""
        self.known = True
        call = call[:_MAX_ID]
        if not call:
            kept = self._kept(name)
            if not self._unpaired.get(kept):
                self.called("", name)
            self._unpaired[kept] -= 1
        elif call in self._is_open:
            if not self._is_open[call]:
                return False
            self._is_open[call] = False
        elif len(self._is_open) < MAX_IDS:
            self.called(call, name)
            self._is_open[call] = False
        self._failed = min(self._total, self._failed + failed)
        return True

    def result(self) -> ToolCalls | None:
        """Return the counts, or None when nothing was printed that tells of tool calls."""
        if not self.known:
            return None
        return ToolCalls(total=self._total, failed=self._failed, names=dict(sorted(self._names.items())))

    def _kept(self, name: str) -> str:
        kept = name.encode()[:MAX_NAME_BYTES].decode("utf-8", "ignore").strip() or UNNAMED
        return kept if kept in self._names or len(self._names) < MAX_NAMES else OTHERS
