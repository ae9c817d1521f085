"""The published documents as JSON, text and CSV, written piece by piece: captured text is never held as a whole."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Final

import msgspec
from msgspec import Struct

from spl.contracts.harness import BenchTask, EvalDocument, SpooledText, Stage
from spl.harness.lenient import EACH_BYTE
from spl.harness.report import row_status
from spl.harness.usage import account, models_used

Write = Callable[[bytes], object]

_ESCAPED: Final = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_INDENT: Final = "  "
_PLAIN_EXPONENTS: Final = (-6, 21)


def write_json(document: object, write: Write) -> None:
    """Write a document with two blanks for each level and a line break at the end.

    `<`, `>`, `&` and the two Unicode line separators are escaped and numbers are as short as they can be, as the
    published implementation writes them. Fields that hold their default are left out.
    """
    for piece in _pieces(document, 0):
        write(piece.encode())
    write(b"\n")


def _pieces(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, Struct):
        yield from _composite(_fields(value), "{}", depth)
    elif isinstance(value, dict):
        yield from _composite(value.items(), "{}", depth)
    elif isinstance(value, list):
        yield from _composite((("", item) for item in value), "[]", depth)
    elif isinstance(value, SpooledText):
        yield from _spooled(value)
    elif isinstance(value, str):
        yield format_text(value)
    elif isinstance(value, float):
        yield format_number(value)
    else:
        yield json.dumps(value)


def _composite(items: Iterable[tuple[str, object]], brackets: str, depth: int) -> Iterator[str]:
    opening, closing = tuple(brackets)
    yield opening
    empty = True
    inner = "\n" + _INDENT * (depth + 1)
    for key, item in items:
        yield inner if empty else "," + inner
        if opening == "{":
            yield format_text(key) + ": "
        yield from _pieces(item, depth + 1)
        empty = False
    yield closing if empty else "\n" + _INDENT * depth + closing


def _fields(value: Struct) -> Iterator[tuple[str, object]]:
    config = value.__struct_config__
    if config.tag_field is not None:
        yield config.tag_field, config.tag
    for field in msgspec.structs.fields(type(value)):
        item = getattr(value, field.name)
        if field.required or not _is_absent(item, field.default):
            yield field.encode_name, item


def _is_absent(item: object, default: object) -> bool:
    if item is None or isinstance(item, list | dict | SpooledText):
        return not item
    return default is not None and item == default


def _spooled(text: SpooledText) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")(EACH_BYTE)
    yield '"'
    for chunk in text.chunks():
        yield format_text(decoder.decode(chunk))[1:-1]
    yield format_text(decoder.decode(b"", final=True))[1:-1]
    yield '"'


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\ufffd" if 0xD800 <= code < 0xE000 else f"\\u{code:04x}"  # noqa: PLR2004 - surrogates


def format_text(text: str) -> str:
    """Return a JSON string; what cannot be encoded becomes U+FFFD."""
    return _ESCAPED.sub(_escape, json.dumps(text, ensure_ascii=False))


def format_number(value: float) -> str:
    """Return the shortest JSON number that reads back as the same float: `1e-7`, `0.5`, `3`."""
    if value == 0:
        return "0"
    digits = Decimal(repr(value))
    sign, significant, _ = digits.normalize().as_tuple()
    lowest, highest = _PLAIN_EXPONENTS
    exponent = digits.adjusted()
    if lowest <= exponent < highest:
        text = f"{digits:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    first, *rest = map(str, significant)
    return f"{'-' if sign else ''}{first}{'.' if rest else ''}{''.join(rest)}e{exponent:+d}"


# --- text ------------------------------------------------------------------------------------------------


def text_lines(document: EvalDocument) -> Iterator[str]:
    """Yield the lines of the text output, without line breaks at their ends; values stand as they are."""
    bench = document.benchmark is not None
    yield "Splice agent eval"
    yield f"suite: {document.suite}"
    optional = (
        ("name", document.name),
        ("task", document.task_id),
        ("runner", document.runner_kind),
        ("requested model", document.requested_model),
        ("models used", ", ".join(document.models_used)),
        ("definition", ", ".join(dict.fromkeys(document.definition_facets.values()))),
    )
    yield from (f"{label}: {value}" for label, value in optional if value)
    if document.status == "valid":
        yield f"summary: {document.tasks} tasks, {document.checks} checks"
    else:
        yield (
            f"summary: {document.total} total, {document.passed} passed, {document.failed} failed, "
            f"{document.blocked} blocked, {document.errors} errors"
        )
    yield f"status: {document.status}"
    if bench:
        yield (
            f"tokens: input {document.input_tokens}, output {document.output_tokens}, "
            f"cached input {document.cached_input_tokens}, cache write {document.cache_write_tokens}, "
            f"reasoning {document.reasoning_tokens}"
        )
        yield f"estimated cost: {_cost(document)}"
    if document.work_root:
        yield f"work-root: {document.work_root}"
    if document.report_path:
        yield f"report: {document.report_path}"
    if document.truncated:
        yield "note: agent output was truncated"
    if document.failures:
        yield "failures:"


def failure_lines(document: EvalDocument, *, verbose: bool) -> Iterator[str]:
    """Yield a line for each failure, and with `verbose` the files and events behind it."""
    behind = _details(document) if verbose else {}
    for failure in document.failures:
        yield f"  {failure.id} - {failure.message}"
        yield from behind.pop(failure.id, ())


def _details(document: EvalDocument) -> dict[str, list[str]]:
    reports = []
    if document.report is not None:
        reports.append(("", document.report))
    rows = document.benchmark.tasks if document.benchmark is not None else []
    reports += [
        (f"{row.model}.{row.task_id}." if row.model else f"{row.task_id}.", row.report) for row in rows
    ]
    found = {}
    for prefix, report in reports:
        for result in report.results:
            lists = (
                ("missing", result.missing_files),
                ("unexpected", result.unexpected_files),
                ("missing event", result.missing_events),
            )
            found[prefix + result.id] = [f"    {label}: {name}" for label, names in lists for name in names]
    return found


def _cost(document: EvalDocument) -> str:
    coverage, cost = document.cost_coverage, document.estimated_cost_usd or 0
    if coverage == "complete":
        return f"{format_usd(cost)} (coverage complete)"
    if coverage == "unavailable":
        return "cost unavailable (coverage unavailable)"
    if coverage != "partial":
        return "n/a (no priced usage)"
    if cost <= 0:
        return "cost partial (coverage partial)"
    count = document.unpriced_usage_records
    unpriced = f", {count} unpriced request{'s' if count > 1 else ''}" if count else ""
    return f"~{format_usd(cost)} (coverage partial{unpriced})"


def format_usd(cost: float) -> str:
    """Return an estimated cost in US dollars for people."""
    if cost <= 0:
        return "$0.0000"
    if cost < 0.0001:  # noqa: PLR2004 - four digits are shown
        return "<$0.0001"
    if cost < 1:
        return "$" + f"{cost:.4f}".rstrip("0").rstrip(".")
    return f"${cost:.2f}"


# --- CSV -------------------------------------------------------------------------------------------------

_COLUMNS: Final = (
    "taskId,runner,requestedModel,modelsUsed,status,pass,inputTokens,outputTokens,cachedInputTokens,cacheWriteTokens,"
    "reasoningTokens,estimatedCostUSD,costCoverage,pricedUsageRecords,unpricedUsageRecords,errorUsageRecords,latencyMs,"
    "stageBreakdown"
)
_WHITE_START: Final = re.compile(r"\s")


def csv_lines(document: EvalDocument) -> Iterator[str]:
    """Yield the lines of the benchmark's CSV, each with its line break."""
    yield _COLUMNS + "\n"
    for row in document.benchmark.tasks if document.benchmark is not None else ():
        yield ",".join(map(_csv_field, _csv_row(row, document.runner_kind))) + "\n"


