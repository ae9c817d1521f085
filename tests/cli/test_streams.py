"""What a process writes where, and how it ends, when things go wrong."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Spl = Callable[..., Any]
SPL = [sys.executable, "-m", "spl"]
STATUS_FAILS = """
import spl.kernel.records
def status(*args, **options):
    raise {raised}
spl.kernel.records.status = status
from spl.cli.app import run
run({words!r})
"""


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    kept = {n: value for n, value in os.environ.items() if n == "PATH" or n.startswith("COVERAGE_")}
    return {**kept, "SPL_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "LC_ALL": "C.UTF-8", **more}


def fails(tmp_path: Path, raised: str, *words: str, **more: str) -> tuple[int, bytes, str]:
    """Run `status` in a home, with a kernel that raises."""
    code = STATUS_FAILS.format(raised=raised, words=["status", *words])
    subprocess.run([*SPL, "init"], env=environment(tmp_path), check=True, capture_output=True)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path, **more), capture_output=True, check=False
    )
    return done.returncode, done.stdout, done.stderr.decode()


def on_terminal(tmp_path: Path, *words: str, columns: int = 200, **more: str) -> str:
    """Run a command whose standard output is a terminal of some width, and return what it shows."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    with subprocess.Popen(
        [*SPL, *words], env=environment(tmp_path, TERM="xterm", **more), stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # how Linux says that the other side has closed
            pass
        os.close(ours)
    assert process.returncode == 0
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["stauts"], "there is no command 'spl stauts'", "did you mean status?"),
        (["actor", "ad"], "there is no command 'spl actor ad'", "did you mean add?"),
        (["zzz"], "there is no command 'spl zzz'", "spl --help lists the commands"),
        (["log", "--newst"], "there is no option --newst in spl log", "did you mean --newest?"),
        (["log", "--jsn"], "there is no option --jsn in spl log", "did you mean --json?"),
        (["actor", "add"], "missing argument 'name'", "spl actor add --help says how"),
        (["status", "--home"], "--home needs a directory", "see --help"),
        (["schema", "core.actor"], "there is no schema 'core.actor'", "did you mean core.actor.v1"),
        (["--"], "spl needs a command", "spl --help lists the commands"),
    ],
)
def test_a_usage_error_is_told_in_words_and_as_a_document(
    spl: Spl, words: list[str], message: str, hint: str
) -> None:
    told = spl(*words)
    assert (told.status, told.out) == (2, "")
    assert told.err.startswith(f"spl: {message}\nhint: {hint}")
    document = spl("--json", *words)
    assert (document.status, document.err) == (2, "")
    assert document.document["contract"] == "spl.error.v1"
    assert document.document["message"] == message
    assert document.document["exit_status"] == 2


def test_no_command_at_all_shows_the_help_on_standard_error(spl: Spl) -> None:
    told = spl()
    assert (told.status, told.out) == (2, "")
    assert "Commands:" in told.err
    assert spl("--json").document["message"] == "spl needs a command"
    assert "list" in spl("actor").err


def test_common_options_stand_before_or_behind_the_command(spl: Spl, tmp_path: Path) -> None:
    other = tmp_path / "other"
    before = spl("--json", "--home", str(other), "init").document
    behind = spl("init", f"--home={other}", "--json").document
    assert before["path"] == behind["path"] == str(other)
    assert (before["created"], behind.get("created", False)) == (True, False)
    assert before["kernel"] == behind["kernel"]
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("words", [["--version"], ["-V"]])
def test_the_version_is_one_line_or_one_document(spl: Spl, words: list[str]) -> None:
    assert spl(*words).out == "spl 0.1.0\n"
    assert spl(*words, "--json").document == {"contract": "spl.version.v1", "version": "0.1.0"}


def test_reading_where_there_is_no_home_says_how_to_make_one(spl: Spl, tmp_path: Path) -> None:
    told = spl("status")
    assert (told.status, told.out) == (1, "")
    assert told.err == f"spl: there is no home at {tmp_path / 'home'}\nhint: spl init makes one\n"


def test_neither_help_nor_version_loads_the_store_or_the_codec() -> None:
    code = (
        "import sys\nfrom spl.cli.app import run\n"
        "try: run(sys.argv[1:])\nexcept SystemExit: pass\n"
        "print(sorted({'cbor2', 'sqlite3', 'rich', 'msgspec', 'nacl'} & set(sys.modules)))"
    )
    for words in (["--help"], ["--version"], ["stauts"]):
        done = subprocess.run(
            [sys.executable, "-c", code, *words], env={}, capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "[]"


def test_a_reader_that_leaves_early_meets_no_complaint(spl: Spl, tmp_path: Path) -> None:
    spl("init")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*SPL, "errors"], env=environment(tmp_path), stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
@pytest.mark.parametrize("words", [["errors"], ["errors", "--json"], ["schema", "core.run.end.v1"]])
def test_an_answer_that_cannot_be_written_is_a_failure(tmp_path: Path, words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*SPL, *words], env=environment(tmp_path), stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"spl: ")
    assert done.stderr.endswith(b": No space left on device\n")
    assert done.stderr.count(b"\n") == 1


