"""Full disks, read-only disks, size limits, odd umasks, no HOME, clocks that go back, network file systems."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
from conftest import FixedClock, Ran

from spl import environment
from spl.errors import StorageError, UsageError
from spl.kernel.home import open_home
from spl.kernel.records import list_entries, put_record
from spl.kernel.verify import verify_home
from spl.store import layout
from spl.store.log import Selection

pytestmark = pytest.mark.faults
HERE = Path(__file__).parent
NOTE = b'{"kind": "acme.note.v1", "body": {"text": "x"}}'


@pytest.fixture
def small_disk(tmp_path: Path) -> dict[str, Any]:
    """What commands said on a disk that was full, and then read-only."""
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        pytest.skip("unshare and mount are not there")
    place = tmp_path / "disk"
    place.mkdir()
    for options in ("-rm", "-m"):  # as nobody in particular, or as root
        probe = ["unshare", options, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            break
    else:
        pytest.skip("nothing may be mounted here")
    driver = [sys.executable, str(HERE / "on_a_small_disk.py"), str(place)]
    done = subprocess.run(["unshare", options, *driver], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_on_a_full_disk_and_on_a_read_only_one_nothing_is_lost_and_the_reason_is_told(
    small_disk: dict[str, Any],
) -> None:
    full = small_disk["full"]
    assert (full["status"], full["document"]["code"]) == (1, "storage")
    assert "the disk is full" in full["document"]["message"]
    assert small_disk["acknowledged"]
    assert small_disk["held"] == small_disk["acknowledged"]
    assert small_disk["verify full"]["document"]["faults"] == []
    assert small_disk["after"]["status"] == 0, "with room again it goes on"
    assert small_disk["verify after"]["status"] == 0
    refused = small_disk["read-only"]
    assert (refused["status"], refused["document"]["code"]) == (1, "storage")
    assert "read-only" in refused["document"]["message"]
    assert small_disk["held read-only"] == small_disk["before"], "it can still be read"
    assert small_disk["init"]["status"] == 0
    assert not any("Traceback" in one["err"] for one in small_disk.values() if isinstance(one, dict))


def test_a_read_only_home_is_verified_as_far_as_reading_goes(small_disk: dict[str, Any]) -> None:
    verified = small_disk["verify read-only"]
    assert verified["status"] != 6, "a medium that cannot be written is not damage"
    assert verified["status"] == 0 or "read-only" in verified["document"]["message"]


def test_a_file_size_limit_is_told_and_changes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    open_home(home, create=True).log.close()
    blocks = (home / "log.db").stat().st_size // 512 + 200
    script = f'ulimit -f {blocks}; exec "$@"'
    big = json.dumps({"kind": "acme.note.v1", "body": {"a": "x" * 16_000, "b": "y" * 16_000}})
    statuses = []
    for _ in range(8):
        command = ["sh", "-c", script, "sh", sys.executable, "-m", "spl", "--home", str(home), "put", "-"]
        done = subprocess.run(command, input=big, capture_output=True, text=True, check=False)
        statuses.append(done.returncode)
        if done.returncode:
            assert "file size limit" in done.stderr
            assert "Traceback" not in done.stderr
    assert statuses[-1] == 1
    assert statuses.count(0) >= 1
    kernel = open_home(home, create=False)
    assert kernel.log.size() == statuses.count(0)
    assert verify_home(kernel).clean


@pytest.mark.parametrize("umask", ["000", "077"])
def test_what_a_home_holds_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path, umask: str) -> None:
    (tmp_path / "v.json").write_text(
        json.dumps({"adapter": "pipeline", "model": "m", "instructions": "i" * 20_000})
    )
    steps = [["init"], ["actor", "add", "a"], ["definition", "install", "a", "v.json"], ["put", "-"]]
    for words in steps:
        command = [
            "sh",
            "-c",
            f'umask {umask}; exec "$@"',
            "sh",
            sys.executable,
            "-m",
            "spl",
            "--home",
            "home",
        ]
        done = subprocess.run([*command, *words], input=NOTE, capture_output=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
    modes = {
        path: stat.S_IMODE(path.lstat().st_mode)
        for path in [tmp_path / "home", *(tmp_path / "home").rglob("*")]
    }
    assert len(modes) > 9, "blobs and keys are among them"
    for path, mode in modes.items():
        assert mode == (0o700 if path.is_dir() else 0o600), path


def test_without_a_home_directory_of_the_user_the_place_must_be_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(_user: int) -> NoReturn:
        raise KeyError("no such user")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in ("HOME", "SPL_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="cannot find the home") as refused:
        environment.home_path(None)
    assert "SPL_HOME" in (refused.value.hint or "")
    for named in ("~/x", "~nobody-of-this-name/x"):
        with pytest.raises(UsageError, match="cannot find the home"):
            environment.home_path(named)
    assert environment.home_path("/x") == Path("/x")


def test_a_named_home_needs_no_home_directory(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "SPL_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-m", "spl", "init"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "home" / "format").is_file()


class Backwards(FixedClock):
    """A clock that is set back by an hour at each look, to long before 1970."""

    def now_ms(self) -> int:
        self.now -= 3_600_000 if self.now > 0 else 0
        return self.now


def test_a_clock_that_goes_back_changes_no_order(tmp_path: Path) -> None:
    kernel = open_home(tmp_path / "home", create=True, clock=Backwards())
    put = [put_record(kernel, NOTE, "n").id for _ in range(20)]
    listed = list_entries(kernel, Selection()).entries
    assert [entry.id for entry in listed] == put
    times = [entry.at for entry in listed if entry.at is not None]
    assert times == sorted(times, reverse=True), "what the clock said is kept as it was"
    assert verify_home(kernel).clean


NFS = "server:/export {} nfs4 rw 0 0\n"


@pytest.mark.parametrize("mount", ["{home}", "{parent}"])
def test_a_home_on_a_network_file_system_is_neither_made_nor_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mount: str
) -> None:
    home = tmp_path / "a b" / "home"
    open_home(home, create=True).log.close()
    mounts = tmp_path / "mounts"
    monkeypatch.setattr(layout, "MOUNTS", mounts)
    place = mount.format(home=home, parent=home.parent).replace(" ", "\\040")
    mounts.write_text("root / ext4 rw 0 0\n" + NFS.format(place))
    for create in (False, True):
        with pytest.raises(StorageError, match=r"network file system \(nfs4\)"):
            open_home(home, create=create)
    with pytest.raises(StorageError, match="network file system"):
        open_home(home.parent / "other" if mount == "{parent}" else home / "inner", create=True)
    mounts.write_text("root / ext4 rw 0 0\n" + NFS.format(place) + f"disk {place} xfs rw 0 0\n")
    open_home(home, create=False).log.close()


def test_the_innermost_and_latest_mount_counts() -> None:
    mounts = "a / ext4 rw 0 0\nb /home nfs rw 0 0\nc /home/me xfs rw 0 0\nd /home/m\\134x\\040y cifs rw 0 0\n"
    for path, kind in {"/": "ext4", "/homestead": "ext4", "/home/you": "nfs", "/home/me/x": "xfs"}.items():
        assert layout.file_system(Path(path), mounts) == kind
    assert layout.file_system(Path("/home/m\\x y/z"), mounts) == "cifs"
    assert layout.file_system(Path("/x"), "") == ""


def test_status_and_log_of_a_home_that_is_not_there_say_so(spl: Callable[..., Ran]) -> None:
    for words in (["status"], ["log"], ["verify"], ["show", "ab"]):
        done = spl(*words)
        assert done.status == 1
        assert "there is no home" in done.err
