"""A home with as many records as a benchmark wants: runs that were imported for actors that nobody asks about."""

from __future__ import annotations

import json
from collections.abc import Iterator

from spl.errors import UnknownNameError
from spl.kernel.actors import add_actor
from spl.kernel.define import Source
from spl.kernel.home import Kernel
from spl.kernel.judge import judge
from spl.kernel.names import resolve_suite
from spl.kernel.run_import import Batch, import_runs
from spl.kernel.suites import create_suite
from spl.records.verdicts import PairVerdict

PIECE = 10_000


def runs(definition: str, cases: int, attempts: int = 1) -> Iterator[bytes]:
    """Yield lines of runs of every case; which of them pass depends on the definition, the case and the attempt."""
    seed = sum(map(ord, definition))
    for case in range(cases):
        for attempt in range(attempts):
            yield json.dumps(
                {
                    "id": f"{definition}/{case}/{attempt}",
                    "case": f"case-{case:05}",
                    "results": [
                        {
                            "id": "resolved",
                            "status": "pass" if (case * 7 + seed + attempt * attempt) % 5 > 1 else "fail",
                        }
                    ],
                    "tool_calls": {"total": 3, "failed": int((case + seed) % 7 == 0), "names": {"read": 3}},
                    "usage": [{"model": "m", "requests": 20, "cost_usd": "0.0123"}],
                    "d": definition,
                }
            ).encode()


def measured(
    kernel: Kernel, actor: str, suite: str, definitions: list[str], cases: int, attempts: int = 1
) -> None:
    """Import the runs of some definitions of an actor, which is made with its suite where they are not there."""
    add_actor(kernel, actor)
    create_suite(kernel, suite)
    for definition in definitions:
        source = Source(behaviour={"adapter": "external", "system": definition})
        batch = Batch(
            source="b", suite=suite, definition_from="d", definitions={definition: source}, create_cases=True
        )
        import_runs(kernel, actor, runs(definition, cases, attempts), batch)


def grow(kernel: Kernel, records: int) -> None:
    """Append runs, and a preference for each ten thousand of them, until the log has so many records."""
    turn = 0
    try:
        resolve_suite(kernel.log, "elsewhere")
    except UnknownNameError:
        measured(kernel, "nobody", "elsewhere", ["n-a", "n-b"], 10)
    actor = kernel.log.actors("nobody")[0].id
    sides = [row.id.hex() for row in kernel.log.definitions(actor=actor)][:2]
    while kernel.log.size() < records:
        turn += 1
        wanted = min(PIECE, (records - kernel.log.size()) // 2 + 1)
        measured(kernel, "nobody", "elsewhere", [f"n-{kernel.log.size()}"], wanted)
        sides.reverse()
        judge(kernel, sides[0], sides[1], PairVerdict(features=[f"f{turn}"], loser_features=[]))
