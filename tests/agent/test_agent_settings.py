from __future__ import annotations

import pytest

from spl.agent.defaults import CHANGING, LOOKING, RUNNING, default_behaviour, stage_tools
from spl.agent.parameters import parameters
from spl.agent.settings import Route, Settings, key_variables, parse_settings, route
from spl.codec import digest
from spl.errors import InputError
from spl.records.behaviour import behaviour_problems
from spl.records.definitions import PipelineBehaviour, Stage
from spl.records.wire import to_map

CONFIG = b"""
model = "local:qwen3:8b"
[providers.local]
base_url = "http://127.0.0.1:11434/v1"
[providers.mirror]
base_url = "https://models.example/anthropic"
kind = "anthropic"
api_key_env = "MIRROR_KEY"
"""


def test_a_configuration_names_providers_and_the_variables_of_their_keys() -> None:
    settings = parse_settings(CONFIG, "config.toml")
    assert set(settings.providers) == {"openai", "anthropic", "local", "mirror"}
    assert settings.model is not None
    assert route(settings, settings.model) == Route("local", "qwen3:8b")
    models = ["mirror:m", "local:m", "openai:m", "mirror:n"]
    assert key_variables(settings, models) == ["MIRROR_KEY", "OPENAI_API_KEY"]
    for nowhere in ("nowhere:m", "bare"):
        with pytest.raises(InputError):
            key_variables(settings, [nowhere])


def test_a_name_without_a_provider_goes_to_the_default_one() -> None:
    one = parse_settings(b'[providers.local]\nbase_url = "http://127.0.0.1/v1"', "c")
    assert route(one, "small") == Route("local", "small")
    chosen = parse_settings(b'default_provider = "anthropic"\n' + CONFIG, "c")
    assert route(chosen, "small") == Route("anthropic", "small")
    with pytest.raises(InputError, match="names no provider"):
        route(Settings(), "small")


@pytest.mark.parametrize("text", ["nowhere:small", "openai:", "openai: "])
def test_a_route_that_leads_nowhere_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        route(Settings(), text)


@pytest.mark.parametrize(
    "data",
    [
        b"providers = 3",
        b"[providers.local]",
        b'[providers.local]\nbase_url = "x"\nkey = "sk-1"',
        b'[providers.local]\nbase_url = "x"\nkind = "other"',
        b'default_provider = "absent"',
        b'instructions = "Be bold."',
        b"\xff",
    ],
)
def test_what_is_not_a_configuration_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(InputError, match=r"config\.toml"):
        parse_settings(data, "config.toml")


def test_the_built_in_definition_is_a_behaviour_and_its_facet_moves_with_the_model_alone() -> None:
    one, same, other = (to_map(default_behaviour(model)) for model in ("a:m", "a:m", "a:n"))
    assert list(behaviour_problems(one)) == []
    assert digest.facet(one) == digest.facet(same) != digest.facet(other)


def test_permissions_bound_what_a_stage_wants() -> None:
    def tools(
        permissions: str, wanted: list[str] | None, name: str = "work", own: list[str] | None = None
    ) -> list[str]:
        behaviour = PipelineBehaviour(model="m", instructions="i", permissions=permissions, tools=own)  # type: ignore[arg-type]
        return stage_tools(behaviour, Stage(name=name, tools=wanted))

    assert tools("read-only", None) == list(LOOKING)
    assert tools("read-only", ["write", "read"]) == ["read"]
    assert tools("workspace-write", ["run", "write"]) == ["write"]
    assert tools("full", None) == [*LOOKING, *CHANGING, *RUNNING]
    assert tools("full", None, "verify") == tools("full", None, "plan") == list(LOOKING)
    assert tools("full", None, "verify", ["run", "read"]) == ["read"]
    assert tools("full", ["run"], "verify", ["read"]) == ["run"]


def test_parameters_are_read_as_records_hold_them() -> None:
    found = parameters(
        {"temperature": {"dec": [7, -1]}, "max_turns": 9, "seed": 0, "max_output_tokens": 100, "x": 1}
    )
    assert found.settings == {"temperature": 0.7, "seed": 0, "max_tokens": 100}
    assert (found.max_turns, found.unknown) == (9, ["x"])


@pytest.mark.parametrize(
    "given",
    [{"max_turns": 0}, {"max_turns": True}, {"temperature": "hot"}, {"temperature": True}, {"thinking": 3}],
)
def test_a_parameter_that_cannot_be_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InputError, match=next(iter(given))):
        parameters(given)
