"""Signed notes, checkpoints and proof files: published notes open, and everything that is not one is refused."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from spl.errors import InputError, SignatureError, SplError
from spl.ids import Digest
from spl.store import note

# The example of the documentation of golang.org/x/mod/sumdb/note, the origin of the format.
VKEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
PUBLISHED = (
    TEXT
    + "\n\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBw"
    "JnAM=\n"
)
KEY = SigningKey(bytes(range(32)))
NAME = note.VerifierKey("example.com/log", KEY.verify_key.encode())
OTHER = SigningKey(bytes(32))
CHECKPOINT = note.Checkpoint("example.com/log", 8, Digest(bytes(range(32))))


def sign(data: bytes) -> bytes:
    return KEY.sign(data).signature


def signed(text: str) -> bytes:
    return note.sign_note(text, NAME, sign).encode()


def test_the_published_note_opens_and_the_key_is_written_as_published() -> None:
    key = note.parse_vkey(VKEY)
    assert note.format_vkey(key) == VKEY
    assert note.open_note(PUBLISHED.encode(), [key]) == TEXT


def test_a_note_that_was_touched_does_not_open() -> None:
    key = note.parse_vkey(VKEY)
    with pytest.raises(SignatureError, match="PeterNeumann on the note is wrong"):
        note.open_note(PUBLISHED.replace("problem", "puzzle").encode(), [key])
    with pytest.raises(SignatureError, match="it names PeterNeumann"):
        note.open_note(PUBLISHED.encode(), [NAME])


def test_strangers_may_sign_beside_a_known_key_but_a_wrong_known_signature_rejects_all() -> None:
    text = note.format_checkpoint(CHECKPOINT)
    stranger = note.VerifierKey("witness.example", OTHER.verify_key.encode())
    line = note.sign_note(text, stranger, lambda _: bytes(64)).removeprefix(text + "\n")
    both = signed(text) + line.encode()
    assert note.open_note(both, [NAME]) == text
    with pytest.raises(SignatureError, match=r"witness\.example"):
        note.open_note(both, [NAME, stranger])


@given(st.integers(0, 2**62), st.binary(min_size=32, max_size=32))
def test_checkpoints_survive_the_way_through_a_note(size: int, root: bytes) -> None:
    checkpoint = note.Checkpoint("example.com/log", size, Digest(root))
    text = note.open_note(signed(note.format_checkpoint(checkpoint)), [NAME])
    assert note.parse_checkpoint(text) == checkpoint


def test_the_published_checkpoint_is_read_and_extensions_are_dropped() -> None:
    text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    checkpoint = note.parse_checkpoint(text)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert note.format_checkpoint(checkpoint) == text
    assert note.parse_checkpoint(text + "extension\n") == checkpoint


@pytest.mark.parametrize(
    "text",
    [
        "",
        "o\n1\n",
        f"o\n01\n{base64.b64encode(bytes(32)).decode()}\n",
        f"o\n-1\n{base64.b64encode(bytes(32)).decode()}\n",
        f"o\n\u0661\n{base64.b64encode(bytes(32)).decode()}\n",
        f"\n1\n{base64.b64encode(bytes(32)).decode()}\n",
        f"o\n1\n{base64.b64encode(bytes(31)).decode()}\n",
        f"o\n1\n{base64.b64encode(bytes(32)).decode()}",
        f"o\n1\n{base64.b64encode(bytes(32)).decode()}\n\n",
    ],
)
def test_what_is_not_a_checkpoint_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a checkpoint"):
        note.parse_checkpoint(text)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text\n",
        b"text\n\n",
        b"text\n\n\xe2\x80\x94 name\n",
        b"text\n\n\xe2\x80\x94 name AAAA\n",
        b"text\n\n- name AAAAAAAA\n",
        b"text\n\n\xe2\x80\x94 na+me AAAAAAAA\n",
        b"text\n\n\xe2\x80\x94 name AAAAAAA\n",
        b"text\n\n\xe2\x80\x94 name AAAAAAAA",
        b"te\rxt\n\n\xe2\x80\x94 name AAAAAAAA\n",
        b"te\xffxt\n\n\xe2\x80\x94 name AAAAAAAA\n",
        b"text\n\n" + b"\xe2\x80\x94 name AAAAAAAA\n" * 101,
        b"text\n\n\xe2\x80\x94 name " + b"A" * 1_000_000 + b"\n",
    ],
)
def test_what_is_not_a_note_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="not a note"):
        note.open_note(data, [NAME])


def test_a_note_is_only_made_of_what_a_note_can_hold() -> None:
    for text in ("no line break", "tab\t\n"):
        with pytest.raises(InputError, match="the text of a note"):
            note.sign_note(text, NAME, sign)
    for name in ("", "a b", "a+b", "a\u2003b"):
        with pytest.raises(InputError, match="not the name of a key"):
            note.sign_note("text\n", note.VerifierKey(name, NAME.public), sign)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PeterNeumann", "not a verifier key"),
        (VKEY.replace("c74f20a3", "c74f20a4"), "mistyped"),
        (VKEY.replace("ARpc", "Ahpc"), "not an Ed25519 key"),
        (VKEY + "AAAA", "not an Ed25519 key"),
        (VKEY + "=", "not a verifier key"),
    ],
)
def test_what_is_not_a_key_is_refused(text: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        note.parse_vkey(text)


def test_proof_files_are_read_as_they_are_written_with_their_extra_data() -> None:
    checkpoint = signed(note.format_checkpoint(CHECKPOINT)).decode()
    proof = note.Proof(5, [Digest(bytes([number]) * 32) for number in range(3)], checkpoint)
    text = note.format_proof(proof)
    assert note.parse_proof(text.encode()) == proof
    with_extra = note.Proof(proof.position, proof.path, checkpoint, bytes(3))
    assert note.format_proof(with_extra) == text.replace("@v1\n", "@v1\nextra AAAA\n")
    assert note.parse_proof(note.format_proof(with_extra).encode()) == with_extra
    growth = note.GrowthProof(7, proof.path, checkpoint)
    assert note.parse_proof(note.format_growth(growth).encode()) == growth
    alone = note.Proof(0, [], checkpoint)
    assert note.parse_proof(note.format_proof(alone).encode()) == alone


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("@v1", "@v2", "first line"),
        ("index 5", "index 05", "index and a number"),
        ("index 5\n", "", "index and a number"),
        ("@v1\n", "@v1\nextra *\n", "extra"),
        ("\n\n", "\nAAAA\n\n", "path"),
        ("\n\n", "\n" + "A" * 43 + "=\n" * 65 + "\n", "path"),
    ],
)
def test_what_is_not_a_proof_file_is_refused(old: str, new: str, why: str) -> None:
    checkpoint = signed(note.format_checkpoint(CHECKPOINT)).decode()
    text = note.format_proof(note.Proof(5, [Digest(bytes(32))], checkpoint))
    with pytest.raises(InputError, match=why):
        note.parse_proof(text.replace(old, new, 1).encode())


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_no_bytes_make_the_readers_fail_otherwise_than_with_a_message(data: bytes) -> None:
    prefixed = b"c2sp.org/tlog-proof@v1\n" + data
    for read in (lambda: note.open_note(data, [NAME]), lambda: note.parse_proof(prefixed)):
        try:
            read()
        except SplError as error:
            assert error.message  # noqa: PT017 - most inputs are refused, and any may be
