"""Git, asked without letting the asked repository, the user's setup or the environment take part in the answer."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from spl.errors import OperationFailedError
from spl.harness import process
from spl.harness.limit import Limit
from spl.harness.removal import remove_tree
from spl.harness.snapshot import printable

NAME: Final = "Splice Eval"
EMAIL: Final = "splice-eval@example.invalid"
_HARDENED: Final = (
    "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.untrackedCache=false",
    "-c", "commit.gpgSign=false", "-c", "gc.auto=0", "-c", "core.excludesFile=/dev/null",
    "-c", "core.attributesFile=/dev/null", "-c", "maintenance.auto=false",
)  # fmt: skip
# What decides how content is compared; none of these runs anything.
_HARMLESS: Final = (
    "core.filemode", "core.autocrlf", "core.eol", "core.ignorecase", "core.symlinks", "core.precomposeunicode",
    "status.renames", "diff.renames", "extensions.objectformat", "core.repositoryformatversion",
)  # fmt: skip
_SHORTEST: Final = 4  # two letters of status, a blank, a name


class Git:
    """Git with an environment of our own.

    Args:
        environment: The caller's; only PATH is taken from it.
        scratch: Where repositories of our own and captured output lie.
        limit: When it must end.
    """

    def __init__(self, environment: Mapping[str, str], scratch: Path, limit: Limit) -> None:
        self._scratch = scratch
        self._limit = limit
        self._environment = {
            "PATH": environment.get("PATH", os.defpath),
            "HOME": str(scratch),
            "LC_ALL": "C",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            **{f"GIT_{role}_NAME": NAME for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": EMAIL for role in ("AUTHOR", "COMMITTER")},
        }

    def commit_baseline(self, root: Path) -> None:
        """Make a repository in a directory and commit what is there, also when that is nothing.

        Raises:
            OperationFailedError: Git failed; the message says which command and what it printed.
        """
        ceiling = {"GIT_CEILING_DIRECTORIES": str(root.parent)}
        self._run(root, ["init", "--quiet", "--template="], ceiling)
        with (root / ".git" / "config").open("a", encoding="utf-8") as config:
            config.write(f"[user]\n\tname = {NAME}\n\temail = {EMAIL}\n")
        self._run(root, ["add", "."], ceiling)
        self._run(root, ["commit", "--quiet", "--allow-empty", "--no-verify", "-m", "baseline"], ceiling)

    def changed_files(self, workspace: Path) -> list[str]:
        """Return the changed names below a worktree's directory, relative to it, sorted by code point.

        The repository's configuration is not read by the command that looks at the worktree: it works on a Git
        directory of our own with the same commit, index and excludes, and the objects as an alternate.

        Raises:
            OperationFailedError: The directory is in no worktree, or Git failed.
        """
        words = ["rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-toplevel", "--show-prefix"]
        lines = self._run(workspace, words).decode("utf-8", "surrogateescape").split("\n")
        own, common, top, prefix = Path(lines[0]), workspace / lines[1], lines[2], lines[3]
        directory = Path(tempfile.mkdtemp(dir=self._scratch, prefix="git-"))
        try:
            self._mirror(workspace, own, common, directory)
            output = self._run(
                Path(top),
                ["status", "--porcelain", "-z", "--untracked-files=all", "--ignore-submodules=dirty"],
                {"GIT_DIR": str(directory), "GIT_WORK_TREE": top},
            )
        finally:
            remove_tree(directory)
        return sorted(_names(output, prefix))

    def _mirror(self, workspace: Path, own: Path, common: Path, directory: Path) -> None:
        for name in ("objects/info", "refs", "info"):
            (directory / name).mkdir(parents=True)
        (directory / "objects" / "info" / "alternates").write_bytes(
            os.fsencode((common / "objects").absolute()) + b"\n"
        )
        for source in [own / "index", *own.glob("sharedindex.*")]:
            if source.is_file():
                shutil.copy2(source, directory / source.name)
        if (common / "info" / "exclude").is_file():
            shutil.copy2(common / "info" / "exclude", directory / "info" / "exclude")
        head = self._try(workspace, ["rev-parse", "--verify", "--quiet", "HEAD"])
        (directory / "HEAD").write_bytes(head or b"ref: refs/heads/unborn\n")
        (directory / "config").write_text("[core]\n\tbare = false\n\trepositoryformatversion = 0\n")
        wanted = "^(" + "|".join(_HARMLESS) + ")$"
        settings = self._try(workspace, ["config", "--includes", "-z", "--get-regexp", wanted])
        for setting in settings.decode("utf-8", "surrogateescape").split("\0"):
            key, _, value = setting.partition("\n")
            if key in _HARMLESS:
                self._try(workspace, ["config", "--file", str(directory / "config"), key, value or "true"])

    def _try(self, directory: Path, words: Sequence[str]) -> bytes:
        try:
            return self._run(directory, words)
        except OperationFailedError:
            return b""

    def _run(self, directory: Path, words: Sequence[str], more: Mapping[str, str] | None = None) -> bytes:
        self._limit.check()
        outcome = process.run(
            ["git", *_HARDENED, *words],
            directory=directory,
            environment={**self._environment, "PWD": str(directory), **(more or {})},
            spools=self._scratch,
            limit=self._limit,
        )
        self._limit.check()
        shown = " ".join(words)
        if outcome.not_started:
            raise OperationFailedError(f"git {shown}: {outcome.not_started}")
        output = b"".join(outcome.stdout.chunks())
        if outcome.exit_code or outcome.truncated:
            said = (output + b"".join(outcome.stderr.chunks())).decode("utf-8", "replace").strip()
            raise OperationFailedError(f"git {shown}: exit status {outcome.exit_code}: {said}")
        return output


def _names(output: bytes, prefix: str) -> set[str]:
    found = set()
    fields = iter(output.split(b"\0"))
    for field in fields:
        if len(field) < _SHORTEST:
            continue
        if b"R" in field[:2] or b"C" in field[:2]:
            next(fields, None)  # the old name follows
        name = printable(os.fsdecode(field[3:]).replace("\\", "/")).rstrip("/")  # as in suites
        if name.startswith(prefix):
            found.add(name[len(prefix) :])
    return found
