"""From a suite file to the cases of a suite in the home."""

from __future__ import annotations

import msgspec

from spl.codec import jsontext
from spl.contracts.suites import SuiteDocument
from spl.errors import SuiteLoadError, schema_error
from spl.harness.fixture import fixture_directory, read_fixture
from spl.harness.suite import Suite
from spl.kernel.home import Kernel
from spl.kernel.suites import NewCase, NewFile, import_suite
from spl.kernel.tasks import case_of
from spl.records.evals import Case
from spl.records.problems import Problem, problems


def import_suite_file(kernel: Kernel, suite: Suite, name: str | None) -> SuiteDocument:
    """Make the suite of this name (its id when absent) hold the tasks of a suite file, with their fixtures.

    Raises:
        SuiteLoadError: A fixture is missing, or holds what cannot be taken over; nothing was appended.
    """
    fixtures: dict[str, list[NewFile]] = {}
    cases = []
    found: list[str] = []
    for task in suite.tasks:
        try:
            root = fixture_directory(suite.path, task.workspace_fixture)
            if str(root) not in fixtures:
                fixtures[str(root)] = [
                    NewFile(file.path, file.mode, file.data) for file in read_fixture(root)
                ]
        except SuiteLoadError as error:
            found.append(f"task {task.id!r}: {error.message}")
        else:
            cases.append(NewCase(case_of(task), fixtures[str(root)]))
    if found:
        raise SuiteLoadError("; ".join(found), hint="nothing was imported", details={"problems": found})
    return import_suite(kernel, name or suite.id, cases, suite.description or suite.name)


def parse_cases(data: bytes, name: str) -> list[NewCase]:
    """Return the cases of a JSON file: one case, or an array of them.

    A case has `key`, `name`, `goal`, `expect`, and the optional fields of its record.

    Raises:
        EncodingError, SchemaError: It is not such a file; every problem is named with its path.
    """
    value = jsontext.parse(data, what=name)
    items = value if isinstance(value, list) else [value]
    found = []
    for index, item in enumerate(items):
        found += _case_problems(item, f"$[{index}]" if isinstance(value, list) else "$")
    if found:
        raise schema_error(name, found)
    return [NewCase(msgspec.convert(item, Case)) for item in items]


def _case_problems(item: object, path: str) -> list[Problem]:
    if not isinstance(item, dict):
        return [(path, "a case is an object")]
    found = list(problems(item, Case, path))
    if "tree" in item:
        found.append((f"{path}.tree", "comes from a fixture; import a suite file instead"))
    if not found and not item["expect"]:
        found.append((f"{path}.expect", "holds at least one expectation"))
    return found
