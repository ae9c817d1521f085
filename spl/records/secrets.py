"""Secrets are taken out before they can enter an immutable log: `[withheld: RULE]` stands in their place.

Three families of rules: the values of secret-looking environment variables (as they are, escaped as in JSON, encoded
as in URLs, and in base64 at any alignment), the token shapes that well-known services document for their credentials,
and private key blocks (RFC 7468). Every pattern is matched in linear time by RE2 or by hand, so that hostile output
cannot slow an append down.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, quote_plus

import msgspec

from spl.errors import schema_error
from spl.records.definitions import Body
from spl.records.envelope import Draft
from spl.records.problems import problems
from spl.records.wire import from_map, to_map

B = TypeVar("B", bound=Body)

MIN_VALUE_BYTES: Final = 8  # a shorter value stands in innocent text too often
_NAME: Final = re.compile(
    r"(^|_)(API_?KEYS?|KEYS?|TOKENS?|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|AUTH|PAT)$"
    r"|SECRET|PASSWORD|APIKEY|_PWD$",
    re.IGNORECASE,
)
_PLAIN_NAME: Final = re.compile(r"\w{1,64}", re.ASCII)
_TOKENS: Final[dict[str, str]] = {
    "anthropic": r"sk-ant-[A-Za-z0-9_-]{20,}",
    "openai": r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{32,}",
    "openrouter": r"sk-or-v1-[0-9a-f]{32,}",
    "github": r"gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,}",
    "gitlab": r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[A-Za-z0-9_-]{20,}",
    "slack": r"xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{20,}"
    r"|hooks\.slack\.com/services/[A-Z0-9]+/[A-Z0-9]+/[A-Za-z0-9]{16,}",
    "aws": r"A(?:KIA|SIA)[A-Z2-7]{16}",
    "google": r"AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{28}",
    "huggingface": r"hf_[A-Za-z0-9]{30,}",
    "groq": r"gsk_[A-Za-z0-9]{40,}",
    "xai": r"xai-[A-Za-z0-9]{60,}",
    "perplexity": r"pplx-[A-Za-z0-9]{40,}",
    "replicate": r"r8_[A-Za-z0-9]{30,}",
    "npm": r"npm_[A-Za-z0-9]{36}",
    "pypi": r"pypi-AgE[A-Za-z0-9_-]{50,}",
    "stripe": r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{24,}",
    "sendgrid": r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    "digitalocean": r"do[oprt]_v1_[0-9a-f]{64}",
    "databricks": r"dapi[0-9a-f]{32}",
    "age": r"AGE-SECRET-KEY-1[A-Z0-9]{58}",
    "jwt": r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
}
_PRIVATE_KEY: Final = "private key"
_BEGIN: Final = re.compile(rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_END: Final = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_KEY_BODY: Final = re.compile(rb"[A-Za-z0-9+/=\s\\:,.()-]+")
_KEY_START: Final = re.compile(  # of a block that was cut off: header lines, then base64
    rb"(?:\s|\\[rn])+(?:[A-Za-z-]{1,32}: [^\r\n\\]{1,200}(?:\s|\\[rn])+){0,8}[A-Za-z0-9+/=\s\\]{16,}"
)
_DASHES: Final = b"-----"
_HOLD: Final = 65_536


class Span(NamedTuple):
    """Where a secret stands in some bytes, and by which rule."""

    start: int
    end: int
    rule: str


def secret_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables whose name says that they hold a secret, and whose value is long enough to be one."""
    return {
        name: value
        for name, value in environment.items()
        if _NAME.search(name) and len(value.encode("utf-8", "surrogateescape")) >= MIN_VALUE_BYTES
    }


