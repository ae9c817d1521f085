"""Rules about source text that the linters do not know; each returns what breaks it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6
MAX_COMMAND_PARAMETERS = 10
FORBIDDEN_NAMES = {"utils", "helpers", "common", "base", "core", "manager"}
ENVIRONMENT = "spl/environment.py"
PROCESS = "spl/harness/process.py"
WORKERS = "spl/kernel/workers.py"  # more of this very program, not other people's
COMMANDS = "spl/cli/commands/"

_PROCESS_MODULES = {"subprocess", "multiprocessing", "pty"}
_PROCESS_CALLS = ("system", "popen", "fork", "forkpty", "exec", "spawn", "posix_spawn")


def broken(path: str, text: str) -> list[str]:
    """Return every rule that a module breaks, with its place.

    Args:
        path: The module's path from the root of the project, with slashes.
        text: Its source.
    """
    tree = ast.parse(text)
    found = [*_names(path), *_lines(path, text)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found += _function(path, node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found += _imported(path, node)
        elif isinstance(node, ast.Attribute):
            found += _attribute(path, node)
    return found


def _names(path: str) -> Iterator[str]:
    for part in PurePosixPath(path).with_suffix("").parts:
        if part in FORBIDDEN_NAMES:
            yield f"{path}: {part} says nothing about what is inside"


def _lines(path: str, text: str) -> Iterator[str]:
    count = text.count("\n")
    if count >= MAX_MODULE_LINES:
        yield f"{path}: {count} lines"


def _function(path: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    place = f"{path}:{node.lineno} {node.name}"
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    if length >= MAX_FUNCTION_LINES:
        yield f"{place}: {length} lines"
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    count = len([name for name in names if name not in ("self", "cls")])
    allowed = MAX_COMMAND_PARAMETERS if path.startswith(COMMANDS) else MAX_PARAMETERS
    if count > allowed:
        yield f"{place}: {count} parameters"


def _imported(path: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for module in modules:
        package = module.partition(".")[0]
        if (
            package in _PROCESS_MODULES
            and path != PROCESS
            and (package, path) != ("multiprocessing", WORKERS)
        ):
            yield f"{path}:{node.lineno}: only {PROCESS} starts processes"
    names = {alias.name for alias in node.names}
    if path != ENVIRONMENT and modules == ["os"] and names & {"environ", "getenv", "environb"}:
        yield f"{path}:{node.lineno}: only {ENVIRONMENT} reads the environment"


def _attribute(path: str, node: ast.Attribute) -> Iterator[str]:
    if not (isinstance(node.value, ast.Name) and node.value.id == "os"):
        return
    if node.attr in {"environ", "getenv", "environb"} and path != ENVIRONMENT:
        yield f"{path}:{node.lineno}: only {ENVIRONMENT} reads the environment"
    if node.attr.startswith(_PROCESS_CALLS) and path != PROCESS:
        yield f"{path}:{node.lineno}: only {PROCESS} starts processes"
