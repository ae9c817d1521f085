"""The only reader of the process environment: it passes on values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spl.errors import UsageError

if TYPE_CHECKING:
    from spl.records.secrets import Secrets

HOME_VARIABLE = "SPL_HOME"
_NAME_IT = f"name a directory with --home or {HOME_VARIABLE}"


def home_path(option: str | None) -> Path:
    """Return where the home is: the option, else `SPL_HOME`, else the user's data directory.

    Raises:
        UsageError: This user has no home directory, and no other was named.
    """
    named = option or os.environ.get(HOME_VARIABLE)
    try:
        if named:
            return Path(named).expanduser().absolute()
        import platformdirs  # noqa: PLC0415 - only where nothing was named

        path = Path(platformdirs.user_data_dir("spl"))
    except RuntimeError as error:
        raise UsageError(f"cannot find the home: {error}", hint=_NAME_IT) from error
    if not path.is_absolute():  # how older versions of platformdirs say it
        raise UsageError("cannot find the home: this user has no home directory", hint=_NAME_IT)
    return path


def variables() -> Mapping[str, str]:
    """Return the environment as it is."""
    return dict(os.environ)


def secrets() -> Secrets:
    """Return what may not enter a log: the values of secret-looking variables, and known shapes of secrets."""
    from spl.records.secrets import Secrets, secret_variables  # noqa: PLC0415 - only where a home is opened

    return Secrets(secret_variables(os.environ))


def wants_colour(*, terminal: bool) -> bool:
    """Say whether output may be coloured: `NO_COLOR` forbids it, `CLICOLOR_FORCE` demands it, else a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return terminal and os.environ.get("TERM") != "dumb"


def debugging() -> bool:
    """Say whether internal faults show their traceback (`SPL_DEBUG`)."""
    return bool(os.environ.get("SPL_DEBUG"))
