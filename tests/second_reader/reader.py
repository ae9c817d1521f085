"""A second reader of a home, written from docs/format.md alone, with the standard library and blake3.

Usage: reader.py HOME    lists the log, one entry a line, checks ids, leaves and blobs, and prints the root.
"""

import hashlib
import sqlite3
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blake3 import blake3

ID = "spl 2026-12-01 record id v1"


def decode(data: bytes, at: int = 0) -> tuple[Any, int]:
    """Return the CBOR item that begins at a byte, and where the next one begins."""
    major, value = data[at] >> 5, data[at] & 31
    at += 1
    if major == 7:
        return {20: False, 21: True, 22: None}[value], at
    if value >= 24:
        size = 1 << (value - 24)
        value, at = int.from_bytes(data[at : at + size], "big"), at + size
    if major < 2:
        return (value if major == 0 else -1 - value), at
    if major < 4:
        text = data[at : at + value]
        return (text if major == 2 else text.decode()), at + value
    items = []
    for _ in range(value if major == 4 else 2 * value):
        item, at = decode(data, at)
        items.append(item)
    return (items if major == 4 else dict(zip(items[::2], items[1::2], strict=True))), at


def byte_string(data: bytes) -> bytes:
    """Return the CBOR byte string of some bytes."""
    size = len(data)
    if size < 24:
        return bytes([0x40 + size]) + data
    return (b"\x58" + size.to_bytes(1, "big") if size < 256 else b"\x59" + size.to_bytes(2, "big")) + data


def root(leaves: list[bytes]) -> bytes:
    """Return the root of the RFC 6962 tree."""
    if len(leaves) < 2:
        return leaves[0] if leaves else hashlib.sha256().digest()
    split = 1 << ((len(leaves) - 1).bit_length() - 1)
    return hashlib.sha256(b"\x01" + root(leaves[:split]) + root(leaves[split:])).digest()


def entries(home: Path) -> Iterator[tuple[int, bytes, bytes | None, bytes, bytes]]:
    """Yield position, id, record, signature and leaf of each entry."""
    assert (home / "format").read_text() == "spl-home 1\n"
    log = sqlite3.connect(f"file:{home / 'log.db'}?mode=ro", uri=True)
    yield from log.execute("SELECT position, id, record, signature, leaf FROM entries ORDER BY position")
    log.close()


def blob(home: Path, name: bytes) -> bytes:
    """Return the content of a blob."""
    raw = (home / "blobs" / name.hex()[:2] / name.hex()).read_bytes()
    data = zlib.decompress(raw[1:]) if raw[0] == 1 else raw[1:]
    assert blake3(data).digest() == name, f"blob {name.hex()}"
    return data


def read(home: Path) -> Iterator[str]:
    """Yield a line for each entry, and the root; every hash is computed anew."""
    leaves = []
    for number, (position, name, record, signature, leaf) in enumerate(entries(home)):
        assert position == number, f"position {position}"
        leaves.append(leaf)
        if record is None:
            yield f"{position} {name.hex()} withdrawn"
            continue
        assert blake3(record, derive_key_context=ID).digest() == name, f"id of {position}"
        entry = b"\x82" + byte_string(record) + byte_string(signature)
        assert hashlib.sha256(b"\x00" + entry).digest() == leaf, f"leaf of {position}"
        value, end = decode(record)
        assert end == len(record), f"record {position}"
        for named in value.get("blobs", []):
            data = blob(home, named["h"])
            assert len(data) == named["n"], f"size of a blob of {position}"
            if named["r"] == "tree":
                for file in decode(data)[0]:
                    if len(file) == 3:
                        blob(home, file[2])
        yield f"{position} {name.hex()} {value['kind']} {value['by']} {value['at']}"
    yield f"root {root(leaves).hex()}"


if __name__ == "__main__":
    print("\n".join(read(Path(sys.argv[1]))))
