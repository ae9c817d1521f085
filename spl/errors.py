"""The one tree of errors: each class owns its code, exit status and hint.

`docs/errors.md` and `spl errors` are generated from `all_errors`. The exit statuses:
1 the operation failed, 2 usage or input, 4 refused, 6 the log is damaged, 70 internal fault, 130 interrupted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar


class SplError(Exception):
    """The root of every error that a user can meet.

    Args:
        message: What is wrong and where, in one sentence without a full stop at the end.
        hint: What to do next; the class's own hint when absent.
        details: Machine-readable facts for the JSON error document.
    """

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 1
    default_hint: ClassVar[str | None] = None

    def __init__(
        self, message: str, *, hint: str | None = None, details: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint if hint is not None else self.default_hint
        self.details: dict[str, Any] = dict(details or {})


# --- 1: the operation failed -------------------------------------------------------------------------


class OperationFailedError(SplError):
    """The system did not let the operation happen; nothing changed."""

    code = "operation_failed"
    exit_status = 1


class StorageError(OperationFailedError):
    """Reading or writing the home failed (disk full, permission, read-only medium, input/output)."""

    code = "storage"


class UnconfirmedError(StorageError):
    """The disk failed at the last step of a write: the records are in the log, or may be, and may not stay."""

    code = "unconfirmed"
    default_hint = "look at the disk, run spl verify, and at spl log before you repeat the command"


class LockTimeoutError(OperationFailedError):
    """Another process held the home's lock for longer than the wait limit."""

    code = "lock_timeout"
    default_hint = "try again when the other spl process has finished"


class KeyAccessError(OperationFailedError):
    """A private key is missing, unreadable, or readable by others."""

    code = "key_access"


class MissingExtraError(OperationFailedError):
    """The command needs an optional part of spl that is not installed."""

    code = "missing_extra"


# --- 2: usage or input -------------------------------------------------------------------------------


class UsageError(SplError):
    """The command line does not say what to do."""

    code = "usage"
    exit_status = 2
    default_hint = "see --help"


class InputError(SplError):
    """What was given cannot be used as it stands."""

    code = "input"
    exit_status = 2


class FileInputError(InputError):
    """A file that was named cannot be read."""

    code = "file_input"


class EncodingError(InputError):
    """Bytes or a value lie outside the encoding profile."""

    code = "encoding"


class SchemaError(InputError):
    """A document or a record body does not have the shape of its kind.

    `details["problems"]` is a list of {"path", "message"}, every problem at once.
    """

    code = "schema"


class SignatureError(InputError):
    """A signature is wrong, or missing where the author's DID names a key."""

    code = "signature"


class InvalidIdError(InputError):
    """A text is not an id, an id prefix or a DID."""

    code = "invalid_id"


class UnknownIdError(InputError):
    """No record has this id or prefix."""

    code = "unknown_id"


class WithdrawnError(InputError):
    """The record's content was withdrawn; its place in the log and its leaf stay."""

    code = "withdrawn"
    default_hint = "spl show says when and why"


class AmbiguousIdError(InputError):
    """Several records begin with this prefix; `details["candidates"]` lists them."""

    code = "ambiguous_id"
    default_hint = "give more digits"


class UnknownNameError(InputError):
    """No actor, suite, case, kind or schema has this name."""

    code = "unknown_name"


class AmbiguousNameError(InputError):
    """Several records have this name; `details["candidates"]` lists them."""

    code = "ambiguous_name"
    default_hint = "give the id instead"


class ReservedKindError(InputError):
    """The kind is reserved for the kernel, or unknown within `core.`."""

    code = "reserved_kind"


class DanglingReferenceError(InputError):
    """A record refers to a record or blob that this home does not hold."""

    code = "dangling_reference"


class BundleError(InputError):
    """A bundle is malformed, incomplete, or does not prove what it says; `details` names the item."""

    code = "bundle"
    default_hint = "nothing was imported; ask for the bundle again"


class SuiteLoadError(InputError):
    """A suite file could not be read, parsed or validated."""

    code = "suite"


# --- 4: refused --------------------------------------------------------------------------------------


class RefusedError(SplError):
    """The request is understood and will not be carried out; nothing was written."""

    code = "refused"
    exit_status = 4


class NothingToGradeError(RefusedError):
    """No run matches the suite, actor and definition; `details` says what would have matched."""

    code = "nothing_to_grade"


class NotComparableError(RefusedError):
    """The two sides may not be compared; `details` holds the difference."""

    code = "not_comparable"


class DoorClosedError(RefusedError):
    """The define door stays closed; `details["reasons"]` lists every reason."""

    code = "door_closed"


class ConflictError(RefusedError):
    """What the caller saw is no longer so: the compare-and-set failed, or the name is taken."""

    code = "conflict"


class SplitViewError(RefusedError):
    """The log does not extend the checkpoint that was signed last; signing another would show two histories."""

    code = "split_view"


# --- 6, 70, 130 --------------------------------------------------------------------------------------


class DamagedError(SplError):
    """The log does not hold what it must; `spl verify` lists every fault."""

    code = "damaged"
    exit_status = 6
    default_hint = "run spl verify"


class InternalFaultError(SplError):
    """A fault in spl itself."""

    code = "internal"
    exit_status = 70
    default_hint = "please report this, with the command that you ran"


class InterruptedByUserError(SplError):
    """The operator interrupted the command."""

    code = "interrupted"
    exit_status = 130


def all_errors(root: type[SplError] = SplError) -> Iterator[type[SplError]]:
    """Yield every error class below `root`, depth first, in order of definition."""
    for child in root.__subclasses__():
        yield child
        yield from all_errors(child)


def schema_error(what: str, problems: Sequence[tuple[str, str]]) -> SchemaError:
    """Return one `SchemaError` that names every problem.

    Args:
        what: The document at fault, for the first words of the message.
        problems: Pairs of JSON path (`$.expect.answer`) and message, at least one.
    """
    listed = "; ".join(f"{path}: {message}" for path, message in problems)
    return SchemaError(
        f"{what}: {listed}",
        details={"problems": [{"path": path, "message": message} for path, message in problems]},
    )
