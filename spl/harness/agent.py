"""The command adapter: an agent is a program with placeholders in its words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from spl.harness import process
from spl.harness.events import AgentOutput
from spl.harness.limit import CANCELLED, TIMED_OUT, Limit
from spl.harness.paths import trim
from spl.harness.process import Outcome

_MAX_REASON: Final = 4096


class AgentRun(Struct, frozen=True, kw_only=True):
    """What an agent did.

    Attributes:
        outcome: How its program ended.
        output: What its output said.
        stopped: Why it did not end by itself, or could not be started; empty otherwise.
    """

    outcome: Outcome
    output: AgentOutput
    stopped: str = ""

    @property
    def failure(self) -> str:
        """Return why it failed, or nothing: what stopped it, else what it printed, else its exit code."""
        if self.stopped or not self.outcome.exit_code:
            return self.stopped
        said = trim(self.outcome.stderr.head(_MAX_REASON).decode("utf-8", "spl-each-byte"))
        return said or f"agent exited with code {self.outcome.exit_code}"

    @property
    def error(self) -> str:
        """Return the error of a bench row: usage that could not be accounted for, else what stopped the agent."""
        return self.output.error or self.stopped


def agent_words(command: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return a command with its placeholders replaced, in one pass: a value is never looked through again.

    Args:
        command: The words as written.
        values: `workspace`, `prompt`, `task_id`, `model`, and what else the caller offers.
    """
    placeholder = re.compile(r"\{(" + "|".join(values) + r")\}")
    return [placeholder.sub(lambda found: values[found[1]], word) for word in command]


def run_agent(
    words: Sequence[str],
    *,
    workspace: Path,
    environment: Mapping[str, str],
    spools: Path,
    limit: Limit,
    model: str = "",
) -> AgentRun:
    """Run an agent in its workspace, reading its events while it works.

    `model` is the model that it is told to use: usage counts under it where the agent's stream names none.
    """
    output = AgentOutput(model)
    outcome = process.run(
        words or [""],
        directory=workspace,
        environment=environment,
        spools=spools,
        limit=limit,
        consumer=output,
    )
    stopped = outcome.not_started
    if not words or not trim(words[0]):
        stopped = "agent command is required"
        outcome = msgspec.structs.replace(outcome, latency_ms=0)  # it was never tried
    elif outcome.cancelled:
        stopped = CANCELLED
    elif outcome.timed_out:
        stopped = TIMED_OUT
    return AgentRun(outcome=outcome, output=output, stopped=stopped)
