"""The only reader of the process environment: it passes on values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from spl.errors import FileInputError, UsageError

if TYPE_CHECKING:
    from spl.agent.settings import Settings
    from spl.records.secrets import Secrets

HOME_VARIABLE = "SPL_HOME"
CONFIG_VARIABLE = "SPL_CONFIG"
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


def config_path() -> Path:
    """Return where the configuration is: `SPL_CONFIG`, else `config.toml` in the user's configuration directory.

    The path is absolute, so that it can be handed to a process that works elsewhere with another HOME.

    Raises:
        UsageError: This user has no home directory, and no other place was named.
    """
    named = os.environ.get(CONFIG_VARIABLE)
    try:
        if named:
            return Path(named).expanduser().absolute()
        import platformdirs  # noqa: PLC0415 - only where nothing was named

        return Path(platformdirs.user_config_dir("spl")).absolute() / "config.toml"
    except RuntimeError as error:
        raise UsageError(
            f"cannot find the configuration: {error}", hint=f"name it in {CONFIG_VARIABLE}"
        ) from error


def config_variables() -> dict[str, str]:
    """Return the variables that tell a process of ours where the configuration is; it may have another HOME, or none.

    There are none where no configuration was named and none is at its usual place.

    Raises:
        UsageError: This user has no home directory, and no other place was named.
    """
    path = config_path()
    return {CONFIG_VARIABLE: str(path)} if os.environ.get(CONFIG_VARIABLE) or path.exists() else {}


def settings() -> Settings:
    """Return the configuration of the built-in agent; without a file, the hosted providers are there.

    Raises:
        FileInputError: The file cannot be read, or was named by `SPL_CONFIG` and is not there.
        InputError: It is not a configuration.
    """
    from spl.agent.settings import Settings, parse_settings  # noqa: PLC0415 - only where an agent is started

    path = config_path()
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        if not os.environ.get(CONFIG_VARIABLE):
            return Settings()
        raise FileInputError(f"{CONFIG_VARIABLE} names {path}, which is not there") from error
    except OSError as error:
        raise FileInputError(f"cannot read {path}: {error.strerror}") from error
    return parse_settings(data, str(path))


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
