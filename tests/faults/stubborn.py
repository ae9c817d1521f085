"""Negative control: the command line with a program that tries a failed sync again."""

import os

from spl.__main__ import main

sync = os.fsync


def stubborn(descriptor: int) -> None:
    """Sync, the second time if not the first."""
    try:
        sync(descriptor)
    except OSError:
        sync(descriptor)


os.fsync = stubborn  # type: ignore[assignment]
main()
