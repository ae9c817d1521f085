"""A definition's behaviour: the map whose hash is the facet, read from a file and checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from spl.records.definitions import Behaviour, CommandBehaviour
from spl.records.problems import Problem, problems

_ADAPTERS: Final = ("command", "pipeline", "external")


def behaviour_problems(behaviour: dict[str, Any]) -> Iterator[Problem]:
    """Yield (path, message) for everything that keeps a behaviour map from being one, `$` being the map."""
    adapter = behaviour.get("adapter")
    if adapter not in _ADAPTERS:
        found = "is missing" if adapter is None else f"{adapter!r} is not an adapter"
        yield "$.adapter", f"{found}; it is one of {', '.join(_ADAPTERS)}"
        return
    yield from problems(behaviour, Behaviour)
    argv = behaviour.get("argv")
    if adapter == CommandBehaviour.__struct_config__.tag and isinstance(argv, list) and argv:
        if isinstance(argv[0], str) and not argv[0].strip():
            yield "$.argv[0]", "the program's name is blank"
        words = " ".join(word for word in argv if isinstance(word, str))
        if "{model}" in words and "model" not in behaviour:
            yield "$.model", "is missing, and argv asks for {model}"
