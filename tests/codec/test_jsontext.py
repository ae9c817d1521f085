from __future__ import annotations

import pytest

from spl.codec import canonical, jsontext, money
from spl.errors import EncodingError


@pytest.mark.parametrize(
    "literals", [("0.7", "0.70", "7e-1", "7E-1", "0.07e1"), ("120.0", "1.2e2"), ("-0.0", "0e5")]
)
def test_one_number_has_one_form_however_it_was_written(literals: tuple[str, ...]) -> None:
    encoded = {canonical.encode(jsontext.to_record_value(jsontext.parse(text))) for text in literals}
    assert len(encoded) == 1


def test_decimals_keep_mantissa_and_exponent() -> None:
    assert jsontext.to_record_value(jsontext.parse('{"t": [0.25, 3]}')) == {"t": [{"dec": [25, -2]}, 3]}
    assert jsontext.decimal_parts("1" + "0" * 350 + ".0") == (1, 350)


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', '{"a":{"b":1,"b":1}}', "NaN", "Infinity", "-Infinity", '"\\ud800"', "[" * 100_000, "{", "",
     "1 2", "'a'", "[1,]", "\ufeff1", '"\x01"'],
)  # fmt: skip
def test_text_that_is_not_strict_json_is_refused(text: str) -> None:
    with pytest.raises(EncodingError):
        jsontext.parse(text)


@pytest.mark.parametrize(
    "text", ["1e999", "1.23456789012345678901", "12345678901234567890.5", "[null]", "1e-401"]
)
def test_numbers_and_nulls_that_a_record_cannot_hold_are_refused(text: str) -> None:
    with pytest.raises(EncodingError):
        canonical.encode(jsontext.to_record_value(jsontext.parse(text)))


def test_invalid_utf8_is_refused_with_its_place() -> None:
    with pytest.raises(EncodingError, match="byte 2"):
        jsontext.parse(b'["\xff"]')


def test_canonical_json_sorts_keys_and_keeps_numbers_as_written() -> None:
    value = jsontext.parse('{"b": 1.50, "a": [true, null, "é"], "c": 12345678901234567890123}')
    assert (
        jsontext.format_canonical(value) == '{"a":[true,null,"\\u00e9"],"b":1.50,"c":12345678901234567890123}'
    )


@pytest.mark.parametrize(
    ("text", "nusd"),
    [("0.5", 500_000_000), ("0.23051419999999997", 230_514_200), ("0.0000000005", 0), ("0.0000000015", 2), ("1e-9", 1),
     ("-2", -2_000_000_000), ("0", 0)],
)  # fmt: skip
def test_money_is_rounded_half_to_even_from_its_text(text: str, nusd: int) -> None:
    assert money.parse_usd(text) == nusd


@pytest.mark.parametrize("text", ["", "NaN", "inf", "1,5", "$1", "1e30", "9007199254740993"])
def test_what_is_not_an_amount_is_refused(text: str) -> None:
    with pytest.raises(EncodingError):
        money.parse_usd(text)


def test_amounts_print_at_least_cents() -> None:
    assert money.format_usd(1_500_000_000) == "1.50"
    assert money.format_usd(-1) == "-0.000000001"
