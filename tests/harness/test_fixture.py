"""What of a fixture goes into the home: files with their modes, empty directories, nothing that leads elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spl.errors import SuiteLoadError
from spl.harness.fixture import FixtureFile, read_fixture


def test_files_and_empty_directories_are_taken_in_the_order_of_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "b" / "inner").mkdir(parents=True)
    (tmp_path / "b" / "inner" / "run.sh").write_bytes(b"#!/bin/sh\n")
    (tmp_path / "b" / "inner" / "run.sh").chmod(0o750)
    (tmp_path / "b-file").write_bytes(b"after b by its name, before b/ by its bytes")
    (tmp_path / "é.txt").write_bytes(b"\x00\xff")
    (tmp_path / "empty" / "deeper").mkdir(parents=True)
    (tmp_path / "only-git" / ".git").mkdir(parents=True)
    (tmp_path / "only-git" / ".git" / "HEAD").write_text("ref")
    (tmp_path / ".git").mkdir()
    assert read_fixture(tmp_path) == [
        FixtureFile("b-file", 644, b"after b by its name, before b/ by its bytes"),
        FixtureFile("b/inner/run.sh", 755, b"#!/bin/sh\n"),
        FixtureFile("empty/deeper", 40000, None),
        FixtureFile("only-git", 40000, None),
        FixtureFile("é.txt", 644, b"\x00\xff"),
    ]


def test_a_fixture_with_nothing_in_it_is_fine(tmp_path: Path) -> None:
    assert read_fixture(tmp_path) == []


def deep(root: Path) -> None:
    (root / "/".join("d" * 66)).mkdir(parents=True)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda root: (root / "link").symlink_to("/etc/passwd"), 'unsupported fixture entry "link"'),
        (lambda root: os.mkfifo(root / "pipe"), 'unsupported fixture entry "pipe"'),
        (lambda root: (root / ".git").write_text("gitdir: /elsewhere"), "cannot be taken over"),
        (lambda root: (root / "a\nb").write_text("x"), "cannot be taken over"),
        (lambda root: Path(os.fsdecode(os.fsencode(root) + b"/\xff")).write_text("x"), "not UTF-8"),
        (deep, "nested more than 64 deep"),
    ],
)
def test_what_a_home_cannot_hold_is_refused(
    tmp_path: Path, harm: Callable[[Path], object], message: str
) -> None:
    harm(tmp_path)
    with pytest.raises(SuiteLoadError, match=message):
        read_fixture(tmp_path)


def test_a_fixture_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SuiteLoadError, match="workspace fixture"):
        read_fixture(tmp_path / "file")
