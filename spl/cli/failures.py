"""From whatever a command raises to the one error that is printed."""

from __future__ import annotations

import sys

import typer
from typer import _click as click

from spl.cli.commands.single import suggestion
from spl.errors import (
    InternalFaultError,
    InterruptedByUserError,
    OperationFailedError,
    SplError,
    UsageError,
)

_COMMON_OPTIONS = ("--json", "--home", "--progress", "--help")


def failure(error: BaseException) -> SplError:
    """Return the documented error that an exception stands for; what nobody foresaw is an internal fault."""
    if isinstance(error, SplError):
        return error
    if isinstance(error, click.ClickException):
        return _usage(error)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return InterruptedByUserError("interrupted")
    if isinstance(error, OSError):
        return OperationFailedError(f"{error.filename or 'input/output'}: {error.strerror or error}")
    sqlite3 = sys.modules.get("sqlite3")  # only where a home was opened
    if sqlite3 is not None and isinstance(error, sqlite3.DatabaseError):
        from spl.store.schema import storage_error  # noqa: PLC0415 - as above

        return storage_error("the log cannot be used", error)
    if isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason:  # how Python holds such bytes
        return UsageError(f"not UTF-8: {error.object!r}", hint="names and texts of records are UTF-8")
    return InternalFaultError(f"{type(error).__name__}: {error}")


def _usage(error: click.ClickException) -> UsageError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "spl"
    see = f"{path} --help says how"
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return UsageError(f"{path} needs a command", hint=f"{path} --help lists the commands")
    if isinstance(error, click.exceptions.NoSuchOption):
        known = [name for parameter in context.command.params for name in parameter.opts] if context else []
        return UsageError(
            f"there is no option {error.option_name} in {path}",
            hint=suggestion(error.option_name, [*known, *_COMMON_OPTIONS], see),
        )
    message = error.format_message().rstrip(".")
    return UsageError(message[:1].lower() + message[1:], hint=see)
