"""Runs that were executed elsewhere: JSON lines in, one transaction, the same file again appends nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from spl.codec import digest, jsontext, money
from spl.contracts.runs import RunImport
from spl.errors import InputError, SplError, UnknownNameError, schema_error
from spl.ids import RecordId
from spl.kernel.content import fit
from spl.kernel.define import Source, record_candidate
from spl.kernel.home import Kernel
from spl.kernel.names import incumbent_of, record_of, resolve_actor, resolve_definition, resolve_suite
from spl.records.definitions import Count, Definition, Name
from spl.records.envelope import Draft
from spl.records.evals import Case, Expect
from spl.records.instants import parse_instant
from spl.records.problems import problems
from spl.records.runs import Imported, Result, ResultStatus, RunEnd, RunStart, RunStatus, ToolCalls, Usage
from spl.store.log import DefinitionRow, NameRow, Transaction

FORMAT = "spl.run_import.v1"


class LineResult(Struct, frozen=True, forbid_unknown_fields=True):
    """The outcome of one check, as an external harness reports it."""

    id: Name
    status: ResultStatus
    message: str | None = None


class LineUsage(Struct, frozen=True, forbid_unknown_fields=True):
    """Usage as an external harness reports it; `cost_usd` is decimal text and means priced."""

    provider: Name | None = None
    model: Name | None = None
    stage: Name | None = None
    requests: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    reasoning_tokens: Count | None = None
    cost_usd: str | None = None


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """One run of an import file."""

    case: Name
    id: Name | None = None
    status: RunStatus = "completed"
    cause: str | None = None
    exit_code: int | None = None
    answer: str | None = None
    results: list[LineResult] | None = None
    tool_calls: ToolCalls | None = None
    usage: list[LineUsage] | None = None
    latency_ms: Count | None = None
    started_at: str | None = None
    source: Name | None = None


class Batch(Struct, frozen=True, kw_only=True):
    """What an import is told.

    Attributes:
        source: What the runs' source is called when a line names none; a file's base name.
        suite: The suite whose cases the lines name; the home's only one when absent.
        definition: The definition that every line was made with; the incumbent when absent.
        definition_from: The field of a line that says which of `definitions` it was made with.
        definitions: Behaviours by the value of that field; unknown ones are recorded as candidates.
        create_cases: Make the cases that the suite lacks; they expect the outcomes that the line's results name.
    """

    source: str
    suite: str | None = None
    definition: str | None = None
    definition_from: str | None = None
    definitions: Mapping[str, Source] = {}
    create_cases: bool = False


class _Read(Struct, frozen=True):
    """A line that was read: its number, its import key, the value of `definition_from`, and its content."""

    number: int
    key: str
    definition: str | None
    line: Line
    at: int | None


def import_runs(kernel: Kernel, actor: str, lines: Iterable[bytes], batch: Batch) -> RunImport:
    """Append a start and an end for every line that the home does not hold, all or nothing.

    Args:
        kernel: The open home.
        actor: Who did the work.
        lines: JSON lines; blank ones are passed over.
        batch: What the lines are about.

    Raises:
        InputError: A line is malformed; its number is named, and nothing was appended.
        UnknownNameError: A line names a case that the suite lacks, and cases are not to be created.
    """
    owner = resolve_actor(kernel.log, actor)
    suite = _suite(kernel, batch.suite)
    read = [_without_secrets(kernel, item) for item in _read_lines(lines, batch.definition_from)]

    def append(tx: Transaction) -> RunImport:
        return _Import(kernel, tx, owner.id, suite, batch).run(read)

    return kernel.transact(append)


def _suite(kernel: Kernel, text: str | None) -> NameRow:
    if text is not None:
        return resolve_suite(kernel.log, text)
    suites = kernel.log.suites()
    if len(suites) != 1:
        raise InputError(f"this home has {len(suites)} suites", hint="say which with --suite")
    return suites[0]


def _without_secrets(kernel: Kernel, item: _Read) -> _Read:
    """Return a line whose key is what the log will hold, so that a second import finds it."""
    key, withheld = kernel.secrets.withhold(item.key)
    return msgspec.structs.replace(item, key=key) if withheld else item


def _read_lines(lines: Iterable[bytes], definition_from: str | None) -> Iterator[_Read]:
    seen: Counter[str] = Counter()
    for number, raw in enumerate(lines, start=1):
        if not raw.strip():
            continue
        try:
            yield _read_line(number, raw, definition_from, seen)
        except SplError as error:
            raise InputError(
                f"line {number}: {error.message}",
                hint="nothing was appended",
                details={"line": number, **error.details},
            ) from error


def _read_line(number: int, raw: bytes, definition_from: str | None, seen: Counter[str]) -> _Read:
    value = jsontext.parse(raw, what="the line")
    if not isinstance(value, dict):
        raise schema_error("the line", [("$", "a run is an object")])
    if isinstance(value.get("id"), str):
        key = value["id"]
    else:
        name = digest.blob_id(jsontext.format_canonical(value).encode()).hex()
        key = f"{name}#{seen[name]}"
    seen[key.partition("#")[0] if "id" not in value else key] += 1
    chosen = None
    if definition_from is not None:
        chosen = value.pop(definition_from, None)
        if not isinstance(chosen, str):
            raise schema_error("the line", [(f"$.{definition_from}", "is missing, or not text")])
    found = list(problems(value, Line))
    if found:
        raise schema_error("the line", found)
    line = msgspec.convert(value, Line)
    results = [result.id for result in line.results or ()]
    if len(set(results)) != len(results):
        raise schema_error("the line", [("$.results", "an outcome stands twice")])
    return _Read(number, key, chosen, line, _milliseconds(line.started_at))


def _milliseconds(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_instant(text)
    except ValueError as error:
        problem = ("$.started_at", "is not a time such as 2026-01-02T03:04:05Z")
        raise schema_error("the line", [problem]) from error


class _Import:
    """One import, inside its transaction."""

    def __init__(
        self, kernel: Kernel, tx: Transaction, actor: RecordId, suite: NameRow, batch: Batch
    ) -> None:
        self._kernel, self._tx, self._actor, self._suite, self._batch = kernel, tx, actor, suite, batch
        self._cases = {row.key: row.id for row in tx.cases(suite.id)}
        self._rows: dict[str | None, DefinitionRow] = {}
        self._adapters: dict[RecordId, Any] = {}
        self._created = 0

    def run(self, read: list[_Read]) -> RunImport:
        """Append what is new, in the order of the lines."""
        by_definition: dict[RecordId, list[_Read]] = {}
        for item in read:
            by_definition.setdefault(self._definition(item).id, []).append(item)
        there = {
            definition: self._tx.imported(self._actor, definition, [item.key for item in items])
            for definition, items in by_definition.items()
        }
        appended = 0
        for item in read:
            row = self._definition(item)
            if item.key in there[row.id]:
                continue
            there[row.id].add(item.key)
            self._append(item, row)
            appended += 1
        return RunImport(
            source=self._batch.source,
            lines=len(read),
            appended=appended,
            already_there=len(read) - appended,
            cases_created=self._created,
            definitions=len(by_definition),
            size=self._tx.size(),
        )

    def _definition(self, item: _Read) -> DefinitionRow:
        name = item.definition
        if name not in self._rows:
            self._rows[name] = self._find_definition(name, item.number)
        return self._rows[name]

    def _find_definition(self, name: str | None, number: int) -> DefinitionRow:
        if name is not None:
            source = self._batch.definitions.get(name)
            if source is None:
                raise UnknownNameError(
                    f"line {number}: no definition for {name!r} is given", details={"line": number}
                )
            return record_candidate(self._kernel, self._tx, self._actor, source)[0]
        if self._batch.definition is not None:
            return resolve_definition(self._tx, self._batch.definition, self._actor)
        row = incumbent_of(self._tx, self._actor)
        if row is None:
            raise InputError("the actor has no installed definition", hint="say which with --definition")
        return row

    def _case(self, item: _Read) -> RecordId:
        key = item.line.case
        if key not in self._cases:
            if not self._batch.create_cases:
                raise UnknownNameError(
                    f"line {item.number}: {self._suite.name} has no case {key!r}",
                    hint="add --create-cases to make the cases that the results name",
                    details={"line": item.number},
                )
            outcomes = [result.id for result in item.line.results or ()]
            if not outcomes:
                raise InputError(
                    f"line {item.number}: the case {key!r} cannot be created: its results name no outcome",
                    details={"line": item.number},
                )
            body = Case(key=key, name=key, goal=key, expect=Expect(outcomes=outcomes))
            draft = Draft(body=body, by=self._kernel.operator, thread=self._suite.id)
            self._cases[key] = self._tx.append(draft).id
            self._created += 1
        return self._cases[key]

    def _append(self, item: _Read, row: DefinitionRow) -> None:
        line, operator = item.line, self._kernel.operator
        if row.id not in self._adapters:
            body = record_of(self._tx, row.id).body
            assert isinstance(body, Definition)  # noqa: S101 - the row was derived from it
            self._adapters[row.id] = body.behaviour["adapter"]
        case = self._case(item)
        start = self._tx.append(
            Draft(
                body=RunStart(
                    facet=row.facet,
                    trial=False,
                    adapter=self._adapters[row.id],
                    imported=Imported(source=line.source or self._batch.source, format=FORMAT, key=item.key),
                ),
                by=operator,
                at=item.at,
                refs={
                    "actor": (self._actor,),
                    "definition": (row.id,),
                    "case": (case,),
                    "suite": (self._suite.id,),
                },
            )
        )
        end, blobs, withheld = fit(self._kernel, _end(item.number, line), texts=("answer",))
        self._tx.append(
            Draft(
                body=end,
                by=operator,
                at=item.at,
                thread=start.id,
                refs={"start": (start.id,)},
                blobs=blobs,
                withheld=withheld,
            )
        )


def _end(number: int, line: Line) -> RunEnd:
    try:
        usage = [_usage(item) for item in line.usage or ()]
    except SplError as error:
        raise InputError(f"line {number}: {error.message}", details={"line": number}) from error
    return RunEnd(
        status=line.status,
        cause=line.cause,
        exit_code=line.exit_code,
        answer=line.answer,
        tool_calls=line.tool_calls,
        results=[
            Result(kind="outcome", id=result.id, status=result.status, message=result.message)
            for result in line.results or ()
        ]
        or None,
        usage=usage or None,
        latency_ms=line.latency_ms,
    )


def _usage(item: LineUsage) -> Usage:
    """Return usage as a record holds it: `reported` is `requests` when tokens or a cost are given, else 0."""
    tokens = {
        name: getattr(item, name)
        for name in (
            "input_tokens",
            "output_tokens",
            "cached_input_tokens",
            "cache_write_tokens",
            "reasoning_tokens",
        )
    }
    nusd = None if item.cost_usd is None else money.parse_usd(item.cost_usd)
    if nusd is not None and nusd < 0:
        raise InputError(f"a cost cannot be negative: {item.cost_usd}")
    known = nusd is not None or any(value is not None for value in tokens.values())
    requests = 1 if item.requests is None else item.requests
    return Usage(
        reported=requests if known else 0,
        cost_status="unpriced" if nusd is None else "priced",
        provider=item.provider,
        model=item.model,
        stage=item.stage,
        requests=item.requests,
        cost_nusd=nusd,
        **tokens,
    )
