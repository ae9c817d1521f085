"""Suites: created, imported from a suite file with its fixtures, changed case by case."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from spl.codec import digest
from spl.contracts.suites import CaseDocument, CasePart, SuiteDocument, SuiteList, SuitePart
from spl.errors import InputError, UnknownNameError
from spl.ids import RecordId
from spl.kernel.content import CBOR, Fitted, fit, put_blob, unfold_text
from spl.kernel.home import Kernel
from spl.kernel.names import found_of, record_of, resolve_suite
from spl.records.envelope import Draft
from spl.records.evals import Case, Retire, Suite
from spl.records.secrets import withheld_body
from spl.records.wire import to_map
from spl.store.log import CaseRow, NameRow, Transaction, View


class NewFile(msgspec.Struct, frozen=True):
    """A file of a fixture: relative path, mode (644, 755, or 40000 for an empty directory), content."""

    path: str
    mode: int
    data: bytes | None


class NewCase(msgspec.Struct, frozen=True):
    """A case to be added, with the files of its fixture.

    Attributes:
        body: The case, its goal in place; `tree` is computed when there are files.
        files: The fixture's files; None when it has no fixture.
    """

    body: Case
    files: list[NewFile] | None = None


def create_suite(kernel: Kernel, name: str, description: str | None = None) -> SuiteDocument:
    """Append an empty suite; one of that name that is there is returned with `appended: false`."""
    if not name.strip():
        raise InputError("a suite needs a name")

    def append(tx: Transaction) -> SuiteDocument:
        row, appended = _suite_named(kernel, tx, name, description)
        return _document(tx, row, appended=appended)

    return kernel.transact(append)


def _suite_named(kernel: Kernel, tx: Transaction, name: str, description: str | None) -> tuple[NameRow, bool]:
    existing = tx.suites(name)
    if existing:
        return existing[0], False
    entry = tx.append(Draft(body=Suite(name=name, description=description), by=kernel.operator))
    return NameRow(id=entry.id, position=entry.position, name=name), True


def import_suite(
    kernel: Kernel, name: str, cases: Sequence[NewCase], description: str | None = None
) -> SuiteDocument:
    """Make a suite of this name hold exactly these cases, appending only what changed.

    Cases that the suite has and the file has not are retired; a case whose content is the same is left alone.

    Args:
        kernel: The open home.
        name: The suite's name; created when there is none.
        cases: The cases, with their fixtures.
        description: What the suite is about, when it is created.

    Raises:
        InputError: A case is malformed.
        StorageError: A file could not be stored; nothing was appended.
    """
    drafts = [_stored(kernel, case) for case in cases]
    keys = {case.body.key for case in drafts}

    def append(tx: Transaction) -> SuiteDocument:
        suite, created = _suite_named(kernel, tx, name, description)
        gone = [row for row in tx.cases(suite.id) if row.key not in keys]
        changed = _write_cases(kernel, tx, suite, drafts)
        for row in gone:
            _append_retire(kernel, tx, suite.id, row, "no longer in the suite file")
        return msgspec.structs.replace(
            _document(tx, suite, appended=created or bool(gone) or changed.appended),
            added=changed.added,
            replaced=changed.replaced,
            retired=[row.key for row in gone],
            unchanged=changed.unchanged,
        )

    return kernel.transact(append)


def add_cases(kernel: Kernel, suite: str, cases: Sequence[NewCase]) -> SuiteDocument:
    """Append cases to a suite, all or nothing; each replaces the current one of its key, unless they are the same.

    Raises:
        UnknownNameError, AmbiguousNameError: The suite is not one.
        InputError: A case is malformed, or a key stands twice.
    """
    row = resolve_suite(kernel.log, suite)
    keys = [case.body.key for case in cases]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise InputError(f"the key stands twice: {', '.join(twice)}")
    drafts = [_stored(kernel, case) for case in cases]
    return kernel.transact(lambda tx: _write_cases(kernel, tx, row, drafts))


def _write_cases(
    kernel: Kernel, tx: Transaction, suite: NameRow, drafts: Sequence[Fitted[Case]]
) -> SuiteDocument:
    current = {row.key: row for row in tx.cases(suite.id)}
    added: list[str] = []
    replaced: list[str] = []
    for case in drafts:
        old = current.get(case.body.key)
        if old is not None and record_of(tx, old.id).body == case.body:
            continue
        _append_case(kernel, tx, suite.id, case, old)
        (added if old is None else replaced).append(case.body.key)
    return msgspec.structs.replace(
        _document(tx, suite, appended=bool(added or replaced)),
        added=added,
        replaced=replaced,
        unchanged=len(drafts) - len(added) - len(replaced),
    )


def retire_case(kernel: Kernel, suite: str, key: str, reason: str) -> SuiteDocument:
    """Take a case out of its suite; its record and runs stay.

    Raises:
        UnknownNameError: The suite, or a current case of this key, is not there.
        InputError: The reason is blank.
    """
    row = resolve_suite(kernel.log, suite)
    if not reason.strip():
        raise InputError("a retirement needs a reason", hint="add --reason")

    def append(tx: Transaction) -> SuiteDocument:
        old = next((found for found in tx.cases(row.id) if found.key == key), None)
        if old is None:
            raise UnknownNameError(
                f"{row.name} has no current case {key!r}", hint=f"spl suite show {row.name}"
            )
        _append_retire(kernel, tx, row.id, old, reason)
        return msgspec.structs.replace(_document(tx, row, appended=True), retired=[key])

    return kernel.transact(append)


def list_suites(kernel: Kernel) -> SuiteList:
    """Return every suite, in log order."""
    return SuiteList(suites=[_suite_part(kernel.log, row) for row in kernel.log.suites()])


def show_suite(kernel: Kernel, text: str) -> SuiteDocument:
    """Return one suite with its current cases.

    Raises:
        UnknownNameError, AmbiguousNameError: None, or several, are meant.
    """
    return _document(kernel.log, resolve_suite(kernel.log, text), appended=False)


def show_case(kernel: Kernel, suite: str, key: str) -> CaseDocument:
    """Return one current case in full.

    Raises:
        UnknownNameError: The suite or the case is not there.
    """
    row = resolve_suite(kernel.log, suite)
    found = next((case for case in kernel.log.cases(row.id) if case.key == key), None)
    if found is None:
        raise UnknownNameError(f"{row.name} has no current case {key!r}")
    return _case_document(kernel, row.id, found)


def _stored(kernel: Kernel, case: NewCase) -> Fitted[Case]:
    """Store a case's files and long texts; return what its record holds, without secrets."""
    body, count = withheld_body(case.body, kernel.secrets)
    fitted = fit(kernel, body, texts=("goal",))
    fitted = fitted._replace(withheld=fitted.withheld + count)
    if case.files is None:
        return fitted
    _check_files(kernel, case)
    lines = [
        digest.TreeFile(f.path, f.mode, None if f.data is None else kernel.blobs.put(f.data))
        for f in case.files
    ]
    manifest = put_blob(kernel.blobs, digest.encode_tree(lines), "tree", CBOR)
    return fitted._replace(
        body=msgspec.structs.replace(fitted.body, tree=manifest.h), blobs=(*fitted.blobs, manifest)
    )


