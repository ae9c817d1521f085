"""Homes to report on, and documents whose every text is the same hostile one."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import msgspec
from conftest import memory_home
from kernel.test_first_scores import behaviour, lines, prepared

from spl.contracts.report import ReportDocument
from spl.kernel.define import propose
from spl.kernel.home import Kernel
from spl.kernel.judge import judge, retract
from spl.kernel.report import actor_report
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import score_suite
from spl.records.verdicts import PairVerdict

T = TypeVar("T")

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)> ' onload='x",
    "</title></style></table></svg><h1>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp; ]]> <!-- --> <?php ?>",
    '=HYPERLINK("http://a.example")',
    "@everyone #12 GH-3 https://a.example www.a.example a@b.example :smile: ![x](y) [x](javascript:1)",
    "| a | b |\n| --- | --- |\n# h `code` ~~x~~ **b** $x$",
    "\u202egnp.exe \u2066x\u2069 \u200b\ufeff\x1b[31mred\x00\x07\r\n\ud800",
    "שלום עולם مرحبا",
    "🧑‍💻 é 中文",
    "x" * 10_000,
)
_TEXTS = frozenset(
    {"actor_name", "name", "suite_name", "label", "key", "feature", "basis", "reason", "found"}
)
_LISTS = frozenset({"features", "loser_features"})
_OURS = frozenset({"test", "fold", "scorer"})  # names that this program gives


def rich_home() -> Kernel:
    """The offline example with both scores; a third definition with repeats and partial costs; verdicts."""
    kernel = prepared(memory_home())
    for word in ("incumbent", "latest"):
        score_suite(kernel, "smoke", "coder", word)
    third = propose(kernel, "coder", behaviour("3"))
    rows = []
    for case in ("fix-off-by-one", "add-flag", "rename-field"):
        for attempt in range(3):
            status = "fail" if attempt == 1 and case != "add-flag" else "pass"
            row: dict[str, Any] = {
                "id": f"{case}-{attempt}",
                "case": case,
                "results": [{"id": name, "status": status} for name in ("tests", "old_files_read")],
                "tool_calls": {"total": 1, "failed": 0, "names": {"edit_file": 1}},
            }
            if attempt == 0:
                row["usage"] = [{"model": "m", "requests": 2, "cost_usd": "0.0000001"}]
            rows.append(row)
    import_runs(kernel, "coder", lines(*rows), Batch(source="r", suite="smoke", definition=third.id.hex()))
    score_suite(kernel, "smoke", "coder", third.id.hex())
    propose(kernel, "coder", behaviour("4"))
    facets = [line.line.facet.hex() for line in actor_report(kernel, "coder").suites[0].lines]
    judge(kernel, facets[0], facets[1], PairVerdict(["tests first"], ["rushed"], "read both", "substance"))
    judge(kernel, facets[1], facets[0], PairVerdict(["short"], [], None, None))
    wrong = judge(kernel, facets[2], facets[0], PairVerdict(["cheap"], [], None, None))
    retract(kernel, wrong.id.hex(), "by mistake")
    return kernel


@cache
def rich_report() -> ReportDocument:
    """Return the report on it."""
    return actor_report(rich_home(), "coder")


def with_text(document: ReportDocument, text: str) -> ReportDocument:
    """Return the document with every text that comes from people, agents or files replaced by one."""
    plain = msgspec.to_builtins(document, builtin_types=(bytes,))
    return msgspec.convert(_replaced(plain, text), ReportDocument, builtin_types=(bytes,))


def _replaced(value: Any, text: str) -> Any:
    if isinstance(value, list):
        return [_replaced(item, text) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: text
        if key in _TEXTS and isinstance(item, str)
        else [text for _ in item]
        if key in _LISTS and all(isinstance(part, str) for part in item)
        else item
        if key in _OURS
        else _replaced(item, text)
        for key, item in value.items()
    }
