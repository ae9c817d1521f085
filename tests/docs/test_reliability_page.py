"""The page of counts says what the tests count, and nothing else."""

from __future__ import annotations

import re

from conftest import ROOT
from faults import figures


def test_the_page_says_what_the_long_run_has_counted_and_promises() -> None:
    table, counts = figures.read()
    assert table == figures.render(counts)
    assert figures.missing(counts) == []


def test_every_test_that_the_pages_name_is_there() -> None:
    for page in ("security.md", "reliability.md"):
        named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "docs" / page).read_text("utf-8"))
        assert named
        assert [path for path in named if not (ROOT / path).exists()] == []


def test_a_number_that_falls_short_is_noticed() -> None:
    _, counts = figures.read()
    counts["kills"] = 1
    counts["flips-control"] = 0
    assert figures.missing(counts) == ["kills: 1", "flips-control: none"]
