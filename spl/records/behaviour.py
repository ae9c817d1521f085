"""A definition's behaviour: the map whose hash is the facet, read from a file and checked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, Final

from spl.records.definitions import Behaviour, CommandBehaviour
from spl.records.problems import Problem, problems

FILES: Final = "files"
PLACEHOLDERS: Final = ("workspace", "prompt", "task_id", "model", FILES)
_BRACED: Final = re.compile(r"\{([a-z_]+)\}")
_ADAPTERS: Final = ("command", "pipeline", "external")


def behaviour_problems(behaviour: dict[str, Any]) -> Iterator[Problem]:
    """Yield (path, message) for everything that keeps a behaviour map from being one, `$` being the map."""
    adapter = behaviour.get("adapter")
    if adapter not in _ADAPTERS:
        found = "is missing" if adapter is None else f"{adapter!r} is not an adapter"
        yield "$.adapter", f"{found}; it is one of {', '.join(_ADAPTERS)}"
        return
    yield from problems(behaviour, Behaviour)
    files = behaviour.get(FILES)
    for name in files if isinstance(files, dict) else ():
        if any(part in ("", ".", "..") for part in name.split("/")) or not name.isprintable():
            yield f"$.files.{name}", "is not a relative file name"
    argv = behaviour.get("argv")
    if adapter == CommandBehaviour.__struct_config__.tag and isinstance(argv, list) and argv:
        if isinstance(argv[0], str) and not argv[0].strip():
            yield "$.argv[0]", "the program's name is blank"
        for index, word in enumerate(argv):
            if isinstance(word, str):
                yield from _placeholder_problems(f"$.argv[{index}]", word, behaviour)


def _placeholder_problems(path: str, word: str, behaviour: dict[str, Any]) -> Iterator[Problem]:
    for found in _BRACED.finditer(word):
        name = found[1]
        if name == "model" and "model" not in behaviour:
            yield "$.model", "is missing, and argv asks for {model}"
        elif name == FILES and not behaviour.get("files"):
            yield "$.files", "is missing, and argv asks for {files}; pin a file with --pin"
        elif name not in PLACEHOLDERS:
            close = difflib.get_close_matches(name, PLACEHOLDERS, n=1, cutoff=0.75)
            if close:
                yield path, f"{found[0]} is not a placeholder; did you mean {{{close[0]}}}?"
