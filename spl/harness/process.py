"""The only module that starts processes: argv, never a shell; bounded in time, memory and offspring."""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from spl.errors import InputError
from spl.harness.descendants import MARKER, Family, descendants, reap, send
from spl.harness.guardian import WELL
from spl.harness.limit import Limit
from spl.harness.spool import Spool

ALLOWED: Final = ("PATH", "LANG", "TERM")
_PRIVATE: Final = ("GIT_", "SPL_")
_PIECE: Final = 262_144
_TICK_S: Final = 0.05
_GRACE_S: Final = 0.5
_LAST_S: Final = 5.0
_FILES_ANYHOW: Final = 128
_FILES_A_RUN: Final = 12  # pipes, spools, what is copied and looked at
_FAMILY: Final = Family()
_SESSION: Final = secrets.token_hex(8)


class Consumer(Protocol):
    """Who reads standard output while it is written."""

    def feed(self, chunk: bytes, /) -> None:
        """Take the next bytes."""

    def close(self) -> None:
        """Take note that there are no more."""


class Outcome(Struct, frozen=True, kw_only=True):
    """How a program ended.

    Attributes:
        exit_code: Its exit status; -1 when it was ended by a signal or could not be started.
        signal: The signal that ended it, if one did.
        timed_out: The time limit ended it.
        cancelled: The operator ended it.
        not_started: Why it could not be started, or empty.
        latency_ms: Wall time, at least 1.
        stdout: What it printed, capped.
        stderr: As `stdout`.
        left_behind: How many processes it left and that were ended after it.
    """

    exit_code: int
    signal: int | None = None
    timed_out: bool = False
    cancelled: bool = False
    not_started: str = ""
    latency_ms: int = 1
    stdout: Spool
    stderr: Spool
    left_behind: int = 0

    @property
    def truncated(self) -> bool:
        """Say whether output was dropped."""
        return bool(self.stdout.dropped or self.stderr.dropped)


