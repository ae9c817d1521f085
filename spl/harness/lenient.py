"""Text and JSON objects as the published implementation reads them.

Every byte that is not UTF-8 becomes one U+FFFD, where Python's own `replace` makes one for a whole truncated
sequence, and so does every lone surrogate that an escape made. Keys match without regard to case, under simple folding.
"""

from __future__ import annotations

import codecs
import re
from typing import Any, Final

EACH_BYTE: Final = "spl-each-byte"
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# Simple Unicode folding has two letters beyond ASCII that fold into it: long s and the Kelvin sign.
_FOLDED: Final = str.maketrans({"\u017f": "s", "\u212a": "k"})


class Pairs(list[tuple[str, Any]]):
    """A JSON object with its repeated keys, in order."""


def without_surrogates(text: str) -> str:
    """Return text in which each lone surrogate is U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def folded(key: str) -> str:
    """Return a key as it is compared when there is no exact match."""
    return key.translate(_FOLDED).lower()


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error(EACH_BYTE, _replace)
