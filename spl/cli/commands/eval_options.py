"""The published flags of `eval validate`, `run` and `bench`, read word by word as documented."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from spl.harness.durations import parse_duration
from spl.harness.paths import trim

HELP: Final = """\
Usage: spl eval [validate|run|bench] --suite FILE [flags]

Evaluate coding agents offline: check a suite of tasks, score a workspace, or run an agent over fixture workspaces.

  spl eval validate --suite suite.json
  spl eval run --suite suite.json --task fix-bug --workspace ./checkout
  spl eval bench --suite suite.json --model m1 --model m2 --agent-command my-agent --model {model} {prompt}

validate (the default)
  --suite FILE              the suite file; nothing is copied and nothing is run
  --format FORMAT           text, json, or github (workflow annotations)

run: score one Git worktree that an agent has already changed
  --workspace DIR           the worktree
  --task ID                 the task; may be left out when the suite has one

bench: run an agent in a fresh copy of each task's fixture, and score what it did
  --agent-command ARGV...   the agent; takes all words that follow. {workspace}, {prompt}, {task_id} and {model}
                            are replaced in every word, without a shell. When absent, the built-in agent runs,
                            with the models named by --model
  --task ID                 only this task
  --model NAME              a model for {model}; repeatable
  --models A,B              several models
  --timeout DURATION        limit for each task and model, such as 90s or 5m; 0 means none
  --work-root DIR           where the workspaces are made (a temporary directory when absent)
  --keep-workspaces         leave the workspaces in place
  --csv-output FILE         one line for each task and model
  --jobs N                  rows that run side by side (1 when absent)
  --retries N               further attempts for an agent that could not be started
  --fail-fast               start no further row after one that did not pass

  --actor NAME              run the definition of this actor instead, and record the runs; see spl eval score
  --definition ID           with --actor: a definition other than the installed one
  --trial FILE|ID           with --actor: a candidate; nothing is installed

run and bench
  --report-dir DIR          write the document to DIR/agent-eval-report.json too
  --clean-env               give agents and checks only the allowed environment variables
  --verbose                 list missing and unexpected files under each failure

all
  --json                    print one JSON document
  -h, --help                print this help

Figures over recorded runs: spl eval score, history, compare, regressions, report (each has its own --help).

