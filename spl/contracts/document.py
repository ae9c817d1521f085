"""What every printed document has in common."""

from __future__ import annotations

from msgspec import Struct


class Document(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="contract"):
    """A printed document: its contract comes first, unknown fields are absent, ids are bytes and print as hex."""


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a document."""
