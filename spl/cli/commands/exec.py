"""`spl exec`."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from spl.cli.commands.single import single
from spl.cli.context import current, kernel, read_file

if TYPE_CHECKING:
    from spl.agent.events import Event
    from spl.agent.run import Job
    from spl.records.definitions import PipelineBehaviour


class Format(StrEnum):
    """What is printed."""

    TEXT = "text"
    STREAM_JSON = "stream-json"


def _exec(
    prompt: str = typer.Argument(help="What is to be done. Write -- before it when it begins with a dash."),
    output_format: Format = typer.Option(Format.TEXT, help="The answer as text, or every event as a line."),
    model: str | None = typer.Option(
        None, help="The primary model, provider:model; stages that name one keep theirs."
    ),
    definition: str | None = typer.Option(
        None, help="A pipeline: a TOML or JSON file, or a definition's id, facet or prefix in the home."
    ),
    max_iterations: int | None = typer.Option(None, help="How often it may try until its check passes."),
) -> None:
    """Run the built-in agent in the current directory, and print its answer or its events.

    It exits with 0 when the work is done and 3 when it is not. What is told on the way goes to standard error.

    Example: spl exec --model openai:gpt-4.1 "Fix the failing test"
    """
    from spl.errors import SplError  # noqa: PLC0415 - imported when called

    told = _Told()
    stream = output_format is Format.STREAM_JSON or current().json
    try:
        job = _job(prompt, model, definition, max_iterations)
    except SplError as error:
        if output_format is Format.STREAM_JSON and not current().json:
            from spl.agent.run import refuse  # noqa: PLC0415 - as above

            refuse(error, _print)
        raise
    from spl.agent.run import run  # noqa: PLC0415 - as above

    def take(event: Event) -> None:
        if stream:
            _print(event)
        if (
            not stream or event["type"] == "error"
        ):  # who reads events reads them, and who reads errors finds them
            told(event)

    status = run(job, take)
    if not stream and status == 0:
        told.emit_answer()
    if status:
        raise typer.Exit(status)


def _job(prompt: str, model: str | None, definition: str | None, max_iterations: int | None) -> Job:
    from spl import environment  # noqa: PLC0415 - imported when called
    from spl.agent.run import Job, require_extra, with_choices  # noqa: PLC0415

    require_extra()
    settings = environment.settings()
    behaviour = with_choices(_behaviour(definition, model or settings.model), model, max_iterations)
    return Job(
        goal=prompt,
        behaviour=behaviour,
        workspace=Path.cwd(),
        settings=settings,
        environment=environment.variables(),
    )


exec_app = single(_exec)


def _print(event: Event) -> None:
    """Print an event as a line, at once."""
    line = json.dumps(event, ensure_ascii=False).encode("utf-8", "replace")
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


class _Told:
    """Tells events to a person: what goes wrong always, what goes on where progress is shown, the answer at the end."""

    def __init__(self) -> None:
        self._answer = ""

    def __call__(self, event: Event) -> None:
        """Tell one event."""
        from spl.cli.progress import shown  # noqa: PLC0415 - imported when called

        match event:
            case {"type": "error" | "warning" as kind, "message": message}:
                self._say(f"{kind}: {message}" if kind == "warning" else str(message))
            case {"type": "tool_call", "name": name, "args": args} if shown():
                self._say(f"{name} {json.dumps(args, ensure_ascii=False)[:200]}")
            case {"type": "usage", "stage": stage, "iteration": iteration, "model": model} if shown():
                self._say(f"{stage} {iteration}: asked {model}")
            case {"type": "final", "text": str(text)}:
                self._answer = json.loads(text)["answer"]

    def emit_answer(self) -> None:
        """Print the answer on standard output."""
        from spl.cli.output import write  # noqa: PLC0415 - imported when called
        from spl.cli.sanitize import visible  # noqa: PLC0415

        write(visible(self._answer, lines=True))

    @staticmethod
    def _say(text: str) -> None:
        from spl.cli.sanitize import visible  # noqa: PLC0415 - imported when called

        sys.stderr.write(f"spl: {visible(text, lines=True)}\n")


def _behaviour(definition: str | None, model: str | None) -> PipelineBehaviour:
    """Return the behaviour that is meant: of a file, of the home, or the built-in one."""
    from spl.agent.defaults import default_behaviour  # noqa: PLC0415 - imported when called
    from spl.errors import InputError, UsageError  # noqa: PLC0415

    if definition is None:
        if model is None:
            raise UsageError("no model is named", hint="name one with --model, or as model in config.toml")
        return default_behaviour(model)
    if Path(definition).is_file():
        return _of_file(definition)
    from spl.ids import is_prefix  # noqa: PLC0415 - as above

    if not is_prefix(definition):
        raise InputError(f"{definition} is neither a file nor an id of a definition")
    from spl.kernel.content import unfold_text  # noqa: PLC0415 - as above
    from spl.kernel.define import show_definition  # noqa: PLC0415

    home = kernel()
    found = show_definition(home, definition).behaviour
    return _pipeline(definition, found, lambda blob: unfold_text(home.blobs, blob))


def _of_file(file: str) -> PipelineBehaviour:
    from spl.kernel.define import parse_behaviour  # noqa: PLC0415 - imported when called

    source = parse_behaviour(read_file(file), file)
    contents: dict[Any, bytes] = dict(source.contents)
    return _pipeline(file, source.behaviour, lambda blob: contents[blob].decode())


def _pipeline(name: str, behaviour: dict[str, Any], text_of: Any) -> PipelineBehaviour:  # noqa: ANN401 - a function
    """Return a behaviour with its long texts in full.

    Raises:
        InputError: It is not one of the built-in agent.
    """
    import msgspec  # noqa: PLC0415 - imported when called

    from spl.errors import InputError  # noqa: PLC0415
    from spl.records.definitions import PipelineBehaviour  # noqa: PLC0415

    if behaviour.get("adapter") != "pipeline":
        raise InputError(
            f"{name} has the adapter {behaviour.get('adapter')}; the built-in agent runs definitions with pipeline"
        )
    stages = [dict(stage) for stage in behaviour.get("stages", ())]
    full = {**behaviour, **({"stages": stages} if stages else {})}
    for holder in (full, *stages):
        if isinstance(holder.get("instructions"), bytes):
            holder["instructions"] = text_of(holder["instructions"])
    return msgspec.convert(full, PipelineBehaviour)
