"""Suite files: what they hold, and how they are read.

The published format is decoded as its public implementation does: keys match under simple case folding with an exact
match preferred, repeated keys are merged or replaced, null leaves a value as it was, unknown fields are refused at
every level. Problems of content are collected, all of them, in the documented order.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from msgspec import Struct

from spl.errors import SuiteLoadError
from spl.harness.lenient import EACH_BYTE, Pairs, folded, without_surrogates
from spl.harness.paths import PathProblem, normal_path, trim


class Command(Struct, frozen=True):
    """A verification command; `command` is its argv as written."""

    id: str = ""
    name: str = ""
    command: list[str] = []


class ContextChecks(Struct, frozen=True):
    """Files that must, and must not, exist after the agent."""

    required_files: list[str] = []
    forbidden_files: list[str] = []


class Task(Struct, frozen=True):
    """One task; lists of paths and events are normalised, without repeats, sorted."""

    id: str = ""
    name: str = ""
    description: str = ""
    tags: list[str] = []
    difficulty: str = ""
    prompt: str = ""
    workspace_fixture: str = ""
    verification_commands: list[Command] = []
    expected_changed_files: list[str] = []
    forbidden_changed_files: list[str] = []
    required_trace_events: list[str] = []
    context_checks: ContextChecks = ContextChecks()


class Suite(Struct, frozen=True):
    """A suite file; `path` is where it was read, `checks` how many results its tasks have."""

    path: str
    id: str = ""
    name: str = ""
    description: str = ""
    tasks: list[Task] = []

    @property
    def checks(self) -> int:
        """Return the number of checks over all tasks."""
        return sum(
            len(task.verification_commands)
            + 1
            + bool(task.forbidden_changed_files)
            + bool(task.context_checks.required_files or task.context_checks.forbidden_files)
            + bool(task.required_trace_events)
            for task in self.tasks
        )


_PARSE: Final = "parse agent eval suite: "
_TEXT: Final = "text"
_TEXTS: Final = "texts"
_COMMAND: Final[dict[str, Any]] = {"id": _TEXT, "name": _TEXT, "command": _TEXTS}
_CONTEXT: Final[dict[str, Any]] = {"requiredFiles": _TEXTS, "forbiddenFiles": _TEXTS}
_TASK: Final[dict[str, Any]] = {
    "id": _TEXT,
    "name": _TEXT,
    "description": _TEXT,
    "tags": _TEXTS,
    "difficulty": _TEXT,
    "prompt": _TEXT,
    "workspaceFixture": _TEXT,
    "verificationCommands": [_COMMAND],
    "expectedChangedFiles": _TEXTS,
    "forbiddenChangedFiles": _TEXTS,
    "requiredTraceEvents": _TEXTS,
    "contextChecks": _CONTEXT,
}
_SUITE: Final[dict[str, Any]] = {"id": _TEXT, "name": _TEXT, "description": _TEXT, "tasks": [_TASK]}
_BLANKS: Final = " \t\r\n"


def load_suite(path: str) -> Suite:
    """Return the suite of a file.

    Raises:
        SuiteLoadError: It cannot be read, is not a suite, or has problems; `details["problems"]` lists them.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise SuiteLoadError(f"load agent eval suite: {path}: {error.strerror}") from error
    return parse_suite(data, path)


def parse_suite(data: bytes, path: str) -> Suite:
    """Return the suite of a file's bytes.

    Raises:
        SuiteLoadError: As `load_suite`.
    """
    text = data.decode("utf-8", EACH_BYTE)
    value, end = _decode_json(text)
    raw = _decode(value, _SUITE, {}, "suite")
    _check_end(text, end)
    found = list(_problems(raw))
    if found:
        raise SuiteLoadError(
            "agent eval suite is invalid: " + "; ".join(found), details={"problems": found, "path": path}
        )
    return Suite(
        path=path,
        id=raw.get("id", ""),
        name=raw.get("name", ""),
        description=raw.get("description", ""),
        tasks=[_task(task) for task in raw["tasks"]],
    )


class _Number(str):
    """A number, as it was written."""

    __slots__ = ()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"invalid character {name[0]!r} looking for beginning of value")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant
)


def _decode_json(text: str) -> tuple[Any, int]:
    start = len(text) - len(text.lstrip(_BLANKS))
    if start == len(text):
        raise SuiteLoadError(f"{_PARSE}the file is empty")
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError as error:
        raise SuiteLoadError(f"{_PARSE}exceeded the nesting limit") from error
    except ValueError as error:
        raise SuiteLoadError(f"{_PARSE}{error}") from error


def _check_end(text: str, end: int) -> None:
    rest = text[end:].lstrip(_BLANKS)
    if not rest:
        return
    try:
        _DECODER.raw_decode(rest)
    except (ValueError, RecursionError) as error:
        raise SuiteLoadError(f"{_PARSE}trailing JSON after suite: {error}") from error
    raise SuiteLoadError(f"{_PARSE}trailing JSON after suite")


def _decode(value: Any, shape: Any, before: Any, where: str) -> Any:  # noqa: ANN401 - JSON of any shape
    """Return `value` decoded over what an earlier value of the same key left."""
    if value is None:
        return before
    if shape == _TEXT:
        if type(value) is not str:
            raise SuiteLoadError(f"{_PARSE}{where} must be a string")
        return without_surrogates(value)
    if isinstance(shape, dict):
        return _decode_object(value, shape, before, where)
    if type(value) is not list:
        raise SuiteLoadError(f"{_PARSE}{where} must be an array")
    inner, zero = (_TEXT, "") if shape == _TEXTS else (shape[0], {})
    return [_decode(item, inner, zero, f"{where}[{i}]") for i, item in enumerate(value)]


