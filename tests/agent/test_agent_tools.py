from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spl.agent.tools import CATALOG, MAX_OUTPUT_BYTES, Commands, Result, Tools, description, schema
from spl.agent.workspace import Workspace
from spl.harness.limit import Limit


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[Tools]:
    environment = {"PATH": os.environ["PATH"], "SECRET_KEY": "never", "GIT_DIR": "/elsewhere"}
    workspace = Workspace(tmp_path)
    yield Tools(workspace, Commands(environment=environment, timeout_s=5, limit=Limit()))
    workspace.close()


def ok(result: Result) -> str:
    assert result.status == "ok", result.text
    return result.text


def test_each_tool_says_what_it_does_and_what_it_takes() -> None:
    for name in CATALOG:
        assert description(name).endswith(".")
        shape = schema(name)
        assert (shape["type"], shape["additionalProperties"]) == ("object", False)
        assert set(shape["required"]) <= set(shape["properties"])
        assert "$ref" not in json.dumps(shape)


def test_files_are_written_read_patched_listed_and_searched(tools: Tools) -> None:
    assert "src/a.txt" in ok(tools.call("write", {"path": "src/a.txt", "content": "one\ntwo\nthree\n"}))
    assert ok(tools.call("read", '{"path": "src/a.txt", "first_line": 2, "lines": 1}')).startswith(
        "two\n[lines 2"
    )
    assert tools.call("patch", {"path": "src/a.txt", "old": "two", "new": "2"}).changed == "src/a.txt"
    assert ok(tools.call("read", {"path": "src/a.txt"})) == "one\n2\nthree\n"
    assert ok(tools.call("list", None)) == "src/\nsrc/a.txt (12 bytes)"
    assert ok(tools.call("search", {"pattern": "^t.*e$"})) == "src/a.txt:3: three"
    assert ok(tools.call("search", {"pattern": "one", "path": "src/a.txt"})) == "src/a.txt:1: one"
    assert ok(tools.call("search", {"pattern": "four"})) == "[no line matches]"


@pytest.mark.parametrize("old", ["absent", "x"])
def test_a_passage_that_does_not_stand_there_once_changes_nothing(
    tools: Tools, tmp_path: Path, old: str
) -> None:
    (tmp_path / "a").write_text("x and x")
    assert "times, not once" in tools.call("patch", {"path": "a", "old": old, "new": "y"}).text
    assert (tmp_path / "a").read_text() == "x and x"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read", "{bro"),
        ("read", "[]"),
        ("read", '{"path": 7}'),
        ("read", {}),
        ("read", {"path": "x", "more": 1}),
        ("run", {"command": []}),
        ("search", {"pattern": "("}),
        ("read", {"path": "missing"}),
        ("list", {"path": "missing"}),
    ],
)
def test_what_is_wrong_with_a_call_is_told(tools: Tools, name: str, arguments: Any) -> None:
    result = tools.call(name, arguments)
    assert result.status == "error"
    assert result.text


def test_long_output_is_cut_and_says_so(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / "long").write_text("line of text\n" * 100_000)
    (tmp_path / "wide").write_text("x" * 1_000_000)
    many = "import sys; sys.stdout.write('y' * 9_000_000 + 'end')"
    for call in (
        tools.call("read", {"path": "long", "lines": 100_000}),
        tools.call("read", {"path": "wide"}),
        tools.call("search", {"pattern": "text"}),
        tools.call("run", {"command": ["python3", "-c", many]}),
    ):
        assert call.truncated
        assert len(call.text.encode()) < MAX_OUTPUT_BYTES + 200
        assert "left out" in call.text or "goes on" in call.text


def test_a_file_that_is_no_text_is_refused_by_read_and_skipped_by_search(
    tools: Tools, tmp_path: Path
) -> None:
    (tmp_path / "binary").write_bytes(b"text\0text")
    assert tools.call("read", {"path": "binary"}).status == "error"
    assert ok(tools.call("search", {"pattern": "text"})) == "[no line matches]"


def test_a_name_that_is_not_utf_8_is_shown(tools: Tools, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("here")
    assert ok(tools.call("list", {})).encode() == "\ufffd.txt (4 bytes)".encode()


def test_a_command_sees_the_allowlist_and_its_own_home(tools: Tools, tmp_path: Path) -> None:
    said = ok(tools.call("run", {"command": ["env"]}))
    names = {line.partition("=")[0] for line in said.splitlines() if "=" in line}
    assert {"HOME", "TMPDIR", "PATH", "PWD"} <= names
    assert not names & {"SECRET_KEY", "GIT_DIR"}
    assert f"HOME={Path.home()}" not in said
    assert f"PWD={tmp_path}" in said


def test_how_a_command_ended_is_told(tools: Tools) -> None:
    failed = tools.call("run", {"command": ["sh", "-c", "echo out; echo err >&2; exit 7"]})
    assert (failed.status, failed.text) == ("error", "exit status 7\nout\nstandard error:\nerr")
    assert tools.call("run", {"command": ["no-such-program"]}).status == "error"


def test_a_command_ends_with_its_time(tmp_path: Path) -> None:
    tools = Tools(
        Workspace(tmp_path),
        Commands(environment={"PATH": os.environ["PATH"]}, timeout_s=0.3, limit=Limit()),
    )
    result = tools.call("run", {"command": ["sleep", "30"]})
    assert result.status == "error"
    assert "time limit" in result.text
