"""From a definition to a process: its words, its environment, and the files that it is made of."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from spl.codec import digest, jsontext
from spl.errors import OperationFailedError
from spl.harness import process
from spl.harness.agent import agent_words
from spl.harness.built_in import BuiltIn, built_in_words
from spl.harness.execution import Launch
from spl.harness.suite import Task
from spl.ids import BlobId
from spl.kernel.content import Blobs, unfold_text
from spl.records.definitions import CommandBehaviour, PipelineBehaviour
from spl.records.runs import RunObserved
from spl.records.wire import to_map

_PIECE: Final = 1 << 20


class Starter(Struct, frozen=True, kw_only=True):
    """How the agent of a definition is started.

    Attributes:
        behaviour: The behaviour.
        blobs: Where its pinned files and long texts stand.
        environment: The caller's environment, of which only an allowlist is passed on.
        built_in: What the built-in agent needs; None leaves it without keys.
    """

    behaviour: CommandBehaviour | PipelineBehaviour
    blobs: Blobs
    environment: Mapping[str, str]
    built_in: BuiltIn | None = None

    def observed(self, timeout_ms: int | None) -> RunObserved:
        """Return what is known of the program before it starts; of a program in the workspace, nothing is."""
        present = sorted({*process.allowed(self.environment, self._passed), "HOME", "PWD", "TMPDIR"})
        return RunObserved(program=self._program(), timeout_ms=timeout_ms, env=present)

    def launch(self, task: Task, workspace: Path, private: Path) -> Launch:
        """Return argv and environments for one run.

        Args:
            task: What is put to the agent.
            workspace: Where it works.
            private: A fresh directory of the run's own, outside the workspace.

        Raises:
            OperationFailedError: A pinned file differs from what the definition names, or a model's key is not set.
            InputError, MissingExtraError: The built-in agent cannot ask one of its models, or is not installed.
            DamagedError: The blob of a pinned file is missing or altered.
        """
        files = private / "files"
        pins = dict(self.behaviour.files or {})
        for name, blob in pins.items():
            _write(files, name, self.blobs.get(blob))
        if isinstance(self.behaviour, PipelineBehaviour):
            self._check_keys()
            words = built_in_words(task.prompt, definition=self._definition(private))
        else:
            words = agent_words(
                self.behaviour.argv,
                {
                    "workspace": str(workspace),
                    "prompt": task.prompt,
                    "task_id": task.id,
                    "model": self.behaviour.model or "",
                    "files": str(files),
                },
            )
            _check_pins(words, workspace, pins, self.environment.get("PATH", os.defpath))
        environment = process.allowlisted(self.environment, workspace, private, self._passed)
        if isinstance(self.behaviour, PipelineBehaviour) and self.built_in is not None:
            environment |= self.built_in.variables
        return Launch(
            words,
            environment,
            lambda: process.allowlisted(
                self.environment, workspace, Path(tempfile.mkdtemp(dir=private, prefix="checks-"))
            ),
            self.behaviour.model or "",
        )

    def _check_keys(self) -> None:
        """Do nothing when every key that the models need is there: a run without one would say nothing of the agent."""
        missing = [name for name in self._passed if not self.environment.get(name)]
        if missing:
            raise OperationFailedError(f"the key of its model is missing: {', '.join(missing)} is not set")

    @property
    def _passed(self) -> Sequence[str]:
        if isinstance(self.behaviour, CommandBehaviour):
            return self.behaviour.env or ()
        if self.built_in is None:
            return ()
        routes = [self.behaviour.model, *(stage.model for stage in self.behaviour.stages or ())]
        return self.built_in.key_variables([route for route in routes if route])

    def _program(self) -> BlobId | None:
        if isinstance(self.behaviour, PipelineBehaviour):
            return _hash(sys.executable)
        word = self.behaviour.argv[0]
        for name, blob in (self.behaviour.files or {}).items():
            if word == f"{{files}}/{name}":
                return blob
        if "/" not in word:
            found = process.find_program(word, self.environment.get("PATH", os.defpath))
            return _hash(found) if found else None
        return _hash(word) if word.startswith("/") else None

    def _definition(self, private: Path) -> Path:
        behaviour: dict[str, Any] = to_map(self.behaviour)
        for holder in (behaviour, *behaviour.get("stages", ())):
            if isinstance(holder.get("instructions"), bytes):
                holder["instructions"] = unfold_text(self.blobs, holder["instructions"])
        path = private / "definition.json"
        _write(private, path.name, jsontext.format_json(behaviour).encode())
        return path


@lru_cache(maxsize=64)
def _hash(path: str) -> BlobId | None:
    """Return the blob id of a program's bytes, or None when it cannot be read; once in the life of a process."""
    try:
        return digest.blob_id_of(_pieces(Path(path)))
    except OSError:
        return None


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def _write(directory: Path, name: str, data: bytes) -> None:
    path = directory / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o700 if data.startswith(b"#!") else 0o600)


def _check_pins(words: Sequence[str], workspace: Path, pins: Mapping[str, BlobId], path: str) -> None:
    """Do nothing unless a word names a file that is pinned and whose content on disk is another."""
    for index, word in enumerate(words if pins else ()):
        found = process.find_program(word, path) if not index and "/" not in word else None
        file = Path(found or os.path.join(workspace, word))  # noqa: PTH118 - a word may be any text
        pinned = next((blob for name, blob in pins.items() if str(file).endswith(f"/{name}")), None)
        if pinned is not None and word.startswith("/") and not file.exists():
            raise OperationFailedError(f"the pinned file {file} is not there any more: restore it")
        if pinned is not None and _is_file(file) and digest.blob_id_of(_pieces(file)) != pinned:
            raise OperationFailedError(
                f"the pinned file {file} is not what the definition names: define it anew, or restore it"
            )


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False