def _check_files(kernel: Kernel, case: NewCase) -> None:
    """Refuse a fixture that holds a secret: its files cannot be changed without changing the case."""
    for file in case.files or ():
        spans = kernel.secrets.spans(file.data or b"")
        if spans:
            raise InputError(
                f"the case {case.body.key!r}: its file {file.path} holds a secret ({spans[0].rule})",
                hint="take it out of the fixture: agents would see it, and a log keeps it for ever",
            )


def _append_case(
    kernel: Kernel,
    tx: Transaction,
    suite: RecordId,
    case: Fitted[Case],
    old: CaseRow | None,
) -> None:
    refs = {} if old is None else {"replaces": (old.id,)}
    tx.append(
        Draft(
            body=case.body,
            by=kernel.operator,
            thread=suite,
            refs=refs,
            blobs=case.blobs,
            withheld=case.withheld,
        )
    )


def _append_retire(kernel: Kernel, tx: Transaction, suite: RecordId, row: CaseRow, reason: str) -> None:
    draft = Draft(body=Retire(reason=reason), by=kernel.operator, thread=suite, refs={"case": (row.id,)})
    tx.append(draft)


def _document(view: View, row: NameRow, *, appended: bool) -> SuiteDocument:
    cases = [_case_part(view, case) for case in view.cases(row.id)]
    return SuiteDocument(id=row.id, suite=_suite_part(view, row), cases=cases, appended=appended)


def _suite_part(view: View, row: NameRow) -> SuitePart:
    cases = view.cases(row.id)
    body = found_of(view, row.id).body
    return SuitePart(
        id=row.id,
        name=row.name,
        cases=len(cases),
        revision=digest.suite_revision(case.facet for case in cases),
        description=body.description if isinstance(body, Suite) else None,
    )


def _case_part(view: View, row: CaseRow) -> CasePart:
    body = record_of(view, row.id).body
    assert isinstance(body, Case)  # noqa: S101 - the row was derived from it
    return CasePart(
        id=row.id,
        facet=row.facet,
        key=row.key,
        name=body.name,
        expects=list(to_map(body.expect)),
        tags=body.tags or [],
        difficulty=body.difficulty,
        fixture=body.fixture,
    )


def _case_document(kernel: Kernel, suite: RecordId, row: CaseRow) -> CaseDocument:
    body = record_of(kernel.log, row.id).body
    assert isinstance(body, Case)  # noqa: S101 - the row was derived from it
    return CaseDocument(
        id=row.id,
        suite=suite,
        case=_case_part(kernel.log, row),
        goal=unfold_text(kernel.blobs, body.goal) or "",
        expect=to_map(body.expect),
    )
