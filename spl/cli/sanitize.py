"""The one sanitiser between untrusted text and a terminal."""

from __future__ import annotations

import unicodedata

_KEPT = "\n\t"
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str, *, lines: bool = False) -> str:
    """Return text whose control, format, bidirectional and surrogate characters are shown as escapes.

    Args:
        text: From records, agents or files.
        lines: Keep line breaks and tabs.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character if (lines and character in _KEPT) or not _is_hidden(character) else _escape(character)
        for character in text
    )


def _is_hidden(character: str) -> bool:
    return unicodedata.category(character) in _HIDDEN


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{{{code:x}}}"  # noqa: PLR2004 - one byte
