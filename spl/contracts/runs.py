"""Documents about runs."""

from __future__ import annotations

from typing import Any

from spl.contracts.document import Document, Part
from spl.ids import Facet, RecordId
from spl.records.evals import Cost


class RunPart(Part, frozen=True):
    """A run in a list.

    Attributes:
        status: `open` until it has an end.
        attempt: The ordinal among this facet's runs of the same case, from 1; a view of the log, not a field.
        cost_nusd: What its priced requests cost; absent when nothing was priced.
    """

    id: RecordId
    position: int
    at: int
    actor: RecordId
    definition: RecordId
    facet: Facet
    status: str
    trial: bool
    end: RecordId | None = None
    case: RecordId | None = None
    case_key: str | None = None
    suite: RecordId | None = None
    attempt: int | None = None
    exit_code: int | None = None
    latency_ms: int | None = None
    cost_nusd: int | None = None
    tool_calls: int | None = None
    tool_calls_failed: int | None = None
    cause: str | None = None


class RunList(Document, frozen=True, tag="spl.runs.v1"):
    """Runs that match; `more` says that the limit left some out."""

    runs: list[RunPart]
    more: bool = False


class RunDocument(Document, frozen=True, tag="spl.run.v1"):
    """One run with the bodies of its start and end, long texts and lists in full."""

    id: RecordId
    run: RunPart
    start: dict[str, Any]
    end: dict[str, Any] | None = None
    blobs: dict[str, str] = {}


class RunImport(Document, frozen=True, tag="spl.run_import.v1"):
    """What an import appended."""

    source: str
    lines: int
    appended: int
    already_there: int
    cases_created: int
    definitions: int
    size: int


class RunsMade(Document, frozen=True, tag="spl.runs_made.v1"):
    """The attempts that a command made, in the order in which they began.

    Attributes:
        counts: How many ended in each status.
        skipped: Attempts that the log held already, with `--resume`.
        cost: What they cost together.
    """

    suite: RecordId
    suite_name: str
    actor: RecordId
    definition: RecordId
    facet: Facet
    trial: bool
    runs: list[RunPart]
    counts: dict[str, int]
    cost: Cost
    skipped: int = 0


class RunsClosed(Document, frozen=True, tag="spl.runs_closed.v1"):
    """The open runs that were ended; `running` are those that living processes execute."""

    closed: list[RunPart]
    running: list[RecordId] = []
