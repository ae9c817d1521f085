from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import cbor2
import pytest
from codec.profile import NotCanonicalError, read
from hypothesis import given, settings
from hypothesis import strategies as st

from spl.codec import canonical, digest
from spl.errors import EncodingError
from spl.ids import did_key, public_key
from spl.store import tree
from spl.store.keys import check_signature, signed_bytes

# RFC 8032 test key 1 signs the record of the design's vector.
SEED = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
AUTHOR = "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw"
RECORD = bytes.fromhex(
    "a76176016261741b000001a0c4506c7b62627978386469643a6b65793a7a364d6b74777570646d4c58565671547a4377"
    "3469343672347547796f734758526e5233586a4e345a71376f4d4d737764626f6479a36269646f6164642d6e706d2d77"
    "7261707065726670726f6d70747141c3b161646520656c207772617070657266776569676874a26364656e02636e756d"
    "01646b696e6471636f72652e6576616c2e636173652e76316472656673a1657375697465815820000102030405060708"
    "090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f6473616c7450000102030405060708090a0b0c0d0e0f"
)
SIGNATURE = bytes.fromhex(
    "6e45b0647d7cb702a771470c753a80db6b83423242264743d846b46b7479de78deb794db8a58a414e69a0990f572f3e36b4c30c5"
    "df91aa4601e8524ee0e7a202"
)

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-canonical.MAX_INTEGER, canonical.MAX_INTEGER)
    | st.binary(max_size=40)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20), inner, max_size=5
        )
    ),
    max_leaves=25,
)


def test_the_vector_of_the_design_has_its_id_signature_entry_and_leaf() -> None:
    assert len(RECORD) == 237
    assert canonical.encode(canonical.decode(RECORD)) == RECORD
    assert (
        digest.record_id(RECORD).hex() == "9583f6eef8f77f9d9e35659743629bef7fc9850ba67050ddb5114472b38e7608"
    )
    from nacl.signing import SigningKey

    key = SigningKey(SEED)
    assert did_key(key.verify_key.encode()) == AUTHOR
    assert public_key(did_key(key.verify_key.encode())) == key.verify_key.encode()
    assert key.sign(signed_bytes(RECORD)).signature == SIGNATURE
    check_signature(did_key(key.verify_key.encode()), RECORD, SIGNATURE)
    assert len(canonical.encode([RECORD, SIGNATURE])) == 306
    leaf = tree.entry_leaf(RECORD, SIGNATURE)
    assert leaf.hex() == "8bfa6abdb6554e4bfafb56956a32ef39b88ba53e05a0414975962c1647845458"


def test_facets_and_blob_ids_are_those_of_the_design() -> None:
    facet = digest.facet({"tools": ["read_file"], "prompt": "p", "model": "m-1"})
    assert facet.hex() == "b878028cee8ea59a3450d0343d6a28c3c0871126e67dd4594be12ad8c97f42bd"
    assert (
        digest.blob_id(b"hello").hex() == "ea8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f"
    )


@given(VALUES)
def test_what_is_encoded_decodes_to_the_same_value(value: Any) -> None:
    data = canonical.encode(value)
    assert canonical.decode(data) == value
    assert read(data) == value
    assert canonical.encode(canonical.decode(data)) == data


