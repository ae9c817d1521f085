"""The console blocks of the README and the examples of the Python page run, and print what they say."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

ANY = re.compile(r"\s*…\s*")
BLOCK = re.compile(r"```(console|python|text)\n(.*?)```", re.DOTALL)


def blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text("utf-8"))


def assert_shown(shown: str, printed: str) -> None:
    """Demand that what a page shows is what was printed; `…` stands for an id and the blanks around it."""
    for want, got in zip(shown.splitlines(), printed.splitlines(), strict=True):
        pattern = r"\s*\S+\s*".join(re.escape(part) for part in ANY.split(want.rstrip()))
        assert re.fullmatch(re.sub(r"(?:\\ )+", r"\\s+", pattern), got.rstrip()), f"{want!r} is not {got!r}"


@pytest.mark.parametrize(
    ("page", "least"),
    [("README.md", 12), ("docs/running.md", 8), ("docs/proof.md", 6), ("docs/exchange.md", 11)],
)
def test_the_console_blocks_of_a_page_print_what_they_show(tmp_path: Path, page: str, least: int) -> None:
    environment = {**os.environ, "SPL_HOME": str(tmp_path / "home"), "COLUMNS": "200"}
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    commands = 0
    for language, text in blocks(ROOT / page):
        if language != "console":
            continue
        for step in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, _, shown = step.partition("\n")
            words = shlex.split(command)
            assert words[0] == "spl"
            done = subprocess.run(
                [sys.executable, "-m", *words],
                cwd=tmp_path / "examples" / "offline",
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            commands += 1
            if shown.strip():
                assert_shown(shown, done.stdout)
    assert commands >= least


def test_a_page_that_shows_something_else_is_noticed() -> None:
    with pytest.raises(AssertionError):
        assert_shown("appended 6 runs", "appended 7 runs")
    with pytest.raises(ValueError, match="shorter"):
        assert_shown("one\ntwo", "one")
    assert_shown("facet …  x", "facet 0123abcd  x")


def test_the_examples_of_the_python_page_print_what_they_show(tmp_path: Path) -> None:
    page = blocks(ROOT / "docs" / "python.md")
    pairs = [(page[i][1], page[i + 1][1]) for i in range(len(page) - 1) if page[i][0] == "python"]
    assert len(pairs) == 2
    for code, shown in pairs:
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == shown


def test_the_demo_walks_to_its_end() -> None:
    demo = ROOT / "examples" / "offline" / "demo.py"
    done = subprocess.run([sys.executable, demo], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "▲ +50.0" in done.stdout
    assert "▼ -50.0" in done.stdout
