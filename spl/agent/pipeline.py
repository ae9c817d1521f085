"""The pipeline: plan, write, verify, and again until it passes or there is nothing left to spend."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, Final

from msgspec import Struct

from spl.agent.conversation import Conversation, Manner
from spl.agent.defaults import (
    ACCEPTED,
    MAX_ITERATIONS,
    PLAN,
    REJECTED,
    STAGE_INSTRUCTIONS,
    VERIFY,
    default_stages,
    stage_tools,
)
from spl.agent.events import Events, Failure
from spl.agent.ledger import Ledger, Step
from spl.agent.parameters import Parameters
from spl.agent.requests import Connections, Requests
from spl.agent.tools import Tools
from spl.records.definitions import PipelineBehaviour, Stage

COMPLETED: Final = "completed"
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"
_MAX_NOTE: Final = 16_384


class Parts(Struct, frozen=True, kw_only=True):
    """What a pipeline is made of, put together by its caller."""

    events: Events
    ledger: Ledger
    connections: Connections
    tools: Tools
    parameters: Parameters


class Pipeline:
    """Carries out one definition for one goal.

    Args:
        behaviour: The definition's behaviour, its texts in full.
        goal: What is to be done.
        parts: What it is made of.
    """

    def __init__(self, behaviour: PipelineBehaviour, goal: str, parts: Parts) -> None:
        self._behaviour, self._goal, self._parts = behaviour, goal, parts
        self._stages = behaviour.stages or default_stages()
        if behaviour.check and self._stages[-1].name != VERIFY:
            self._stages = [*self._stages, Stage(name=VERIFY)]
        self._notes: dict[str, str] = {}
        self._records: list[dict[str, object]] = []
        self._answer = ""
        self._iteration = 0

    async def run(self) -> None:
        """Work until it passes.

        Raises:
            Failure: It does not, or cannot go on.
            InputError: A model's provider is not known.
        """
        for stage in self._stages:  # what is wrong with a route is found before anything is spent
            if not self._is_check(stage):
                self._parts.connections.model(stage.model or self._behaviour.model)
        most = self._behaviour.max_iterations or MAX_ITERATIONS
        problem: str | None = ""
        while problem is not None and self._iteration < most:
            self._iteration += 1
            problem = await self._iterate()
        if problem is not None:
            times = "once" if most == 1 else f"in {most} iterations"
            raise Failure("not_verified", f"{VERIFY} did not pass {times}: {_cut(problem, 2_000)}")

    def result(self, status: str) -> str:
        """Return the result of the pipeline as JSON text."""
        document = {
            "status": status,
            "iterations": self._iteration,
            "answer": self._parts.events.hide(self._answer),
            "stages": self._records,
        }
        return json.dumps(document, ensure_ascii=False)

    async def _iterate(self) -> str | None:
        """Go through the stages once, and return why it does not pass, or None."""
        problem: str | None = None
        for stage in self._stages:
            if stage.name == PLAN and self._iteration > 1:
                continue
            if stage is self._stages[-1] and stage.name == VERIFY:
                problem = await self._verify(stage)
            else:
                self._notes[stage.name] = self._answer = await self._converse(stage)
        if problem is not None:
            self._notes[VERIFY] = problem
        return problem

    def _is_check(self, stage: Stage) -> bool:
        return bool(self._behaviour.check) and stage is self._stages[-1] and stage.name == VERIFY

    async def _verify(self, stage: Stage) -> str | None:
        if self._is_check(stage):
            return await self._check(stage)
        text = await self._converse(stage, judges=True)
        last = text.strip().rpartition("\n")[2].strip(" *_#`>.")
        if last.upper().startswith(ACCEPTED):
            return None
        if not last.upper().startswith(REJECTED):
            self._parts.events.emit(
                "warning", code="no_verdict", message=f"{VERIFY} did not end with {ACCEPTED} or {REJECTED}"
            )
        self._records[-1]["status"] = FAILED
        return text

    async def _check(self, stage: Stage) -> str | None:
        """Run the definition's check, which decides alone: no model is asked."""
        argv = self._behaviour.check or []
        self._parts.ledger.check()
        self._parts.ledger.open_stage()
        started = time.monotonic()
        result = await asyncio.to_thread(self._parts.tools.check, argv)
        passed = result.status == "ok"
        self._parts.events.emit("verify", name=argv[0].rpartition("/")[2])
        self._record(stage, COMPLETED if passed else FAILED, started)
        return None if passed else f"{' '.join(argv)}\n{result.text}"

    async def _converse(self, stage: Stage, *, judges: bool = False) -> str:
        parts, behaviour = self._parts, self._behaviour
        step = Step(stage.name, self._iteration)
        to = parts.connections.model(stage.model or behaviour.model)
        manner = Manner(
            tools=stage_tools(behaviour, stage),
            max_turns=parts.parameters.max_turns,
            settings=parts.parameters.settings,
        )
        requests = Requests(to, parts.ledger, parts.events, step)
        parts.ledger.open_stage()
        started, status = time.monotonic(), FAILED
        try:
            talk = Conversation(requests, parts.tools, parts.events, manner)
            text = await talk.run(self._instructions(stage, judges=judges), self._prompt())
            status = COMPLETED
        except asyncio.CancelledError:
            status = CANCELLED
            raise
        finally:
            self._record(stage, status, started, requests)
        return text

    def _record(self, stage: Stage, status: str, started: float, asked: Requests | None = None) -> None:
        record: dict[str, Any] = {"name": stage.name, "status": status, "iteration": self._iteration}
        if asked is not None:
            record |= {"provider": asked.route.provider, "model": asked.route.model}
        latency_ms = max(1, round((time.monotonic() - started) * 1000))
        self._records.append({**record, **self._parts.ledger.stage.record(), "latency_ms": latency_ms})

    def _instructions(self, stage: Stage, *, judges: bool) -> str:
        own = stage.instructions or STAGE_INSTRUCTIONS.get(stage.name, "")
        verdict = (
            f"End with one line: {ACCEPTED}, or {REJECTED}: and what is wrong."
            if judges and stage.instructions
            else ""
        )
        return "\n\n".join(str(part) for part in (self._behaviour.instructions, own, verdict) if part)

    def _prompt(self) -> str:
        parts = [f"The goal:\n\n{self._goal}"]
        parts += [
            f"What the stage {name} said:\n\n{_cut(note, _MAX_NOTE)}" for name, note in self._notes.items()
        ]
        return "\n\n".join(parts)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[{len(text) - most} characters left out]"
