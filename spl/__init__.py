"""An append-only, content-addressed record store for evidence about agents.

`Home` is the same kernel that the command line uses; everything else here is what its methods return or take.
Names that are not in `__all__` are private.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from spl.api import Home as Home
    from spl.contracts.comparison import CompareDocument as CompareDocument
    from spl.contracts.records import RecordDocument as RecordDocument
    from spl.contracts.scores import HistoryDocument as HistoryDocument
    from spl.contracts.scores import ScoreDocument as ScoreDocument
    from spl.contracts.verdicts import VerdictDocument as VerdictDocument
    from spl.errors import NothingToGradeError as NothingToGradeError
    from spl.errors import SplError as SplError

_WHERE = {
    "CompareDocument": "spl.contracts.comparison",
    "Home": "spl.api",
    "HistoryDocument": "spl.contracts.scores",
    "NothingToGradeError": "spl.errors",
    "RecordDocument": "spl.contracts.records",
    "ScoreDocument": "spl.contracts.scores",
    "SplError": "spl.errors",
    "VerdictDocument": "spl.contracts.verdicts",
}

__all__ = [
    "CompareDocument",
    "HistoryDocument",
    "Home",
    "NothingToGradeError",
    "RecordDocument",
    "ScoreDocument",
    "SplError",
    "VerdictDocument",
    "__version__",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a module's attribute of any type
    # Imported when it is asked for: `spl --version` and `spl --help` load none of it.
    if name in _WHERE:
        import importlib  # noqa: PLC0415

        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
