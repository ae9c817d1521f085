"""Runs of the built-in agent under a definition, against a model server on the loopback address."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from servers.chat import ChatServer

from spl.harness.built_in import BuiltIn
from spl.harness.suite import load_suite
from spl.kernel.actors import add_actor
from spl.kernel.define import Source, install
from spl.kernel.execute import How
from spl.kernel.home import Kernel
from spl.kernel.run_cases import Wanted, run_suite
from spl.kernel.runs import run_evidence, show_run
from spl.kernel.score import score_suite
from spl.kernel.suite_import import import_suite_file
from spl.kernel.trial import Choice

pytest.importorskip("pydantic_ai", reason="the built-in agent is an extra")

USAGE = {"prompt_tokens": 100, "completion_tokens": 10}
SCRIPT = [
    {"text": "I write the file.", "usage": USAGE},
    {"tool_calls": [{"name": "write", "arguments": {"path": "made.txt", "content": "one"}}], "usage": USAGE},
    {"text": "It is written.", "usage": USAGE},
    {"text": "PASS", "usage": USAGE},
]


def test_a_pipeline_is_run_recorded_and_scored(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "fx").mkdir()
    task = {
        "id": "one",
        "name": "One",
        "prompt": "write it",
        "workspaceFixture": "fx",
        "expectedChangedFiles": ["made.txt"],
        "verificationCommands": [{"id": "c", "name": "C", "command": ["grep", "-q", "one", "made.txt"]}],
    }
    (tmp_path / "s.json").write_text(json.dumps({"id": "s", "name": "S", "tasks": [task]}))
    import_suite_file(kernel, load_suite(str(tmp_path / "s.json")), None)
    add_actor(kernel, "bot")
    behaviour = {"adapter": "pipeline", "model": "local:m", "instructions": "Work." * 5000}
    long = behaviour["instructions"].encode()
    blob = kernel.blobs.put(long)
    install(kernel, "bot", Source(behaviour={**behaviour, "instructions": blob}, contents={blob: long}))
    with ChatServer(SCRIPT) as server:
        config = tmp_path / "config.toml"
        config.write_text(f'[providers.local]\nbase_url = "{server.url}"\napi_key_env = "LOCAL_WORD"\n')
        environment = {"PATH": os.environ["PATH"], "LOCAL_WORD": "open sesame", "OTHER": "no"}
        built_in = BuiltIn(
            variables={"SPL_CONFIG": str(config)},
            key_variables=lambda models: [f"{models[0][:5].upper()}_WORD"],
        )
        made = run_suite(
            kernel, "s", "bot", Choice(), Wanted(), How(environment=environment, built_in=built_in)
        )
        asked = server.requests
    shown = show_run(kernel, made.runs[0].id.hex())
    assert shown.run.status == "completed", run_evidence(kernel, made.runs[0].id.hex(), "stderr")
    assert shown.end is not None
    assert shown.end["answer"] == "It is written."
    assert shown.end["tool_calls"] == {"total": 1, "failed": 0, "names": {"write": 1}}
    assert [(total["stage"], total["requests"]) for total in shown.end["usage"]] == [
        ("plan", 1), ("write", 2), ("verify", 1),
    ]  # fmt: skip
    assert "LOCAL_WORD" in shown.start["observed"]["env"]
    assert "OTHER" not in shown.start["observed"]["env"]
    assert len(asked) == 4
    assert "Work.Work." in json.dumps(asked[0])  # the long instructions came from their blob
    assert score_suite(kernel, "s", "bot", "incumbent").substance.passed == 1
