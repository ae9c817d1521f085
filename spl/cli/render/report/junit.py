"""The report as JUnit XML: one test suite for each suite and definition, one test case for each case and axis.

Source of the format: the schema that Jenkins and GitLab read (https://github.com/testmoapp/junitxml); elements,
attributes and their order are those that both accept.
"""

from __future__ import annotations

from typing import Final
from xml.etree import ElementTree as ET

from spl.cli.render.report import readings
from spl.cli.render.report.readings import AXES, Definition
from spl.cli.sanitize import visible
from spl.contracts.report import CellAxis, CellPart, ReportDocument, ReportLine, ReportSuite
from spl.contracts.scores import ReasonPart
from spl.records.verdicts import AxisName

_MOST: Final = 20  # reasons that are told


def render_junit(document: ReportDocument) -> str:
    """Return the report as JUnit XML.

    A case fails on an axis when a graded run of it did, so that a flaky case is a failure that says how often it
    passed; a case without a graded run is skipped, and says why. Definitions without a score have no test suite.
    """
    known = readings.names(document)
    root = ET.Element("testsuites", {"name": visible(document.actor_name)})
    for suite in document.suites:
        for i in readings.scored(suite):
            root.append(_suite(suite, suite.lines[i], i, known.of(suite.lines[i].line.facet)))
    _count(root, list(root))
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(suite: ReportSuite, part: ReportLine, index: int, named: Definition) -> ET.Element:
    element = ET.Element("testsuite", {"name": visible(f"{suite.name}: {named.label}")})
    properties = ET.SubElement(element, "properties")
    score = part.line.score
    for name, value in (
        ("facet", part.line.facet.hex()),
        ("score", "" if score is None else score.hex()),
        ("suite", suite.suite.hex()),
        ("suite_revision", suite.revision.hex()),
    ):
        ET.SubElement(properties, "property", {"name": name, "value": value})
    cases = [_case(suite, row.key, row.cells[index], axis) for row in suite.rows for axis in AXES]
    element.extend(cases)
    tally = {
        "tests": len(cases),
        "failures": sum(case.find("failure") is not None for case in cases),
        "errors": 0,
        "skipped": sum(case.find("skipped") is not None for case in cases),
    }
    for name, count in tally.items():
        element.set(name, str(count))
    return element


def _count(root: ET.Element, suites: list[ET.Element]) -> None:
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))


def _case(suite: ReportSuite, key: str, cell: CellPart, axis: AxisName) -> ET.Element:
    case = ET.Element("testcase", {"name": f"{visible(key)} [{axis}]", "classname": visible(suite.name)})
    found = readings.cell_axis(cell, axis)
    if not found.of:
        why = f"{found.ungraded} runs, none graded" if found.ungraded else "no run"
        ET.SubElement(case, "skipped", {"message": why})
    elif found.passed < found.of:
        failure = ET.SubElement(case, "failure", {"message": _message(found), "type": axis})
        failure.text = "\n".join(map(_reason, cell.reasons[:_MOST])) or None
    return case


def _message(found: CellAxis) -> str:
    message = f"{found.passed} of {found.of} runs passed"
    return message if found.flip is None else f"{message}; {found.flip} against the predecessor"


def _reason(reason: ReasonPart) -> str:
    return visible(f"{reason.kind} {reason.id}: {reason.found}")
