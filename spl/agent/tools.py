"""The tools: list, read, search, write, patch, run. What they return is capped, and says so."""

from __future__ import annotations

import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from spl.agent.workspace import RefusedError, Workspace
from spl.harness import process
from spl.harness.limit import Limit
from spl.harness.removal import remove_tree

MAX_OUTPUT_BYTES: Final = 32_768
MAX_ENTRIES: Final = 1_000
MAX_FILES: Final = 20_000
_MAX_LINE: Final = 400
_BINARY: Final = b"\0"

Relative = Annotated[str, Meta(min_length=1, description="Relative to the workspace.")]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The root of every tool's arguments: closed, so that a mistyped name is told and not ignored."""


class List(Arguments, frozen=True):
    """List the files below a directory, with their sizes."""

    path: Relative = "."


class Read(Arguments, frozen=True):
    """Read a text file."""

    path: Relative
    first_line: Annotated[int, Meta(ge=1, description="Where to begin.")] = 1
    lines: Annotated[int, Meta(ge=1, description="How many lines.")] = 2_000


class Search(Arguments, frozen=True):
    """Find the lines that match a regular expression (RE2 syntax), in files below a path."""

    pattern: Annotated[str, Meta(min_length=1)]
    path: Relative = "."


class Write(Arguments, frozen=True):
    """Replace a file as a whole, or make it with the directories that it needs."""

    path: Relative
    content: str


class Patch(Arguments, frozen=True):
    """Replace one passage of a file. It must stand there exactly once: add lines around it until it does."""

    path: Relative
    old: Annotated[str, Meta(min_length=1, description="The passage, to the letter.")]
    new: str


class Run(Arguments, frozen=True):
    """Run a program in the workspace, without a shell, and return what it printed and its exit status."""

    command: Annotated[list[str], Meta(min_length=1, description="The program and its arguments.")]


CATALOG: Final[dict[str, type[Arguments]]] = {
    "list": List,
    "read": Read,
    "search": Search,
    "write": Write,
    "patch": Patch,
    "run": Run,
}


class Result(Struct, frozen=True, kw_only=True):
    """What a tool returned: text for the model, and whether it worked and was cut."""

    text: str
    status: str = "ok"
    truncated: bool = False
    changed: str | None = None


class Commands(Struct, frozen=True, kw_only=True):
    """How commands are run.

    Attributes:
        environment: The caller's environment, of which an allowlist is passed on.
        timeout_s: How long one may take.
        limit: When the run must end.
    """

    environment: Mapping[str, str]
    timeout_s: float
    limit: Limit


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    kind = CATALOG[name]
    (_, components) = msgspec.json.schema_components([kind])
    found = dict(components[kind.__name__])
    return {key: value for key, value in found.items() if key not in ("title", "description")}


def description(name: str) -> str:
    """Return what a tool does."""
    return (CATALOG[name].__doc__ or "").strip()


