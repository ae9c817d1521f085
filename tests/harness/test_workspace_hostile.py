from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from spl.errors import OperationFailedError
from spl.harness.fixture import Entry, tree_entries
from spl.harness.git import Git
from spl.harness.limit import Limit
from spl.harness.removal import remove_tree
from spl.harness.snapshot import baseline, changed, scan
from spl.harness.workspace import materialize, new_directory, refuse_inside, safe_name


@pytest.fixture
def fixture(tmp_path: Path) -> Path:
    root = tmp_path / "fixture"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("a\n")
    (root / ".gitignore").write_text("*.log\nbuild/\n!keep.log\n")
    return root


def copied(fixture: Path, tmp_path: Path) -> Path:
    root = new_directory(tmp_path, "copy")
    materialize(root, tree_entries(fixture), Limit())
    return root


@pytest.mark.parametrize("kind", ["link", "fifo", "control", "git-file"])
def test_an_entry_that_leads_elsewhere_is_refused(fixture: Path, tmp_path: Path, kind: str) -> None:
    if kind == "link":
        (fixture / "evil").symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(fixture / "evil")
    elif kind == "control":
        (fixture / "ev\x1bil").write_text("")
    else:
        (fixture / ".git").write_text("gitdir: /elsewhere\n")
    with pytest.raises(OperationFailedError, match="unsupported fixture entry"):
        copied(fixture, tmp_path)


def test_modes_are_kept_and_git_directories_left_out(fixture: Path, tmp_path: Path) -> None:
    (fixture / "src").chmod(0o555)
    (fixture / ".git").mkdir()
    (fixture / "sub").mkdir(mode=0o700)
    root = copied(fixture, tmp_path)
    assert (root / "src").stat().st_mode & 0o777 == 0o555
    assert (root / "sub").stat().st_mode & 0o777 == 0o700
    assert not (root / ".git").exists()
    (fixture / "src").chmod(0o755)
    assert remove_tree(root) == []


@pytest.mark.parametrize("path", ["../x", "/x", "a//b", "a/../b", ""])
def test_an_entry_cannot_be_made_outside(tmp_path: Path, path: str) -> None:
    with pytest.raises(OperationFailedError, match="not a path within"):
        materialize(tmp_path, [Entry(path, 0o644, [b"x"])], Limit())


def test_copying_obeys_the_limit_and_the_interrupt(fixture: Path, tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    for limit in (Limit(0), Limit(cancel=cancel)):
        with pytest.raises(OperationFailedError, match="context"):
            materialize(new_directory(tmp_path, "copy"), tree_entries(fixture), limit)


def test_a_work_root_inside_the_fixture_is_refused(fixture: Path, tmp_path: Path) -> None:
    with pytest.raises(OperationFailedError, match="inside the fixture"):
        refuse_inside(fixture / "work", fixture)
    refuse_inside(tmp_path / "work", fixture)


def test_a_deep_and_locked_tree_is_removed(tmp_path: Path) -> None:
    root = tmp_path / "deep"
    root.mkdir()
    descriptor = os.open(root, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.fchmod(descriptor, 0)
    os.close(descriptor)
    assert remove_tree(root) == []
    assert not root.exists()


def test_task_ids_become_safe_names() -> None:
    assert [safe_name(text) for text in ("a/b c", "../..", "", "é-x")] == ["a-b-c", "task", "task", "x"]


def test_everything_that_changed_is_seen_and_what_the_fixture_ignores_is_not(
    fixture: Path, tmp_path: Path
) -> None:
    root = copied(fixture, tmp_path)
    before = baseline(root, Limit())
    (root / "src" / "a.py").write_text("b\n")
    (root / "x.log").write_text("ignored")
    (root / "keep.log").write_text("seen")
    (root / "build").mkdir()
    (root / "build" / "out").write_text("ignored")
    (root / "nested" / ".git").mkdir(parents=True)
    (root / "nested" / "odd:name -> x").write_text("seen")
    (root / ".gitignore").write_text("*\n")
    found = changed(root, before, scan(root, Limit()), [], Limit())
    assert found == [".gitignore", "keep.log", "nested/odd:name -> x", "src/a.py"]
    assert "x.log" in changed(root, before, scan(root, Limit()), ["x.log"], Limit())


def test_a_planted_configuration_does_not_run_when_git_is_asked(fixture: Path, tmp_path: Path) -> None:
    root = copied(fixture, tmp_path)
    scratch = new_directory(tmp_path, "scratch")
    git = Git({"PATH": os.environ["PATH"], "GIT_DIR": "/nowhere"}, scratch, Limit())
    git.commit_baseline(root)
    with (root / ".git" / "config").open("a") as config:
        config.write(
            f'[core]\n\tfsmonitor = touch {tmp_path}/ran\n[filter "f"]\n\tclean = touch {tmp_path}/ran\n'
        )
    (root / ".gitattributes").write_text("* filter=f\n")
    (root / "src" / "a.py").write_text("changed\n")
    (root / "new name.txt").write_text("x")
    assert git.changed_files(root) == [".gitattributes", "new name.txt", "src/a.py"]
    assert git.changed_files(root / "src") == ["a.py"]
    assert not (tmp_path / "ran").exists()
