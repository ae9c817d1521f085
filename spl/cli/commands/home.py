"""`spl init` and `spl status`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spl.cli.commands.single import single
from spl.cli.context import home_path, kernel
from spl.cli.output import emit
from spl.cli.render.text import fields, short, when

if TYPE_CHECKING:
    from spl.contracts.records import HomeDocument


def init() -> None:
    """Make the home: log, kernel key, operator key. Running it again is harmless.

    Example: spl init
    """
    from spl.kernel.records import status as home_status  # noqa: PLC0415 - imported when called
    from spl.store.layout import exists  # noqa: PLC0415

    created = not exists(home_path())
    emit(home_status(kernel(create=True), created=created), _render)


def status() -> None:
    """Say where the home is, how much it holds, and who it speaks as.

    Example: spl status --json
    """
    from spl.kernel.records import status as home_status  # noqa: PLC0415 - imported when called

    emit(home_status(kernel()), _render)


def _render(document: HomeDocument) -> str:
    last = document.last
    return fields(
        [
            ("home", document.path + (" (created)" if document.created else "")),
            ("records", document.size),
            ("last", f"{short(last.id)} {last.kind} {when(last.at)}" if last else None),
            ("root", short(document.root)),
            ("actors", document.actors),
            ("suites", document.suites),
            ("open runs", document.open_runs or None),
            ("verified", _verified(document)),
            ("kernel", document.kernel),
            ("operator", document.operator),
            ("log key", document.key),
        ]
    )


def _verified(document: HomeDocument) -> str:
    found = document.last_verify
    if found is None:
        return "never; spl verify"
    answer = "clean" if found.clean else f"{found.faults} faults; spl verify lists them"
    newer = document.size - found.size
    return f"{answer}, {when(found.at)}" + (f", {newer} records ago" if newer else "")


init_app = single(init)
status_app = single(status)
