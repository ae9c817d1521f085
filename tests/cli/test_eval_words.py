from __future__ import annotations

import pytest

from spl.cli.app import eval_words
from spl.cli.context import current


@pytest.mark.parametrize(
    ("words", "raw"),
    [
        (["eval"], []),
        (["eval", "validate", "--suite", "s"], ["validate", "--suite", "s"]),
        (["eval", "--suite", "s"], ["--suite", "s"]),
        (["eval", "run", "--json"], ["run", "--json"]),
        (["--json", "eval"], ["--json"]),
        (
            ["--json", "eval", "bench", "--agent-command", "a", "--json"],
            ["bench", "--json", "--agent-command", "a", "--json"],
        ),
        (["--home", "eval", "eval", "bench", "score"], ["bench", "score"]),
        (["eval", "run", "--help"], ["run", "--help"]),
        (["eval", "--help"], ["--help"]),
    ],
)
def test_the_published_eval_commands_get_their_words_as_they_are(words: list[str], raw: list[str]) -> None:
    assert eval_words(words) == raw


@pytest.mark.parametrize(
    "words",
    [
        ["eval", "score", "s", "--actor", "a"],
        ["eval", "history", "a"],
        ["eval", "compare", "a", "b"],
        ["eval", "regressions", "a"],
        ["eval", "report", "a"],
        ["--home", "eval", "status"],
        ["actor", "add", "eval"],
        ["--bogus", "eval"],
        [],
    ],
)
def test_all_other_words_are_for_the_commands(words: list[str]) -> None:
    assert eval_words(words) is None


def test_the_home_that_stood_before_eval_is_known() -> None:
    eval_words(["--home", "/somewhere", "eval", "bench"])
    assert current().home == "/somewhere"
