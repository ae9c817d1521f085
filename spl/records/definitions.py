"""Actors and their definitions: who does the work, and what they are told to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, Struct

from spl.ids import ID_BYTES, BlobId, Did

Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=256)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Positive: TypeAlias = Annotated[int, Meta(ge=1)]
Argv: TypeAlias = Annotated[list[str], Meta(min_length=1)]
State: TypeAlias = Literal["candidate", "installed"]
Trust: TypeAlias = Literal["untrusted", "reviewed", "trusted"]

MAX_LONG_TEXT_BYTES: Final = 16_384

if TYPE_CHECKING:
    LongText: TypeAlias = str | BlobId
else:
    # msgspec has no union of text and bytes; `check_long_text` does in `__post_init__` what it would have done.
    LongText = Annotated[
        Any,
        Meta(
            description="Text of at most 16,384 bytes, or the id of the blob that holds a longer one.",
            extra_json_schema={
                "anyOf": [{"type": "string"}, {"type": "string", "contentEncoding": "base16"}]
            },
        ),
    ]


def check_long_text(value: LongText | None) -> None:
    """Refuse anything but text, a blob id, or nothing; how long a text may be is a rule of records, not of Structs.

    Raises:
        ValueError: The value is of another type; msgspec adds the path.
    """
    if value is None:
        return
    if type(value) is not str and (len(value) != ID_BYTES or not isinstance(value, bytes)):
        raise ValueError("expected text, or the 32 bytes of a blob id")


class Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The root of every record body and its parts: closed, and an unknown value is absent, never null."""


class Actor(Body, frozen=True):
    """`core.actor.v1`: root of an actor's thread, by the operator, who becomes its owner."""

    did: Did
    name: Name
    note: str | None = None


class Definition(Body, frozen=True):
    """`core.definition.v1`: only `behaviour` moves the facet; everything else moves the record id alone."""

    behaviour: dict[str, Any]
    state: State
    origin: Name
    trust: Trust
    note: str | None = None


class Decimal(Body, frozen=True):
    """A number that was written with a fraction or an exponent: mantissa · 10^exponent."""

    dec: Annotated[list[int], Meta(min_length=2, max_length=2)]


Scalar: TypeAlias = str | int | bool | Decimal
Params: TypeAlias = dict[str, str | int | bool | Decimal | list[Scalar]]
Files: TypeAlias = dict[Name, BlobId]


class CommandBehaviour(Body, frozen=True, tag_field="adapter", tag="command"):
    """An agent that is a program: argv with placeholders, run without a shell."""

    argv: Argv
    env: list[Name] | None = None
    model: Name | None = None
    timeout_ms: Positive | None = None
    params: Params | None = None
    files: Files | None = None


class Stage(Body, frozen=True):
    """One stage of the built-in pipeline."""

    name: Name
    model: Name | None = None
    instructions: LongText | None = None
    tools: list[Name] | None = None

    def __post_init__(self) -> None:
        check_long_text(self.instructions)


class Limits(Body, frozen=True):
    """What a pipeline may spend before it stops."""

    tokens: Positive | None = None
    cost_nusd: Positive | None = None
    time_ms: Positive | None = None


class PipelineBehaviour(Body, frozen=True, tag_field="adapter", tag="pipeline"):
    """The built-in agent."""

    model: Name
    instructions: LongText
    stages: list[Stage] | None = None
    tools: list[Name] | None = None
    permissions: Literal["read-only", "workspace-write", "full"] | None = None
    check: Argv | None = None
    max_iterations: Positive | None = None
    limits: Limits | None = None
    params: Params | None = None
    files: Files | None = None

    def __post_init__(self) -> None:
        check_long_text(self.instructions)


class ExternalBehaviour(Body, frozen=True, tag_field="adapter", tag="external"):
    """Work that is run elsewhere and imported."""

    system: Name
    version: Name | None = None
    model: Name | None = None
    params: Params | None = None
    files: Files | None = None


Behaviour: TypeAlias = CommandBehaviour | PipelineBehaviour | ExternalBehaviour
