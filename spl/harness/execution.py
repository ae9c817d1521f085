"""One task, executed: a fresh workspace, the agent in it, its checks, and nothing left behind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from spl.contracts.harness import Attempt, ScoreReport
from spl.errors import OperationFailedError, SplError
from spl.harness.agent import AgentRun, run_agent
from spl.harness.baselines import Baselines, Fixture
from spl.harness.checks import Bench, blocked_report, score_task
from spl.harness.diff import unified
from spl.harness.fixture import tree_entries
from spl.harness.limit import Limit
from spl.harness.removal import remove_tree
from spl.harness.report import harness_error
from spl.harness.snapshot import (
    Baseline,
    Seen,
    changed,
    changed_since,
    ignore_rules,
    ignored,
    scan,
)
from spl.harness.suite import Task
from spl.harness.workspace import materialize, new_directory, safe_name


class Launch(Struct, frozen=True):
    """How an agent is started in a workspace, and what its checks see.

    Attributes:
        words: Its argv.
        environment: Its environment.
        checks_environment: Returns that of its checks, once the agent has ended: what it names is made then, so that
            the agent cannot have left anything there.
        model: The model that it is told to use, under which usage counts that names none.
    """

    words: list[str]
    environment: Mapping[str, str]
    checks_environment: Callable[[], Mapping[str, str]]
    model: str = ""


class Order(Struct, frozen=True, kw_only=True):
    """What is to be executed.

    Attributes:
        suite_id: The suite's name in the report.
        task: The task.
        fixture: Returns what the workspace begins with; it may raise.
        launch: Returns how the agent is started in the workspace; it may raise.
        setup_limit: When the workspace must have been made.
        limit: Begins the time of the agent, and returns when it must have ended.
        checks_limit: When the checks must have ended.
        retries: Further attempts for an agent that could not be started.
        shows_diff: Whether what changed in a fresh workspace is wanted as a diff.
        unread_blocks: Whether usage that could not be accounted for blocks the checks, as in a published bench.
        workspace: A directory that is there and stays, instead of a fresh one that begins with the fixture.
    """

    suite_id: str
    task: Task
    fixture: Callable[[], Fixture]
    launch: Callable[[Path], Launch]
    setup_limit: Limit
    limit: Callable[[], Limit]
    checks_limit: Limit
    retries: int = 0
    shows_diff: bool = False
    unread_blocks: bool = True
    workspace: Path | None = None


_TRIES: Final = 3


class Executed(Struct, frozen=True, kw_only=True):
    """What came of an order.

    Attributes:
        workspace: Where it was; removed unless workspaces are kept. Empty when none was made.
        problem: Why the workspace could not be made, or the agent not be launched in it; empty otherwise.
        ran: The last attempt at the agent; None after a problem.
        report: The score.
        changed: What the agent changed, also when it failed; None when that is unknown.
        diff: That as a unified diff, when the order wants it.
        attempts: The attempts before the last.
        left_behind: Names that could not be removed.
    """

    workspace: str
    report: ScoreReport
    problem: str = ""
    ran: AgentRun | None = None
    changed: list[str] | None = None
    diff: bytes = b""
    attempts: list[Attempt] = []
    left_behind: list[str] = []


class Site(Struct, frozen=True, kw_only=True):
    """Where orders are executed.

    Attributes:
        root: The directory of workspaces; made when it is not there.
        spools: Where captured output is kept.
        baselines: The fixtures that were prepared.
        keep_workspaces: Leave the workspaces of agents that were tried.
    """

    root: Path
    spools: Path
    baselines: Baselines
    keep_workspaces: bool = False


def execute(order: Order, site: Site) -> Executed:
    """Carry out an order; whatever goes wrong is told in what is returned."""
    made: list[Path] = []
    try:
        workspace, changes = _given(order, order.workspace) if order.workspace else _fresh(order, site, made)
        launch = order.launch(workspace)
    except (OSError, SplError) as error:
        return _not_made(order, made, error)
    attempts: list[Attempt] = []
    limit = order.limit()
    while True:
        ran = run_agent(
            launch.words,
            workspace=workspace,
            environment=launch.environment,
            spools=site.spools,
            limit=limit,
            model=launch.model,
        )
        if not ran.outcome.not_started or len(attempts) >= order.retries:
            break
        attempts.append(Attempt(error=ran.error, latency_ms=ran.outcome.latency_ms))
    report = _scored(order, site, workspace, launch, changes, ran)
    return Executed(
        workspace=str(workspace),
        report=report,
        ran=ran,
        changed=changes.names,
        diff=changes.diff,
        attempts=attempts,
        left_behind=[] if site.keep_workspaces else _removed(made),
    )


def _fresh(order: Order, site: Site, made: list[Path]) -> tuple[Path, _Changes]:
    """Return a workspace that holds the fixture, and nothing that another agent has put into the copy of it."""
    for _ in range(_TRIES):
        prepared = site.baselines.get(order.fixture(), order.setup_limit)
        made.append(_new_workspace(site.root, order.task.id))
        materialize(made[-1], tree_entries(prepared.copy, git=True), order.setup_limit)
        if prepared.intact:
            return made[-1], _Changes(order, made[-1], prepared.before, prepared.copy)
        _removed([made.pop()])
    raise OperationFailedError("another agent keeps changing the files that workspaces are made from")


def _given(order: Order, directory: Path) -> tuple[Path, _Changes]:
    workspace = directory.resolve(strict=True)
    return workspace, _Changes(order, workspace, scan(workspace, order.setup_limit))


def _new_workspace(root: Path, name: str) -> Path:
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperationFailedError(f"create work root: {error.filename}: {error.strerror}") from error
    return new_directory(root, safe_name(name))


def _not_made(order: Order, made: list[Path], error: OSError | SplError) -> Executed:
    reason = error.message if isinstance(error, SplError) else f"{error.filename}: {error.strerror}"
    message = f"workspace materialization failed: {reason}"
    return Executed(
        workspace=str(made[-1]) if made else "",
        report=harness_error(order.suite_id, order.task.id, message),
        problem=reason,
        left_behind=_removed(made),
    )


def _removed(made: list[Path]) -> list[str]:
    return [left for path in made for left in remove_tree(path)]


class _Changes:
    """What an agent changed.

    A fresh workspace is compared with its fixture by content; one that was there by what no ordinary user can set
    back, since hashing all of it could take longer than the agent.
    """

    def __init__(
        self, order: Order, workspace: Path, before: Baseline | Mapping[str, Seen], copy: Path | None = None
    ) -> None:
        self._order, self._workspace, self._before, self._copy = order, workspace, before, copy
        self.names: list[str] | None = None
        self.diff = b""

    def __call__(self) -> tuple[list[str], dict[str, Seen]]:
        limit, before = self._order.checks_limit, self._before
        now = scan(self._workspace, limit)
        if isinstance(before, Baseline):
            named = self._order.task.forbidden_changed_files
            self.names = changed(self._workspace, before, now, named, limit)
        else:
            rules = ignore_rules(self._workspace, before.keys() & now.keys())
            self.names = [name for name in changed_since(before, now) if not ignored(name, rules)]
        if self._order.shows_diff and self._copy is not None:
            self.diff = unified(self._copy, self._workspace, self.names)
        return self.names, now


def _scored(
    order: Order, site: Site, workspace: Path, launch: Launch, changes: _Changes, ran: AgentRun
) -> ScoreReport:
    events, limit = ran.output.trace_events, order.checks_limit
    failure = (ran.error if order.unread_blocks else "") or ran.failure
    if failure:
        if not ran.outcome.not_started:
            with contextlib.suppress(OSError, OperationFailedError):
                changes()
        return blocked_report(order.suite_id, order.task, failure, events)
    bench = Bench(
        workspace=workspace,
        environment=launch.checks_environment(),
        spools=site.spools,
        limit=limit,
        changes=changes,
    )
    return score_task(order.suite_id, order.task, bench, events)