def test_a_standard_output_that_was_closed_before_the_start_is_no_fault(tmp_path: Path) -> None:
    words = " ".join([*SPL, "errors", ">&-"])
    done = subprocess.run(
        ["/bin/sh", "-c", words], env=environment(tmp_path), stderr=subprocess.PIPE, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_an_internal_fault_shows_no_traceback_and_asks_for_a_report(tmp_path: Path) -> None:
    status, out, err = fails(tmp_path, "KeyError('x')")
    assert (status, out) == (70, b"")
    assert err.startswith("spl: KeyError: 'x'\nhint: please report this")
    status, out, err = fails(tmp_path, "KeyError('x')", "--json")
    assert (status, err, json.loads(out)["code"]) == (70, "", "internal")


def test_an_internal_fault_shows_its_traceback_when_asked(tmp_path: Path) -> None:
    status, _, err = fails(tmp_path, "KeyError('x')", SPL_DEBUG="1")
    assert status == 1
    assert "Traceback" in err


@pytest.mark.parametrize(
    ("raised", "expected_status", "message"),
    [
        ("PermissionError(13, 'Permission denied', '/x')", 1, "/x: Permission denied"),
        ("OSError(28, 'No space left on device')", 1, "input/output: No space left on device"),
        (
            "__import__('sqlite3').OperationalError('disk I/O error')",
            1,
            "the log cannot be used: disk I/O error",
        ),
        ("KeyboardInterrupt", 130, "interrupted"),
    ],
)
def test_what_the_system_refuses_has_a_status_of_its_own(
    tmp_path: Path, raised: str, expected_status: int, message: str
) -> None:
    status, out, err = fails(tmp_path, raised)
    assert (status, out) == (expected_status, b"")
    assert err.startswith(f"spl: {message}\n")


def test_an_error_from_outside_cannot_write_to_the_terminal(spl: Spl) -> None:
    assert "\x1b" not in spl("actor", "show", "\x1b[31mx\u202e").err
    assert "there is no command 'spl \\x1b[31mx\\u202e'" in spl("\x1b[31mx\u202e").err


def test_json_is_utf8_whatever_the_locale_says(spl: Spl, tmp_path: Path) -> None:
    spl("actor", "add", "größe-日本")
    done = subprocess.run(
        [*SPL, "actor", "list", "--json"],
        env=environment(tmp_path, PYTHONIOENCODING="ascii"),
        capture_output=True,
        check=True,
    )
    assert json.loads(done.stdout.decode("utf-8"))["actors"][0]["name"] == "größe-日本"
    shown = subprocess.run(
        [*SPL, "actor", "list"],
        env=environment(tmp_path, PYTHONIOENCODING="ascii"),
        capture_output=True,
        check=True,
    )
    assert b"gr\\xf6\\xdfe-\\u65e5\\u672c" in shown.stdout


def test_words_that_are_not_utf8_are_answered_in_utf8(tmp_path: Path) -> None:
    done = subprocess.run(
        [*SPL, "--json", b"\xff"], env=environment(tmp_path), capture_output=True, check=False
    )
    assert done.returncode == 2
    assert "spl" in json.loads(done.stdout.decode("utf-8"))["message"]


def test_a_narrow_terminal_shows_blocks_and_a_wide_one_a_table(spl: Spl, tmp_path: Path) -> None:
    spl("actor", "add", "coder")
    assert on_terminal(tmp_path, "actor", "list").splitlines()[0].startswith("actor  id ")
    narrow = on_terminal(tmp_path, "actor", "list", columns=40).splitlines()
    assert narrow[0].split() == ["actor", "coder"]
    assert narrow[2].split() == ["definitions", "0"]


def test_following_up_to_a_position_ends_there(spl: Spl) -> None:
    spl("actor", "add", "coder")
    followed = spl("log", "--follow", "--to", "1")
    assert (followed.status, followed.err) == (0, "")
    assert followed.out.split()[2] == "core.actor.v1"


def test_progress_shows_on_a_terminal_and_is_wiped(spl: Spl, tmp_path: Path) -> None:
    spl("actor", "add", "coder")
    assert "\rverify: 1 of 1\r\x1b[K" in on_terminal(tmp_path, "verify")
    assert spl("verify").err == ""


def test_following_the_log_ends_quietly_when_it_is_interrupted(spl: Spl, tmp_path: Path) -> None:
    spl("actor", "add", "first")
    with subprocess.Popen(
        [*SPL, "log", "--follow", "--json"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = json.loads(process.stdout.readline())
        spl("actor", "add", "second")
        second = json.loads(process.stdout.readline())
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
        assert process.wait() == 130
        assert process.stderr.read() == b""
    assert [first["contract"], second["contract"]] == ["spl.entry.v1"] * 2
    assert [first["entry"]["summary"], second["entry"]["summary"]] == ["first", "second"]
    assert json.loads(rest)["code"] == "interrupted"
