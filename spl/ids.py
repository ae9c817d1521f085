"""Ids: parsed at the edge, bytes inside, text outside.

Every id is 32 bytes and a type of its own to the type checker; `bytes.hex` is its text. The types carry their
length, so a record whose id field has another length does not pass its schema.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Final, NewType

import msgspec

from spl.errors import InvalidIdError

ID_BYTES: Final = 32
MIN_PREFIX_DIGITS: Final = 8
MAX_DID_BYTES: Final = 256

Bytes32 = Annotated[bytes, msgspec.Meta(min_length=ID_BYTES, max_length=ID_BYTES)]

RecordId = NewType("RecordId", Bytes32)  # BLAKE3 of a record's bytes
Facet = NewType("Facet", Bytes32)  # hash of a definition's behaviour
CaseFacet = NewType("CaseFacet", Bytes32)  # hash of {key, goal, tree?, expect}
BlobId = NewType("BlobId", Bytes32)  # plain BLAKE3 of the content
Digest = NewType("Digest", Bytes32)  # suite revision, coverage, leaf hash
Did = NewType("Did", Annotated[str, msgspec.Meta(min_length=7, max_length=MAX_DID_BYTES)])

_DID_KEY: Final = "did:key:"
_ED25519: Final = b"\xed\x01"
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_HEX64: Final = re.compile(r"[0-9a-f]{64}")
_PREFIX: Final = re.compile(r"[0-9a-f]{8,64}")
_DID: Final = re.compile(r"did:[a-z0-9]+:[A-Za-z0-9._:%\-]*[A-Za-z0-9._%\-]")


def parse_id(text: str) -> bytes:
    """Return the 32 bytes of 64 lowercase hexadecimal digits.

    Raises:
        InvalidIdError: The text is anything else.
    """
    if not _HEX64.fullmatch(text):
        raise InvalidIdError(f"not an id: {text!r}", hint="an id is 64 lowercase hexadecimal digits")
    return bytes.fromhex(text)


def is_prefix(text: str) -> bool:
    """Say whether `text` can be an id prefix: 8 to 64 lowercase hexadecimal digits."""
    return _PREFIX.fullmatch(text) is not None


@lru_cache(maxsize=1024)  # the author of a record is checked for each record
def parse_did(text: str) -> Did:
    """Return the DID that `text` is, by the syntax of W3C DID Core 1.0, section 3.1.

    Raises:
        InvalidIdError: The text is not a DID of at most 256 bytes, or is a `did:key` of another key type.
    """
    if len(text) > MAX_DID_BYTES or not _DID.fullmatch(text):
        raise InvalidIdError(
            f"not a DID: {text!r}", hint="a DID looks like did:key:z6Mk… or did:web:example.org"
        )
    did = Did(text)
    if text.startswith(_DID_KEY):
        public_key(did)
    return did


def did_key(public: bytes) -> Did:
    """Return the `did:key` of a 32-byte Ed25519 public key: base58btc of `ed 01` and the key."""
    number = int.from_bytes(_ED25519 + public)
    digits = []
    while number:
        number, digit = divmod(number, 58)
        digits.append(_BASE58[digit])
    return Did(_DID_KEY + "z" + "".join(reversed(digits)))


@lru_cache(maxsize=1024)  # and its key for each signature
def public_key(did: Did) -> bytes:
    """Return the 32-byte Ed25519 public key that a `did:key` names.

    Raises:
        InvalidIdError: It is not the 56-character `did:key` of an Ed25519 key.
    """
    number = 0
    for character in did[len(_DID_KEY) + 1 :]:
        digit = _BASE58.find(character)
        if digit < 0:
            raise InvalidIdError(f"not base58btc: {did!r}")
        number = number * 58 + digit
    raw = number.to_bytes((number.bit_length() + 7) // 8)
    if len(raw) != len(_ED25519) + ID_BYTES or not raw.startswith(_ED25519) or did_key(raw[2:]) != did:
        raise InvalidIdError(f"not the did:key of an Ed25519 key: {did!r}")
    return raw[2:]