def _mutated(generator: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(generator.randint(1, 3)):
        kind, at = generator.randrange(4), generator.randrange(len(changed) + 1)
        if kind == 0 and changed:
            changed[at % len(changed)] = generator.randrange(256)
        elif kind == 1:
            changed[at:at] = bytes([generator.randrange(256)])
        elif kind == 2 and changed:
            del changed[at % len(changed)]
        elif changed:
            start = generator.randrange(len(changed))
            changed[at:at] = changed[start : start + generator.randint(1, 9)]
    return bytes(changed)


SEEDS: list[Any] = [
    {"a": 1, "bb": [True, None, -7], "c": {"x": b"\x00\xff", "y": "é"}},
    [0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**53 - 1, -1, -24, -25, -(2**53 - 1)],
    {"k" * 24: "v" * 24, "k" * 255: b"x" * 300, "z": {"z": {"z": [[[]]]}}},
    canonical.decode(RECORD),
]


@pytest.mark.faults
@pytest.mark.parametrize("part", range(8))
def test_two_readings_of_the_profile_agree_on_a_million_inputs(
    part: int, tally: Callable[[str, int], None], *, long: bool
) -> None:
    """Eight parts of 125,000 inputs each (three times as many in the long run): mutated encodings, noise like a map."""
    generator = random.Random(part)
    seeds = [canonical.encode(seed) for seed in SEEDS]
    accepted, inputs = 0, 375_000 if long else 125_000
    for number in range(inputs):
        if number % 4 == 3:
            data = bytes([generator.choice((0xA1, 0xA2, 0x82, 0x61, 0x18, 0x1B))]) + generator.randbytes(
                generator.randrange(12)
            )
        else:
            data = _mutated(generator, generator.choice(seeds[:3]))
        try:
            expected = read(data)
        except NotCanonicalError:
            with pytest.raises(EncodingError):
                canonical.decode(data)
        else:
            accepted += 1
            value = canonical.decode(data)
            assert value == expected
            assert canonical.encode(value) == data
    assert accepted > 1000, "the inputs must reach both answers"
    tally("inputs", inputs)


@pytest.mark.faults
def test_a_reading_that_takes_any_order_of_keys_is_told_apart(tally: Callable[[str, int], None]) -> None:
    """Negative control: cbor2 alone accepts what the profile does not, and the same inputs show it."""
    generator = random.Random(0)
    seed = canonical.encode(SEEDS[0])
    differ = 0
    for _ in range(5000):
        data = _mutated(generator, seed)
        try:
            cbor2.loads(data)
        except (cbor2.CBORDecodeError, ValueError, TypeError, OverflowError):
            continue
        try:
            read(data)
        except NotCanonicalError:
            differ += 1
    assert differ
    tally("inputs-control", differ)


@pytest.mark.parametrize(
    "data",
    ["f6f6", "1817", "190018", "fb3ff0000000000000", "f90000", "5f4101ff", "9f00ff", "bf616100ff", "c000", "f7", "e0",
     "a2616100616100", "a2616200616100", "a10000", "a1f600", "a16000", "61ff", "63eda080", "1b0020000000000000",
     "3b001fffffffffffff", "81", "a1", "", "1c", "ff", "d9d9f7a0"],
)  # fmt: skip
def test_bytes_outside_the_profile_are_refused(data: str) -> None:
    with pytest.raises(EncodingError):
        canonical.decode(bytes.fromhex(data))


class _Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "value",
    [1.0, math.nan, 2**53, -(2**53), {1: 2}, {"": 1}, {"k" * 257: 1}, "\ud800", (1, 2), {1, 2}, _Text("a"), object(),
     memoryview(b"a"), bytearray(b"a"), {"a": [1.5]}],
)  # fmt: skip
def test_values_outside_the_profile_are_refused(value: object) -> None:
    with pytest.raises(EncodingError):
        canonical.encode(value)


def test_nesting_is_bounded_on_both_ways() -> None:
    deep: Any = 0
    for _ in range(32):
        deep = [deep]
    assert canonical.decode(canonical.encode(deep)) == deep
    with pytest.raises(EncodingError, match="nested"):
        canonical.encode([deep])
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(EncodingError, match="nested"):
        canonical.encode(deep)
    with pytest.raises(EncodingError, match="nested"):
        canonical.decode(b"\x81" * 1_000_000 + b"\x00")
    while isinstance(deep, list):  # taken apart by hand: the interpreter would recurse
        deep = deep[0]


@settings(max_examples=50)
@given(st.dictionaries(st.text("abé", min_size=1, max_size=6), st.integers(0, 9), max_size=8))
def test_the_order_in_which_a_map_was_built_does_not_matter(value: dict[str, int]) -> None:
    assert canonical.encode(value) == canonical.encode(dict(reversed(value.items())))
