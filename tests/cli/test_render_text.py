from __future__ import annotations

import os

import pytest

from spl.cli.render import text
from spl.cli.render.figures import arrow, sparkline
from spl.cli.render.money import cost, usd
from spl.contracts.scores import ChangePart
from spl.records.evals import Cost


def test_columns_are_aligned_and_numbers_stand_to_the_right() -> None:
    shown = text.table(("name", "n", "more"), [("a", 1, "x"), ("日本", 100, "y")])
    assert shown.splitlines() == ["name    n  more", "a       1  x", "日本  100  y"]


def test_a_table_without_rows_is_empty() -> None:
    assert text.table(("a",), []) == ""


def test_cells_cannot_break_out_of_their_row() -> None:
    assert text.table(("a",), [("x\n\x1b[2J",)]).splitlines() == ["a", "x\\x0a\\x1b[2J"]


def test_a_narrow_terminal_gets_blocks_instead_of_wrapped_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_terminal_columns", lambda: 20)
    rows = [("*", "a" * 12, "5/6", "▲ +50.0"), ("", "b" * 12, "2/6", "·")]
    assert text.table(("", "facet", "structure", ""), rows).splitlines() == [
        "facet      aaaaaaaaaaaa *",
        "structure  5/6 ▲ +50.0",
        "",
        "facet      bbbbbbbbbbbb",
        "structure  2/6 ·",
    ]


def test_a_table_that_fits_the_terminal_stays_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_terminal_columns", lambda: 4)
    assert text.table(("a", "b"), [("x", "y")]).splitlines() == ["a  b", "x  y"]


def test_absent_fields_are_left_out() -> None:
    assert text.fields([("id", "1"), ("note", None), ("longer", 0)]) == "id      1\nlonger  0"


def test_a_text_of_several_lines_cannot_pass_for_a_field() -> None:
    assert text.fields([("note", "a\nowner  me"), ("owner", "you")]).splitlines() == [
        "note   a",
        "       owner  me",
        "owner  you",
    ]


def test_a_map_is_outlined_by_path() -> None:
    value = {
        "a": {"dec": [25, -2]},
        "b": {"c": True, "d": b"\x01\xff", "e": {}},
        "f": [1, "x"],
        "g": [{"h": {"dec": [1, 3]}}],
        "i": [],
        "j\x1b": None,
    }
    assert text.outline(value).splitlines() == [
        "a       0.25",
        "b.c     yes",
        "b.d     01ff",
        "b.e     (empty)",
        "f       1, x",
        "g[0].h  1000",
        "i       (none)",
        "j\\x1b   None",
    ]
    assert text.outline({}) == "(empty)"


def test_ids_have_twelve_digits_and_absent_ones_a_dash() -> None:
    assert text.short(bytes(range(32))) == "000102030405"
    assert text.short(None) == "-"


@pytest.mark.parametrize(
    ("at", "shown"),
    [(None, "-"), (0, "1970-01-01 00:00:00"), (2**53 - 1, f"{2**53 - 1} ms")],
)
def test_times_are_in_utc_and_impossible_ones_stand_as_numbers(at: int | None, shown: str) -> None:
    assert text.when(at) == shown


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_output_that_is_no_terminal_has_no_width() -> None:
    assert text._terminal_columns() is None


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (None, "·"),
        (ChangePart(difference=0.5), "▲ +50.0"),
        (ChangePart(difference=-0.125), "▼ -12.5"),
        (ChangePart(difference=0.0), "→ 0.0"),
        (ChangePart(not_comparable="another suite revision"), "?"),
    ],
)
def test_an_arrow_says_how_one_axis_moved(change: ChangePart | None, shown: str) -> None:
    assert arrow(change) == shown


def test_a_sparkline_has_one_bar_for_each_rate_and_a_blank_for_none() -> None:
    assert sparkline([0.0, 0.5, None, 1.0]) == "▁▅ █"


@pytest.mark.parametrize(
    ("nusd", "shown"),
    [(None, "unknown"), (0, "$0.0000"), (38_900_000, "$0.0389"), (1_234_500_000_000, "$1,234.50")],
)
def test_unknown_money_is_never_zero(nusd: int | None, shown: str) -> None:
    assert usd(nusd) == shown


@pytest.mark.parametrize(
    ("figure", "shown"),
    [
        (None, "n/a"),
        (Cost(coverage="not_applicable", priced=0, unpriced=0, error=0), "n/a"),
        (Cost(coverage="unavailable", priced=0, unpriced=2, error=0), "unknown"),
        (Cost(coverage="partial", priced=1, unpriced=2, error=0, nusd=10**9), "≥$1.00 (partial)"),
        (Cost(coverage="complete", priced=1, unpriced=0, error=0, nusd=10**9), "$1.00"),
    ],
)
def test_a_cost_says_what_it_covers(figure: Cost | None, shown: str) -> None:
    assert cost(figure) == shown
