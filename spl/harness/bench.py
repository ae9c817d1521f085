"""Benchmarks: every task under every model, each in a fresh workspace, side by side if asked."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from spl.contracts.harness import Attempt, BenchTask
from spl.errors import OperationFailedError, SplError
from spl.harness import process
from spl.harness.agent import AgentRun, agent_words, run_agent
from spl.harness.checks import Bench, blocked_report, score_task, select_task
from spl.harness.fixture import fixture_directory, tree_entries
from spl.harness.git import Git
from spl.harness.interrupts import interrupts
from spl.harness.limit import Limit
from spl.harness.removal import remove_tree
from spl.harness.report import agent_result, bench_task, harness_error, selection_error, untried_agent
from spl.harness.request import BenchOutcome, BenchRequest
from spl.harness.snapshot import Baseline, Seen, baseline, changed, scan
from spl.harness.suite import Task
from spl.harness.workspace import materialize, new_directory, refuse_inside, safe_name

_BUILT_IN: Final = ("--no-trust", "exec", "--output-format", "stream-json")


class _Prepared(Struct, frozen=True):
    """A fixture that was copied and committed once."""

    copy: Path
    before: Baseline


class _Fixtures:
    """The baselines, made when a row first needs one and cloned for each row."""

    def __init__(self, request: BenchRequest) -> None:
        self._request = request
        self._lock = threading.Lock()
        self._locks: dict[Path, threading.Lock] = {}
        self._made: dict[Path, _Prepared | SplError] = {}

    def get(self, fixture: Path, limit: Limit) -> _Prepared:
        with self._lock:
            lock = self._locks.setdefault(fixture, threading.Lock())
        with lock:
            if fixture not in self._made:
                try:
                    self._made[fixture] = self._make(fixture, limit)
                except SplError as error:
                    if limit.problem:
                        raise  # the next row has time of its own
                    self._made[fixture] = error
            found = self._made[fixture]
        if isinstance(found, SplError):
            raise found
        return found

    def _make(self, fixture: Path, limit: Limit) -> _Prepared:
        copy = Path(tempfile.mkdtemp(dir=self._request.spools, prefix="baseline-"))
        materialize(copy, tree_entries(fixture), limit)
        before = baseline(copy, limit)
        Git(self._request.environment, self._request.spools, limit).commit_baseline(copy)
        return _Prepared(copy, before)


def run_bench(request: BenchRequest) -> BenchOutcome:
    """Run an agent over tasks and models, and return the rows in task-major order.

    SIGINT and SIGTERM end what runs; the rows that are left become errors, and the outcome is returned as ever.

    Raises:
        OSError: A temporary work root cannot be made.
    """
    tasks: list[Task | str] = (
        [select_task(request.suite, request.task_id)] if request.task_id else list(request.suite.tasks)
    )
    root = _work_root(request)
    cancel = threading.Event()
    stop = threading.Event()
    fixtures = _Fixtures(request)

    def row(task: Task | str, model: str) -> BenchTask | None:
        if stop.is_set():
            return None
        done = _Row(request, root, fixtures, cancel).run(task, model)
        if request.fail_fast and not done.report.ok:
            stop.set()
        if request.on_row is not None:
            request.on_row(done)
        return done

    try:
        with interrupts(cancel), ThreadPoolExecutor(max(1, request.jobs)) as pool:
            waiting: list[Future[BenchTask | None]] = [
                pool.submit(row, task, model)
                for task in tasks
                for model in ([""] if isinstance(task, str) else request.models or [""])
            ]
            rows = [done for future in waiting if (done := future.result()) is not None]
    finally:
        if not request.work_root and not request.keep_workspaces:
            remove_tree(root)
    return BenchOutcome(rows=rows, work_root=request.work_root or str(root))


def _work_root(request: BenchRequest) -> Path:
    if not request.work_root:
        return Path(tempfile.mkdtemp(prefix="splice-eval-"))
    return Path(os.path.abspath(request.work_root))  # noqa: PTH100 - links stay as they are


class _Row:
    """One task under one model."""

    def __init__(
        self, request: BenchRequest, root: Path, fixtures: _Fixtures, cancel: threading.Event
    ) -> None:
        self._request = request
        self._root = root
        self._fixtures = fixtures
        self._limit = Limit(request.timeout_s or None, cancel)
        self._workspace: Path | None = None
        self._private: Path | None = None
        self._fixture = ""

    def run(self, task: Task | str, model: str) -> BenchTask:
        suite_id = self._request.suite.id
        if isinstance(task, str):
            return bench_task(
                self._request.task_id,
                "",
                workspace_path="",
                fixture_path="",
                agent=untried_agent(task),
                report=selection_error(suite_id, self._request.task_id, task),
            )
        try:
            try:
                before = self._prepare(task)
            except (OSError, SplError) as error:
                return self._not_made(task, model, error)
            return self._tried(task, model, before)
        finally:
            self._clear()

    def _prepare(self, task: Task) -> tuple[Path, Baseline]:
        fixture = fixture_directory(self._request.suite.path, task.workspace_fixture)
        self._fixture = str(fixture)
        refuse_inside(self._root, fixture)
        self._limit.check()
        prepared = self._fixtures.get(fixture, self._limit)
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OperationFailedError(f"create work root: {error.filename}: {error.strerror}") from error
        self._workspace = new_directory(self._root, safe_name(task.id))
        materialize(self._workspace, tree_entries(prepared.copy, git=True), self._limit)
        return self._workspace, prepared.before

    def _not_made(self, task: Task, model: str, error: OSError | SplError) -> BenchTask:
        reason = error.message if isinstance(error, SplError) else f"{error.filename}: {error.strerror}"
        left = remove_tree(self._workspace) if self._workspace else []
        shown = str(self._workspace or "")
        self._workspace = None
        row = bench_task(
            task.id,
            model,
            workspace_path=shown,
            fixture_path="",
            agent=untried_agent(reason),
            report=harness_error(
                self._request.suite.id, task.id, f"workspace materialization failed: {reason}"
            ),
        )
        return msgspec.structs.replace(row, left_behind=left)

    def _tried(self, task: Task, model: str, made: tuple[Path, Baseline]) -> BenchTask:
        workspace, before = made
        values = {"workspace": str(workspace), "prompt": task.prompt, "task_id": task.id, "model": model}
        words = agent_words(self._request.agent_command, values) or built_in_words(model, task.prompt)
        environment = self._environment(workspace)
        attempts: list[Attempt] = []
        while True:
            ran = run_agent(
                words,
                workspace=workspace,
                environment=environment,
                spools=self._request.spools,
                limit=self._limit,
            )
            if not ran.outcome.not_started or len(attempts) >= self._request.retries:
                break
            attempts.append(Attempt(error=ran.error, latency_ms=ran.outcome.latency_ms))
        report = self._scored(task, workspace, before, ran)
        left = [] if self._request.keep_workspaces else remove_tree(workspace)
        self._workspace = None
        row = bench_task(
            task.id,
            model,
            workspace_path=str(workspace),
            fixture_path=self._fixture,
            agent=agent_result(ran.outcome, ran.output, error=ran.error, attempts=attempts),
            report=report,
        )
        return msgspec.structs.replace(row, left_behind=left)

    def _scored(self, task: Task, workspace: Path, before: Baseline, ran: AgentRun) -> Any:  # noqa: ANN401
        suite_id, limit = self._request.suite.id, self._limit
        events = ran.output.trace_events
        if ran.failure:
            return blocked_report(suite_id, task, ran.failure, events)

        def changes() -> tuple[list[str], dict[str, Seen]]:
            now = scan(workspace, limit)
            return changed(workspace, before, now, task.forbidden_changed_files, limit), now

        bench = Bench(
            workspace=workspace,
            environment=self._environment(workspace),
            spools=self._request.spools,
            limit=limit,
            changes=changes,
        )
        return score_task(suite_id, task, bench, events)

    def _environment(self, workspace: Path) -> dict[str, str]:
        if not self._request.clean_env:
            return process.inherited(self._request.environment, workspace)
        if self._private is None:
            self._private = Path(tempfile.mkdtemp(dir=self._request.spools, prefix="private-"))
        return process.allowlisted(self._request.environment, workspace, self._private)

    def _clear(self) -> None:
        if self._private is not None:
            remove_tree(self._private)
        if self._workspace is not None and not self._request.keep_workspaces:
            remove_tree(self._workspace)


def built_in_words(model: str, prompt: str) -> list[str]:
    """Return the command of the built-in agent: the current program, told to execute the prompt."""
    chosen = ["--model", model] if model else []
    return [sys.executable, "-m", "spl", *_BUILT_IN, *chosen, prompt]
