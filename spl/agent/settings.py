"""The user's configuration of the built-in agent: where models are, and which variable holds the key.

It says nothing else: what shapes behaviour stands in a definition. Importing this needs no extra.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct, field

from spl.errors import InputError

_SEPARATOR: Final = ":"


class Provider(Struct, frozen=True, forbid_unknown_fields=True):
    """One provider of models.

    Attributes:
        base_url: Where its interface begins, with `/v1` where the provider has it.
        kind: The protocol that it speaks: `openai` for chat completions, `anthropic` for messages.
        api_key_env: The name of the variable that holds the key; none for a server that asks for none.
    """

    base_url: str
    kind: Literal["openai", "anthropic"] = "openai"
    api_key_env: str | None = None


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    model: str | None = None
    default_provider: str | None = None
    providers: dict[str, Provider] = {}


HOSTED: Final = {
    "openai": Provider("https://api.openai.com/v1", "openai", "OPENAI_API_KEY"),
    "anthropic": Provider("https://api.anthropic.com", "anthropic", "ANTHROPIC_API_KEY"),
}


class Settings(Struct, frozen=True, kw_only=True):
    """The configuration.

    Attributes:
        providers: By name; the hosted ones are there unless the file has others of their names.
        default_provider: Serves models that name none.
        model: The model where neither a definition nor the command line names one.
    """

    providers: dict[str, Provider] = field(default_factory=lambda: dict(HOSTED))
    default_provider: str | None = None
    model: str | None = None


class Route(NamedTuple):
    """A model at a provider."""

    provider: str
    model: str


def parse_settings(data: bytes, name: str) -> Settings:
    """Return the configuration of a file.

    Args:
        data: TOML: `model`, `default_provider`, and a table of `base_url`, `kind`, `api_key_env` for each provider.
        name: The file's name, for messages.

    Raises:
        InputError: It is not TOML, holds anything else, or its default is not one of its providers.
    """
    try:
        given = msgspec.convert(tomllib.loads(data.decode()), _File)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise InputError(f"{name}: {error}", hint="docs/agent.md says what may stand there") from error
    providers = {**HOSTED, **given.providers}
    only = next(iter(given.providers), None) if len(given.providers) == 1 else None
    default = given.default_provider or only
    if default is not None and default not in providers:
        raise InputError(f"{name}: default_provider is {default}, which is not one of {_listed(providers)}")
    return Settings(providers=providers, default_provider=default, model=given.model)


def route(settings: Settings, text: str) -> Route:
    """Return where a model is: `provider:model`, or a name without a colon at the default provider.

    Raises:
        InputError: There is no such provider, or none is the default.
    """
    provider, colon, model = text.partition(_SEPARATOR)
    if not colon:
        if settings.default_provider is None:
            raise InputError(
                f"the model {text} names no provider",
                hint=f"write provider:{text} with one of {_listed(settings.providers)}, or set default_provider",
            )
        return Route(settings.default_provider, text)
    if provider not in settings.providers:
        raise InputError(
            f"there is no provider {provider} for the model {text}",
            hint=f"there are {_listed(settings.providers)}; others stand in config.toml, see docs/agent.md",
        )
    if not model.strip():
        raise InputError(f"{text} names no model")
    return Route(provider, model)


def key_variables(settings: Settings, models: Iterable[str]) -> list[str]:
    """Return the names of the variables that hold the keys for models, without repeats.

    Raises:
        InputError: No provider serves a model.
    """
    names: list[str] = []
    for text in models:
        found = settings.providers[route(settings, text).provider].api_key_env
        if found and found not in names:
            names.append(found)
    return names


def _listed(providers: Iterable[str]) -> str:
    return ", ".join(sorted(providers))
