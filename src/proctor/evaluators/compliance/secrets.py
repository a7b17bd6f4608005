"""Secrets in a text: keys, tokens, passwords; a pure function from a text to findings.

Found are keys in the shapes of known providers (with their own checks where they have some),
private keys, tokens that decode, passwords in addresses, and values that are assigned to a name
such as api_key. What stands there for want of a secret (EXAMPLE, xxxx, <your key>) is none.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from proctor.evaluators.compliance.finding import Finding, apart, finding

_FIRST, _LAST = r"(?<![A-Za-z0-9_/+-])", r"(?![A-Za-z0-9_])"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# A random value of 16 characters or more has at least so many bits in each.
_LEAST_BITS = 3.0
_LEAST_LENGTH = 12

_PLACEHOLDER = re.compile(
    r"example|placeholder|redact|changeme|change[_-]me|your[_-]?|xxx|\*\*\*|\.\.\.|…|dummy|sample"
    r"|insert|replace|fake|masked|hidden|todo|fixme|foobar|not[_-]?real|<|>|\{\{|\$\{|%\(|[@#$]\{",
    re.IGNORECASE,
)


class Shape(NamedTuple):
    """The keys of a provider: what they begin with, what follows, and whether they end in a CRC."""

    kind: str
    begins: str
    follows: str
    crc: bool = False


def has_crc(token: str) -> bool:
    """True if the last six characters are the CRC-32 of those after the prefix, in base 62.

    GitHub's and npm's tokens are so made; one whose check fails was made up or misread.

    >>> has_crc("ghp_" + "0" * 36)
    False
    """
    body, check = token.partition("_")[2][:-6], token[-6:]
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(6, "0") == check


_SHAPES = (
    Shape("aws_access_key", r"(?:AKIA|ASIA)", r"[A-Z2-7]{16}"),
    Shape("github_token", r"gh[pousr]_", r"[A-Za-z0-9]{36}", crc=True),
    Shape("github_token", r"github_pat_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    Shape("gitlab_token", r"gl(?:pat|rt|dt|cbt)-", r"[A-Za-z0-9_-]{20,64}"),
    Shape("slack_token", r"xox[abeoprs]-", r"(?:\d{1,14}-){0,3}[A-Za-z0-9-]{16,160}"),
    Shape("slack_token", r"xapp-\d-", r"[A-Z0-9]{8,12}-\d{8,14}-[a-f0-9]{32,80}"),
    Shape("stripe_key", r"(?:sk|rk)_(?:live|test)_", r"[A-Za-z0-9]{16,247}"),
    Shape("stripe_key", r"whsec_", r"[A-Za-z0-9+/=]{24,80}"),
    Shape("google_key", r"AIza", r"[A-Za-z0-9_-]{35}"),
    Shape("google_key", r"GOCSPX-", r"[A-Za-z0-9_-]{28}"),
    Shape("google_token", r"ya29\.", r"[A-Za-z0-9_-]{30,400}"),
    Shape("anthropic_key", r"sk-ant-", r"[a-z0-9]{3,8}-[A-Za-z0-9_-]{24,160}"),
    Shape("openai_key", r"sk-(?:proj|svcacct|admin|None)-", r"[A-Za-z0-9_-]{32,200}"),
    Shape("openai_key", r"sk-", r"[A-Za-z0-9]{32,64}"),
    Shape("huggingface_token", r"hf_", r"[A-Za-z0-9]{30,40}"),
    Shape("npm_token", r"npm_", r"[A-Za-z0-9]{36}", crc=True),
    Shape("pypi_token", r"pypi-", r"AgE[A-Za-z0-9_-]{40,300}"),
    Shape("sendgrid_key", r"SG\.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    Shape("twilio_key", r"SK", r"[0-9a-f]{32}"),
    Shape("digitalocean_token", r"do[opr]_v1_", r"[a-f0-9]{64}"),
    Shape("telegram_token", r"\d{8,10}:", r"A[A-Za-z0-9_-]{34}"),
    Shape("groq_key", r"gsk_", r"[A-Za-z0-9]{40,60}"),
)
_KEYS = re.compile(
    _FIRST
    + "(?:"
    + "|".join(f"(?P<b{n}>{s.begins})(?P<f{n}>{s.follows})" for n, s in enumerate(_SHAPES))
    + ")"
    + _LAST
)

_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_LONGEST = 20_000
_BLOCK_LEAST = 60
_JWT = re.compile(
    r"(?<![\w.-])(eyJ[A-Za-z0-9_-]{8,2000})\.(eyJ[A-Za-z0-9_-]{4,8000})\.([A-Za-z0-9_-]{16,2000})"
)
_CONNECTION = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,30}://[^\s:/@\"'<>]{0,100}:"
    r"(?P<password>[^\s/@\"'<>]{1,200})@[A-Za-z0-9\[.-]"
)
_BEARER = re.compile(
    r"\b(?:Bearer|Basic|Token)[ ]{1,3}(?P<value>[A-Za-z0-9._~+/=-]{20,4000})(?![\w])"
)
_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com/(?:services|workflows)/[A-Z0-9]{8,14}/[A-Z0-9]{8,14}/"
    r"|discord(?:app)?\.com/api/webhooks/\d{15,22}/)(?P<value>[A-Za-z0-9_-]{20,100})"
)
_ASSIGNED = re.compile(
    r"(?:(?P<word>password|passwd|passphrase|passcode|pwd)|(?:api|access|secret|auth|private|account"
    r"|signing|encryption|master|shared|storage|client|bearer|session|refresh|personal|deploy"
    r"|webhook)[ _-]?(?:access[ _-]?)?(?:key|token|secret)|secret|token|credential)"
    r"[\"']?(?:[ \t]{0,4}(?:=>|:=|=|:)[ \t]{0,4}|[ \t]is[ \t](?=\S{8}))"
    r"(?:(?P<quote>[\"'`])(?P<quoted>[^\s\"'`]{4,500})(?P=quote)"
    r"|(?P<open>[^\s\"'`,;()\[\]]{6,500}))",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"(?:[A-Za-z_][A-Za-z_]*(?:\.[A-Za-z_]+)+|[a-z_]+|[A-Z_]+|None|null|true|false|undefined"
    r"|[a-z]+(?:[A-Z][a-z]+)+|\$\w+|%\w+%|[a-z]+(?:-[a-z]+)+|https?:.*|/.*|[~.]/.*)[.,;]?"
)
_WEAK = re.compile(
    r"(?:pass(?:word|wd|code)?|secret|token|string|str|text|required|optional|none|null|value)s?\W*"
    r"|[*•●x.]+|\d{1,3}",
    re.IGNORECASE,
)


def find_secrets(text: str) -> list[Finding]:
    """Secrets in a text, in its order, each masked.

    >>> key = "AKIA" + "Z7QW2MKX5RTB6PLN"
    >>> [(one.kind, one.excerpt) for one in find_secrets(f"The key is {key}.")]
    [('aws_access_key', 'AKIA… (20 characters)')]
    >>> find_secrets("api_key = 'YOUR_API_KEY'; the key is AKIAIOSFODNN7EXAMPLE")
    []
    """
    finders = (_keys, _blocks, _tokens, _connections, _bearers, _assigned)
    return apart(one for finder in finders for one in finder(text))


def entropy(value: str) -> float:
    """How many bits a character of a value holds, by how often each occurs.

    >>> entropy("aaaa"), entropy("abcd")
    (0.0, 2.0)
    """
    counts = Counter(value).values()
    return math.log2(len(value)) - math.fsum(n * math.log2(n) for n in counts) / len(value)


def is_placeholder(value: str) -> bool:
    """True for what stands where a secret should: EXAMPLE, xxxx, <your key>.

    >>> is_placeholder("sk-xxxxxxxxxxxx"), is_placeholder("q9Zr4Tn2")
    (True, False)
    """
    return bool(_PLACEHOLDER.search(value)) or len(set(value)) <= 2


def _keys(text: str) -> Iterator[Finding]:
    for match in _KEYS.finditer(text):
        number = int((match.lastgroup or "f0")[1:])
        shape, begins, follows = _SHAPES[number], match[f"b{number}"], match[f"f{number}"]
        sure = not shape.crc or has_crc(match[0])
        if entropy(follows) >= _LEAST_BITS and not is_placeholder(follows):
            yield finding(shape.kind, text, match.start(), match.end(), keep=len(begins), sure=sure)


def _blocks(text: str) -> Iterator[Finding]:
    for match in _BLOCK.finditer(text):
        stop = text.find("-----", match.end(), match.end() + _BLOCK_LONGEST)
        end = stop if stop >= 0 else min(len(text), match.end() + _BLOCK_LONGEST)
        body = re.sub(r"\\n|\s", "", text[match.end() : end])
        if len(body) >= _BLOCK_LEAST and not is_placeholder(body):
            yield finding("private_key", text, match.start(), end, keep=10)


def _tokens(text: str) -> Iterator[Finding]:
    """Signed tokens whose head names an algorithm and whose body is an object."""
    for match in _JWT.finditer(text):
        head, body = _decoded(match[1]), _decoded(match[2])
        if isinstance(head, dict) and "alg" in head and isinstance(body, dict):
            yield finding("jwt", text, match.start(), match.end(), keep=3)


def _decoded(part: str) -> object:
    try:
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None


def _connections(text: str) -> Iterator[Finding]:
    for match in _CONNECTION.finditer(text):
        password = match["password"]
        if not is_placeholder(password) and not _WEAK.fullmatch(password):
            start, end = match.span("password")
            yield finding("password_in_url", text, start, end, keep=0)


def _bearers(text: str) -> Iterator[Finding]:
    for pattern, kind in ((_BEARER, "bearer_token"), (_WEBHOOK, "webhook")):
        for match in pattern.finditer(text):
            value = match["value"]
            if not is_placeholder(value) and _is_key(value):
                yield finding(kind, text, *match.span("value"), keep=0)


def _assigned(text: str) -> Iterator[Finding]:
    """Values that are assigned to a name which says that they are secret."""
    for match in _ASSIGNED.finditer(text):
        group = "quoted" if match["quoted"] else "open"
        value = match[group]
        if is_placeholder(value) or _WEAK.fullmatch(value):
            continue
        is_word = bool(match["word"])
        if is_word and _is_password(value, quoted=group == "quoted"):
            yield finding("password", text, *match.span(group), keep=0)
        elif not is_word and _is_key(value):
            yield finding("assigned_secret", text, *match.span(group), keep=0)


def _is_key(value: str) -> bool:
    long = len(value) >= _LEAST_LENGTH and entropy(value) >= _LEAST_BITS
    return long and _is_mixed(value) and not _CODE.fullmatch(value)


def _is_password(value: str, *, quoted: bool) -> bool:
    """In quotes any word that is no name in a program; else only what no one writes as a word."""
    if quoted:
        return not re.fullmatch(r"[A-Z_]+|\$\w+|%\w+%|https?:.*", value)
    bare = value.rstrip(".,;!?")
    return _is_mixed(bare) and not _CODE.fullmatch(bare)


def _is_mixed(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))
