"""What a disk may hold after power was lost: every state that recorded system calls allow.

The model is POSIX at its strictest. Content is durable once its file is synced, a name (new, gone, or another's) once
its directory is; until then each write may be there, not be there, be there in part (sectors of 512 bytes) or as zeros,
and each change of a name may or may not have happened. What it leaves out: disks that lie, decay of bits.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

CALLS: Final = (
    "openat,creat,open,pwrite64,write,fsync,fdatasync,ftruncate,unlink,unlinkat,rename,renameat,renameat2,link,"
    "linkat,mkdir,mkdirat,close"
)
T = TypeVar("T")
_SECTOR: Final = 512
DIRECTORY: Final = -1  # what the name of a directory stands for
_LINE: Final = re.compile(r"(?:\[pid\s+)?(\d+)\]?\s+(\w+)\((.*)\)\s+= (-?\d+)")
_WORD: Final = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?|(\w[\w|]*|-?\d+)')


class Write(NamedTuple):
    """Bytes that were written to a file."""

    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file that was cut."""

    file: int
    size: int


class Name(NamedTuple):
    """A name in a directory that now stands for a file, or for nothing."""

    directory: str
    name: str
    file: int | None


class Sync(NamedTuple):
    """A file whose content, or a directory whose names, became durable."""

    file: int | None
    directory: str | None


class Acknowledgement(NamedTuple):
    """A line on standard output: what it says must survive from here on."""

    text: str


Operation = Write | Truncate | Name | Sync | Acknowledgement


class Recording(NamedTuple):
    """What happened below one directory.

    Attributes:
        root: The directory.
        files: The content at the beginning, all durable; new files follow.
        names: Which file each path below the root durably stood for at the beginning.
        operations: In order.
    """

    root: str
    files: list[bytes]
    names: dict[str, int]
    operations: list[Operation]


class State(NamedTuple):
    """One state of the disk, and what had been acknowledged before power was lost."""

    content: dict[str, bytes]
    acknowledged: list[str]


class _Reader(Struct):
    root: str
    files: list[bytes]
    names: dict[str, int]
    operations: list[Operation]
    now: dict[str, int]
    open: dict[int, str | int]  # a directory by its path, a file by its number
    offsets: dict[int, int]

    def line(self, call: str, words: list[str], result: int) -> None:
        match call:
            case "openat" | "open":
                self._open(words[1] if call == "openat" else words[0], result)
            case "close":
                self.open.pop(int(words[0]), None)
            case "write" if words[0] == "1":
                self.operations += [Acknowledgement(line) for line in _bytes(words[1]).decode().splitlines()]
            case "write" | "pwrite64":
                self._write(
                    int(words[0]), _bytes(words[1])[:result], int(words[3]) if call[0] == "p" else None
                )
            case "ftruncate":
                self._cut(int(words[0]), int(words[1]))
            case "fsync" | "fdatasync":
                self._sync(int(words[0]))
            case "mkdir" | "mkdirat":
                self._name(next(word for word in words if word.startswith("/")), DIRECTORY)
            case "unlink" | "unlinkat":
                self._name(words[-1] if call == "unlink" else words[1], None)
            case "link" | "linkat" | "rename" | "renameat" | "renameat2":
                pair = [word for word in words if word.startswith("/")]
                file = self.now.get(pair[0])
                if file is not None:
                    self._name(pair[1], file)
                    if call[0] == "r":
                        self._name(pair[0], None)

    def _inside(self, path: str) -> bool:
        return path.startswith(self.root + "/")

    def _open(self, path: str, descriptor: int) -> None:
        if path == self.root or self.now.get(path) == DIRECTORY:
            self.open[descriptor] = path
        elif self._inside(path):
            if path not in self.now:
                self.files.append(b"")
                self._name(path, len(self.files) - 1)
            self.open[descriptor] = self.now[path]
            self.offsets[descriptor] = 0
        else:
            self.open.pop(descriptor, None)

    def _write(self, descriptor: int, data: bytes, offset: int | None) -> None:
        file = self.open.get(descriptor)
        if isinstance(file, int):
            place = self.offsets[descriptor] if offset is None else offset
            if offset is None:
                self.offsets[descriptor] += len(data)
            self.operations.append(Write(file, place, data))

    def _cut(self, descriptor: int, size: int) -> None:
        file = self.open.get(descriptor)
        if isinstance(file, int):
            self.operations.append(Truncate(file, size))

    def _sync(self, descriptor: int) -> None:
        opened = self.open.get(descriptor)
        if isinstance(opened, int):
            self.operations.append(Sync(opened, None))
        elif opened is not None:
            self.operations.append(Sync(None, opened))

    def _name(self, path: str, file: int | None) -> None:
        if not self._inside(path):
            return
        if file is None:
            self.now.pop(path, None)
        else:
            self.now[path] = file
        self.operations.append(Name(*_place(path), file))


