"""Runs as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from spl.cli.render.money import usd
from spl.cli.render.text import fields, outline, short, table, when

if TYPE_CHECKING:
    from spl.contracts.runs import RunDocument, RunPart


def run_table(runs: Sequence[RunPart]) -> str:
    """Return a line for each run."""
    causes = any(run.cause for run in runs)
    headers = ["run", "case", "attempt", "status", "facet", "failed calls", "time", "cost"]
    return table([*headers, "cause"] if causes else headers, (_row(run, causes=causes) for run in runs))


def _row(run: RunPart, *, causes: bool) -> tuple[object, ...]:
    row = (
        short(run.id),
        run.case_key or "-",
        run.attempt or "-",
        run.status + (" (trial)" if run.trial else ""),
        short(run.facet),
        "-" if run.tool_calls is None else f"{run.tool_calls_failed}/{run.tool_calls}",
        "-" if run.latency_ms is None else f"{run.latency_ms / 1000:.1f}s",
        usd(run.cost_nusd),
    )
    return (*row, run.cause or "") if causes else row


def render_run(document: RunDocument) -> str:
    """Return one run in full."""
    run = document.run
    return fields(
        [
            ("run", run.id.hex()),
            ("case", f"{run.case_key}, attempt {run.attempt}" if run.case_key else None),
            ("status", run.status + (" (trial)" if run.trial else "")),
            ("cause", run.cause),
            ("facet", run.facet.hex()),
            ("at", when(run.at)),
            ("cost", usd(run.cost_nusd)),
            ("start", outline(document.start)),
            ("end record", run.end.hex() if run.end else None),
            ("end", outline(document.end) if document.end else run.status),
            ("blobs", ", ".join(document.blobs) or None),
        ]
    )
