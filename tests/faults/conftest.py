"""The long selection is asked for; the short one is part of every run."""

from __future__ import annotations

import shutil
import subprocess

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--faults-long", action="store_true", help="as many states as the promises name")


@pytest.fixture(scope="session")
def long(request: pytest.FixtureRequest) -> bool:
    """Whether the long selection was asked for."""
    return bool(request.config.getoption("--faults-long", default=False))


@pytest.fixture(scope="session")
def strace() -> str:
    """The program that records system calls; the test is skipped where it may not."""
    program = shutil.which("strace")
    if program is None:
        pytest.skip("strace is not installed")
    if subprocess.run([program, "-o", "/dev/null", "true"], capture_output=True, check=False).returncode:
        pytest.skip("tracing is not allowed here")
    return program