class Secrets:
    """What must not enter a log, and how it is taken out.

    Args:
        values: Secret values by the name of their environment variable; names may be shown, values never.
    """

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    @cached_property
    def _needles(self) -> dict[bytes, str]:
        """Every form of every value, and the name that it is withheld under."""
        found: dict[bytes, str] = {}
        for name, value in self._values.items():
            rule = name if _PLAIN_NAME.fullmatch(name) else "environment"
            for form in _forms(value):
                found.setdefault(form, rule)
        return found

    @cached_property
    def _hold(self) -> int:
        """How many bytes a secret may take."""
        return max([_HOLD, *(2 * len(needle) for needle in self._needles)])

    @cached_property
    def _patterns(self) -> list[tuple[str, Any]]:
        named = [(rule, rf"\b(?:{shape})".encode()) for rule, shape in _TOKENS.items()]
        return [(rule, _compiled(pattern)) for rule, pattern in named]

    @cached_property
    def _suspicion(self) -> Any:  # noqa: ANN401 - RE2 has no types
        """One pattern for all rules; also where no word begins, for a text's encoded length may look like a letter."""
        shapes = [shape.encode() for shape in _TOKENS.values()]
        return _compiled(b"|".join([*map(_escaped, self._needles), *shapes, b"-----BEGIN "]))

    def suspects(self, data: bytes) -> bool:
        """Say, in one pass, whether a rule may find something in encoded content; false when surely none does."""
        return self._suspicion.search(data) is not None

    def spans(self, data: bytes) -> list[Span]:
        """Return where secrets stand, in order; those that overlap are one, by the rule of the first."""
        if not self.suspects(data):
            return []
        found = [
            Span(match.start(), match.end(), rule)
            for rule, pattern in self._patterns
            for match in pattern.finditer(data)
        ]
        for needle, rule in self._needles.items():
            found += [Span(at, at + len(needle), rule) for at in _places(data, needle)]
        found += _private_keys(data)
        apart: list[Span] = []
        for span in sorted(found, key=lambda span: (span.start, -span.end)):
            if not apart or span.start >= apart[-1].end:
                apart.append(span)
            elif span.end > apart[-1].end:  # what sticks out is as secret as the rest
                apart[-1] = apart[-1]._replace(end=span.end)
        return apart

    def find(self, text: str) -> list[str]:
        """Return the rules that a text breaks, each once, in order of appearance."""
        return list(dict.fromkeys(span.rule for span in self.spans(text.encode("utf-8", "surrogatepass"))))

    def withhold_bytes(self, data: bytes) -> tuple[bytes, int]:
        """Return content with every secret replaced, and how many there were."""
        spans = self.spans(data)
        return (_spliced(data, spans), len(spans)) if spans else (data, 0)

    def withhold(self, text: str) -> tuple[str, int]:
        """Return a text with every secret replaced, and how many there were."""
        data, count = self.withhold_bytes(text.encode("utf-8", "surrogatepass"))
        return (data.decode("utf-8", "surrogatepass"), count) if count else (text, 0)

    def withhold_value(self, value: Any) -> tuple[Any, int]:  # noqa: ANN401 - a record's body
        """Return a map, list or scalar with every secret in its texts and keys replaced, and how many there were."""
        if isinstance(value, str):
            return self.withhold(value)
        if isinstance(value, list):
            items = [self.withhold_value(item) for item in value]
            return [item for item, _ in items], sum(count for _, count in items)
        if isinstance(value, dict):
            pairs = [(self.withhold(key), self.withhold_value(item)) for key, item in value.items()]
            return {key: item for (key, _), (item, _) in pairs}, sum(k + v for (_, k), (_, v) in pairs)
        return value, 0

    def withhold_stream(self, chunks: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
        """Yield content that comes in pieces, with every secret replaced wherever the pieces are cut.

        Memory is bounded by the pieces, the longest secret and 64 KiB.
        """
        rest = b""
        for chunk in chunks:
            rest += chunk
            if len(rest) < 2 * self._hold:
                continue
            cut = len(rest) - self._hold
            spans = self.spans(rest)
            for span in spans:  # a secret is not cut, nor one that may go on behind the end
                if span.start < cut and (span.end > cut or span.end == len(rest)):
                    cut = span.start
            kept = [span for span in spans if span.end <= cut]
            yield _spliced(rest[:cut], kept), len(kept)
            rest = rest[cut:]
        yield self.withhold_bytes(rest)


def texts_of(value: object, path: str = "$") -> Iterator[tuple[str, str]]:
    """Yield every text of a value, keys included, each with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from texts_of(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"{path}.(key)", key
            yield from texts_of(item, f"{path}.{key}")


def withheld_draft(draft: Draft, secrets: Secrets) -> Draft:
    """Return a draft whose body holds no secret, and counts those that were replaced.

    Raises:
        SchemaError: What stands in place of a secret does not fit into its field.
    """
    body: Body | dict[str, Any]
    if isinstance(draft.body, dict):
        body, count = secrets.withhold_value(draft.body)
    else:
        body, count = withheld_body(draft.body, secrets)
    return msgspec.structs.replace(draft, body=body, withheld=draft.withheld + count) if count else draft


def withheld_body(body: B, secrets: Secrets) -> tuple[B, int]:
    """Return a body that holds no secret, and how many were replaced.

    Raises:
        SchemaError: What stands in place of a secret does not fit into its field.
    """
    after, count = secrets.withhold_value(to_map(body))
    if not count:
        return body, 0
    found = list(problems(after, type(body), "$.body"))
    if found:
        raise schema_error("a secret cannot be withheld from the record", found)
    return from_map(after, type(body)), count


def _compiled(pattern: bytes) -> Any:  # noqa: ANN401 - RE2 has no types
    import re2  # noqa: PLC0415 - reading a log does not need it, and every command would load it

    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1  # bytes are bytes
    options.max_mem = 64 << 20
    return re2.compile(pattern, options)


def _escaped(needle: bytes) -> bytes:
    """Return a pattern that matches these bytes alone, whatever they are."""
    return b"".join(
        b"%c" % byte if chr(byte).isascii() and chr(byte).isalnum() else b"\\x%02x" % byte for byte in needle
    )


def _forms(value: str) -> Iterator[bytes]:
    """Yield a value as it may appear: plain, escaped as in JSON, encoded as in URLs, and within base64.

    Base64 of a longer text holds three bytes in four characters; by where the value begins, the first and last
    characters also depend on its neighbours and are left out.
    """
    raw = value.encode("utf-8", "surrogateescape")
    yield raw
    for form in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        yield form[1:-1].encode("utf-8", "surrogateescape")
    for form in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield form.encode()
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), form).encode()
    for shift in range(3):
        first, last = -(-shift * 4 // 3), (shift + len(raw)) * 8 // 6
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * shift + raw)[first:last]


def _places(data: bytes, needle: bytes) -> Iterator[int]:
    """Yield where a needle stands; places that overlap each other are one after the first."""
    at = data.find(needle)
    while at >= 0:
        yield at
        at = data.find(needle, at + len(needle))


def _private_keys(data: bytes) -> Iterator[Span]:
    """Yield the private key blocks; of one without an end, what looks like a key."""
    for begin in _BEGIN.finditer(data):
        at = data.find(_DASHES, begin.end())
        end = _END.match(data, at) if at >= 0 else None
        if end is not None and _KEY_BODY.fullmatch(data, begin.end(), at):
            yield Span(begin.start(), end.end(), _PRIVATE_KEY)
        elif cut := _KEY_START.match(data, begin.end()):
            yield Span(begin.start(), cut.end(), _PRIVATE_KEY)


def _spliced(data: bytes, spans: Iterable[Span]) -> bytes:
    parts, at = [], 0
    for span in spans:
        parts += [data[at : span.start], f"[withheld: {span.rule}]".encode()]
        at = span.end
    return b"".join([*parts, data[at:]])
