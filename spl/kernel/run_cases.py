"""`spl run suite`, `spl run goal`, `spl eval bench --actor`: which attempts to make, and what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from spl.codec import digest
from spl.contracts.harness import BenchTask
from spl.contracts.runs import RunDocument, RunsMade
from spl.errors import InputError, InterruptedByUserError, UnknownNameError
from spl.folds.cost import cost_of
from spl.harness.baselines import Fixture
from spl.harness.bench import cancelled_row, finished_row, not_selected_row
from spl.harness.checks import select_task
from spl.harness.fixture import Entry
from spl.harness.suite import Suite
from spl.ids import BlobId, CaseFacet, RecordId
from spl.kernel.content import Blobs, unfold_text
from spl.kernel.execute import Done, Executor, How, Job
from spl.kernel.home import Kernel
from spl.kernel.names import record_of, resolve_suite
from spl.kernel.runs import run_parts, show_run
from spl.kernel.suite_import import import_suite_file
from spl.kernel.tasks import task_of
from spl.kernel.trial import Choice, Under, choose
from spl.records.evals import Case, Expect
from spl.records.runs import RunEnd
from spl.store.log import CaseRow, NameRow

UNFINISHED = ("cancelled", "blocked")


class Wanted(Struct, frozen=True, kw_only=True):
    """Which cases of a suite are run, and how often.

    Attributes:
        cases: Their keys; all current cases when empty.
        attempts: Attempts at each case.
        resume: Leave out attempts that the log holds under this facet, unless they were cancelled or blocked.
    """

    cases: Sequence[str] = ()
    attempts: int = 1
    resume: bool = False


def run_suite(kernel: Kernel, suite: str, actor: str, choice: Choice, wanted: Wanted, how: How) -> RunsMade:
    """Run the cases of a suite, each in a fresh workspace, and record every attempt.

    Args:
        kernel: The open home.
        suite: The suite.
        actor: Who works.
        choice: Under which definition.
        wanted: Which cases, and how often.
        how: How.

    Raises:
        UnknownNameError: A key is not that of a current case; nothing was run.
        DoorClosedError: The define door stays closed for a trial; nothing was run.
        InterruptedByUserError: The operator interrupted; what had ended and what was ended is recorded.
        StorageError, LockTimeoutError: A record could not be appended; earlier runs are kept.
    """
    row = resolve_suite(kernel.log, suite)
    rows = _selected(kernel, row, wanted.cases)
    under = choose(kernel, actor, choice)
    jobs, skipped = _jobs(kernel, row, rows, under, wanted)
    if how.on_planned is not None:
        how.on_planned(len(jobs))
    executor = Executor(kernel, under, how)
    made = _Made(kernel, under, row)
    for done in executor.run(jobs):
        made.take(done)
    return made.document(executor, skipped=skipped)


def run_goal(
    kernel: Kernel, goal: str, actor: str, choice: Choice, how: How, workspace: Path | None = None
) -> RunDocument:
    """Let an actor work on a goal, in a fresh empty workspace or in one that is there, and record the run.

    Raises:
        InterruptedByUserError: The operator interrupted; the run is recorded as cancelled.
        DoorClosedError, InputError, StorageError: As `run_suite`.
    """
    if workspace is not None and not workspace.is_dir():
        raise InputError(f"the workspace {workspace} is not a directory")
    if workspace is not None and kernel.path is not None and _overlap(workspace, kernel.path):
        raise InputError(f"the workspace {workspace} and the home {kernel.path} lie within each other")
    under = choose(kernel, actor, choice)
    executor = Executor(kernel, under, how)
    fixture = Fixture(None, lambda: ())
    job = Job(
        task=task_of(Case(key="goal", name="goal", goal=goal, expect=Expect()), goal),
        expect=Expect(),
        fixture=lambda: fixture,
        workspace=workspace,
    )
    (done,) = executor.run([job])
    if executor.interrupted:
        raise InterruptedByUserError(
            "interrupted; the run is recorded as cancelled", details={"run": done.run.hex()}
        )
    return show_run(kernel, done.run.hex())


def _overlap(one: Path, other: Path) -> bool:
    one, other = one.resolve(), other.resolve()
    return one.is_relative_to(other) or other.is_relative_to(one)


class Recorded(Struct, frozen=True):
    """The rows of a bench whose runs were recorded, in task order, and whose work they show."""

    rows: list[BenchTask]
    under: Under


def record_bench(
    kernel: Kernel, suite: Suite, actor: str, choice: Choice, how: How, task_id: str = ""
) -> Recorded:
    """Import a suite file, run its tasks under a definition, and record the runs besides what the bench reports.

    Interrupting ends what runs; the tasks that were not begun become errors, as in every bench.

    Raises:
        SuiteLoadError: A fixture cannot be taken over; nothing was run.
        UnknownNameError, DoorClosedError, InputError, StorageError: As `run_suite`.
    """
    under = choose(kernel, actor, choice)
    model = under.behaviour.model or ""
    selected = select_task(suite, task_id) if task_id else None
    if isinstance(selected, str):
        return Recorded([not_selected_row(suite, task_id, selected)], under)
    row = resolve_suite(kernel.log, import_suite_file(kernel, suite, None).id.hex())
    tasks = suite.tasks if selected is None else [selected]
    jobs, _ = _jobs(kernel, row, _selected(kernel, row, [task.id for task in tasks]), under, Wanted())
    executor = Executor(kernel, under, how)
    rows = {
        done.job.task.id: finished_row(done.job.task, model, done.executed, done.job.task.workspace_fixture)
        for done in executor.run(jobs)
    }
    if executor.interrupted:
        rows |= {task.id: cancelled_row(suite, task, model) for task in tasks if task.id not in rows}
    return Recorded([rows[task.id] for task in tasks if task.id in rows], under)


def _selected(kernel: Kernel, suite: NameRow, keys: Sequence[str]) -> list[CaseRow]:
    rows = kernel.log.cases(suite.id)
    unknown = sorted(set(keys) - {row.key for row in rows})
    if unknown:
        raise UnknownNameError(
            f"{suite.name} has no current case {', '.join(map(repr, unknown))}",
            hint=f"spl suite show {suite.name} lists the cases",
        )
    return [row for row in rows if not keys or row.key in keys]


def _jobs(
    kernel: Kernel, suite: NameRow, rows: Sequence[CaseRow], under: Under, wanted: Wanted
) -> tuple[list[Job], int]:
    """Return the attempts that are to be made, the first attempt of every case before the second, and the others."""
    there = _finished(kernel, under, [row.facet for row in rows]) if wanted.resume else Counter[CaseFacet]()
    jobs = [
        _job(kernel, suite, row)
        for attempt in range(wanted.attempts)
        for row in rows
        if attempt >= there[row.facet]
    ]
    return jobs, len(rows) * wanted.attempts - len(jobs)


def _finished(kernel: Kernel, under: Under, facets: Sequence[CaseFacet]) -> Counter[CaseFacet]:
    """Return how many runs of each case ended other than cancelled or blocked, under this facet."""
    found: Counter[CaseFacet] = Counter()
    for run in kernel.log.runs(actor=under.actor, facet=under.facet, case_facets=facets):
        if run.end_position is not None and run.case_facet is not None:
            end = next(iter(kernel.log.at([run.end_position])))
            body = record_of(kernel.log, end.id).body if end.record is not None else None
            found[run.case_facet] += isinstance(body, RunEnd) and body.status not in UNFINISHED
    return found


def _job(kernel: Kernel, suite: NameRow, row: CaseRow) -> Job:
    case = record_of(kernel.log, row.id).body
    assert isinstance(case, Case)  # noqa: S101 - the row was derived from it
    tree = None if case.tree is None else BlobId(case.tree)
    return Job(
        suite_id=suite.name,
        task=task_of(case, unfold_text(kernel.blobs, case.goal) or ""),
        expect=case.expect,
        fixture=lambda: Fixture(tree, lambda: _entries(kernel.blobs, tree)),
        tree=tree,
        refs={"case": (row.id,), "suite": (suite.id,)},
    )


def _entries(blobs: Blobs, tree: BlobId | None) -> Iterator[Entry]:
    """Yield what a fixture of the home holds; each file is read when its turn comes."""
    for file in digest.decode_tree(blobs.get(tree)) if tree is not None else ():
        if file.blob is None:
            yield Entry(file.path, 0o755, None)
        else:
            yield Entry(file.path, int(str(file.mode), 8), map(blobs.get, [file.blob]))


class _Made:
    """What came of the attempts, without what they printed."""

    def __init__(self, kernel: Kernel, under: Under, suite: NameRow) -> None:
        self._kernel, self._under, self._suite = kernel, under, suite
        self._runs: list[RecordId] = []
        self._ends: list[RunEnd] = []

    def take(self, done: Done) -> None:
        """Note an attempt."""
        self._runs.append(done.run)
        self._ends.append(
            msgspec.structs.replace(done.end, answer=None, results=None, changed_files=None, tool_calls=None)
        )

    def document(self, executor: Executor, *, skipped: int) -> RunsMade:
        """Return the document of what was made.

        Raises:
            InterruptedByUserError: The operator interrupted.
        """
        under, suite = self._under, self._suite
        if executor.interrupted:
            raise InterruptedByUserError(
                f"interrupted after {len(self._runs)} runs; all of them are recorded",
                hint="the same command with --resume runs what is left",
                details={"runs": [run.hex() for run in self._runs]},
            )
        rows = [next(self._kernel.log.runs(run=run)) for run in self._runs]
        return RunsMade(
            suite=suite.id,
            suite_name=suite.name,
            actor=under.actor,
            definition=under.definition,
            facet=under.facet,
            trial=under.trial,
            runs=sorted(run_parts(self._kernel, rows), key=lambda part: part.position),
            counts=dict(Counter(end.status for end in self._ends)),
            skipped=skipped,
            cost=cost_of(self._ends),
        )
