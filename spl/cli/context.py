"""What every command shares: the options that are common to all, and the open home."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spl.errors import UsageError

if TYPE_CHECKING:
    from spl.kernel.home import Kernel

_MOST_BYTES = 1 << 30


@dataclass(slots=True)
class Context:
    """The common options of one invocation.

    Attributes:
        json: Print one JSON document.
        home: The `--home` option.
        progress: The `--progress` option: auto, always or never.
    """

    json: bool = False
    home: str | None = None
    progress: str = "auto"


_CONTEXT = Context()


def current() -> Context:
    """Return the context of this invocation."""
    return _CONTEXT


def take_common_options(words: list[str], *, leading: bool = False) -> list[str]:
    """Take the common options out of the words, wherever they stand before `--`, and return the rest.

    Args:
        words: The command line without the program's name.
        leading: Take only those that stand before the first other word.

    Raises:
        UsageError: An option has no value, or one that it cannot have.
    """
    _CONTEXT.json, _CONTEXT.home, _CONTEXT.progress = False, None, "auto"
    rest: list[str] = []
    waiting = iter(words)
    try:
        for word in waiting:
            if word == "--" or (leading and rest):
                return [*rest, word, *waiting]
            name, equals, inline = word.partition("=")
            if word == "--json":
                _CONTEXT.json = True
            elif name in _VALUED:
                _set(name, inline if equals else next(waiting, None))
            else:
                rest.append(word)
    except UsageError:
        _CONTEXT.json = "--json" in words  # also what is wrong with the words is told as JSON
        raise
    return rest


_VALUED = ("--home", "--progress")
_PROGRESS = ("auto", "always", "never")


def _set(option: str, value: str | None) -> None:
    if option == "--progress":
        if value not in _PROGRESS:
            raise UsageError(f"--progress is {', '.join(_PROGRESS[:-1])} or {_PROGRESS[-1]}")
        _CONTEXT.progress = value
    elif not value or value.startswith("--"):
        raise UsageError("--home needs a directory")
    else:
        _CONTEXT.home = value


def home_path() -> Path:
    """Return where the home is."""
    from spl import environment  # noqa: PLC0415 - not every command has a home

    return environment.home_path(_CONTEXT.home)


def kernel(*, create: bool = False) -> Kernel:
    """Return the kernel of the home.

    Args:
        create: Make the home when it is not there: for commands that write.

    Raises:
        StorageError: It is not there, or cannot be trusted.
    """
    from spl import environment  # noqa: PLC0415 - as above
    from spl.kernel.home import open_home  # noqa: PLC0415

    if _CONTEXT.json:  # what prints the answer is there before anything is written: later it may not load
        from spl.codec import jsontext  # noqa: F401, PLC0415
    return open_home(home_path(), create=create, secrets=environment.secrets())


def read_file(path: str) -> bytes:
    """Return the content of a file that the user named; `-` is standard input.

    Raises:
        FileInputError: It cannot be read, or goes on for more than a gibibyte, as a device may.
    """
    from spl.errors import FileInputError  # noqa: PLC0415 - as above

    try:
        if path == "-":
            import sys  # noqa: PLC0415

            data = sys.stdin.buffer.read(_MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise FileInputError(f"cannot read {path or repr(path)}: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise FileInputError(f"cannot read {path}: it has more than {_MOST_BYTES:,} bytes")
    return data


def write_file(path: str, data: bytes) -> None:
    """Write a file that the user named, in place of what is there, whole or not at all.

    Raises:
        OperationFailedError: It cannot be written.
    """
    from spl.cli.target import target  # noqa: PLC0415 - as above

    with target(path) as answer:
        answer.write(data)
