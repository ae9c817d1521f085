"""Ten thousand real runs: every figure must be what the rows say. Skipped where the data is absent."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, FixedClock

from spl.kernel.actors import add_actor
from spl.kernel.define import parse_behaviour
from spl.kernel.history import history
from spl.kernel.home import open_home
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import score_suite
from spl.kernel.suites import create_suite

DATA = ROOT.parent / "shared" / "data"
RUNS = DATA / "swebench_bash_only.runs.jsonl"
SYSTEMS = DATA / "swebench_bash_only.systems.json"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not RUNS.exists(), reason="the published results are not here"),
]


def test_every_figure_follows_from_the_rows(tmp_path: Path) -> None:
    converter = ROOT / "examples" / "published" / "convert.py"
    subprocess.run([sys.executable, converter, RUNS, SYSTEMS, tmp_path], check=True)
    kernel = open_home(tmp_path / "home", create=True, clock=FixedClock())
    add_actor(kernel, "mini")
    create_suite(kernel, "verified")
    definitions = {
        name: parse_behaviour(json.dumps(behaviour).encode(), name)
        for name, behaviour in json.loads((tmp_path / "definitions.json").read_text("utf-8")).items()
    }
    batch = Batch(source="runs", definition_from="model", definitions=definitions, create_cases=True)
    lines = (tmp_path / "runs.jsonl").read_bytes().splitlines()
    assert import_runs(kernel, "mini", lines, batch).appended == 10_000
    assert import_runs(kernel, "mini", lines, batch).appended == 0

    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in RUNS.read_text("utf-8").splitlines():
        row = json.loads(line)
        rows[row["model"]].append(row)
    off = []
    for system in json.loads(SYSTEMS.read_text("utf-8")):
        model, published = system["model"], system["published"]
        resolved = sum(row["resolved"] for row in rows[model])
        facet = next(
            row.facet
            for row in kernel.log.definitions(actor=kernel.log.actors("mini")[0].id)
            if definitions[model].behaviour == _behaviour(kernel, row.id)
        )
        score = score_suite(kernel, "verified", "mini", facet.hex())
        assert (score.substance.passed, score.substance.of) == (resolved, 500)
        assert score.cost.coverage == "complete"
        assert score.cost.nusd is not None
        assert abs(Decimal(score.cost.nusd) / 10**9 - Decimal(published["cost_usd"])) < Decimal("0.000001")
        assert score.usage.requests is not None
        assert score.usage.requests.total == Decimal(published["instance_calls"]) * 500
        if Decimal(published["resolved_percent"]) != Decimal(resolved) / 5:
            off.append(model)
    assert off == ["claude-4-sonnet-20250514", "claude-3-7-sonnet-20250219"]
    assert len(history(kernel, "mini").suites[0].lines) == 20


def _behaviour(kernel: Any, record_id: Any) -> Any:
    from spl.kernel.names import record_of

    return record_of(kernel.log, record_id).body.behaviour  # type: ignore[union-attr]
