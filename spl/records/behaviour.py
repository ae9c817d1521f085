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
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NEVER_PASSED: Final = ("GIT_", "SPL_")
_ADAPTERS: Final = ("command", "pipeline", "external")


def behaviour_problems(behaviour: dict[str, Any]) -> Iterator[Problem]:
    """Yield (path, message) for everything that keeps a behaviour map from being one, `$` being the map."""
    adapter = behaviour.get("adapter")
    if adapter not in _ADAPTERS:
        found = "is missing" if adapter is None else f"{adapter!r} is not an adapter"
        yield "$.adapter", f"{found}; it is one of {', '.join(_ADAPTERS)}"
        return
    yield from problems(behaviour, Behaviour)
    files, env, argv = (behaviour.get(name) for name in (FILES, "env", "argv"))
    if isinstance(files, dict):
        yield from _file_problems(list(files))
    if isinstance(env, list):
        yield from _variable_problems(env)
    if adapter == CommandBehaviour.__struct_config__.tag and isinstance(argv, list):
        yield from _word_problems(argv, behaviour)


def _file_problems(names: list[str]) -> Iterator[Problem]:
    for name in names:
        if any(part in ("", ".", "..") for part in name.split("/")) or not name.isprintable():
            yield f"$.files.{name}", "is not a relative file name"
        if any(other.startswith(f"{name}/") for other in names):
            yield f"$.files.{name}", "is a file, and the directory of another"


def _variable_problems(names: list[Any]) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if isinstance(name, str) and not _VARIABLE.fullmatch(name):
            yield f"$.env[{index}]", "is not the name of a variable"
        elif isinstance(name, str) and name.startswith(_NEVER_PASSED):
            yield f"$.env[{index}]", f"{name} is never passed on"


def _word_problems(argv: list[Any], behaviour: dict[str, Any]) -> Iterator[Problem]:
    for index, word in enumerate(argv):
        if not isinstance(word, str):
            continue
        if not index and not word.strip():
            yield "$.argv[0]", "the program's name is blank"
        if "\0" in word:
            yield f"$.argv[{index}]", "holds a null character, which no program can be given"
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
