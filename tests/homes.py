"""A home with something of everything, for tests that read or damage it."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import ROOT, FixedClock

from spl.kernel.actors import add_actor
from spl.kernel.define import Source, install, propose
from spl.kernel.home import open_home
from spl.kernel.proof import checkpoint
from spl.kernel.records import put_record
from spl.kernel.redact import redact
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.score import score_suite
from spl.kernel.suite_import import parse_cases
from spl.kernel.suites import NewCase, NewFile, add_cases, create_suite
from spl.records.evals import Case, Expect

IMPORTED = ROOT / "examples" / "imported"


def rich_home(path: Path) -> Path:
    """Make a home with cases, a fixture, definitions, runs, a score, a withdrawal and a checkpoint."""
    kernel = open_home(path, create=True, clock=FixedClock())
    add_actor(kernel, "coder")
    create_suite(kernel, "smoke")
    add_cases(kernel, "smoke", parse_cases((IMPORTED / "cases.json").read_bytes(), "c"))
    fixture = [
        NewFile("a.txt", 644, b"short"),
        NewFile("b.txt", 755, b"long " * 500),
        NewFile("c", 40000, None),
    ]
    case = Case(key="f", name="f", goal="g", expect=Expect(outcomes=["r"]))
    add_cases(kernel, "smoke", [NewCase(case, fixture)])
    install(kernel, "coder", Source(behaviour={"adapter": "external", "system": "s"}))
    propose(kernel, "coder", Source(behaviour={"adapter": "external", "system": "t"}))
    runs = [json.loads(line) for line in (IMPORTED / "runs-v1.jsonl").read_text().splitlines()]
    runs[0]["answer"] = "a long answer " * 2000  # in a blob, compressed
    lines = [json.dumps(run).encode() for run in runs]
    import_runs(kernel, "coder", lines, Batch(source="f"))
    score_suite(kernel, "smoke", "coder", "incumbent")
    notes = [
        b'{"kind": "acme.note.v1", "body": {"text": "kept"}}',
        b'{"kind": "acme.note.v1", "body": {"text": "gone"}}',
    ]
    kept, gone = (put_record(kernel, note, "note").id for note in notes)
    by_another = {
        "kind": "acme.note.v1",
        "by": "did:web:other.example",
        "body": {},
        "refs": {"about": [kept.hex()]},
    }
    put_record(kernel, json.dumps(by_another).encode(), "note")
    redact(kernel, gone.hex(), "a test")
    checkpoint(kernel)
    kernel.log.close()
    return path
