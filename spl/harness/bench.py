"""Benchmarks: every task under every model, each in a fresh workspace, side by side if asked."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from spl.contracts.harness import BenchTask
from spl.harness import process
from spl.harness.agent import agent_words
from spl.harness.baselines import Baselines, Fixture
from spl.harness.built_in import BuiltIn, built_in_words
from spl.harness.checks import select_task
from spl.harness.execution import Executed, Launch, Order, Site, execute
from spl.harness.fixture import fixture_directory, tree_entries
from spl.harness.interrupts import interrupts
from spl.harness.limit import CANCELLED, Limit
from spl.harness.removal import remove_tree
from spl.harness.report import agent_result, bench_task, harness_error, selection_error, untried_agent
from spl.harness.request import BenchOutcome, BenchRequest
from spl.harness.suite import Suite, Task
from spl.harness.workspace import refuse_inside


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
    site = Site(
        root=root,
        spools=request.spools,
        baselines=Baselines(request.spools, request.environment),
        keep_workspaces=request.keep_workspaces,
    )

    def row(task: Task | str, model: str) -> BenchTask | None:
        if stop.is_set():
            return None
        done = (
            not_selected_row(request.suite, request.task_id, task)
            if isinstance(task, str)
            else _run_row(request, site, task, model, cancel)
        )
        if request.fail_fast and not done.report.ok:
            stop.set()
        if request.on_row is not None:
            request.on_row(done)
        return done

    try:
        temporary = (
            [request.spools] if request.work_root or request.keep_workspaces else [request.spools, root]
        )
        with (
            interrupts(cancel),
            process.guarded(*temporary),
            ThreadPoolExecutor(max(1, request.jobs)) as pool,
        ):
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


def not_selected_row(suite: Suite, task_id: str, problem: str) -> BenchTask:
    """Return the row of a task that the suite does not have."""
    return bench_task(
        task_id,
        "",
        workspace_path="",
        fixture_path="",
        agent=untried_agent(problem),
        report=selection_error(suite.id, task_id, problem),
    )


def cancelled_row(suite: Suite, task: Task, model: str) -> BenchTask:
    """Return the row of a task that was not begun because the operator interrupted."""
    return bench_task(
        task.id,
        model,
        workspace_path="",
        fixture_path="",
        agent=untried_agent(CANCELLED),
        report=harness_error(suite.id, task.id, f"workspace materialization failed: {CANCELLED}"),
    )


def _run_row(request: BenchRequest, site: Site, task: Task, model: str, cancel: threading.Event) -> BenchTask:
    """Return the row of one task under one model."""
    private: list[Path] = []
    located: list[str] = []

    def launch(workspace: Path) -> Launch:
        checks = partial(_environment, request, workspace, private)
        if isinstance(request.agent, BuiltIn):
            words = built_in_words(task.prompt, model=model)
            own = _environment(request, workspace, private, request.agent.key_variables([model]))
            return Launch(words, {**own, **request.agent.variables}, checks, model)
        values = {"workspace": str(workspace), "prompt": task.prompt, "task_id": task.id, "model": model}
        environment = _environment(request, workspace, private)
        return Launch(agent_words(request.agent, values), environment, checks, model)

    def fixture() -> Fixture:
        found = suite_fixture(request.suite, task, site.root)
        located.append(str(found.key))
        return found

    limit = Limit(request.timeout_s or None, cancel)
    order = Order(
        suite_id=request.suite.id,
        task=task,
        fixture=fixture,
        launch=launch,
        setup_limit=limit,
        limit=lambda: limit,
        checks_limit=limit,
        retries=request.retries,
    )
    try:
        done = execute(order, site)
    finally:
        for path in private:
            remove_tree(path)
    return finished_row(task, model, done, located[0] if done.ran else "")


def _environment(
    request: BenchRequest, workspace: Path, private: list[Path], names: Sequence[str] = ()
) -> dict[str, str]:
    """Return the environment of an agent or its checks; a directory that is made for it joins `private`."""
    if not request.clean_env:
        return process.inherited(request.environment, workspace)
    private.append(Path(tempfile.mkdtemp(dir=request.spools, prefix="private-")))
    return process.allowlisted(request.environment, workspace, private[-1], names)


def suite_fixture(suite: Suite, task: Task, root: Path) -> Fixture:
    """Return the fixture of a task of a suite file.

    Raises:
        SuiteLoadError: It is not there, or lies outside the suite's directory.
        OperationFailedError: The work root lies inside it.
    """
    directory = fixture_directory(suite.path, task.workspace_fixture)
    refuse_inside(root, directory)
    return Fixture(directory, lambda: tree_entries(directory))


def finished_row(task: Task, model: str, done: Executed, fixture_path: str) -> BenchTask:
    """Return the row of an order that was carried out."""
    agent = (
        untried_agent(done.problem)
        if done.ran is None
        else agent_result(done.ran.outcome, done.ran.output, error=done.ran.error, attempts=done.attempts)
    )
    row = bench_task(
        task.id,
        model,
        workspace_path=done.workspace,
        fixture_path=fixture_path,
        agent=agent,
        report=done.report,
    )
    return msgspec.structs.replace(row, left_behind=done.left_behind)
