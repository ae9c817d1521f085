"""The document of a verification."""

from __future__ import annotations

from spl.contracts.document import Document, Part
from spl.ids import Digest


class Finding(Part, frozen=True):
    """A fault, or a notice of something legal but notable.

    Attributes:
        check: What was looked at: id, encoding, schema, signature, position, reference, blob, leaf, tree, projection,
            database.
        message: What is wrong.
        position: Where in the log; absent for blobs and projections.
        id: The record's or blob's id in hexadecimal digits.
    """

    check: str
    message: str
    position: int | None = None
    id: str | None = None


class VerifyDocument(Document, frozen=True, tag="spl.verify.v1"):
    """Everything that was found; `clean` only when signatures were checked too."""

    ok: bool
    clean: bool
    size: int
    root: Digest
    signatures_checked: bool
    blobs_checked: int
    faults: list[Finding]
    notices: list[Finding]
