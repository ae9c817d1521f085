"""What text views are made of: ids, tables, figures."""

from __future__ import annotations

import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from spl.cli.sanitize import visible

ID_DIGITS = 12


def short(value: bytes | None) -> str:
    """Return the first 12 digits of an id."""
    return "-" if value is None else value.hex()[:ID_DIGITS]


def when(at_ms: int | None) -> str:
    """Return a time in UTC, to the second; a time that no calendar has stands as its number."""
    if at_ms is None:
        return "-"
    try:
        return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return aligned columns with sanitised cells; numbers stand to the right.

    On a terminal that is narrower than the table, each row becomes a block of lines instead: columns that wrap
    cannot be read.
    """
    cells = [[visible(str(cell)) for cell in row] for row in rows]
    if not cells:
        return ""
    widths = [max(_width(line[i]) for line in [list(headers), *cells]) for i in range(len(headers))]
    columns = _terminal_columns()
    if columns is not None and sum(widths) + 2 * (len(widths) - 1) > columns:
        return "\n\n".join(_block(headers, row) for row in cells)
    right = [
        all(row[i].replace("/", "").replace(".", "").isdigit() for row in cells) for i in range(len(headers))
    ]
    lines = [_line(headers, widths, right), *(_line(row, widths, right) for row in cells)]
    return "\n".join(lines)


def fields(pairs: Iterable[tuple[str, object]]) -> str:
    """Return aligned `name  value` lines; absent values are left out.

    Further lines of a value stand below its first, so that no text can pass for a field of its own.
    """
    shown = [(name, visible(str(value), lines=True)) for name, value in pairs if value is not None]
    width = max((len(name) for name, _ in shown), default=0)
    below = "\n" + " " * (width + 2)
    return "\n".join(f"{name:<{width}}  {value.replace(chr(10), below)}" for name, value in shown)


def outline(value: Mapping[str, object]) -> str:
    """Return a map as `path  value` lines: decimals as numbers, ids as digits, lists of plain values on one line."""
    return fields(_leaves("", value)) if value else "(empty)"


def _leaves(path: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping) and set(value) == {"dec"}:
        mantissa, exponent = value["dec"]
        yield path, format(Decimal(mantissa).scaleb(exponent), "f")
    elif isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _leaves(f"{path}.{visible(str(key))}" if path else visible(str(key)), item)
    elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
        for i, item in enumerate(value):
            yield from _leaves(f"{path}[{i}]", item)
    elif isinstance(value, list | tuple):
        yield path, ", ".join(map(_plain, value)) or "(none)"
    else:
        yield path, _plain(value)


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "(empty)" if value == {} else str(value)


def _block(headers: Sequence[str], row: Sequence[str]) -> str:
    """Return a row as lines; a cell without a header belongs to the one before it, a first one to the one behind."""
    pairs: list[tuple[str, str]] = []
    mark = ""
    for header, cell in zip(headers, row, strict=True):
        if header:
            pairs.append((header, " ".join(filter(None, [cell, mark]))))
            mark = ""
        elif pairs:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {cell}")
        else:
            mark = cell
    return fields(pairs)


def _terminal_columns() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        " " * (width - _width(cell)) + cell if to_right else cell + " " * (width - _width(cell))
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
