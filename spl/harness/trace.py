"""Trace events: the keys that tell which tools an agent used and what it verified."""

from __future__ import annotations

from collections.abc import Mapping

from spl.harness.paths import trim


def trace_key(event: Mapping[str, object]) -> str:
    """Return the key of an event, or nothing for one that has no name of its kind.

    The key is `type` (else `event`), and behind a colon `name` where there is one: `tool:read_file`.
    """
    kind = _word(event, "type") or _word(event, "event")
    if not kind:
        return ""
    name = _word(event, "name")
    return f"{kind}:{name}" if name else kind


def _word(event: Mapping[str, object], key: str) -> str:
    value = event.get(key)
    return trim(value) if isinstance(value, str) else ""
