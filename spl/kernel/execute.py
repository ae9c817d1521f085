"""Runs that this home executes: a start before the process, an end after it, and nothing lost in between.

The thread that owns the log appends; workers copy, start agents and check. So a crash leaves a run without an end,
which is visible, and never an end without a run.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from spl.errors import SplError
from spl.harness.baselines import Baselines, Fixture
from spl.harness.built_in import BuiltIn
from spl.harness.execution import Executed, Launch, Order, Site, execute
from spl.harness.interrupts import interrupts
from spl.harness.limit import Limit
from spl.harness.process import guarded, make_room
from spl.harness.removal import remove_tree
from spl.harness.suite import Task
from spl.ids import BlobId, RecordId
from spl.kernel.content import fit, put_text
from spl.kernel.evidence import cut, ended, evidence
from spl.kernel.home import Kernel
from spl.kernel.launch import Starter
from spl.kernel.trial import Under
from spl.records.envelope import Draft
from spl.records.evals import Expect
from spl.records.runs import RunEnd, RunStart
from spl.store.layout import Layout
from spl.store.log import Transaction
from spl.store.running import Running

_SCRATCH = "spl-run-"


class Job(Struct, frozen=True, kw_only=True):
    """One attempt that is to be made.

    Attributes:
        suite_id: The suite's name in reports.
        task: What is put to the agent.
        expect: What its case demands.
        fixture: Returns what the workspace begins with; it may raise.
        refs: The case and the suite; none for a goal of its own.
        tree: The fixture's files, as the case names them.
        workspace: A directory that is there and stays; a fresh one when absent.
    """

    task: Task
    expect: Expect
    fixture: Callable[[], Fixture]
    suite_id: str = ""
    refs: Mapping[str, tuple[RecordId, ...]] = {}
    tree: BlobId | None = None
    workspace: Path | None = None


class Done(Struct, frozen=True, kw_only=True):
    """One attempt that was made: its run, and what came of it."""

    job: Job
    run: RecordId
    end: RunEnd
    executed: Executed


class How(Struct, frozen=True, kw_only=True):
    """How attempts are made.

    Attributes:
        environment: The caller's environment; an allowlist of it is passed on.
        built_in: What the built-in agent needs besides a definition.
        jobs: Attempts side by side, at least 1.
        timeout_ms: The time limit of an agent; the definition's own when absent.
        retries: Further tries for an agent that could not be started, within the same run.
        work_root: Where workspaces are made; a temporary directory when absent.
        keep_workspaces: Leave the workspaces in place.
        scratch: Where what agents printed is kept; the caller removes it. A directory of its own when absent.
        on_planned: Called once with the number of attempts.
        fail_fast: Start no further attempt after one whose report is not ok.
        on_done: Called after each attempt.
    """

    environment: Mapping[str, str]
    built_in: BuiltIn | None = None
    jobs: int = 1
    timeout_ms: int | None = None
    retries: int = 0
    work_root: Path | None = None
    keep_workspaces: bool = False
    scratch: Path | None = None
    fail_fast: bool = False
    on_planned: Callable[[int], None] | None = None
    on_done: Callable[[Done], None] | None = None


class Executor:
    """Makes attempts under one definition, and records each.

    Args:
        kernel: The open home.
        under: Who works, and under which definition.
        how: How.
    """

    def __init__(self, kernel: Kernel, under: Under, how: How) -> None:
        self._kernel, self._under, self._how = kernel, under, how
        self._starter = Starter(
            behaviour=under.behaviour, blobs=kernel.blobs, environment=how.environment, built_in=how.built_in
        )
        self._timeout_ms = how.timeout_ms or under.timeout_ms
        self._cancel = threading.Event()
        self._stop = False
        self._waiting: dict[Future[Executed], tuple[Job, RecordId]] = {}
        self._running: Running | None = None

    @property
    def interrupted(self) -> bool:
        """Say whether the operator interrupted."""
        return self._cancel.is_set()

    def run(self, jobs: Iterable[Job]) -> Iterator[Done]:
        """Make the attempts, in their order of start, and yield each when it has ended and is recorded.

        SIGINT and SIGTERM end the agents that run; their runs are recorded as cancelled, and no other is started.

        Raises:
            StorageError, LockTimeoutError: A record could not be appended; the agents that ran were ended, their runs
                are cancelled where that can be recorded, and runs without an end stay visible.
        """
        how = self._how
        make_room(how.jobs)
        scratch = how.scratch or Path(tempfile.mkdtemp(prefix=_SCRATCH))
        site = Site(
            root=how.work_root or scratch / "work",
            spools=scratch,
            baselines=Baselines(scratch, how.environment),
            keep_workspaces=how.keep_workspaces,
        )
        try:
            with (
                self._told(),
                interrupts(self._cancel),
                guarded(scratch),
                ThreadPoolExecutor(max(1, how.jobs)) as pool,
            ):
                try:
                    yield from self._follow(pool, site, iter(jobs))
                except BaseException as error:
                    self._cancel.set()  # the workers end their agents before the pool is left
                    if isinstance(error, SplError):
                        self._give_up(error)
                    raise
        finally:
            if how.scratch is None:
                remove_tree(scratch)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Tell others which runs are being executed, so that nobody takes them for those of a crash."""
        if self._kernel.path is None:
            yield
            return
        self._running = Running(Layout(self._kernel.path).tmp)
        try:
            yield
        finally:
            self._running.close()

    def _give_up(self, error: SplError) -> None:
        """End what runs as cancelled, as far as it can be recorded, and say in the error what to do about the rest."""
        wait(self._waiting)
        left = 0
        for _, run in self._waiting.values():
            end = RunEnd(
                status="cancelled", cause=cut(f"another record could not be appended: {error.message}")
            )
            try:
                self._append_end(
                    run, Draft(body=end, by=self._kernel.kernel, thread=run, refs={"start": (run,)})
                )
            except SplError:
                left += 1
        closing = f"{left} runs are open: spl run close ends them, and " if left else ""
        error.hint = f"{error.hint}; " if error.hint else ""
        error.hint += f"{closing}--resume makes the attempts that are missing"

    def _follow(self, pool: ThreadPoolExecutor, site: Site, queue: Iterator[Job]) -> Iterator[Done]:
        waiting = self._waiting
        while True:
            while len(waiting) < max(1, self._how.jobs) and not (self._stop or self.interrupted):
                job = next(queue, None)
                if job is None:
                    break
                run = self._start(job)
                waiting[pool.submit(self._execute, job, site)] = (job, run)
            if not waiting:
                return
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                job, run = waiting[future]
                done = self._end(job, run, future.result())
                del waiting[future]
                self._stop |= self._how.fail_fast and not done.executed.report.ok
                if self._how.on_done is not None:
                    self._how.on_done(done)
                yield done

    def _start(self, job: Job) -> RecordId:
        under, goal = self._under, None if "case" in job.refs else job.task.prompt
        fitted = fit(
            self._kernel,
            RunStart(
                facet=under.facet,
                trial=under.trial,
                adapter=under.adapter,
                goal=goal,
                requested_model=under.behaviour.model,
                observed=self._starter.observed(self._timeout_ms),
            ),
            texts=("goal",),
        )
        refs = {"actor": (under.actor,), "definition": (under.definition,), **job.refs}
        draft = Draft(
            body=fitted.body,
            by=self._kernel.kernel,
            refs=refs,
            blobs=fitted.blobs,
            withheld=fitted.withheld,
        )

        def append(tx: Transaction) -> RecordId:
            run = tx.append(draft).id
            if self._running is not None:
                self._running.note(run)
            return run

        return self._kernel.transact(append)

    def _execute(self, job: Job, site: Site) -> Executed:
        private = Path(tempfile.mkdtemp(dir=site.spools, prefix="private-"))
        timeout_s = None if self._timeout_ms is None else self._timeout_ms / 1000

        def launch(workspace: Path) -> Launch:
            return self._starter.launch(job.task, workspace, private)

        order = Order(
            suite_id=job.suite_id,
            task=job.task,
            fixture=job.fixture,
            launch=launch,
            setup_limit=Limit(None, self._cancel),
            limit=lambda: Limit(timeout_s, self._cancel),
            checks_limit=Limit(None, self._cancel),  # time that the agent used up is not its checks'
            retries=self._how.retries,
            shows_diff=True,
            unread_blocks=False,
            workspace=job.workspace,
        )
        try:
            return execute(order, site)
        finally:
            remove_tree(private)

    def _end(self, job: Job, run: RecordId, executed: Executed) -> Done:
        end = ended(
            executed, job.expect, tree=job.tree, interrupted=self.interrupted, timeout_ms=self._timeout_ms
        )
        fitted = fit(self._kernel, end, texts=("answer",))
        # A list that is too long for the record goes before the single events of the same role.
        taken = {ref.r for ref in fitted.blobs}
        stored = [
            put_text(self._kernel, item.data, item.role, item.media_type)
            for item in evidence(executed, end)
            if item.role not in taken
        ]
        draft = Draft(
            body=fitted.body,
            by=self._kernel.kernel,
            thread=run,
            refs={"start": (run,)},
            blobs=(*(ref for ref, _ in stored), *fitted.blobs),
            withheld=fitted.withheld + sum(count for _, count in stored),
        )

        self._append_end(run, draft)
        return Done(job=job, run=run, end=end, executed=executed)

    def _append_end(self, run: RecordId, draft: Draft) -> None:
        def append(tx: Transaction) -> None:
            if next(tx.runs(run=run)).end_position is None:
                tx.append(draft)

        self._kernel.transact(append)