def _decode_object(value: Any, shape: dict[str, Any], before: Any, where: str) -> dict[str, Any]:  # noqa: ANN401
    if not isinstance(value, Pairs):
        raise SuiteLoadError(f"{_PARSE}{where} must be an object")
    decoded: dict[str, Any] = dict(before)
    for key, item in value:
        name = _field(key, shape)
        if name is None:
            raise SuiteLoadError(f"{_PARSE}{where}: unknown field {json.dumps(key)}")
        inner = shape[name]
        zero: Any = {} if isinstance(inner, dict) else "" if inner == _TEXT else []
        decoded[name] = _decode(item, inner, decoded.get(name, zero), f"{where}.{name}")
    return decoded


def _field(key: str, shape: dict[str, Any]) -> str | None:
    if key in shape:
        return key
    wanted = folded(key)
    return next((name for name in shape if name.lower() == wanted), None)


def _problems(suite: dict[str, Any]) -> Iterator[str]:
    if not trim(suite.get("id", "")):
        yield "suite id is required"
    if not trim(suite.get("name", "")):
        yield "suite name is required"
    tasks = suite.get("tasks") or []
    if not tasks:
        yield "tasks must not be empty"
    holders: dict[str, int] = {}
    for index, task in enumerate(tasks):
        yield from _task_problems(task, index, holders)


def _task_problems(task: dict[str, Any], index: int, holders: dict[str, int]) -> Iterator[str]:
    at = f"tasks[{index}]"
    yield from _id_problems(task.get("id", ""), index, holders, at, "tasks")
    for field in ("name", "prompt", "workspaceFixture"):
        if not trim(task.get(field, "")):
            yield f"{at} {field} is required"
    commands = task.get("verificationCommands") or []
    if not commands:
        yield f"{at} verificationCommands must not be empty"
    expected = task.get("expectedChangedFiles") or []
    if not expected:
        yield f"{at} expectedChangedFiles must not be empty"
    yield from _path_problems(expected, f"{at} expectedChangedFiles")
    yield from _path_problems(task.get("forbiddenChangedFiles") or [], f"{at} forbiddenChangedFiles")
    context = task.get("contextChecks") or {}
    for field in ("requiredFiles", "forbiddenFiles"):
        yield from _path_problems(context.get(field) or [], f"{at} contextChecks.{field}")
    yield from _event_problems(task.get("requiredTraceEvents") or [], f"{at} requiredTraceEvents")
    seen: dict[str, int] = {}
    for number, command in enumerate(commands):
        place = f"{at} verificationCommands[{number}]"
        yield from _id_problems(command.get("id", ""), number, seen, place, "verificationCommands")
        if not trim(command.get("name", "")):
            yield f"{place} name is required"
        if not any(trim(part) for part in command.get("command") or []):
            yield f"{place} command must not be empty"


def _id_problems(text: str, index: int, holders: dict[str, int], at: str, of: str) -> Iterator[str]:
    if not trim(text):
        yield f"{at} id is required"
    elif text in holders:
        yield f"{at} id duplicates {of}[{holders[text]}]"
    else:
        holders[text] = index


def _path_problems(paths: Sequence[str], at: str) -> Iterator[str]:
    seen: dict[str, int] = {}
    for index, path in enumerate(paths):
        try:
            normal = normal_path(path)
        except PathProblem as problem:
            yield f"{at}[{index}] {problem}"
            continue
        if normal in seen:
            yield f"{at}[{index}] duplicates {at.rpartition(' ')[2]}[{seen[normal]}]"
        seen.setdefault(normal, index)


def _event_problems(events: Sequence[str], at: str) -> Iterator[str]:
    seen: dict[str, int] = {}
    for index, event in enumerate(events):
        name = trim(event)
        if not name:
            yield f"{at}[{index}] must not be empty"
        elif name in seen:
            yield f"{at}[{index}] duplicates {at.rpartition(' ')[2]}[{seen[name]}]"
        seen.setdefault(name, index)


def _task(raw: dict[str, Any]) -> Task:
    context = raw.get("contextChecks") or {}
    return Task(
        id=raw["id"],
        name=raw["name"],
        description=raw.get("description", ""),
        tags=raw.get("tags") or [],
        difficulty=raw.get("difficulty", ""),
        prompt=raw["prompt"],
        workspace_fixture=raw["workspaceFixture"],
        verification_commands=[
            Command(c["id"], c["name"], c["command"]) for c in raw["verificationCommands"]
        ],
        expected_changed_files=_paths(raw["expectedChangedFiles"]),
        forbidden_changed_files=_paths(raw.get("forbiddenChangedFiles")),
        required_trace_events=sorted({trim(event) for event in raw.get("requiredTraceEvents") or []}),
        context_checks=ContextChecks(
            _paths(context.get("requiredFiles")), _paths(context.get("forbiddenFiles"))
        ),
    )


def _paths(paths: Sequence[str] | None) -> list[str]:
    return sorted({normal_path(path) for path in paths or ()})
