"""What the fault tests count, and the table of `docs/reliability.md` that the long run writes.

A test says what it did with the fixture `tally`. The numbers travel with the test's report, so that they arrive from
every worker process, and are added up where the run ends.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

PAGE: Final = Path(__file__).parents[2] / "docs" / "reliability.md"
PROPERTY: Final = "tally"
_BEGIN: Final = "<!-- figures: written by `make faults` -->\n"
_END: Final = "<!-- end of figures -->\n"
_NUMBER: Final = re.compile(r"[\d,]+")


class Figure(NamedTuple):
    """One line of the table.

    Attributes:
        key: What `tally` is called with.
        promise: What is promised.
        counted: What is counted; `{}` stands for the number.
        least: How many the long run must reach.
        control: The negative control and what is counted of it; None where the tests hold controls that are not
            counted, named in the page's text.
        where: The test, as pytest wants it.
    """

    key: str
    promise: str
    counted: str
    least: int
    control: str | None
    where: str

    @property
    def control_key(self) -> str:
        """What `tally` is called with for the negative control."""
        return f"{self.key}-control"


FIGURES: Final = (
    Figure(
        "states",
        "what was acknowledged survives power loss",
        "{} states of the disk, none lost",
        50_000,
        "journal modes known to lose: {} states that lose",
        "tests/faults/test_power_loss.py",
    ),
    Figure(
        "injections",
        "a command that fails changed nothing, and says so",
        "{} failures of one system call each",
        800,
        "programs known to be wrong: {} violations",
        "tests/faults/test_failing_calls.py",
    ),
    Figure(
        "kills",
        "of eight writers that are killed at random moments none loses or repeats what it said",
        "{} writers killed",
        200,
        "writers that speak before they commit: {} records lost",
        "tests/faults/test_killed_writers.py",
    ),
    Figure(
        "flips",
        "any changed byte is found",
        "{} bits flipped in the files of a home, each reported or harmless",
        4_000,
        "a verification that does not look at blobs: {} flips unseen",
        "tests/faults/test_flipped_bytes.py",
    ),
    Figure(
        "steps",
        "every log does what a list would",
        "{} steps of a state machine on each log",
        20_000,
        "a log that keeps half of what failed: {} such log caught",
        "tests/store/test_log_state_machine.py",
    ),
    Figure(
        "inputs",
        "bytes that are not canonical never get in",
        "{} inputs read by two decoders",
        1_000_000,
        "a plain CBOR decoder: {} of 5,000 inputs taken wrongly",
        "tests/codec/test_canonical.py",
    ),
)


def render(counts: Counter[str]) -> str:
    """Return the table for what was counted."""
    lines = [
        "| promise | tried in the long run | negative control | reproduce |",
        "| --- | --- | --- | --- |",
    ]
    for figure in FIGURES:
        control = "" if figure.control is None else figure.control.format(f"{counts[figure.control_key]:,}")
        tried = figure.counted.format(f"{counts[figure.key]:,}")
        lines.append(f"| {figure.promise} | {tried} | {control} | `{figure.where}` |")
    return "\n".join(lines) + "\n"


def read() -> tuple[str, Counter[str]]:
    """Return the table that stands in the page, and the numbers in it.

    Raises:
        ValueError: The page does not have one line for each figure.
    """
    table = PAGE.read_text("utf-8").partition(_BEGIN)[2].partition(_END)[0]
    counts: Counter[str] = Counter()
    for figure, line in zip(FIGURES, table.splitlines()[2:], strict=True):
        _, _, tried, control, _, _ = line.split("|")
        counts[figure.key] = _number(tried)
        if figure.control is not None:
            counts[figure.control_key] = _number(control)
    return table, counts


def _number(cell: str) -> int:
    found = _NUMBER.search(cell)
    if found is None:
        raise ValueError(f"no number in {cell!r}")
    return int(found[0].replace(",", ""))


def missing(counts: Counter[str]) -> list[str]:
    """Return what the long run has not reached; a control must have found something."""
    found = [
        f"{figure.key}: {counts[figure.key]:,}" for figure in FIGURES if counts[figure.key] < figure.least
    ]
    return found + [
        f"{figure.control_key}: none"
        for figure in FIGURES
        if figure.control and not counts[figure.control_key]
    ]


def write(counts: Counter[str]) -> None:
    """Write the table into the page."""
    before, _, rest = PAGE.read_text("utf-8").partition(_BEGIN)
    PAGE.write_text(before + _BEGIN + render(counts) + _END + rest.partition(_END)[2], "utf-8")
