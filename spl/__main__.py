"""`python -m spl`, `spl` and `splice` are the same program."""

from __future__ import annotations

import sys


def main() -> None:
    """Answer `--version` before anything else is imported; else start the command line."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from spl import __version__  # noqa: PLC0415 - see the docstring

        sys.stdout.write(f"spl {__version__}\n")
        return
    from spl.cli.app import run  # noqa: PLC0415

    run()


if __name__ == "__main__":
    main()