class Tools:
    """The tools over one workspace.

    Args:
        workspace: Where they work.
        commands: How commands are run.
    """

    def __init__(self, workspace: Workspace, commands: Commands) -> None:
        self._workspace = workspace
        self._commands = commands
        self._handlers: dict[type[Arguments], Callable[[Any], Result]] = {
            List: self._list,
            Read: self._read,
            Search: self._search,
            Write: self._write,
            Patch: self._patch,
            Run: self._run,
        }

    def call(self, name: str, arguments: str | Mapping[str, Any] | None) -> Result:
        """Call a tool; whatever is wrong with the call is told in the result.

        Args:
            name: One of the catalog.
            arguments: JSON text or a map.
        """
        kind = CATALOG[name]
        try:
            if isinstance(arguments, str):
                given = msgspec.json.decode(arguments or "{}", type=kind)
            else:
                given = msgspec.convert(arguments or {}, kind)
            return self._handlers[kind](given)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return Result(text=f"the arguments of {name} are wrong: {error}", status="error")
        except RefusedError as error:
            return Result(text=_printable(str(error)), status="error")
        except OSError as error:
            return Result(text=_printable(f"{name}: {error.strerror or error}"), status="error")

    def check(self, argv: list[str]) -> Result:
        """Run the check of a definition, as the tool runs a command."""
        return self._run(Run(command=argv))

    def _list(self, given: List) -> Result:
        lines: list[str] = []
        more = False
        for path, state in self._workspace.entries(given.path):
            if len(lines) >= MAX_ENTRIES:
                more = True
                break
            if stat.S_ISDIR(state.st_mode):
                lines.append(f"{path}/")
            elif stat.S_ISLNK(state.st_mode):
                lines.append(f"{path} (link)")
            else:
                lines.append(f"{path} ({state.st_size} bytes)")
        if more:
            lines.append(f"[only the first {MAX_ENTRIES} entries; name a directory]")
        return _capped("\n".join(lines) or "[nothing]", truncated=more)

    def _read(self, given: Read) -> Result:
        data = self._workspace.read(given.path)
        if _BINARY in data[:8192]:
            raise RefusedError(f"{given.path}: is not text")
        lines = data.decode("utf-8", "replace").splitlines(keepends=True)
        wanted = lines[given.first_line - 1 : given.first_line - 1 + given.lines]
        text, size = [], 0
        for line in wanted:
            size += len(line.encode())
            if size > MAX_OUTPUT_BYTES:
                break
            text.append(line)
        last = given.first_line - 1 + len(text)
        if last >= len(lines):
            return Result(text="".join(text))
        if not text:
            return _capped("".join(wanted[:1]))
        said = f"[lines {given.first_line} to {last} of {len(lines)}; first_line {last + 1} goes on]"
        return Result(text="".join(text).rstrip("\n") + f"\n{said}", truncated=True)

    def _search(self, given: Search) -> Result:
        import re2  # noqa: PLC0415 - few runs search

        try:
            pattern = re2.compile(given.pattern)
        except re2.error as error:
            raise RefusedError(f"the pattern {given.pattern!r} is wrong: {error}") from error
        found: list[str] = []
        size = 0
        for count, path in enumerate(self._files(given.path)):
            if count >= MAX_FILES:
                found.append(f"[only the first {MAX_FILES} files were searched; name a directory]")
                return _capped("\n".join(found), truncated=True)
            for number, line in self._matching(path, pattern):
                found.append(f"{path}:{number}: {line.strip()[:_MAX_LINE]}")
                size += len(found[-1])
            if size > MAX_OUTPUT_BYTES:
                break
        return _capped("\n".join(found) or "[no line matches]")

    def _files(self, path: str) -> list[str]:
        if not self._workspace.is_directory(path):
            return [path]
        return [name for name, state in self._workspace.entries(path) if stat.S_ISREG(state.st_mode)]

    def _matching(self, path: str, pattern: Any) -> list[tuple[int, str]]:  # noqa: ANN401 - re2 has no types
        try:
            data = self._workspace.read(path)
        except RefusedError:
            return []
        if _BINARY in data[:8192]:
            return []
        lines = data.decode("utf-8", "replace").splitlines()
        return [(number, line) for number, line in enumerate(lines, 1) if pattern.search(line)]

    def _write(self, given: Write) -> Result:
        data = given.content.encode()
        path = self._workspace.write(given.path, data)
        return Result(text=f"{path} has {len(data)} bytes now", changed=path)

    def _patch(self, given: Patch) -> Result:
        data, old = self._workspace.read(given.path), given.old.encode()
        count = data.count(old)
        if count != 1:
            raise RefusedError(f"{given.path}: the passage stands there {count} times, not once")
        path = self._workspace.write(given.path, data.replace(old, given.new.encode()))
        return Result(text=f"{path} is changed", changed=path)

    def _run(self, given: Run) -> Result:
        private = Path(tempfile.mkdtemp(prefix="spl-command-"))
        root = self._workspace.root
        try:
            done = process.run(
                given.command,
                directory=root,
                environment=process.allowlisted(self._commands.environment, root, private),
                spools=private,
                limit=self._commands.limit.within(self._commands.timeout_s),
            )
            return _told(done, self._commands.timeout_s)
        finally:
            remove_tree(private)


def _told(done: process.Outcome, timeout_s: float) -> Result:
    if done.not_started:
        return Result(text=_printable(done.not_started), status="error")
    out, out_cut = _ends(done.stdout)
    err, err_cut = _ends(done.stderr)
    if done.timed_out:
        how = f"ended after {timeout_s:g} s, its time limit"
    elif done.cancelled:
        how = "ended by the operator"
    elif done.signal:
        how = f"ended by signal {done.signal}"
    else:
        how = f"exit status {done.exit_code}"
    parts = [how, *([out] if out else []), *([f"standard error:\n{err}"] if err else [])]
    text = "\n".join(parts)
    return Result(
        text=text,
        status="ok" if done.exit_code == 0 else "error",
        truncated=out_cut or err_cut or done.truncated,
    )


def _ends(spool: Any) -> tuple[str, bool]:  # noqa: ANN401 - a captured stream
    """Return beginning and end of a stream, with what is left out in between said, and whether anything is."""
    half = MAX_OUTPUT_BYTES // 2
    head, tail, size = bytearray(), bytearray(), 0
    for piece in spool.chunks():
        size += len(piece)
        room = half - len(head)
        head += piece[:room]
        tail = (tail + piece[room:])[-half:]
    left = size - len(head) - len(tail) + spool.dropped
    between = f"\n[{left} bytes left out]\n" if left else ""
    return (head.decode("utf-8", "replace") + between + tail.decode("utf-8", "replace")).rstrip(
        "\n"
    ), left > 0


def _capped(text: str, *, truncated: bool = False) -> Result:
    data = _printable(text).encode()
    if len(data) <= MAX_OUTPUT_BYTES:
        return Result(text=data.decode(), truncated=truncated)
    kept = data[:MAX_OUTPUT_BYTES].decode("utf-8", "ignore")
    return Result(text=f"{kept}\n[{len(data) - len(kept.encode())} bytes left out]", truncated=True)


def _printable(text: str) -> str:
    """Return text that is UTF-8: names of files may not be."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
