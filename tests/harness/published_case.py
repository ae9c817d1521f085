"""A recorded case of the published command line: laid out in a directory, run, and compared.

A case file holds `files` and `setup` (what is there), `env`, `argv` and `signal` (what is done), and `expect` or, where
we do better, `expect_fixed` (what must come of it). `<CASE>` stands for its directory, `<TMP>` for a directory below
its TMPDIR, `<WS>` for the random end of a workspace's name, `<MS>` for a measured time, `<ANY>` for any text, and
`<LONG chars=N sha256=H>` for a text of more than 4000 characters.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

LONG_TEXT = 4000
WAIT_S = 60.0
ADDITIONS = {"report"}


class PublishedCase:
    """One recorded case in a directory of its own."""

    def __init__(self, recorded: Mapping[str, Any], root: Path) -> None:
        self.recorded = recorded
        self.root = root
        (root / ".tmp").mkdir(parents=True)
        (root / ".gitconfig").touch()
        for name, content in recorded.get("files", {}).items():
            self._lay_out(root / name, {"text": content} if isinstance(content, str) else content)

    def _lay_out(self, path: Path, content: Mapping[str, Any]) -> None:
        if "dir" in content:
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(int(content.get("mode", "755"), 8))
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if "symlink" in content:
            path.symlink_to(self._here(content["symlink"]))
            return
        if "base64" in content:
            data = base64.b64decode(content["base64"])
        elif "json" in content:
            where = json.dumps(str(self.root))[1:-1]
            data = json.dumps(content["json"], ensure_ascii=False).replace("<CASE>", where).encode()
        else:
            data = self._here(content["text"]).encode("utf-8", "surrogatepass")
        path.write_bytes(data)
        path.chmod(int(content.get("mode", "644"), 8))

    def _here(self, text: str) -> str:
        return text.replace("<CASE>", str(self.root))

    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "SPL_", "PYTHON", "COV"))}
        return {
            **kept,
            "TMPDIR": str(self.root / ".tmp"),
            "GIT_CONFIG_GLOBAL": str(self.root / ".gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(self.root.parent),
            "XDG_CONFIG_HOME": str(self.root / ".xdg"),
            "LC_ALL": "C.UTF-8",
            **{key: self._here(value) for key, value in self.recorded.get("env", {}).items()},
        }

    def run(self) -> list[str]:
        """Run the case and return every difference from what is expected."""
        environment = self.environment()
        author = {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (
                ("NAME", "Case"),
                ("EMAIL", "case@example.invalid"),
                ("DATE", "2024-01-02T03:04:05Z"),
            )
        }
        for words in self.recorded.get("setup", []):
            subprocess.run(
                [self._here(word) for word in words],
                cwd=self.root,
                env={**environment, **author},
                check=True,
                capture_output=True,
            )
        expected = self.recorded.get("expect_fixed", self.recorded["expect"])
        started = time.monotonic()
        status, out, err = self._invoke(environment)
        spent_s = time.monotonic() - started
        time.sleep(expected.get("settle", 0))
        found = list(self._differences(expected, status, out, err))
        if spent_s > expected.get("max_seconds", WAIT_S):
            found.append(f"took {spent_s:.1f} s")
        return found

    def _invoke(self, environment: Mapping[str, str]) -> tuple[int, bytes, bytes]:
        words = [sys.executable, "-m", "spl", "eval", *map(self._here, self.recorded["argv"])]
        with subprocess.Popen(
            words,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            wanted = self.recorded.get("signal")
            if wanted is not None:
                deadline = time.monotonic() + WAIT_S
                while not any(self.root.glob(wanted["when_exists"])) and time.monotonic() < deadline:
                    time.sleep(0.02)
                process.send_signal(signal.Signals[f"SIG{wanted['send']}"])
            out, err = process.communicate(timeout=WAIT_S * 2)
        return process.returncode, out, err

    def _differences(self, expected: Mapping[str, Any], status: int, out: bytes, err: bytes) -> Iterator[str]:
        text, errors = self._masked(_text(out)), self._masked(_text(err))
        if status != expected["exit"]:
            yield f"exit status {status}, not {expected['exit']}; standard error: {errors}"
        if "stdout_json" in expected:
            yield from self._json_differences(expected["stdout_json"], out, "stdout")
        if "stdout_base64" in expected and base64.b64decode(expected["stdout_base64"]) != out:
            yield f"stdout is {out!r}"
        for name, found in (("stdout_text", text), ("stderr_text", errors)):
            if name in expected and not _fits(expected[name], found):
                yield f"{name} is {found!r}, not {expected[name]!r}"
        for name, found in (("stdout_contains", _text(out)), ("stderr_contains", _text(err))):
            yield from (
                f"{part!r} is not in {found!r}" for part in expected.get(name, []) if part not in found
            )
        if "report_file" in expected:
            data = (self.root / expected["report_path"].replace("<CASE>/", "")).read_bytes()
            yield from self._json_differences(expected["report_file"], data, "report")
        if "csv" in expected:
            table = _text((self.root / expected["csv_path"].replace("<CASE>/", "")).read_bytes())
            timeless = re.sub(
                r"(?m)^((?:(?:\"(?:[^\"]|\"\")*\"|[^,\n]*),){16})[1-9][0-9]*,", r"\1<MS>,", table
            )
            if not _fits(expected["csv"], self._masked(timeless)):
                yield f"the CSV is {timeless!r}, not {expected['csv']!r}"
        yield from self._file_differences(expected)

    def _file_differences(self, expected: Mapping[str, Any]) -> Iterator[str]:
        for name, wanted in expected.get("file_texts", {}).items():
            path = self.root / name
            found = self._masked(_text(path.read_bytes())) if path.exists() else None
            if found is None or not _fits(wanted, found):
                yield f"{name} holds {found!r}, not {wanted!r}"
        for pattern in expected.get("paths_exist", []):
            if not any(self.root.glob(pattern)):
                yield f"{pattern} is not there"
        for pattern in expected.get("paths_absent", []):
            yield from (f"{path} is there" for path in self.root.glob(pattern))

    def _json_differences(self, wanted: object, data: bytes, where: str) -> Iterator[str]:
        try:
            found = json.loads(data)
        except ValueError as error:
            yield f"{where} is not JSON: {error}"
            return
        for key in ADDITIONS - set(wanted if isinstance(wanted, dict) else ()):
            found.pop(key, None)
        yield from self._value_differences(wanted, found, where)

    def _value_differences(self, wanted: Any, found: Any, where: str) -> Iterator[str]:
        if isinstance(wanted, dict) and isinstance(found, dict):
            masked = {self._masked(key): value for key, value in found.items()}
            yield from (f"{where}.{key} is missing" for key in wanted.keys() - masked.keys())
            yield from (f"{where}.{key} is not wanted" for key in masked.keys() - wanted.keys())
            for key in wanted.keys() & masked.keys():
                yield from self._value_differences(wanted[key], masked[key], f"{where}.{key}")
        elif isinstance(wanted, list) and isinstance(found, list):
            if len(wanted) != len(found):
                yield f"{where} has {len(found)} items, not {len(wanted)}"
            for index, (left, right) in enumerate(zip(wanted, found, strict=False)):
                yield from self._value_differences(left, right, f"{where}[{index}]")
        elif not self._is_like(wanted, found):
            yield f"{where} is {str(found)[:200]!r}, not {wanted!r}"

    def _is_like(self, wanted: Any, found: Any) -> bool:
        if wanted == "<MS>":
            return type(found) is int and found > 0
        if isinstance(wanted, str) and isinstance(found, str):
            return _fits(wanted, self._masked(found))
        if isinstance(wanted, bool) or wanted is None:
            return wanted is found
        return bool(wanted == found)

    def _masked(self, text: str) -> str:
        text = re.sub(r"<CASE>/\.tmp/[^/\s\"']+", "<TMP>", text.replace(str(self.root), "<CASE>"))
        for root in sorted(map(re.escape, self._work_roots()), key=len, reverse=True):
            text = re.sub(rf"(?<![\w./-])({root}/[A-Za-z0-9_-]+-)[A-Za-z0-9_]+", r"\1<WS>", text)
        if len(text) > LONG_TEXT:
            digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            return f"<LONG chars={len(text)} sha256={digest}>"
        return text

    def _work_roots(self) -> set[str]:
        words = self.recorded["argv"]
        named = {word for before, word in itertools.pairwise(words) if before == "--work-root"}
        named |= {word.partition("=")[2] for word in words if word.startswith("--work-root=")}
        inner = {f"<CASE>/{name}" for name in named if not name.startswith(("<", "/"))}
        return {os.path.normpath(name) for name in named | inner | {"<TMP>"}}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _fits(wanted: str, found: str) -> bool:
    if "<ANY>" not in wanted:
        return wanted == found
    return re.fullmatch(".+".join(map(re.escape, wanted.split("<ANY>"))), found, re.DOTALL) is not None
