from __future__ import annotations

from pathlib import Path

import pytest

from spl import environment


def test_the_home_is_the_option_then_the_variable_then_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPL_HOME", str(tmp_path / "variable"))
    assert environment.home_path(str(tmp_path / "option")) == tmp_path / "option"
    assert environment.home_path(None) == tmp_path / "variable"
    monkeypatch.setenv("SPL_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert environment.home_path(None).name == "spl"
    assert environment.home_path(None).is_relative_to(tmp_path)


def test_a_relative_home_and_a_tilde_mean_what_the_shell_means(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert environment.home_path("here") == tmp_path / "here"
    assert environment.home_path("~/there") == tmp_path / "me" / "there"


def test_the_variables_are_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPL_TEST", "1")
    before = environment.variables()
    monkeypatch.setenv("SPL_TEST", "2")
    assert before["SPL_TEST"] == "1"


@pytest.mark.parametrize(
    ("variables", "terminal", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"CLICOLOR_FORCE": "0"}, False, False),
        ({"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
    ],
)
def test_colour_follows_the_conventions(
    variables: dict[str, str], *, terminal: bool, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert environment.wants_colour(terminal=terminal) is wanted
