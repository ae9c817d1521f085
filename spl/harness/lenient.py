"""UTF-8 as the published implementation reads it: every byte that does not belong becomes one U+FFFD.

Python's own `replace` makes one replacement for a whole truncated sequence.
"""

from __future__ import annotations

import codecs
from typing import Final

EACH_BYTE: Final = "spl-each-byte"


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


codecs.register_error(EACH_BYTE, _replace)
