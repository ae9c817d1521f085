"""Relative workspace paths, and the trimming of the published contracts."""

from __future__ import annotations

from typing import Final

# Unicode White_Space; unlike `str.strip` it leaves U+001C to U+001F alone.
WHITE_SPACE: Final = (
    "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


class PathProblem(ValueError):  # noqa: N818 - its text completes a sentence of the suite's problems
    """A path that does not lie in the workspace."""


def trim(text: str) -> str:
    """Return text without Unicode White_Space at both ends."""
    return text.strip(WHITE_SPACE)


def normal_path(text: str) -> str:
    """Return a relative workspace path in its normal form.

    Backslashes are separators; `//`, `./` and `a/..` are cleaned lexically; a trailing slash goes.

    Raises:
        PathProblem: It is empty, absolute, holds a colon, or leaves the workspace.
    """
    path = trim(text.replace("\\", "/"))
    if not path:
        raise PathProblem("must not be empty")
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if path.startswith("/") or ":" in path or not parts or parts[0] == "..":
        raise PathProblem("must be a relative workspace path")
    return "/".join(parts)
