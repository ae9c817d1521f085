from __future__ import annotations

import json
from pathlib import Path

import pytest

from spl.cli.app import COMMANDS
from spl.contracts.schemas import schemas
from spl.docs import WIDTH, helps, main, pages
from spl.errors import all_errors
from spl.records.registry import KINDS

ROOT = Path(__file__).parents[2]
HELPS = dict(helps())
OWN_WORDS = "spl eval"  # prints the help of the published commands, which has a form of its own


@pytest.mark.parametrize("name", pages())
def test_a_page_is_what_the_program_says(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == pages()[name], "run make docs"


def test_the_pages_are_written_where_they_belong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    main(said.append)
    assert {path.name: path.read_text("utf-8") for path in (tmp_path / "docs").iterdir()} == pages()
    assert said == ["docs/cli.md\n", "docs/errors.md\n"]


def test_every_command_stands_on_the_page() -> None:
    assert {path.split()[1] for path in HELPS if " " in path} == set(COMMANDS)
    assert {"spl actor add", "spl definition install", "spl eval score", "spl verdict retract"} <= set(HELPS)


@pytest.mark.parametrize("path", [path for path in HELPS if path not in ("spl", OWN_WORDS)])
def test_every_command_shows_an_example_of_itself(path: str) -> None:
    words = " ".join(HELPS[path].split())
    assert f"Example: {path}" in words


@pytest.mark.parametrize("path", [path for path in HELPS if path != OWN_WORDS])
def test_every_option_and_argument_is_explained(path: str) -> None:
    lines = HELPS[path].splitlines()
    lines = lines[lines.index("Options:") :]
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        assert len(line) <= WIDTH
        if line.startswith("  -"):
            assert "  " in line.strip() or following.startswith("      "), line


def test_the_help_of_eval_names_the_commands_of_both_kinds() -> None:
    listed = {path.rpartition(" ")[2] for path in HELPS if path.startswith("spl eval ")}
    assert {"score", "history", "compare", "regressions"} <= listed
    for name in {"validate", "run", "bench"} | listed:
        assert name in HELPS[OWN_WORDS]


def test_every_error_has_a_code_of_its_own_and_a_meaning() -> None:
    errors = list(all_errors())
    assert len({error.code for error in errors}) == len(errors)
    assert all(error.__doc__ for error in errors)
    assert {error.exit_status for error in errors} <= {1, 2, 3, 4, 5, 6, 70, 130}


def test_the_schemas_are_what_the_structs_say() -> None:
    written = {path.stem: json.loads(path.read_text("utf-8")) for path in (ROOT / "schemas").glob("*.json")}
    assert written == schemas(), "run make schemas"
    assert set(KINDS) <= set(written)


def test_the_glossary_has_each_word_once() -> None:
    lines = (ROOT / "docs" / "glossary.md").read_text("utf-8").splitlines()
    words = [line.split("|")[1].strip() for line in lines if line.startswith("| ")][2:]
    assert len(words) == len(set(words)) > 20
    assert {"record", "facet", "structure", "substance", "incumbent", "verdict"} <= set(words)
