"""Secrets are taken out of text, whatever their form and wherever it is cut."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spl.records.secrets import Secrets, secret_variables, texts_of

KEY = "-----BEGIN RSA PRIVATE KEY-----\n" + ("QUJD" * 16 + "\n") * 5 + "-----END RSA PRIVATE KEY-----"
VALUE = 'pässwörd+/ "1'
TOKENS = {
    "anthropic": "sk-ant-" + "a1_-" * 8,
    "openai": "sk-proj-" + "a1_-" * 8,
    "github": "ghp_" + "a1" * 18,
    "gitlab": "glpat-" + "a1" * 10,
    "slack": "xoxb-" + "1" * 12,
    "aws": "AKIA" + "Q2" * 8,
    "google": "AIza" + "a" * 35,
    "huggingface": "hf_" + "a" * 34,
    "npm": "npm_" + "a" * 36,
    "stripe": "sk_live_" + "a" * 24,
    "jwt": "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
    "private key": KEY,
}


@pytest.mark.parametrize("rule", TOKENS)
def test_a_known_shape_is_withheld_and_named(rule: str) -> None:
    text = f"before {TOKENS[rule]} behind"
    assert Secrets().withhold(text) == (f"before [withheld: {rule}] behind", 1)
    assert Secrets().find(text) == [rule]


@pytest.mark.parametrize(
    "text",
    [
        "task-" + "a" * 40,
        "risk-proj-" + "a" * 40,
        "a secret, a token, a password",
        'if "-----BEGIN PRIVATE KEY-----" in text:',
        "did:key:z6MktwupdmLXVVqTzCw4i46r4uGyosGXRnR3XjN4Zq7oMMsw",
        "9583f6eef8f77f9d9e35659743629bef7fc9850ba67050ddb5114472b38e7608",
        "[withheld: private key] [withheld: OTHER_KEY]",
    ],
)
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    assert Secrets({"OTHER_KEY": "0123456789"}).withhold(text) == (text, 0)


def test_a_private_key_that_was_cut_off_is_withheld_as_far_as_it_goes() -> None:
    cut = KEY[: KEY.index("-----END")]
    assert Secrets().withhold(cut + '", and more')[0] == '[withheld: private key]", and more'
    escaped = json.dumps(cut)
    assert Secrets().withhold(escaped) == ('"[withheld: private key]"', 1)
    header = cut.replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n", 1)
    assert Secrets().withhold(header) == ("[withheld: private key]", 1)


@pytest.mark.parametrize("shift", range(4))
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_value_is_found_in_base64_at_any_alignment(shift: int, encode: object) -> None:
    text = encode(b"x" * shift + VALUE.encode() + b"yy").decode()  # type: ignore[operator]
    kept, count = Secrets({"MY_KEY": VALUE}).withhold(text)
    assert count == 1
    assert "[withheld: MY_KEY]" in kept


@pytest.mark.parametrize(
    "form",
    [VALUE, json.dumps(VALUE)[1:-1], quote(VALUE), quote(VALUE, safe=""), quote(VALUE, safe="").lower()],
)
def test_a_value_is_found_as_it_is_and_as_texts_carry_it(form: str) -> None:
    assert Secrets({"MY_KEY": VALUE}).withhold(f"x{form}y") == ("x[withheld: MY_KEY]y", 1)


def test_variables_are_secret_by_name_and_long_enough() -> None:
    environment = {
        "OPENAI_API_KEY": "0123456789",
        "GITHUB_TOKEN": "0123456789",
        "DB_PASSWORD": "0123456789",
        "SECRET_SAUCE": "0123456789",
        "MYSQL_PWD": "0123456789",
        "aws_secret_access_key": "0123456789",
        "SHORT_KEY": "1234567",
        "PWD": "/home/someone",
        "OLDPWD": "/home/someone",
        "PATH": "/usr/bin:/bin",
        "SSH_AUTH_SOCK": "/run/agent.sock",
        "MONKEY": "0123456789",
    }
    assert set(secret_variables(environment)) == set(environment) - {
        "SHORT_KEY",
        "PWD",
        "OLDPWD",
        "PATH",
        "SSH_AUTH_SOCK",
        "MONKEY",
    }


def test_a_strange_variable_name_is_not_shown() -> None:
    assert Secrets({"A]\nTOKEN": "0123456789"}).withhold("0123456789")[0] == "[withheld: environment]"


def test_values_keys_and_lists_of_a_body_are_searched() -> None:
    secrets = Secrets({"A_KEY": "0123456789"})
    body = {"a": ["x 0123456789", 1, b"0123456789"], "0123456789": {"b": True}}
    assert secrets.withhold_value(body) == (
        {"a": ["x [withheld: A_KEY]", 1, b"0123456789"], "[withheld: A_KEY]": {"b": True}},
        2,
    )
    assert list(texts_of(body)) == [
        ("$.(key)", "a"),
        ("$.a[0]", "x 0123456789"),
        ("$.(key)", "0123456789"),
        ("$.0123456789.(key)", "b"),
    ]


def test_a_secret_that_contains_another_leaves_nothing_of_either() -> None:
    secrets = Secrets({"A_KEY": "0123456789", "B_KEY": "56789abcde", "C_KEY": "x0123456789abcdefy"})
    assert secrets.withhold("-0123456789abcde-") == ("-[withheld: A_KEY]-", 1)
    assert secrets.withhold("-x0123456789abcdefy-") == ("-[withheld: C_KEY]-", 1)


@given(
    st.lists(st.sampled_from([*TOKENS.values(), "0123456789", " some words ", "\n", "é" * 700]), max_size=40),
    st.integers(1, 5000),
)
def test_a_stream_is_filtered_as_the_whole_is_wherever_it_is_cut(parts: list[str], size: int) -> None:
    secrets = Secrets({"A_KEY": "0123456789"})
    secrets.__dict__["_hold"] = 4 * len(KEY)  # small windows, so that they are cut often
    data = " ".join(parts).encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    found = list(secrets.withhold_stream(pieces))
    whole, count = secrets.withhold_bytes(data)
    assert b"".join(kept for kept, _ in found) == whole
    assert sum(counted for _, counted in found) == count


@pytest.mark.parametrize(
    "piece", [b"-----BEGIN PRIVATE KEY-----\n" + b"A" * 40, b"eyJ", b"sk-ant-", b"ghp_aaaaaaaa", b"\xff\x00"]
)
def test_hostile_output_is_filtered_in_linear_time(piece: bytes) -> None:
    started = time.perf_counter()
    Secrets({"A_KEY": "0123456789"}).withhold_bytes(piece * (2_000_000 // len(piece)))
    assert time.perf_counter() - started < 5
