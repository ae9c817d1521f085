"""The built-in agent as a program: the current one, told to execute a prompt in the directory that it is started in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

# -P: a module in the workspace must not be taken for one of ours.
_WORDS: Final = ("-P", "-m", "spl", "--no-trust", "exec", "--output-format", "stream-json")


class BuiltIn(Struct, frozen=True, kw_only=True):
    """What the built-in agent needs besides its behaviour: where its endpoints stand, and whose keys it is handed.

    Attributes:
        variables: Say where its configuration is: its environment may have another HOME, or none.
        key_variables: Returns the names of the variables that hold the keys for some models; an empty name means the
            model of the configuration.
    """

    variables: Mapping[str, str]
    key_variables: Callable[[Sequence[str]], Sequence[str]]


def built_in_words(prompt: str, *, model: str = "", definition: Path | None = None) -> list[str]:
    """Return the words that start it.

    Args:
        prompt: What it is to do; one that begins with a dash stands behind `--`, so that it is no option.
        model: The primary model; its configuration's, or its definition's, when empty.
        definition: A file with its behaviour; the built-in one when absent.
    """
    chosen = ["--model", model] if model else []
    defined = ["--definition", str(definition)] if definition else []
    return [sys.executable, *_WORDS, *chosen, *defined, *(["--"] if prompt.startswith("-") else []), prompt]
