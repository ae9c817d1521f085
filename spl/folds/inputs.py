"""What folds are given: records that the kernel has read, with their long values in place."""

from __future__ import annotations

from msgspec import Struct

from spl.ids import CaseFacet, RecordId
from spl.records.evals import Expect
from spl.records.runs import RunEnd, RunObserved


class CaseInput(Struct, frozen=True):
    """A current case of the suite."""

    id: RecordId
    key: str
    facet: CaseFacet
    expect: Expect


class RunInput(Struct, frozen=True, kw_only=True):
    """A run that attempted one of the cases, under the definition that is scored.

    Attributes:
        position: Where it starts in the log; attempts are in this order.
        end: None while it is open.
    """

    id: RecordId
    case_facet: CaseFacet
    position: int
    trial: bool
    observed: RunObserved | None
    end: RunEnd | None