def _csv_row(row: BenchTask, runner: str) -> list[str]:
    sums = account(row.agent.usage_samples)
    return [
        row.task_id,
        runner,
        row.model,
        ",".join(models_used(row.agent.usage_samples, row.agent.stages)),
        row_status(row),
        "true" if row.report.ok else "false",
        str(row.input_tokens),
        str(row.output_tokens),
        str(row.cached_input_tokens),
        str(row.cache_write_tokens),
        str(row.reasoning_tokens),
        "" if row.cost_usd is None else f"{row.cost_usd:.6f}",
        row.cost_coverage,
        str(sums.priced),
        str(sums.unpriced),
        str(sums.errors),
        str(row.latency_ms),
        ";".join(map(_stage, row.stages)),
    ]


def _stage(stage: Stage) -> str:
    cost = "unknown" if stage.cost_usd is None else f"{stage.cost_usd:.4f}"
    return (
        f"{stage.name}:iteration={stage.iteration},provider={stage.provider},model={stage.model},"
        f"in={stage.tokens_input},out={stage.tokens_output},cached={stage.tokens_cached},"
        f"cacheWrite={stage.tokens_cache_write},reasoning={stage.tokens_reasoning},cost={cost},"
        f"costStatus={stage.cost_status}"
    )


def _csv_field(text: str) -> str:
    if text == "\\." or any(c in text for c in ',"\r\n') or _WHITE_START.match(text):
        return '"' + text.replace('"', '""') + '"'
    return text
