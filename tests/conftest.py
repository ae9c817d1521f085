"""Homes of every kind, with a fixed clock, and the command line as a user starts it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from faults import figures

from spl.ids import Did
from spl.kernel.home import Kernel, Stamp, open_home
from spl.store.blobs import MemoryBlobs
from spl.store.memory import MemoryLog

ROOT = Path(__file__).parent.parent
KERNEL = Did("did:web:kernel.example")
OPERATOR = Did("did:web:operator.example")


class FixedClock:
    """Time that moves one second a look, and salts that count."""

    def __init__(self) -> None:
        self.now = 1_790_000_000_000
        self.salts = 0

    def now_ms(self) -> int:
        self.now += 1000
        return self.now

    def salt(self) -> bytes:
        self.salts += 1
        return self.salts.to_bytes(16)


class NamedKeys:
    """Makes DIDs that name no key, for homes in memory."""

    def __init__(self) -> None:
        self.count = 0

    def create_actor(self) -> Did:
        self.count += 1
        return Did(f"did:web:actor-{self.count}.example")

    def faults(self) -> Iterator[str]:
        return iter(())


def memory_home() -> Kernel:
    """Return a home in memory whose records are unsigned and always the same."""
    clock, blobs = FixedClock(), MemoryBlobs()
    log = MemoryLog(Stamp(clock, lambda _by, _record: b""), OPERATOR, blobs.__contains__)
    return Kernel(log, blobs, NamedKeys(), clock, KERNEL, OPERATOR)


@pytest.fixture(params=["memory", "disk"])
def kernel(request: pytest.FixtureRequest, tmp_path: Path) -> Kernel:
    """A home on each log: every use case must do the same on both."""
    if request.param == "memory":
        return memory_home()
    return open_home(tmp_path / "home", create=True, clock=FixedClock())


class Ran(NamedTuple):
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The only JSON document on standard output."""
        return json.loads(self.out)


@pytest.fixture
def spl(tmp_path: Path) -> Callable[..., Ran]:
    """The command line in a process of its own, with a home in the test's directory."""

    def run(*words: str, stdin: bytes | None = None, home: Path | None = None) -> Ran:
        environment = {
            "PATH": os.environ["PATH"],
            "SPL_HOME": str(home or tmp_path / "home"),
            "HOME": str(tmp_path),
            "LC_ALL": "C.UTF-8",
        }
        environment |= {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
        done = subprocess.run(
            [sys.executable, "-m", "spl", *words],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env=environment,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


_COUNTS: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults-long", action="store_true", help="as much as docs/reliability.md says")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "teardown":
        for name, value in report.user_properties:
            if name == figures.PROPERTY and isinstance(value, str):
                key, _, count = value.partition("=")
                _COUNTS[key] += int(count)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config
) -> None:
    if not _COUNTS or not config.getoption("--faults-long"):
        return
    terminalreporter.section("figures")
    for key, count in sorted(_COUNTS.items()):
        terminalreporter.line(f"{key}: {count:,}")
    short = figures.missing(_COUNTS)
    if exitstatus or short:
        terminalreporter.line(
            f"docs/reliability.md stays as it is; missing: {', '.join(short) or 'green tests'}"
        )
    else:
        figures.write(_COUNTS)
        terminalreporter.line("written to docs/reliability.md")


@pytest.fixture(scope="session")
def long(request: pytest.FixtureRequest) -> bool:
    """Whether the long selection was asked for."""
    return bool(request.config.getoption("--faults-long"))


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Callable[[str, int], None]:
    """Count something for docs/reliability.md."""

    def count(key: str, number: int) -> None:
        request.node.user_properties.append((figures.PROPERTY, f"{key}={number}"))

    return count


@pytest.fixture(scope="session")
def strace() -> str:
    """The program that records system calls; the test is skipped where it may not."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed")
    if subprocess.run([program, "-o", "/dev/null", "true"], capture_output=True, check=False).returncode:
        pytest.skip("tracing is not allowed here")
    return program


@contextmanager
def tampered(home: Path) -> Iterator[sqlite3.Connection]:
    """Change a home's database as somebody with a tool of their own would: triggers out of the way, and back."""
    database = sqlite3.connect(home / "log.db")
    triggers = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        database.execute(f"DROP TRIGGER {name}")
    yield database
    for _, sql in triggers:
        database.execute(sql)
    database.commit()
    database.close()
