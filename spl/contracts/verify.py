"""The document of a verification."""

from __future__ import annotations

from spl.contracts.document import Document, Part
from spl.ids import Digest


class Finding(Part, frozen=True):
    """A fault, or a notice of something legal but notable.

    Attributes:
        check: What was looked at: id, encoding, schema, signature, position, column, reference, blob, leaf, tree, head,
            withdrawal, projection, database, score; for notices also run and definition.
        message: What is wrong.
        position: Where in the log; absent for blobs and projections.
        id: The record's or blob's id in hexadecimal digits.
    """

    check: str
    message: str
    position: int | None = None
    id: str | None = None


class RefoldPart(Part, frozen=True):
    """How many scores the fold gives again, how many it does not, and for how many nobody can say."""

    reproduced: int
    differing: int
    not_reproducible: int


class VerifyDocument(Document, frozen=True, tag="spl.verify.v1"):
    """Everything that was found.

    Attributes:
        clean: No fault, and signatures were checked too.
        since: How many entries an earlier verification vouches for; those, their blobs and the projections were not
            looked at again.
        scores: What became of the scores, when they were folded again.
        faults_omitted: How many faults there are beyond those listed.
        notices_omitted: How many notices there are beyond those listed.
    """

    ok: bool
    clean: bool
    size: int
    root: Digest
    signatures_checked: bool
    blobs_checked: int
    faults: list[Finding]
    notices: list[Finding]
    since: int | None = None
    scores: RefoldPart | None = None
    faults_omitted: int = 0
    notices_omitted: int = 0
