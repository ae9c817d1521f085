from __future__ import annotations

from pathlib import Path

import pytest

from spl.harness.diff import MAX_BYTES, MAX_FILE_LINES, unified


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    for side in "ab":
        (tmp_path / side).mkdir()
    return tmp_path / "a", tmp_path / "b"


def test_texts_are_shown_line_by_line(sides: tuple[Path, Path]) -> None:
    (sides[0] / "x").write_text("one\ntwo\n")
    (sides[1] / "x").write_text("one\nthree")
    (sides[1] / "new").write_text("n\n")
    (sides[0] / "gone").write_text("g\n")
    assert unified(*sides, ["gone", "new", "x"]).decode().splitlines() == [
        "--- a/gone", "+++ /dev/null", "@@ -1 +0,0 @@", "-g",
        "--- /dev/null", "+++ b/new", "@@ -0,0 +1 @@", "+n",
        "--- a/x", "+++ b/x", "@@ -1,2 +1,2 @@", " one", "-two", "+three", "\\ No newline at end of file",
    ]  # fmt: skip


@pytest.mark.parametrize("content", [b"\xff\xfe", b"a\0b", b"x\n" * (MAX_FILE_LINES + 1), b"x" * 70_000])
def test_what_is_no_short_text_is_only_named(sides: tuple[Path, Path], content: bytes) -> None:
    (sides[0] / "x").write_text("text\n")
    (sides[1] / "x").write_bytes(content)
    assert unified(*sides, ["x"]) == b"a/x and b/x differ\n"


def test_links_are_not_followed(sides: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (sides[1] / "x").symlink_to(tmp_path / "secret")
    assert unified(*sides, ["x"]) == b"/dev/null and b/x differ\n"


def test_the_whole_is_bounded_and_says_so(sides: tuple[Path, Path]) -> None:
    names = [f"f{number}" for number in range(40)]
    for name in names:
        (sides[1] / name).write_text("y" * 60_000)
    found = unified(*sides, names)
    assert len(found) < MAX_BYTES + 20
    assert found.endswith(b"... and more\n")