The exit status is 0 when everything passed, 3 when something did not, 2 for a mistake in the words or the suite, and 1
when the operation itself failed.
"""

MODES: Final = ("validate", "run", "bench")
BOOLEANS: Final = {
    "--json": "json",
    "--keep-workspaces": "keep_workspaces",
    "--fail-fast": "fail_fast",
    "--clean-env": "clean_env",
    "--verbose": "verbose",
}
_VALUES: Final = (
    "--suite", "--task", "--workspace", "--report-dir", "--work-root", "--model", "--models", "--timeout",
    "--csv-output", "--jobs", "--retries", "--format", "--actor", "--definition", "--trial",
)  # fmt: skip
_BENCH_ONLY: Final = frozenset(
    {
        "--work-root", "--model", "--models", "--timeout", "--agent-command", "--keep-workspaces", "--csv-output",
    }
)  # fmt: skip
_NOT_VALIDATE: Final = frozenset({"--task", "--report-dir"})
# What is not in the published documentation is an unknown flag in a mode that does not have it.
_ADDITIONS: Final = {
    **dict.fromkeys(("--clean-env", "--verbose"), frozenset({"run", "bench"})),
    **dict.fromkeys(
        ("--jobs", "--retries", "--fail-fast", "--actor", "--definition", "--trial"), frozenset({"bench"})
    ),
    "--format": frozenset({"validate"}),
}
_FORMATS: Final = ("text", "json", "github")
_NUMBER: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:_?[0-9])*\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
    r"|0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+|(?i:inf|infinity))"
)
_COUNT: Final = re.compile("[0-9]{1,4}")


class WordsError(Exception):
    """The words do not say what to do; the message is printed as it is, exit status 2."""


class HelpWanted(Exception):  # noqa: N818 - a request, not a fault
    """Help was asked for."""


@dataclass(slots=True)
class EvalOptions:
    """What the words say; an empty text means that the flag was not given."""

    mode: str
    suite: str = ""
    task: str = ""
    workspace: str = ""
    report_dir: str = ""
    work_root: str = ""
    models: list[str] = field(default_factory=list)
    timeout_s: float = 0
    agent_command: list[str] | None = None
    csv_output: str = ""
    jobs: int = 1
    retries: int = 0
    format: str = "text"
    actor: str = ""
    definition: str = ""
    trial: str = ""
    json: bool = False
    keep_workspaces: bool = False
    fail_fast: bool = False
    clean_env: bool = False
    verbose: bool = False


def parse_words(words: list[str]) -> EvalOptions:
    """Return the options that the words behind `eval` say; the first mistake counts.

    Raises:
        WordsError: There is a mistake.
        HelpWanted: Help was asked for before any mistake.
    """
    options = EvalOptions(words[0] if words and words[0] in MODES else "validate")
    at = 1 if words and words[0] in MODES else 0
    while at < len(words):
        at += _take(options, words, at)
    if not options.suite:
        raise WordsError("--suite requires a path")
    if options.mode == "run" and not options.workspace:
        raise WordsError("--workspace requires a path for eval run")
    _check_recording(options)
    if options.format == "json":
        options.json = True
    return options


def _check_recording(options: EvalOptions) -> None:
    if not options.actor:
        for flag, value in (("--definition", options.definition), ("--trial", options.trial)):
            if value:
                raise WordsError(f"{flag} is only valid with --actor")
        return
    if options.agent_command is not None:
        raise WordsError("--agent-command and --actor exclude each other: the agent is the definition's")
    if options.models:
        raise WordsError("--model and --actor exclude each other: the model is the definition's")
    if options.definition and options.trial:
        raise WordsError("--definition and --trial exclude each other")


def _take(options: EvalOptions, words: list[str], at: int) -> int:
    """Take the flag at this place and return how many words it has."""
    word = words[at]
    if word in {"-h", "--help", "help"}:
        raise HelpWanted
    flag, equals, inline = word.partition("=")
    if word in BOOLEANS:
        _check_mode(options.mode, word)
        setattr(options, BOOLEANS[word], True)
        return 1
    if flag == "--agent-command":
        return _take_command(options, words, at)
    if flag not in _VALUES:
        if word.startswith("-"):
            raise WordsError(f"unknown eval flag {quoted(word)}")
        raise WordsError(f"unexpected eval argument {quoted(word)}")
    _check_mode(options.mode, flag)
    if equals:
        value = trim(inline)
        if not value and flag != "--suite":
            raise WordsError(f"{flag} requires a value")
    else:
        value = trim(words[at + 1]) if at + 1 < len(words) else ""
        if not value or (value.startswith("-") and not _NUMBER.fullmatch(value)):
            raise WordsError(f"{flag} requires a value")
    _set(options, flag, value)
    return 1 if equals else 2


def _check_mode(mode: str, flag: str) -> None:
    if flag == "--workspace" and mode != "run":
        raise WordsError("--workspace is only valid for eval run")
    if flag in _NOT_VALIDATE and mode == "validate":
        raise WordsError(f"{flag} is only valid for eval run or eval bench")
    if flag in _BENCH_ONLY and mode != "bench":
        raise WordsError(f"{flag} is only valid for eval bench")
    if mode not in _ADDITIONS.get(flag, MODES):
        raise WordsError(f"unknown eval flag {quoted(flag)}")


def _take_command(options: EvalOptions, words: list[str], at: int) -> int:
    _check_mode(options.mode, "--agent-command")
    _, equals, inline = words[at].partition("=")
    if equals:
        command = [trim(inline)]
        if not command[0]:
            raise WordsError("--agent-command requires a value")
    else:
        command = words[at + 1 :]
        if not command:
            raise WordsError("--agent-command requires at least one argument")
    options.agent_command = command
    return 1 if equals else len(words) - at


def _set(options: EvalOptions, flag: str, value: str) -> None:
    name = flag.removeprefix("--").replace("-", "_")
    if flag == "--model":
        _add_models(options, [value])
    elif flag == "--models":
        _add_models(options, value.split(","))
    elif flag == "--timeout":
        options.timeout_s = _timeout(value)
    elif flag in {"--jobs", "--retries"}:
        if not _COUNT.fullmatch(value) or (flag == "--jobs" and not int(value)):
            raise WordsError(f"{flag} must be a number from {1 if flag == '--jobs' else 0} to 9999")
        setattr(options, name, int(value))
    elif flag == "--format" and value not in _FORMATS:
        raise WordsError(f"--format must be one of {', '.join(_FORMATS)}")
    else:
        setattr(options, name, value)


def _add_models(options: EvalOptions, names: list[str]) -> None:
    for name in map(trim, names):
        if name and name not in options.models:
            options.models.append(name)


def _timeout(value: str) -> float:
    try:
        seconds = parse_duration(value)
    except ValueError as error:
        raise WordsError(f"--timeout must be a Go duration such as 90s or 5m: {error}") from error
    if seconds < 0:
        raise WordsError("--timeout must not be negative")
    return seconds


_NAMED: Final = {
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", '"': '\\"', "\\": "\\\\",
}  # fmt: skip


def quoted(text: str) -> str:
    """Return a word between quotes; what cannot be printed is escaped."""
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 - a byte that is not UTF-8, as Python carries it
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:  # noqa: PLR2004 - ASCII
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - the basic plane
