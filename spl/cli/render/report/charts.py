"""Static charts: pygal lays them out, and the page's own style sheet draws them, in light and in dark.

pygal's styles, scripts, tooltips and random ids are taken out, so that the same document gives the same bytes and a
strict content security policy holds. What remains has a role, a title and a description; the numbers stand in a table
beside it.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from typing import Any, Final
from xml.etree import ElementTree as ET

from markupsafe import Markup
from msgspec import Struct

from spl.cli.sanitize import visible

WIDTH: Final = 640
ROW: Final = 24
_LABEL: Final = 27
_EDGE: Final = 0.012  # of the scale, so that a dot at its end is whole
_NAMESPACE: Final = "{http://www.w3.org/2000/svg}"
_DROPPED: Final = ("defs", "style", "script", "title", "desc", "rect")
_OVERLAYS: Final = frozenset({"tooltip-overlay", "text-overlay"})
_LONG_NUMBER: Final = re.compile(r"-?\d+\.\d{2,}")
_DECADE: Final = (1, 2, 5)
_LOG_RATIO: Final = 8  # from here on, a linear scale presses the small values together


class Span(Struct, frozen=True, kw_only=True):
    """A row of an interval chart: a point with its interval, and what it could be at most and at least.

    Attributes:
        label: Untrusted; shown as text, cut where it is long.
        name: Classes for the style sheet, such as `incumbent`.
    """

    label: str
    at: float
    low: float | None = None
    high: float | None = None
    worst: float | None = None
    best: float | None = None
    name: str = ""


class Point(Struct, frozen=True, kw_only=True):
    """A point of a scatter chart with its vertical interval; `label` is a short word beside it."""

    label: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    name: str = ""


class Words(Struct, frozen=True):
    """What is said of a chart: its id on the page, its title, and what it shows."""

    id: str
    title: str
    about: str


def interval_chart(spans: Sequence[Span], words: Words, axis: tuple[float, float]) -> Markup:
    """Return a chart of points with intervals, one row for each, the first on top.

    Args:
        spans: The rows; at least one.
        words: What is said of it.
        axis: The ends of the scale, as rates or differences of rates.
    """
    rows = len(spans)
    chart = _plot(
        height=rows * ROW + 62,
        margin_left=24,  # pygal guesses the width of labels, and capitals are wider
        xrange=(axis[0] - _EDGE * (axis[1] - axis[0]), axis[1] + _EDGE * (axis[1] - axis[0])),
        range=(0.4, rows + 0.6),
        x_labels=[{"value": tick, "label": _percent(tick)} for tick in _ticks(*axis)],
        y_labels=[{"value": rows - i, "label": _short(span.label, _LABEL)} for i, span in enumerate(spans)],
    )
    classes: list[str] = []
    for i, span in enumerate(spans):
        y = rows - i
        for name, ends in (("bounds", (span.worst, span.best)), ("interval", (span.low, span.high))):
            if ends[0] is not None and ends[1] is not None:
                chart.add(None, [(ends[0], y), (ends[1], y)], show_dots=False)
                classes.append(f"{name} {span.name}")
        chart.add(None, [(span.at, y)], stroke=False)
        classes.append(f"at {span.name}")
    return _finished(chart, words, classes)


def scatter_chart(points: Sequence[Point], words: Words, x_title: str, y_title: str) -> Markup:
    """Return a chart of points over a scale of US dollars, logarithmic where the amounts lie far apart.

    Args:
        points: In order of their labels; at least one, all with `x` above 0.
        words: What is said of it.
        x_title: What the amounts are.
        y_title: What the rates are.
    """
    lowest, highest = min(point.x for point in points), max(point.x for point in points)
    log = highest / lowest >= _LOG_RATIO
    place = math.log10 if log else float
    ticks = _log_ticks(lowest, highest) if log else _ticks(0.0, highest * 1.05)
    ends = (place(ticks[0]), max(place(ticks[-1]), place(highest)))
    chart = _plot(
        height=400,
        xrange=ends,
        range=(0, 1),
        x_labels=[{"value": place(tick), "label": _dollars(tick)} for tick in ticks],
        y_labels=[{"value": tick, "label": _percent(tick)} for tick in _ticks(0, 1)],
        x_title=x_title + (" (logarithmic scale)" if log else ""),
        y_title=y_title,
    )
    classes: list[str] = []
    labels: list[str | None] = []
    for point in points:
        if point.low is not None and point.high is not None:
            chart.add(None, [(place(point.x), point.low), (place(point.x), point.high)], show_dots=False)
            classes.append(f"interval {point.name}")
            labels.append(None)
        chart.add(None, [(place(point.x), point.y)], stroke=False)
        classes.append(f"at {point.name}")
        labels.append(point.label)
    return _finished(chart, words, classes, labels)


def _pygal() -> Any:  # noqa: ANN401 - pygal has no types
    """Return pygal, without the finder for its map plug-ins that it leaves on Python's import path.

    The finder is of a kind that Python 3.11 warns of at every later import, and 3.12 passes over.
    """
    import pygal  # noqa: PLC0415 - a tenth of a second, and only pages have charts

    sys.meta_path[:] = [each for each in sys.meta_path if not isinstance(each, pygal.PluginImportFixer)]
    return pygal


def _plot(**options: Any) -> Any:  # noqa: ANN401 - pygal has no types
    """Return an empty chart without legend, scripts and tooltips."""
    return _pygal().XY(
        js=[],
        width=WIDTH,
        show_legend=False,
        show_x_guides=True,
        show_y_guides=True,
        dots_size=4.5,
        margin=8,
        truncate_label=-1,
        disable_xml_declaration=True,
        pretty_print=False,
        **options,
    )


def _finished(
    chart: Any,  # noqa: ANN401 - pygal has no types
    words: Words,
    classes: Sequence[str],
    labels: Sequence[str | None] = (),
) -> Markup:
    """Return a drawn chart without what only pygal's own page needs, with what readers of any kind need."""
    root = ET.fromstring(chart.render())  # noqa: S314 - pygal wrote it just now, from sanitised text
    for element in root.iter():  # inside a page an svg element needs no namespace
        element.tag = str(element.tag).removeprefix(_NAMESPACE)
    _prune(root)
    root.attrib.pop("id", None)
    root.attrib |= {
        "class": "chart",
        "role": "img",
        "aria-labelledby": f"{words.id}-title {words.id}-about",
    }
    for group in root.iter("g"):
        _name_series(group, classes, labels)
    title = ET.Element("title", {"id": f"{words.id}-title"})
    title.text = visible(words.title)
    about = ET.Element("desc", {"id": f"{words.id}-about"})
    about.text = visible(words.about)
    root[:0] = [title, about]
    return Markup(ET.tostring(root, encoding="unicode"))  # noqa: S704 - the XML writer escapes


