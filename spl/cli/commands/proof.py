"""`spl checkpoint`, `prove`, `verify-proof`: what a log can show to those who do not have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from spl.cli.commands.single import single
from spl.cli.context import kernel, read_file, write_file
from spl.cli.output import emit
from spl.cli.render.text import fields, when
from spl.cli.sanitize import visible

if TYPE_CHECKING:
    from spl.contracts.proof import CheckpointDocument, KeyDocument, ProofCheckDocument, ProofDocument


def checkpoint(
    output: str | None = typer.Option(None, "-o", "--output", help="Write the signed note to this file."),
    key: bool = typer.Option(False, "--key", help="Print the key that checks the notes; sign nothing."),
    accept_split_view: bool = typer.Option(
        False,
        "--accept-split-view",
        help="Sign although the log does not extend what was signed last: two histories will be out, for ever.",
    ),
) -> None:
    """Sign the head of the log, as a note that others can keep and check.

    It is refused when the log does not extend the checkpoint that was signed last, as after an old backup.

    Example: spl checkpoint -o monday.note
    """
    from spl.errors import UsageError  # noqa: PLC0415 - imported when called
    from spl.kernel import proof  # noqa: PLC0415

    if key:
        if output is not None or accept_split_view:
            raise UsageError("--key signs nothing: it stands alone")
        emit(proof.show_key(kernel()), _render_key)
        return
    document = proof.checkpoint(kernel(), accept_split_view=accept_split_view)
    if output is not None:
        write_file(output, document.note.encode())
    emit(document, _render_note if output is None else _render_checkpoint)


def prove(
    record: str | None = typer.Argument(None, help="The record's id or unique prefix."),
    consistency: str | None = typer.Option(
        None,
        "--consistency",
        help="Prove instead that the log has only grown: since a size, or a note's file.",
    ),
    output: str | None = typer.Option(None, "-o", "--output", help="Write the proof to this file."),
) -> None:
    """Prove that a record is in the log, or that the log has only grown.

    Example: spl prove 3f2a9c1b -o run.tlog-proof
    """
    from spl.errors import UsageError  # noqa: PLC0415 - imported when called
    from spl.kernel import proof  # noqa: PLC0415

    if record is not None and consistency is None:
        document = proof.prove(kernel(), record)
    elif record is None and consistency is not None:
        old = int(consistency) if consistency.isascii() and consistency.isdigit() else read_file(consistency)
        document = proof.prove_growth(kernel(), old)
    else:
        raise UsageError("name a record, or --consistency with a size or a note's file")
    if output is not None:
        write_file(output, document.proof.encode())
    emit(document, _render_file if output is None else _render_proof)


def verify_proof(
    file: str = typer.Argument(help="The proof."),
    record: str = typer.Argument(
        help="What it is about: the bytes that spl get --raw or --entry prints, or the older checkpoint."
    ),
    key: str = typer.Option(help="The log's key, as spl checkpoint --key prints it there."),
) -> None:
    """Check a proof; it needs no home. Exits 3 when it proves nothing.

    Example: spl verify-proof run.tlog-proof run.cbor --key spl/z6Mk…+1234abcd+AQ…
    """
    from spl.kernel.proof_check import check_proof  # noqa: PLC0415 - imported when called

    if file == record == "-":
        from spl.errors import UsageError  # noqa: PLC0415 - as above

        raise UsageError("standard input can be one of the two")
    document = check_proof(read_file(file), read_file(record), key)
    emit(document, _render_check)
    if not document.ok:
        raise typer.Exit(_NO)


_NO = 3  # the answer is no


def _render_key(document: KeyDocument) -> str:
    return visible(document.key)


def _render_note(document: CheckpointDocument) -> str:
    return document.note.removesuffix("\n")


def _render_checkpoint(document: CheckpointDocument) -> str:
    return fields(
        [
            ("log", document.origin),
            ("records", document.size),
            ("root", document.root.hex()),
            ("signed", "now" if document.signed else "before; the log has not grown since"),
        ]
    )


def _render_file(document: ProofDocument) -> str:
    return document.proof.removesuffix("\n")


def _render_proof(document: ProofDocument) -> str:
    return fields(
        [
            ("record", document.id.hex() if document.id else None),
            ("position", document.position),
            ("since", f"{document.old} records" if document.old is not None else None),
            ("log", document.origin),
            ("records", document.size),
            ("root", document.root.hex()),
        ]
    )


def _render_check(document: ProofCheckDocument) -> str:
    grown = f"a log of {document.old} records has only grown" if document.old is not None else None
    proved = grown if document.kind == "growth" else "the record is in the log"
    return fields(
        [
            ("proved", proved if document.ok else None),
            ("not proved", document.reason),
            ("record", document.id.hex() if document.id else None),
            ("kind", document.record_kind),
            ("by", document.by),
            ("at", when(document.at) if document.at is not None else None),
            ("position", document.position),
            ("log", document.origin),
            ("records", document.size),
            ("root", document.root.hex() if document.root else None),
        ]
    )


checkpoint_app = single(checkpoint)
prove_app = single(prove)
verify_proof_app = single(verify_proof)
