"""Signed notes, checkpoints and proof files: the texts by which a log is known outside its home.

Sources: https://c2sp.org/signed-note, https://c2sp.org/tlog-checkpoint, https://c2sp.org/tlog-proof. Only the signature
type 0x01 (Ed25519 over the text) is written and understood; lines by other keys are left alone, as the format demands.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from spl.errors import InputError, SignatureError
from spl.ids import Digest

MAX_NOTE_BYTES: Final = 1_000_000
MAX_PATH: Final = 64  # a tree of 2^63 leaves is deeper than any log
_ED25519: Final = b"\x01"
_KEY_BYTES: Final = 32
_SIGNATURE_BYTES: Final = 64
_KEY_ID_BYTES: Final = 4
_MAX_SIGNATURES: Final = 100
_DASH: Final = "\u2014 "
_PROOF_LINE: Final = "c2sp.org/tlog-proof@v1"
_GROWTH_LINE: Final = "spl/growth-proof@v1"
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_VKEY: Final = re.compile(r"([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)")
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")


class VerifierKey(Struct, frozen=True):
    """A public key with the name it signs under.

    Attributes:
        name: Not empty, without spaces and plus signs.
        public: The 32-byte Ed25519 public key.
    """

    name: str
    public: bytes

    @property
    def key_id(self) -> bytes:
        """The four bytes that, with the name, say which key made a signature."""
        return hashlib.sha256(self.name.encode() + b"\n" + _ED25519 + self.public).digest()[:_KEY_ID_BYTES]


class Checkpoint(Struct, frozen=True):
    """The head of a log: who it is, how many entries it has, and their root."""

    origin: str
    size: int
    root: Digest


class Proof(Struct, frozen=True):
    """A proof file: that the log of a signed checkpoint holds an entry.

    Attributes:
        position: Of the entry, from 0.
        path: From the leaf's sibling up.
        note: The signed checkpoint, verbatim.
        extra: What the maker adds; nobody signed it.
    """

    position: int
    path: list[Digest]
    note: str
    extra: bytes | None = None


class GrowthProof(Struct, frozen=True):
    """A proof file: that the log of a signed checkpoint begins with all of an older tree.

    There is no published format for it; this one is written like that of a `Proof`.

    Attributes:
        old: The size of the older tree.
        path: The consistency proof of RFC 6962, section 2.1.2.
        note: The signed checkpoint of the newer tree, verbatim.
    """

    old: int
    path: list[Digest]
    note: str


def format_vkey(key: VerifierKey) -> str:
    """Return a key as one word: `name+ID+base64`, the ID in eight hexadecimal digits."""
    return f"{key.name}+{key.key_id.hex()}+{_base64(_ED25519 + key.public)}"


def parse_vkey(text: str) -> VerifierKey:
    """Return the key that a word names.

    Raises:
        InputError: It is malformed, of another type, or its ID is not that of its name and key.
    """
    match = _VKEY.fullmatch(text)
    data = _bytes(match[3]) if match else None
    if match is None or data is None:
        raise InputError(
            f"not a verifier key: {text!r}",
            hint="spl checkpoint --key prints it: one word such as spl/z6Mk…+1234abcd+AQ…",
        )
    if data[:1] != _ED25519 or len(data) != 1 + _KEY_BYTES:
        raise InputError(f"the verifier key of {match[1]} is not an Ed25519 key")
    key = VerifierKey(match[1], data[1:])
    if key.key_id.hex() != match[2]:
        raise InputError(f"the verifier key of {key.name} is mistyped: its id is {key.key_id.hex()}")
    return key


def sign_note(text: str, key: VerifierKey, sign: Callable[[bytes], bytes]) -> str:
    """Return a note with one signature.

    Args:
        text: Ends with a line break.
        key: Whose signature it is.
        sign: Returns the 64-byte Ed25519 signature over some bytes.

    Raises:
        InputError: The text or the name cannot stand in a note.
    """
    if not text.endswith("\n") or _CONTROL.search(text):
        raise InputError("the text of a note ends with a line break and holds no other control characters")
    if not key.name or "+" in key.name or any(character.isspace() for character in key.name):
        raise InputError(f"not the name of a key: {key.name!r}")
    return f"{text}\n{_DASH}{key.name} {_base64(key.key_id + sign(text.encode()))}\n"


def open_note(note: bytes, keys: Sequence[VerifierKey]) -> str:
    """Return the text of a note that at least one of the keys has signed.

    A wrong signature by a known key rejects the note, whatever others say; unknown keys are left alone.

    Raises:
        InputError: It is not a note.
        SignatureError: No key signed it, or a signature is wrong.
    """
    text, signatures = _split_note(note)
    signed = False
    for name, data in signatures:
        for key in keys:
            if (name, data[:_KEY_ID_BYTES]) == (key.name, key.key_id):
                _check(key, text, data[_KEY_ID_BYTES:])
                signed = True
    if not signed:
        found = ", ".join(dict.fromkeys(name for name, _ in signatures))
        raise SignatureError(f"the note is not signed by a key that was given; it names {found}")
    return text


def format_checkpoint(checkpoint: Checkpoint) -> str:
    """Return the text of a checkpoint, ready to be signed."""
    return f"{checkpoint.origin}\n{checkpoint.size}\n{_base64(checkpoint.root)}\n"


def parse_checkpoint(text: str) -> Checkpoint:
    """Return the checkpoint that the text of a note states; extension lines are allowed and dropped.

    Raises:
        InputError: It is not a checkpoint.
    """
    lines = text.split("\n")
    if len(lines) >= 4 and lines.pop() == "" and all(lines):  # noqa: PLR2004 - three lines and the last line break
        origin, size, root = lines[:3]
        digest = _digest(root)
        if _NUMBER.fullmatch(size) and digest is not None:
            return Checkpoint(origin, int(size), digest)
    raise InputError("not a checkpoint: it must give origin, size and root, a line each")


def format_proof(proof: Proof) -> str:
    """Return the content of a proof file."""
    extra = "" if proof.extra is None else f"extra {_base64(proof.extra)}\n"
    return f"{_PROOF_LINE}\n{extra}index {proof.position}\n{_path(proof.path)}\n{proof.note}"


def parse_proof(data: bytes) -> Proof | GrowthProof:
    """Return what a proof file states; nothing is checked yet.

    Raises:
        InputError: It is not a proof file.
    """
    head, blank, note = _text(data, "proof file").partition("\n\n")
    lines = head.split("\n")
    kind = lines.pop(0)
    if not blank or kind not in (_PROOF_LINE, _GROWTH_LINE):
        raise InputError(f"not a proof file: its first line must be {_PROOF_LINE} or {_GROWTH_LINE}")
    if kind == _GROWTH_LINE:
        return GrowthProof(_number(lines, "old"), _nodes(lines), note)
    extra = None
    if lines and lines[0].startswith("extra "):
        extra = _bytes(lines.pop(0).removeprefix("extra "))
        if extra is None:
            raise InputError("not a proof file: its extra data is not base64")
    return Proof(_number(lines, "index"), _nodes(lines), note, extra)


def format_growth(proof: GrowthProof) -> str:
    """Return the content of a proof file that says that a log has only grown."""
    return f"{_GROWTH_LINE}\nold {proof.old}\n{_path(proof.path)}\n{proof.note}"


def _path(path: Sequence[Digest]) -> str:
    return "".join(f"{_base64(node)}\n" for node in path)


def _number(lines: list[str], word: str) -> int:
    """Take the line off that gives a number."""
    text = lines.pop(0).removeprefix(f"{word} ") if lines and lines[0].startswith(f"{word} ") else ""
    if not _NUMBER.fullmatch(text):
        raise InputError(f"not a proof file: a line must say {word} and a number")
    return int(text)


def _nodes(lines: list[str]) -> list[Digest]:
    path = [node for node in map(_digest, lines[:MAX_PATH]) if node is not None]
    if len(path) != len(lines):
        raise InputError("not a proof file: its path is not made of SHA-256 hashes in base64, at most 64")
    return path


def _split_note(note: bytes) -> tuple[str, list[tuple[str, bytes]]]:
    """Return the text and the signatures of a note: names, and key id with signature."""
    content = _text(note, "note")
    text, blank, lines = content.rpartition("\n\n")
    signatures: list[tuple[str, bytes]] = []
    if blank and lines.endswith("\n"):
        for line in lines[:-1].split("\n"):
            name, space, signature = line.removeprefix(_DASH).partition(" ")
            data = _bytes(signature)
            named = name and "+" not in name and not any(character.isspace() for character in name)
            if not (line.startswith(_DASH) and space and named and data and len(data) > _KEY_ID_BYTES):
                raise InputError("not a note: a signature line is malformed")
            signatures.append((name, data))
    if not 0 < len(signatures) <= _MAX_SIGNATURES:
        raise InputError(f"not a note: it must carry 1 to {_MAX_SIGNATURES} signatures behind an empty line")
    return text + "\n", signatures


def _check(key: VerifierKey, text: str, signature: bytes) -> None:
    from nacl.exceptions import BadSignatureError  # noqa: PLC0415 - loaded only where a signature is checked
    from nacl.signing import VerifyKey  # noqa: PLC0415

    if len(signature) == _SIGNATURE_BYTES:
        try:
            VerifyKey(key.public).verify(text.encode(), signature)
        except BadSignatureError:
            pass
        else:
            return
    raise SignatureError(f"the signature of {key.name} on the note is wrong")


def _text(data: bytes, what: str) -> str:
    if len(data) > MAX_NOTE_BYTES:
        raise InputError(f"not a {what}: longer than {MAX_NOTE_BYTES} bytes")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"not a {what}: not UTF-8") from error
    if _CONTROL.search(text):
        raise InputError(f"not a {what}: it holds control characters")
    return text


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _bytes(text: str) -> bytes | None:
    """Return what a base64 text stands for; None when it is not the one way to write it."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if _base64(data) == text else None


def _digest(text: str) -> Digest | None:
    data = _bytes(text)
    return Digest(data) if data is not None and len(data) == _KEY_BYTES else None