def inherited(environment: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return the environment as it is but for GIT_* and SPL_*, with PWD set.

    A GIT_DIR that a hook left would lead git out of the workspace, and SPL_HOME would hand out the log.
    """
    kept = {name: value for name, value in environment.items() if not name.startswith(_PRIVATE)}
    return {**kept, "PWD": str(directory)}


def allowed(environment: Mapping[str, str], names: Sequence[str] = ()) -> list[str]:
    """Return which variables pass: PATH, LANG, TERM and the named ones that are set, never GIT_* or SPL_*."""
    return [name for name in (*ALLOWED, *names) if name in environment and not name.startswith(_PRIVATE)]


def allowlisted(
    environment: Mapping[str, str], directory: Path, private: Path, names: Sequence[str] = ()
) -> dict[str, str]:
    """Return the allowed variables, with a fresh HOME and TMPDIR below `private`."""
    kept = {name: environment[name] for name in allowed(environment, names)}
    for name, below in (("HOME", "home"), ("TMPDIR", "tmp")):
        path = private / below
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        kept.setdefault(name, str(path))
    return {**kept, "PWD": str(directory)}


def run(
    argv: Sequence[str],
    *,
    directory: Path,
    environment: Mapping[str, str],
    spools: Path,
    limit: Limit,
    consumer: Consumer | None = None,
) -> Outcome:
    """Run a program to its end, and return how it ended.

    It gets an empty standard input, its own session, and no descriptors of ours. When it has ended, by itself or by
    the limit, everything that it left running is ended too (TERM, then KILL), and its pipes are not waited for.

    Args:
        argv: The program (searched in PATH unless it holds a slash) and its words.
        directory: Its working directory; a program with a slash is looked up from there.
        environment: Its whole environment.
        spools: Where captured output is kept when it is long.
        limit: When it must end.
        consumer: Sees all of standard output, also what the capture drops.
    """
    out, err = Spool(spools), Spool(spools)
    started = time.monotonic()
    marker = f"{_SESSION}-{secrets.token_hex(12)}"
    _FAMILY.prepare()
    process = None
    try:
        process, problem = _start(argv, directory, {**environment, MARKER: marker})
    finally:
        _FAMILY.started(process.pid if process else None, marker)
    if process is None:
        return Outcome(exit_code=-1, not_started=problem, stdout=out, stderr=err)
    streams = _Streams(process, out, err, consumer)
    try:
        reason = _follow(process.pid, streams, limit)
        left = _end(process.pid, streams)
        process.wait()
        left += _end_orphans(process.pid, streams)
        streams.drain()
    finally:
        _FAMILY.forget(process.pid)
        _end_strays()
        streams.close()
    code = process.returncode
    return Outcome(
        exit_code=-1 if reason or code < 0 else code,
        signal=-code if code < 0 else None,
        timed_out=reason == "timeout",
        cancelled=reason == "cancel",
        latency_ms=max(1, round((time.monotonic() - started) * 1000)),
        stdout=out,
        stderr=err,
        left_behind=0 if reason else left,
    )


def _start(
    argv: Sequence[str], directory: Path, environment: Mapping[str, str]
) -> tuple[subprocess.Popen[bytes] | None, str]:
    program = argv[0]
    if "/" not in program:
        found = find_program(program, environment.get("PATH", os.defpath))
        if found is None:
            return None, f'exec: "{program}": executable file not found in $PATH'
        program = found
    try:
        return subprocess.Popen(  # its end is awaited in `run`
            list(argv),
            executable=program,
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ), ""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return None, f"fork/exec {program}: {(reason or str(error)).lower()}"


def find_program(program: str, path: str) -> str | None:
    """Return the first executable file of a name in the absolute directories of a search path, or None."""
    for directory in path.split(os.pathsep):
        candidate = f"{directory}/{program}"
        if (
            program
            and directory.startswith("/")
            and os.access(candidate, os.X_OK)
            and Path(candidate).is_file()
        ):
            return candidate
    return None


@contextlib.contextmanager
def guarded(*directories: Path) -> Iterator[None]:
    """End what runs and remove the directories when this process is killed within the block.

    A guardian does it (`spl.harness.guardian`), in a session of its own. Where it cannot be started, the block is as
    good as it would be without.
    """
    words = [sys.executable, "-P", "-m", "spl.harness.guardian", _SESSION, *map(str, directories)]
    try:
        guardian = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    except OSError:
        yield
        return
    _FAMILY.spare(guardian.pid)
    try:
        yield
    finally:
        guardian.communicate(WELL)


def make_room(jobs: int) -> None:
    """Raise this process's limit of open files, as far as it may, to what so many runs side by side need.

    Raises:
        InputError: The system does not allow so many.
    """
    wanted = _FILES_ANYHOW + jobs * _FILES_A_RUN
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        most = max(1, (hard - _FILES_ANYHOW) // _FILES_A_RUN)
        raise InputError(
            f"{jobs} runs side by side need {wanted} open files, and this process may have {hard}",
            hint=f"at most {most} fit; ulimit -n says and sets the limit",
        )
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class _Streams:
    """Both pipes of a process, read without ever waiting for their end."""

    def __init__(
        self, process: subprocess.Popen[bytes], out: Spool, err: Spool, consumer: Consumer | None
    ) -> None:
        if process.stdout is None or process.stderr is None:
            raise ValueError("both streams are pipes")
        self._poll = select.poll()
        self._files = (process.stdout, process.stderr)
        self._spools = {process.stdout.fileno(): out, process.stderr.fileno(): err}
        self._open = set(self._spools)
        self._first = process.stdout.fileno()
        self._consumer = consumer
        self._pidfd = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else -1
        for descriptor in self._spools:
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, select.POLLIN)
        if self._pidfd >= 0:
            self._poll.register(self._pidfd, select.POLLIN)

    def read(self, wait_s: float) -> None:
        """Take what there is, waiting for it or for the end of the process."""
        for descriptor, _ in self._poll.poll(wait_s * 1000):
            if descriptor in self._open:
                self._take(descriptor)
            elif descriptor == self._pidfd:
                self._poll.unregister(self._pidfd)

    def drain(self) -> None:
        """Take what the pipes still hold, at most what a pipe can hold."""
        for descriptor in list(self._open):
            for _ in range(16):
                if not self._take(descriptor):
                    break

    def _take(self, descriptor: int) -> bool:
        try:
            data = os.read(descriptor, _PIECE)
        except BlockingIOError:
            return False
        if not data:
            self._open.discard(descriptor)
            self._poll.unregister(descriptor)
            return False
        self._spools[descriptor].write(data)
        if descriptor == self._first and self._consumer is not None:
            self._consumer.feed(data)
        return True

    def close(self) -> None:
        """Close everything."""
        for file in self._files:
            file.close()
        if self._pidfd >= 0:
            os.close(self._pidfd)
        for spool in self._spools.values():
            spool.finish()
        if self._consumer is not None:
            self._consumer.close()


def _has_ended(pid: int) -> bool:
    """Say so without collecting the status, so that the process group keeps its number."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _follow(pid: int, streams: _Streams, limit: Limit) -> str:
    while not _has_ended(pid):
        if limit.cancel.is_set():
            return "cancel"
        if limit.timed_out:
            return "timeout"
        streams.read(limit.remaining_s(_TICK_S))
    streams.drain()
    return ""


def _end(pid: int, streams: _Streams) -> int:
    """End what is left of the process and its group; return how many others were alive."""
    if _has_ended(pid):
        if sys.platform != "linux":  # there, the group is all that can be found
            _send_group(pid, signal.SIGKILL)
        return 0  # `_end_orphans` sees the others
    below = descendants(pid)
    _send_group(pid, signal.SIGTERM)
    send(below, signal.SIGTERM)
    until = time.monotonic() + _GRACE_S
    while time.monotonic() < until and not _has_ended(pid):
        streams.read(0.01)
    below = descendants(pid)
    _send_group(pid, signal.SIGKILL)
    send(below, signal.SIGKILL)
    until = time.monotonic() + _LAST_S
    while not _has_ended(pid) and time.monotonic() < until:
        streams.read(0.01)
    return len(below)


def _send_group(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _end_strays() -> None:
    """End what hid whose it is while several runs were under way; the last of them sees to it."""
    until = time.monotonic() + _LAST_S
    strays = _FAMILY.strays()
    while strays and time.monotonic() < until:
        send(strays, signal.SIGKILL)
        time.sleep(0.002)
        reap(strays)
        strays = _FAMILY.strays()


def _end_orphans(pid: int, streams: _Streams) -> int:
    """End what outlived the process, wherever it went; return how many there were."""
    reap(_FAMILY.orphans(pid))
    orphans = _FAMILY.orphans(pid)
    if not orphans:
        return 0
    count = len(orphans)
    send(orphans, signal.SIGTERM)
    until = time.monotonic() + _GRACE_S
    while orphans and time.monotonic() < until:
        streams.read(0.005)
        reap(orphans)
        orphans = _FAMILY.orphans(pid)
    until = time.monotonic() + _LAST_S
    while orphans and time.monotonic() < until:
        send(orphans, signal.SIGKILL)
        time.sleep(0.002)
        reap(orphans)
        orphans = _FAMILY.orphans(pid)
    return count
