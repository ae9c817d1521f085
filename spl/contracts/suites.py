"""Documents about suites and their cases."""

from __future__ import annotations

from typing import Any

from spl.contracts.document import Document, Part
from spl.ids import CaseFacet, Digest, RecordId


class SuitePart(Part, frozen=True):
    """A suite in a list; `revision` is the hash of its current cases."""

    id: RecordId
    name: str
    cases: int
    revision: Digest
    description: str | None = None


class SuiteList(Document, frozen=True, tag="spl.suites.v1"):
    """Every suite, in log order."""

    suites: list[SuitePart]


class CasePart(Part, frozen=True):
    """A current case of a suite."""

    id: RecordId
    facet: CaseFacet
    key: str
    name: str
    expects: list[str]
    tags: list[str] = []
    difficulty: str | None = None
    fixture: str | None = None


class SuiteDocument(Document, frozen=True, tag="spl.suite.v1"):
    """One suite with its current cases; the lists of keys say what this command changed."""

    id: RecordId
    suite: SuitePart
    cases: list[CasePart]
    appended: bool = False
    added: list[str] = []
    replaced: list[str] = []
    retired: list[str] = []
    unchanged: int = 0


class CaseDocument(Document, frozen=True, tag="spl.case.v1"):
    """One case in full."""

    id: RecordId
    suite: RecordId
    case: CasePart
    goal: str
    expect: dict[str, Any]
