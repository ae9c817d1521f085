"""What the command line asks of the harness."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct

from spl.contracts.harness import BenchTask
from spl.harness.built_in import BuiltIn
from spl.harness.suite import Suite


class ScoreRequest(Struct, frozen=True, kw_only=True):
    """Score one workspace: `spl.harness.checks.score_workspace(request) -> ScoreReport`.

    Attributes:
        suite: The suite.
        task_id: The task, or nothing when the suite has one.
        workspace: The worktree as the caller wrote it.
        environment: The caller's environment; the harness takes out what must not reach checks.
        spools: A directory for long captured output; the caller removes it when the document is written.
        clean_env: Give checks only the allowlist.
    """

    suite: Suite
    task_id: str
    workspace: str
    environment: Mapping[str, str]
    spools: Path
    clean_env: bool = False


class BenchRequest(Struct, frozen=True, kw_only=True):
    """Run an agent over tasks and models: `spl.harness.bench.run_bench(request) -> BenchOutcome`.

    Attributes:
        suite: The suite.
        task_id: Only this task, or nothing for all.
        models: The models in order; none means one run with an empty name.
        agent: The agent's words, placeholders as written, or the built-in agent.
        work_root: As the caller wrote it, or nothing for a temporary directory.
        keep_workspaces: Leave workspaces and the temporary work root in place.
        timeout_s: Limit for each row, 0 for none.
        environment: The caller's environment; the harness takes out what must not reach agents and checks.
        clean_env: Give agents and checks only the allowlist.
        jobs: Rows side by side, at least 1.
        retries: Further attempts for an agent that could not be started.
        fail_fast: Start no further row after one that did not pass.
        spools: A directory for long captured output; the caller removes it when the document is written.
        on_row: Called with each finished row, from any thread, for progress.
    """

    suite: Suite
    agent: list[str] | BuiltIn
    environment: Mapping[str, str]
    spools: Path
    task_id: str = ""
    models: list[str] = []
    work_root: str = ""
    keep_workspaces: bool = False
    timeout_s: float = 0
    clean_env: bool = False
    jobs: int = 1
    retries: int = 0
    fail_fast: bool = False
    on_row: Callable[[BenchTask], None] | None = None


class BenchOutcome(Struct, frozen=True, kw_only=True):
    """The rows in task-major order; `work_root` is where kept workspaces are, as reported."""

    rows: list[BenchTask]
    work_root: str = ""
