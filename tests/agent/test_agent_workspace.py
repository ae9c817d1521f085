from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from spl.agent.workspace import RefusedError, Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "one.txt").write_text("one")
    (tmp_path / "outside.txt").write_text("outside")
    return root


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    made = Workspace(root)
    yield made
    made.close()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_path_may_be_relative_or_absolute_and_may_go_up_and_down_inside(
    workspace: Workspace, root: Path
) -> None:
    for path in ("a/one.txt", "./a//one.txt", "a/b/../one.txt", f"{root}/a/one.txt"):
        assert workspace.read(path) == b"one"


@pytest.mark.parametrize("path", ["..", "../outside.txt", "a/../../outside.txt", "/etc/hostname", "a\0b"])
def test_a_path_that_leads_outside_is_refused(workspace: Workspace, path: str) -> None:
    with pytest.raises(RefusedError):
        workspace.read(path)
    with pytest.raises(RefusedError):
        workspace.write(path, b"changed")


@pytest.mark.parametrize(
    "target", ["../outside.txt", "/etc/hostname", "a/../../outside.txt", "{root}/../outside.txt"]
)
def test_a_link_that_leads_outside_is_refused(workspace: Workspace, root: Path, target: str) -> None:
    (root / "link").symlink_to(target.format(root=root))
    (root / "a" / "up").symlink_to("../..")
    for path in ("link", "a/up/outside.txt"):
        with pytest.raises(RefusedError, match="outside"):
            workspace.read(path)
        with pytest.raises(RefusedError, match="outside"):
            workspace.write(path, b"changed")
    assert (root.parent / "outside.txt").read_text() == "outside"


def test_a_link_that_stays_inside_is_followed_and_stays_a_link(workspace: Workspace, root: Path) -> None:
    (root / "link").symlink_to("a/one.txt")
    (root / "a" / "back").symlink_to(f"{root}/a")
    assert workspace.read("link") == workspace.read("a/back/back/one.txt") == b"one"
    assert workspace.write("link", b"two") == "a/one.txt"
    assert (root / "link").is_symlink()
    assert (root / "a" / "one.txt").read_text() == "two"


def test_links_in_a_circle_end(workspace: Workspace, root: Path) -> None:
    (root / "x").symlink_to("y")
    (root / "y").symlink_to("x")
    with pytest.raises(RefusedError, match="symbolic links"):
        workspace.read("x")


def test_writing_makes_directories_keeps_modes_and_leaves_nothing_beside(
    workspace: Workspace, root: Path
) -> None:
    workspace.write("new/deep/file.sh", b"1")
    (root / "new/deep/file.sh").chmod(0o750)
    workspace.write("new/deep/file.sh", b"2")
    assert stat.S_IMODE((root / "new/deep/file.sh").stat().st_mode) == 0o750
    assert names(root / "new/deep") == ["file.sh"]


def test_a_file_that_cannot_be_replaced_leaves_nothing_beside(workspace: Workspace, root: Path) -> None:
    with pytest.raises(RefusedError, match="regular"):
        workspace.write("a/b", b"1")
    assert names(root / "a" / "b") == []


def test_what_git_keeps_is_not_written(workspace: Workspace, root: Path) -> None:
    (root / ".git" / "hooks").mkdir(parents=True)
    for path in (".git/hooks/pre-commit", "sub/.git/config", ".git"):
        with pytest.raises(RefusedError, match=r"Git|regular"):
            workspace.write(path, b"#!/bin/sh")
    assert names(root / ".git" / "hooks") == []
    assert names(root / "sub") == []


def test_a_named_pipe_is_refused_and_not_waited_for(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(RefusedError, match="regular"):
        workspace.read("pipe")
    with pytest.raises(RefusedError, match="regular"):
        workspace.write("pipe", b"1")


def test_descriptors_do_not_leak(workspace: Workspace, root: Path) -> None:
    before = len(names(Path("/proc/self/fd")))
    for path in ("a/one.txt", "a/b/../../../x", "missing/x", "a/one.txt/x"):
        for _ in range(3):
            try:
                workspace.read(path)
            except RefusedError:
                continue
    assert [name for name, _ in workspace.entries(".")] == ["a", "a/b", "a/one.txt"]
    assert len(names(Path("/proc/self/fd"))) == before
    assert root.exists()
