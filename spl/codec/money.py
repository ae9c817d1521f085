"""Money as records hold it: integers of nano-US-dollars."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal, InvalidOperation

from spl.codec.canonical import MAX_INTEGER
from spl.errors import EncodingError

NANO = 9
_EXACT = Context(prec=60)


def parse_usd(text: str) -> int:
    """Return nano-US-dollars of a decimal text, rounded half to even.

    Raises:
        EncodingError: It is not a finite decimal number, or is beyond the integers of a record.
    """
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise EncodingError(f"{text!r} is not a decimal number") from error
    if not number.is_finite() or abs(number) > MAX_INTEGER:
        raise EncodingError(f"{text!r} is not an amount of money")
    nusd = int(number.scaleb(NANO, _EXACT).to_integral_value(ROUND_HALF_EVEN))
    if abs(nusd) > MAX_INTEGER:
        raise EncodingError(f"{text!r} US dollars are more than a record can hold")
    return nusd


def format_usd(nusd: int) -> str:
    """Return nano-US-dollars as decimal text in US dollars, without trailing zeros beyond the cents."""
    sign = "-" if nusd < 0 else ""
    whole, part = divmod(abs(nusd), 10**NANO)
    digits = f"{part:09d}".rstrip("0").ljust(2, "0")
    return f"{sign}{whole}.{digits}"
