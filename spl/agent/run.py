"""One run of the built-in agent, from its start to its end: whatever happens is told as events."""

from __future__ import annotations

import asyncio
import importlib.util
import secrets
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from spl.agent.events import Event, Events, Failure
from spl.agent.settings import Settings
from spl.errors import InputError, InterruptedByUserError, MissingExtraError, SplError
from spl.records.definitions import PipelineBehaviour

DONE: Final = 0
NOT_DONE: Final = 3


class Job(Struct, frozen=True, kw_only=True):
    """What the agent is to do.

    Attributes:
        goal: The prompt.
        behaviour: The definition's behaviour, its texts in full.
        workspace: Where it works.
        settings: Where models are.
        environment: The variables: keys, and what commands may see of them.
    """

    goal: str
    behaviour: PipelineBehaviour
    workspace: Path
    settings: Settings
    environment: Mapping[str, str]


def require_extra() -> None:
    """Do nothing when the library is installed; it is looked for, not imported.

    Raises:
        MissingExtraError: It is not.
    """
    if importlib.util.find_spec("pydantic_ai") is None:
        raise MissingExtraError(
            "the built-in agent is not installed", hint="install it: pip install 'spl-kernel[agent]'"
        )


def run(job: Job, write: Callable[[Event], None]) -> int:
    """Do the job, and return the exit status: 0 when it is done, 3 when not, 2 for bad input, 130 when interrupted.

    Args:
        job: The job.
        write: Takes each event.

    Raises:
        MissingExtraError: The library is not installed.
    """
    require_extra()
    events = Events(write, secrets.token_hex(8))
    events.emit(
        "run_start",
        cwd=str(job.workspace),
        model=job.behaviour.model,
        permissionMode=job.behaviour.permissions or "workspace-write",
    )
    status, code = asyncio.run(_supervised(job, events))
    events.emit("run_end", status=status, exitCode=code)
    return code


def refuse(error: SplError, write: Callable[[Event], None]) -> None:
    """Tell a run that did not begin, so that whoever reads events finds its end."""
    events = Events(write, secrets.token_hex(8))
    events.emit("run_start")
    _tell(events, error)
    events.emit("run_end", status="failed", exitCode=error.exit_status)


def _tell(events: Events, error: SplError) -> None:
    hint = f"; {error.hint}" if error.hint else ""
    events.emit("error", code=error.code, message=f"{error.message}{hint}", recoverable=False)


async def _supervised(job: Job, events: Events) -> tuple[str, int]:
    """Do the job as a task that SIGINT and SIGTERM cancel, with the commands that it runs."""
    cancel = threading.Event()
    task = asyncio.ensure_future(_work(job, events, cancel))
    loop = asyncio.get_running_loop()

    def interrupt() -> None:
        cancel.set()
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        return await task
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def _work(job: Job, events: Events, cancel: threading.Event) -> tuple[str, int]:
    from spl.agent.ledger import Ledger  # noqa: PLC0415 - the library takes its time, and run_start comes before
    from spl.agent.parameters import parameters  # noqa: PLC0415
    from spl.agent.pipeline import CANCELLED, COMPLETED, FAILED, Parts, Pipeline  # noqa: PLC0415
    from spl.agent.requests import Connections  # noqa: PLC0415
    from spl.agent.tools import Commands, Tools  # noqa: PLC0415
    from spl.agent.workspace import Workspace  # noqa: PLC0415
    from spl.harness.limit import Limit  # noqa: PLC0415

    ledger = Ledger(events, job.behaviour.limits)
    connections = Connections(job.settings, job.environment, events)
    pipeline: Pipeline | None = None
    status, code = FAILED, NOT_DONE
    try:
        known = parameters(job.behaviour.params)
        for name in known.unknown:
            events.emit(
                "warning", code="unknown_parameter", message=f"params.{name} is not known and does nothing"
            )
        workspace = Workspace(job.workspace)
        commands = Commands(
            environment=job.environment,
            timeout_s=known.command_timeout_ms / 1000,
            limit=Limit(ledger.remaining_s(), cancel),
        )
        parts = Parts(
            events=events,
            ledger=ledger,
            connections=connections,
            tools=Tools(workspace, commands),
            parameters=known,
        )
        pipeline = Pipeline(job.behaviour, job.goal, parts)
        await pipeline.run()
        status, code = COMPLETED, DONE
    except Failure as failure:
        events.emit("error", code=failure.code, message=failure.message, recoverable=False)
    except asyncio.CancelledError:
        status, code = CANCELLED, InterruptedByUserError.exit_status
        events.emit("error", code="interrupted", message="interrupted by the operator", recoverable=False)
    except SplError as error:
        code = error.exit_status
        _tell(events, error)
    except OSError as error:
        code = 1
        events.emit("error", code="operation_failed", message=str(error.strerror or error), recoverable=False)
    finally:
        await connections.close()
    if pipeline is not None:
        events.emit("final", text=pipeline.result(status))
    return status, code


def with_choices(
    behaviour: PipelineBehaviour, model: str | None, max_iterations: int | None
) -> PipelineBehaviour:
    """Return a behaviour with the primary model and the iterations that the command line names.

    Raises:
        InputError: The iterations are not positive.
    """
    if max_iterations is not None and max_iterations < 1:
        raise InputError("--max-iterations is at least 1")
    changes = {"model": model, "max_iterations": max_iterations}
    return msgspec.structs.replace(
        behaviour, **{name: value for name, value in changes.items() if value is not None}
    )
