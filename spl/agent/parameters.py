"""The parameters of a definition that the pipeline knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from spl.errors import InputError
from spl.records.definitions import Decimal

MAX_TURNS: Final = 100
COMMAND_TIMEOUT_MS: Final = 600_000
_SETTINGS: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "max_output_tokens": "max_tokens",
    "thinking": "thinking",
}
_WORDS: Final = ("thinking",)
_FRACTIONS: Final = ("temperature", "top_p")


class Parameters(Struct, frozen=True, kw_only=True):
    """How models are asked and commands are run.

    Attributes:
        max_turns: How many requests one stage may take.
        command_timeout_ms: How long one command may take.
        settings: Settings of the library.
        unknown: Names that the pipeline does not know.
    """

    max_turns: int = MAX_TURNS
    command_timeout_ms: int = COMMAND_TIMEOUT_MS
    settings: dict[str, Any] = {}
    unknown: list[str] = []


def parameters(given: Mapping[str, Any] | None) -> Parameters:
    """Return the parameters of a definition.

    Raises:
        InputError: One has a value that it cannot have.
    """
    settings: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    unknown: list[str] = []
    for name, value in (given or {}).items():
        if name in ("max_turns", "command_timeout_ms"):
            numbers[name] = _positive(name, value)
        elif name in _SETTINGS:
            settings[_SETTINGS[name]] = _setting(name, value)
        else:
            unknown.append(name)
    return Parameters(**numbers, settings=settings, unknown=unknown)


def _positive(name: str, value: object) -> int:
    if type(value) is not int or value < 1:
        raise InputError(f"params.{name} is a positive integer, not {value!r}")
    return value


def _setting(name: str, value: object) -> object:
    if name in _FRACTIONS:
        number = _number(value)
        if number is None:
            raise InputError(f"params.{name} is a number, not {value!r}")
        return number
    if name in _WORDS:
        if not isinstance(value, str | bool):
            raise InputError(f"params.{name} is a word or a boolean, not {value!r}")
        return value
    return value if name == "seed" and type(value) is int else _positive(name, value)


def _number(value: object) -> float | None:
    match value:
        case Decimal(dec=[mantissa, exponent]):
            return float(f"{mantissa}e{exponent}")
        case {"dec": [int(mantissa), int(exponent)]}:
            return float(f"{mantissa}e{exponent}")
        case bool():
            return None
        case int():
            return float(value)
    return None
