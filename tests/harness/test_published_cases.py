from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness.published_case import PublishedCase

CASES = sorted((Path(__file__).parent.parent / "vectors" / "splice-eval").glob("*.json"))


def test_all_recorded_cases_are_there() -> None:
    assert len(CASES) == 324


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_recorded_case_comes_out_as_published_or_as_mended(path: Path, tmp_path: Path) -> None:
    recorded = json.loads(path.read_text())
    assert PublishedCase(recorded, tmp_path / "case").run() == []


def test_a_case_that_expects_something_else_is_noticed(tmp_path: Path) -> None:
    recorded = json.loads(next(path for path in CASES if path.stem == "validate-minimal-json").read_text())
    recorded["expect"]["stdout_json"]["checks"] += 1
    recorded["expect"]["stderr_text"] = "x"
    assert len(PublishedCase(recorded, tmp_path / "case").run()) == 2
