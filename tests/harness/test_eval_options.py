from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spl.cli.commands.eval_options import HelpWanted, WordsError, parse_words, quoted
from spl.harness.durations import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h2m3s", 3723),
        ("1.5s", 1.5),
        (".5s", 0.5),
        ("5.s", 5),
        ("0", 0),
        ("-0s", 0),
        ("1h1h", 7200),
        ("1\u00b5s", 1e-6),
    ],
)
def test_durations_are_sums_of_numbers_with_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", ".", "s", "5", "1d", "1e3s", "1 s", "\u0661s", "--1s", "2562047h47m16.854775808s", "1S"]
)
def test_other_texts_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)


@given(st.integers(0, 9), st.integers(0, 59), st.integers(0, 59))
def test_hours_minutes_and_seconds_add_up(hours: int, minutes: int, seconds: int) -> None:
    assert parse_duration(f"{hours}h{minutes}m{seconds}s") == hours * 3600 + minutes * 60 + seconds


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "--suite requires a path"),
        (["run", "--suite", "s"], "--workspace requires a path for eval run"),
        (["--suite"], "--suite requires a value"),
        (["bench", "--jobs", "0"], "--jobs must be a number from 1 to 9999"),
        (["bench", "--suite", "s", "--agent-command"], "--agent-command requires at least one argument"),
        (["--jobs", "2"], 'unknown eval flag "--jobs"'),
        (["--verbose"], 'unknown eval flag "--verbose"'),
        (["x\ty"], 'unexpected eval argument "x\\ty"'),
        (["--format", "xml"], "--format must be one of text, json, github"),
    ],
)
def test_the_first_mistake_counts(words: list[str], message: str) -> None:
    with pytest.raises(WordsError) as caught:
        parse_words(words)
    assert str(caught.value) == message


def test_help_before_a_mistake_is_help_and_as_a_value_it_is_a_value() -> None:
    with pytest.raises(HelpWanted):
        parse_words(["--suite", "s", "help", "--bogus"])
    assert parse_words(["--suite", "help"]).suite == "help"


def test_the_agents_command_takes_the_rest_as_it_is() -> None:
    options = parse_words(["bench", "--suite=s", "--agent-command", "a", "", " b ", "--json", "--help"])
    assert options.agent_command == ["a", "", " b ", "--json", "--help"]
    assert not options.json


def test_models_accumulate_without_repeats() -> None:
    words = [
        "bench",
        "--suite",
        "s",
        "--model",
        "a,b",
        "--models",
        "c, a,,c",
        "--model",
        "a",
        "--agent-command",
        "x",
    ]
    assert parse_words(words).models == ["a,b", "c", "a"]


def test_words_are_quoted_so_that_nothing_is_hidden() -> None:
    assert quoted('a"\\\x1b\u202e\u2603') == '"a\\"\\\\\\x1b\\u202e\u2603"'