def recording(
    root: Path, before: dict[str, bytes | None], trace: str, unsynced: Sequence[str] = ()
) -> Recording:
    """Return what a trace of `strace -f -xx -e trace=CALLS` says about the files below `root`.

    Args:
        root: The directory; the traced program must name it as written here.
        before: What was below it when the trace began, by absolute path; None for directories.
        trace: The trace.
        unsynced: Those of the paths whose name had not become durable when the trace began.

    Raises:
        ValueError: A call was cut short by strace, so the trace does not say what was written.
    """
    files = [data for data in before.values() if data is not None]
    numbers = iter(range(len(files)))
    names = {path: DIRECTORY if data is None else next(numbers) for path, data in before.items()}
    earlier: list[Operation] = [Name(*_place(path), names[path]) for path in unsynced]
    reader = _Reader(str(root), files, names, earlier, dict(names), {}, {})
    for line in trace.splitlines():
        if "unfinished ..." in line or "resumed>" in line:
            raise ValueError(f"two threads at once: {line[:80]}")
        match = _LINE.match(line)
        if match is not None and int(match[4]) >= 0:
            reader.line(match[2], _words(match[3]), int(match[4]))
    durable = {path: file for path, file in names.items() if path not in unsynced}
    return Recording(str(root), files, durable, reader.operations)


def _place(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory, name


def _words(arguments: str) -> list[str]:
    words = []
    for text, cut, plain in _WORD.findall(arguments):
        if cut:
            raise ValueError("strace cut a text short")
        words.append(plain or bytes.fromhex(text.replace("\\x", "")).decode("latin-1"))
    return words


def _bytes(word: str) -> bytes:
    return word.encode("latin-1")


def states(record: Recording, count: int, seed: int) -> Iterator[State]:
    """Yield random states of the disk after power was lost at random places."""
    chance = random.Random(seed)
    for _ in range(count):
        yield _state(record, chance.randint(0, len(record.operations)), chance)


def _state(record: Recording, cut: int, chance: random.Random) -> State:
    content = [bytearray(data) for data in record.files]
    names = dict(record.names)
    writes: dict[int, list[Write | Truncate]] = {}
    changes: dict[str, list[Name]] = {}
    acknowledged = []
    for operation in record.operations[:cut]:
        match operation:
            case Write(file=file) | Truncate(file=file):
                writes.setdefault(file, []).append(operation)
            case Name():
                changes.setdefault(operation.directory, []).append(operation)
            case Sync(file=None, directory=str(directory)):
                _rename(names, changes.pop(directory, []))
            case Sync(file=int(file)):
                for write in writes.pop(file, []):
                    _apply(content[file], write)
            case Acknowledgement(text=text):
                acknowledged.append(text)
    for pending in changes.values():
        _rename(names, _some(pending, chance))
    for file, kept in writes.items():
        for write in _some(kept, chance):
            for part in _torn(write, chance):
                _apply(content[file], part)
    return State(
        {
            path: bytes(content[file])
            for path, file in names.items()
            if file != DIRECTORY and _reachable(path, names, record.root)
        },
        acknowledged,
    )


def _reachable(path: str, names: dict[str, int], root: str) -> bool:
    """Say whether every directory on the way to a path has kept its name."""
    directory, _ = _place(path)
    return directory == root or (directory in names and _reachable(directory, names, root))


def _rename(names: dict[str, int], changes: list[Name]) -> None:
    for change in changes:
        path = f"{change.directory}/{change.name}"
        if change.file is None:
            names.pop(path, None)
        else:
            names[path] = change.file


def _some(pending: list[T], chance: random.Random) -> list[T]:
    """Return none, all, the first few, or any few of what was not synced."""
    match chance.randrange(4):
        case 0:
            return []
        case 1:
            return pending
        case 2:
            return pending[: chance.randint(0, len(pending))]
    return [one for one in pending if chance.random() < 0.5]


def _torn(write: Write | Truncate, chance: random.Random) -> list[Write | Truncate]:
    """Return a write as it is, or what its sectors may have become."""
    if isinstance(write, Truncate) or chance.random() < 0.6:
        return [write]
    parts: list[Write | Truncate] = []
    for start in range(0, len(write.data), _SECTOR):
        sector = write.data[start : start + _SECTOR]
        fate = chance.randrange(3)
        if fate:
            parts.append(Write(write.file, write.offset + start, sector if fate == 1 else bytes(len(sector))))
    return parts


def _apply(content: bytearray, write: Write | Truncate) -> None:
    end = write.size if isinstance(write, Truncate) else write.offset + len(write.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if isinstance(write, Truncate):
        del content[write.size :]
    else:
        content[write.offset : end] = write.data


def put_on_disk(state: State, root: Path, place: Path) -> None:
    """Write the files of a state below another directory than the one it was recorded in."""
    for path, data in state.content.items():
        target = place / os.path.relpath(path, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
