"""Negative control: the command line with a program that takes no notice of a failed sync."""

import os
from contextlib import suppress

from spl.__main__ import main

sync = os.fsync


def deaf(descriptor: int) -> None:
    """Sync, or not."""
    with suppress(OSError):
        sync(descriptor)


os.fsync = deaf  # type: ignore[assignment]
main()