def _prune(element: ET.Element) -> None:
    for child in list(element):
        classes = child.get("class", "").split()
        if child.tag in _DROPPED or _OVERLAYS & set(classes):
            element.remove(child)
            continue
        for name, value in child.attrib.items():
            child.set(name, _LONG_NUMBER.sub(lambda m: f"{float(m[0]):.1f}".removesuffix(".0"), value))
        _prune(child)


def _name_series(group: ET.Element, classes: Sequence[str], labels: Sequence[str | None]) -> None:
    """Give a series its own class names instead of pygal's, and its points their label."""
    found = re.search(r"\bserie-(\d+)\b", group.get("class", ""))
    if found is None:
        return
    index = int(found[1])
    for child in group.iter():
        child.set("class", child.get("class", "").partition(" ")[0])
    group.set("class", f"series {classes[index]}".strip())
    label = labels[index] if index < len(labels) else None
    for dot in list(group.iter("circle")) if label else []:
        x, y = float(dot.get("cx", "0")), float(dot.get("cy", "0"))
        text = ET.SubElement(group, "text", {"class": "label", "x": f"{x + 8:.1f}", "y": f"{y - 6:.1f}"})
        text.text = visible(label or "")


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from low to high, the ends included where they are round."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    """Return the steps 1, 2, 5 of each decade from the one at or below low to the one at or above high."""
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    steps = [factor * 10.0**decade for decade in decades for factor in _DECADE]
    first = max(i for i, step in enumerate(steps) if step <= low)
    last = min(i for i, step in enumerate(steps) if step >= high)
    return [float(f"{step:.12g}") for step in steps[first : last + 1]]


def _percent(rate: float) -> str:
    return f"{100 * rate:.4g}%"


def _dollars(amount: float) -> str:
    return f"${amount:,.10g}"


def _short(label: str, most: int) -> str:
    shown = visible(label)
    return shown if len(shown) <= most else shown[: most - 1] + "…"
