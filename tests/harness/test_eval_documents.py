from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spl.contracts.harness import CheckResult, SpooledText
from spl.harness.document import _csv_field, format_number, format_text, format_usd, write_json
from spl.harness.report import MAX_REASON, overall, run_document, score_report
from spl.harness.suite import Suite


class Pieces(SpooledText):
    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    def chunks(self) -> Iterator[bytes]:
        yield from self.pieces

    def __bool__(self) -> bool:
        return any(self.pieces)


def command(**fields: object) -> CheckResult:
    known = {"id": "c", "name": "C", "kind": "command", "status": "pass", **fields}
    return CheckResult(**known)  # type: ignore[arg-type]


def written(document: object) -> bytes:
    data = bytearray()
    write_json(document, data.extend)
    return bytes(data)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_reads_back_as_the_same_float(value: float) -> None:
    assert float(format_number(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (3.0, "3"),
        (1e-7, "1e-7"),
        (0.000001, "0.000001"),
        (1e21, "1e+21"),
        (1e20, "1" + "0" * 20),
        (-2.5, "-2.5"),
    ],
)
def test_numbers_are_as_short_as_can_be(value: float, text: str) -> None:
    assert format_number(value) == text


@given(st.text())
def test_text_reads_back_and_holds_nothing_that_html_would_read(text: str) -> None:
    encoded = format_text(text)
    assert json.loads(encoded) == text
    assert not set("<>&\u2028\u2029") & set(encoded)


def test_spooled_text_is_cut_anywhere_and_bad_bytes_become_one_mark_each() -> None:
    euro = "\u20ac".encode()
    result = command(stdout=Pieces(b"a" + euro[:1], euro[1:] + b"\xff", b"\xe2\x82"))
    assert json.loads(written(result))["stdout"] == "a\u20ac\ufffd\ufffd\ufffd"


def test_fields_are_left_out_at_their_default_and_an_exit_code_of_zero_is_not() -> None:
    assert json.loads(written(command(exit_code=0))) == {
        "id": "c", "name": "C", "kind": "command", "status": "pass", "exitCode": 0,
    }  # fmt: skip


def test_the_worst_status_wins_in_the_published_order() -> None:
    assert overall(["pass", "fail", "error", "blocked"]) == "blocked"
    assert overall(["pass", "fail", "error"]) == "error"
    assert overall(["pass", "fail"]) == "fail"
    assert overall([]) == "pass"


def test_a_long_failure_text_stands_in_full_once() -> None:
    report = score_report("s", "t", [command(status="fail", stderr=Pieces(b"e" * 100_000))], [])
    (failure,) = run_document(Suite(path="s.json", id="s"), report).failures
    assert len(failure.message) == MAX_REASON


@pytest.mark.parametrize(
    ("cost", "text"),
    [
        (-1, "$0.0000"),
        (0.00004, "<$0.0001"),
        (0.5, "$0.5"),
        (0.99996, "$1"),
        (1.005, "$1.00"),
        (1234.5, "$1234.50"),
    ],
)
def test_costs_for_people(cost: float, text: str) -> None:
    assert format_usd(cost) == text


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("a", "a"),
        ("a,b", '"a,b"'),
        ('a"b', '"a""b"'),
        (" a", '" a"'),
        ("\\.", '"\\."'),
        ("a\rb", '"a\rb"'),
        ("", ""),
    ],
)
def test_csv_fields_are_quoted_where_they_must_be(field: str, text: str) -> None:
    assert _csv_field(field) == text
