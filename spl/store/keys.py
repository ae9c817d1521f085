"""Keys and signatures: Ed25519 over the DSSE pre-authentication encoding.

Source of the encoding: DSSE v1.0.2, `PAE(type, body) = "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body`
(https://github.com/secure-systems-lab/dsse/blob/v1.0.2/protocol.md).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from spl.errors import KeyAccessError, SignatureError
from spl.ids import Did, did_key, public_key
from spl.store.durable import new_file, storage_errors

if TYPE_CHECKING:
    from nacl.signing import SigningKey

PAYLOAD_TYPE: Final = b"application/vnd.spl.record.v1+cbor"
SIGNATURE_BYTES: Final = 64
_MAX_FILE_BYTES: Final = 256
_DID_KEY: Final = "did:key:"
_SEED_BYTES: Final = 32
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def signed_bytes(record: bytes) -> bytes:
    """Return what a signature is made over: the DSSE pre-authentication encoding of a record's bytes."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE, len(record), record)


def check_signature(by: Did, record: bytes, signature: bytes) -> None:
    """Return when the signature is what the author's DID demands.

    A `did:key` names its own key, so its record must be signed; records by other methods are stored unsigned.

    Raises:
        SignatureError: It is missing, wrong, or has no place.
    """
    if not by.startswith(_DID_KEY):
        if signature:
            raise SignatureError(f"a record by {by} cannot carry a signature: its DID names no key")
        return
    if len(signature) != SIGNATURE_BYTES:
        raise SignatureError(f"a record by {by} must be signed")
    from nacl.bindings import crypto_sign_open  # noqa: PLC0415 - loaded only where a signature is checked
    from nacl.exceptions import BadSignatureError  # noqa: PLC0415

    try:
        crypto_sign_open(signature + signed_bytes(record), _public_key(by))
    except BadSignatureError as error:
        raise SignatureError(f"the signature of a record by {by} is wrong") from error


@lru_cache(maxsize=1024)  # a log has few authors, and a DID takes as long to read as a signature to check
def _public_key(by: Did) -> bytes:
    return public_key(by)


class KeyStore:
    """Private keys, one file each, readable by their owner alone: the seed, and the DID that it must make.

    Args:
        root: The directory of keys.
        tmp: The directory for files in the making.
    """

    def __init__(self, root: Path, tmp: Path) -> None:
        self._root = root
        self._tmp = tmp
        self._loaded: dict[Did, bytes] = {}

    def create(self, name: str) -> Did:
        """Make a key under a name and return its DID; a key of that name that is there stays.

        Raises:
            StorageError: It could not be written.
        """
        from nacl.signing import SigningKey  # noqa: PLC0415

        self._write(name, SigningKey.generate())
        return self.did(name)

    def create_actor(self) -> Did:
        """Make a key that is named by its own DID, and return the DID.

        Raises:
            StorageError: It could not be written.
        """
        from nacl.signing import SigningKey  # noqa: PLC0415

        key = SigningKey.generate()
        did = did_key(key.verify_key.encode())
        self._write(did.removeprefix(_DID_KEY), key)
        return did

    def _write(self, name: str, key: SigningKey) -> None:
        path = self._root / f"{name}.key"
        with storage_errors(f"cannot make the key {name}"), new_file(self._tmp, path) as file:
            file.write(f"{key.encode().hex()}\n{did_key(key.verify_key.encode())}\n".encode())

    def faults(self) -> Iterator[str]:
        """Yield what is wrong with each key that cannot be used."""
        for path in sorted(self._root.glob("*.key")):
            try:
                self._load(path)
            except KeyAccessError as error:
                yield error.message

    def did(self, name: str) -> Did:
        """Return the DID of a named key.

        Raises:
            KeyAccessError: The key is missing, malformed, or readable by others.
        """
        key = self._load(self._root / f"{name}.key")
        did = did_key(key.verify_key.encode())
        self._loaded[did] = _both(key)
        return did

    def sign(self, by: Did, record: bytes) -> bytes:
        """Return the author's signature over a record's bytes; empty when the DID names no key.

        Raises:
            KeyAccessError: This home does not hold the author's key.
        """
        if not by.startswith(_DID_KEY):
            return b""
        return self._signature(by, signed_bytes(record))

    def sign_note(self, by: Did, text: bytes) -> bytes:
        """Return the signature of a key of this home over the text of a note.

        No such text can pass for what `sign` signs: it begins with the name of a log.

        Raises:
            KeyAccessError: This home does not hold the key.
        """
        return self._signature(by, text)

    def _signature(self, by: Did, message: bytes) -> bytes:
        from nacl.bindings import crypto_sign  # noqa: PLC0415 - loaded only where something is signed

        return crypto_sign(message, self._secret(by))[:SIGNATURE_BYTES]

    def _secret(self, by: Did) -> bytes:
        """Return seed and public key of an identity, as libsodium wants them."""
        secret = self._loaded.get(by)
        if secret is None:
            path = self._root / f"{by.removeprefix(_DID_KEY)}.key"
            secret = _both(self._load(path))
            if did_key(secret[_SEED_BYTES:]) != by:
                raise KeyAccessError(f"the key {path} is another's than its name says")
            self._loaded[by] = secret
        return secret

    def _load(self, path: Path) -> SigningKey:
        from nacl.signing import SigningKey  # noqa: PLC0415

        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise KeyAccessError(f"cannot read the key {path}: {error.strerror}") from error
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_mode & _OTHERS or found.st_uid != os.geteuid():
                raise KeyAccessError(
                    f"the key {path} must be a file that only you can read", hint=f"chmod 600 {path}"
                )
            text = os.read(descriptor, _MAX_FILE_BYTES)
        finally:
            os.close(descriptor)
        seed, _, rest = text.partition(b"\n")
        try:
            key = SigningKey(bytes.fromhex(seed.decode("ascii")))
        except ValueError as error:
            raise KeyAccessError(f"the key {path} is not 32 bytes in hexadecimal digits") from error
        if rest != f"{did_key(key.verify_key.encode())}\n".encode():
            raise KeyAccessError(f"the key {path} was altered: it is not that of its DID")
        return key


def _both(key: SigningKey) -> bytes:
    return key.encode() + key.verify_key.encode()
