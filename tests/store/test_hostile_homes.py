"""A home that leads elsewhere, or that others can reach into, is refused by name."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spl.errors import KeyAccessError, SplError, StorageError
from spl.kernel.home import open_home
from spl.kernel.records import put_record


@pytest.fixture
def home(tmp_path: Path) -> Path:
    kernel = open_home(tmp_path / "home", create=True)
    put_record(kernel, json.dumps({"kind": "acme.note.v1", "body": {"t": "x"}}).encode(), "n")
    kernel.log.close()
    return tmp_path / "home"


def refused(home: Path) -> SplError:
    with pytest.raises(SplError) as caught:
        open_home(home, create=True)
    return caught.value


@pytest.mark.parametrize("name", ["format", "log.db", "blobs", "keys", "tmp", "lock"])
def test_a_part_of_a_home_that_is_a_link_is_refused(home: Path, name: str) -> None:
    (home / name).rename(home.parent / "elsewhere")
    (home / name).symlink_to(home.parent / "elsewhere")
    error = refused(home)
    assert isinstance(error, StorageError)
    assert f"{home / name} is a symbolic link" in error.message


def test_a_link_to_a_whole_home_is_followed(home: Path) -> None:
    link = home.parent / "link"
    link.symlink_to(home)
    assert open_home(link, create=False).log.size() == 1


def test_a_head_that_is_a_link_is_refused(home: Path) -> None:
    (home / "head.json").symlink_to("/etc/passwd")
    assert "head.json is a symbolic link" in refused(home).message


@pytest.mark.parametrize("name", ["log.db", "log.db-journal", "format", "blobs", "keys"])
def test_a_part_of_another_kind_is_refused(home: Path, name: str) -> None:
    (home / name).rename(home.parent / "elsewhere")
    os.mkfifo(home / name)
    assert isinstance(refused(home), StorageError)


def test_a_home_that_lost_its_format_is_not_made_anew(home: Path) -> None:
    (home / "format").unlink()
    error = refused(home)
    assert "holds 1 records" in error.message
    (home / "format").write_text("spl-home 1\n")
    assert open_home(home, create=False).log.size() == 1


def test_a_damaged_log_without_a_format_is_not_made_anew(home: Path) -> None:
    (home / "format").unlink()
    (home / "log.db").write_bytes(b"not a database " * 100)
    assert "cannot be read" in refused(home).message
    assert (home / "log.db").read_bytes().startswith(b"not a database")


def test_what_a_first_attempt_left_behind_is_finished(tmp_path: Path) -> None:
    kernel = open_home(tmp_path / "home", create=True)
    kernel.log.close()
    (tmp_path / "home" / "format").unlink()
    assert open_home(tmp_path / "home", create=True).log.size() == 0
    (tmp_path / "home" / "format").unlink()
    (tmp_path / "home" / "log.db").write_bytes(b"")
    assert open_home(tmp_path / "home", create=True).log.size() == 0


@pytest.mark.parametrize("name", [".", "log.db", "blobs", "keys", "tmp", "format"])
def test_what_anybody_may_change_is_refused(home: Path, name: str) -> None:
    path = home / name
    path.chmod(path.stat().st_mode | 0o002)
    error = refused(home)
    assert "can be changed by anybody" in error.message
    assert error.hint is not None
    assert error.hint.startswith("chmod o-w")


@pytest.mark.parametrize("name", ["log.db", "blobs", "keys", "tmp"])
def test_a_part_that_is_missing_is_named(home: Path, name: str) -> None:
    (home / name).rename(home.parent / "elsewhere")
    assert refused(home).message == f"{home / name} is missing"


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o770])
def test_keys_that_others_can_reach_are_refused(home: Path, mode: int) -> None:
    (home / "keys").chmod(mode)
    error = refused(home)
    assert (error.message, error.hint) == (
        f"{home / 'keys'} is open to others",
        f"chmod 700 {home / 'keys'}",
    )


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o666, 0o777])
@pytest.mark.parametrize("name", ["kernel", "operator"])
def test_a_key_that_others_can_read_or_change_is_refused(home: Path, name: str, mode: int) -> None:
    (home / "keys" / f"{name}.key").chmod(mode)
    error = refused(home)
    assert isinstance(error, KeyAccessError)
    assert (error.exit_status, error.hint) == (1, f"chmod 600 {home / 'keys' / name}.key")


@pytest.mark.parametrize(
    "content", [b"", b"00", b"zz" * 32, b"\xff" * 64, b"00" * 31, b"00" * 33, b"0x" + b"00" * 31]
)
def test_a_key_that_is_no_key_is_refused(home: Path, content: bytes) -> None:
    (home / "keys" / "kernel.key").write_bytes(content)
    assert isinstance(refused(home), KeyAccessError)


def test_a_key_that_is_a_link_or_a_pipe_is_refused(home: Path) -> None:
    key = home / "keys" / "operator.key"
    key.rename(home.parent / "elsewhere")
    key.symlink_to(home.parent / "elsewhere")
    assert isinstance(refused(home), KeyAccessError)
    key.unlink()
    key.mkdir()
    assert isinstance(refused(home), KeyAccessError)
    key.rmdir()
    os.mkfifo(key)
    assert isinstance(refused(home), KeyAccessError)


@pytest.mark.parametrize("name", [".", "log.db", "keys", "keys/kernel.key"])
def test_what_belongs_to_somebody_else_is_refused(home: Path, name: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(home / name, 12345, 12345)
    assert refused(home).exit_status == 1


def test_a_blob_directory_that_is_a_link_is_not_written_through(home: Path) -> None:
    kernel = open_home(home, create=False)
    from spl.codec import digest

    content = b"content " * 100
    elsewhere = home.parent / "elsewhere"
    elsewhere.mkdir()
    (home / "blobs" / digest.blob_id(content).hex()[:2]).symlink_to(elsewhere)
    with pytest.raises(StorageError, match="is a symbolic link"):
        kernel.blobs.put(content)
    assert list(elsewhere.iterdir()) == []


def test_a_blob_that_is_a_link_is_not_read(home: Path) -> None:
    kernel = open_home(home, create=False)
    blob = kernel.blobs.put(b"content")
    path = home / "blobs" / blob.hex()[:2] / blob.hex()
    path.rename(home.parent / "elsewhere")
    path.symlink_to(home.parent / "elsewhere")
    with pytest.raises(StorageError, match="cannot read the blob"):
        kernel.blobs.get(blob)


def test_the_command_refuses_without_a_traceback(spl: Callable[..., Any], tmp_path: Path) -> None:
    assert spl("init").status == 0
    (tmp_path / "home" / "keys" / "kernel.key").chmod(0o644)
    for words in (["status"], ["verify"], ["log"], ["export", "-o", "x"]):
        done = spl(*words, "--json")
        assert (done.status, done.document["code"]) == (1, "key_access")
        assert "Traceback" not in done.err
