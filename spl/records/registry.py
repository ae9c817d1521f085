"""The registry of kinds: what each record means, whom it may come from, and what it refers to."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from spl.records.definitions import Actor, Body, Definition
from spl.records.evals import Case, Retire, Score, Suite
from spl.records.runs import RunEnd, RunStart
from spl.records.verdicts import PairVerdict, Redaction, Retraction

Author: TypeAlias = Literal["kernel", "operator", "either"]

ACTOR: Final = "core.actor.v1"
DEFINITION: Final = "core.definition.v1"
SUITE: Final = "core.suite.v1"
CASE: Final = "core.eval.case.v1"
RETIRE: Final = "core.eval.retire.v1"
RUN_START: Final = "core.run.start.v1"
RUN_END: Final = "core.run.end.v1"
SCORE: Final = "core.eval.run.v1"
VERDICT: Final = "core.verdict.pair.v1"
RETRACTION: Final = "core.verdict.retract.v1"
REDACTION: Final = "core.redaction.v1"


class Role(NamedTuple):
    """One role in `refs`: always a single id in the kinds of `core.`.

    Attributes:
        name: The role.
        kinds: The kinds that it may point at; empty when any.
        required: Whether the record is incomplete without it.
    """

    name: str
    kinds: tuple[str, ...]
    required: bool = True


class Kind(NamedTuple):
    """One kind of record.

    Attributes:
        name: The kind, with its version.
        body: The Struct that its body has.
        author: Who writes it.
        about: One line for `spl kinds`.
        root: The kind of its thread's root; None when it is a root, or stands outside threads.
        roles: What its refs may hold; any other role is refused.
        salted: Whether it carries a salt; a score does not, so that scoring again can find it by its content.
        long_texts: Fields of the body that may be a blob instead.
    """

    name: str
    body: type[Body]
    author: Author
    about: str
    root: str | None = None
    roles: tuple[Role, ...] = ()
    salted: bool = True
    long_texts: tuple[str, ...] = ()


_VERDICT_TARGETS: Final = (RUN_START, RUN_END, SCORE, DEFINITION)

KINDS: Final[dict[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(ACTOR, Actor, "operator", "who does the work; root of a thread of definitions"),
        Kind(
            DEFINITION,
            Definition,
            "operator",
            "what an actor is told to be; its behaviour's hash is its facet",
            root=ACTOR,
            roles=(Role("succeeds", (DEFINITION,), required=False),),
        ),
        Kind(SUITE, Suite, "operator", "root of a thread of cases"),
        Kind(
            CASE,
            Case,
            "operator",
            "one thing to test, with what is expected",
            root=SUITE,
            roles=(Role("replaces", (CASE,), required=False),),
            long_texts=("goal",),
        ),
        Kind(
            RETIRE, Retire, "operator", "a case leaves its suite", root=SUITE, roles=(Role("case", (CASE,)),)
        ),
        Kind(
            RUN_START,
            RunStart,
            "either",
            "one attempt begins; root of the run's thread",
            roles=(
                Role("actor", (ACTOR,)),
                Role("definition", (DEFINITION,)),
                Role("case", (CASE,), required=False),
                Role("suite", (SUITE,), required=False),
            ),
            long_texts=("goal",),
        ),
        Kind(
            RUN_END,
            RunEnd,
            "either",
            "how a run ended, with its results, usage and tool calls",
            root=RUN_START,
            roles=(Role("start", (RUN_START,)),),
            long_texts=("answer",),
        ),
        Kind(
            SCORE,
            Score,
            "kernel",
            "the figures of one suite, actor and definition",
            root=SUITE,
            roles=(Role("suite", (SUITE,)), Role("actor", (ACTOR,)), Role("definition", (DEFINITION,))),
            salted=False,
        ),
        Kind(
            VERDICT,
            PairVerdict,
            "operator",
            "one record is preferred to another, and what differed",
            roles=(Role("winner", _VERDICT_TARGETS), Role("loser", _VERDICT_TARGETS)),
            long_texts=("basis",),
        ),
        Kind(
            RETRACTION,
            Retraction,
            "operator",
            "a verdict no longer counts",
            roles=(Role("verdict", (VERDICT,)),),
        ),
        Kind(REDACTION, Redaction, "operator", "the content at a position was withdrawn; its leaf stays"),
    )
}

KIND_OF_BODY: Final[dict[type[Body], str]] = {kind.body: kind.name for kind in KINDS.values()}
