from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spl.cli.sanitize import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe 日本 🙂", "größe 日本 🙂"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("a\x00b\x7f", "a\\x00b\\x7f"),
        ("\u202eevil\u2066", "\\u{202e}evil\\u{2066}"),
        ("zero\u200bwidth\ufeff", "zero\\u{200b}width\\u{feff}"),
        ("lone \ud800", "lone \\u{d800}"),
        ("tag \U000e0041", "tag \\u{e0041}"),
        ("two\nlines\t\r", "two\\x0alines\\x09\\x0d"),
        ("\u2028\u2029", "\\u{2028}\\u{2029}"),
    ],
)
def test_what_a_terminal_would_obey_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_line_breaks_and_tabs_may_be_kept() -> None:
    assert visible("a\n\tb\r\x1b", lines=True) == "a\n\tb\\x0d\\x1b"


@given(st.text())
def test_nothing_that_controls_is_left_and_showing_twice_changes_nothing(text: str) -> None:
    shown = visible(text)
    assert not any(unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for c in shown)
    assert visible(shown) == shown
