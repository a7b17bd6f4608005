"""Secrets in a text: keys, tokens, passwords; a pure function from a text to findings.

Found are keys in the shapes of known providers, private keys, tokens that decode, passwords in
addresses and headers, and values that are assigned to a name such as api_key. What stands there
for want of a secret (EXAMPLE, xxxx, <your key>) is none.

Each finder looks for its marks first and at its patterns only there: a long text with few marks
takes next to no time, and no single step takes long, whatever the text.
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

from proctor.core.redaction.findings import KEYS_OF, Finding, apart, finding

# A random value of 16 characters or more has at least so many bits in each.
LEAST_BITS = 3.0
_LEAST_LENGTH, _SHORT_LENGTH, _JUMBLED_LENGTH = 12, 6, 16

# A long random value holds a short word now and then: of 1,600 characters about one in fifteen has
# "xxx" or "fake" somewhere. So words count anywhere only if they are long, else by themselves.
_PLACEHOLDER = re.compile(
    r"example|placeholder|redact|changeme|change[_-]me|sample|insert|replace|masked|hidden|foobar"
    r"|not[_-]?real|x{6}|\*\*\*|\.\.\.|…|<|>|\{\{|\$\{|%\(|[@#$]\{"
    r"|(?<![A-Za-z0-9])(?:your|(?:dummy|fake|todo|fixme|xxx+)(?![A-Za-z0-9]))"
    r"|^(?:dummy|fake|todo|fixme)|^xxx|xxx$",
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
_DIGITS = re.compile(r"\d{6,30}")


def entropy(value: str) -> float:
    """How many bits a character of a value holds, by how often each occurs.

    >>> entropy("aaaa"), entropy("abcd")
    (0.0, 2.0)
    """
    counts = Counter(value).values()
    return math.log2(len(value)) - math.fsum(n * math.log2(n) for n in counts) / len(value)


def is_placeholder(value: str) -> bool:
    """True for what stands where a secret should: EXAMPLE, xxxx, <your key>.

    >>> is_placeholder("sk-xxxxxxxxxxxx"), is_placeholder("q9Zr4Tn2"), is_placeholder("q9fakeZr4")
    (True, False, False)
    """
    return bool(_PLACEHOLDER.search(value)) or len(set(value)) <= 2


def is_weak(value: str) -> bool:
    """True for a word that only says what belongs there, and for placeholders.

    >>> is_weak("string"), is_weak("<password>"), is_weak("hunter2")
    (True, True, False)
    """
    return _WEAK.fullmatch(value) is not None or is_placeholder(value)


def is_key(value: str) -> bool:
    """True for a long value, mostly of letters and digits, that nobody wrote as words or code."""
    long = len(value) >= _LEAST_LENGTH and entropy(value) >= LEAST_BITS
    return long and (is_mixed(value) or _is_jumbled(value)) and not _CODE.fullmatch(value)


def _is_jumbled(value: str) -> bool:
    """True for sixteen letters or more of which about as many are large as small.

    >>> _is_jumbled("nxDZiweJLraSzvuXZJxJCLOa"), _is_jumbled("aLongNameOfSomeFunction")
    (True, False)
    """
    large, small = (sum(map(of, value)) for of in (str.isupper, str.islower))
    return len(value) >= _JUMBLED_LENGTH and min(large, small) >= 0.35 * len(value)


def is_short_key(value: str) -> bool:
    """True for what may be a key beside a name that leaves no doubt.

    >>> is_short_key("short1"), is_short_key("config.key1"), is_short_key("word")
    (True, False, False)
    """
    plain = len(value) >= _SHORT_LENGTH and not re.search(r"[./$:]", value)
    return plain and is_mixed(value) and not _CODE.fullmatch(value)


def is_password(value: str, *, quoted: bool) -> bool:
    """In quotes any word that is no name in a program; else only what no one writes as a word."""
    if quoted:
        return not re.fullmatch(r"[A-Z_]+|\$\w+|%\w+%|https?:.*", value)
    bare = value.rstrip(".,;!?")
    return bool(_DIGITS.fullmatch(bare)) or (is_mixed(bare) and not _CODE.fullmatch(bare))


def is_mixed(value: str) -> bool:
    """True if there are letters and digits in it."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


_FIRST, _LAST = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_])"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Shape(NamedTuple):
    """The keys of a provider: what they begin with, what follows, and whether they end in a CRC."""

    kind: str
    begins: str
    follows: str
    crc: bool = False


SHAPES = (
    Shape("aws_access_key", "AKIA ASIA", r"[A-Z2-7]{16}"),
    Shape("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36}", crc=True),
    Shape("github_token", "github_pat_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    Shape("gitlab_token", "glpat- glrt- gldt- glcbt-", r"[A-Za-z0-9_-]{20,64}"),
    Shape(
        "slack_token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-", r"(?:\d{1,14}-){0,3}[A-Za-z0-9-]{16,160}"
    ),
    Shape("slack_token", "xapp-", r"\d-[A-Z0-9]{8,12}-\d{8,14}-[a-f0-9]{32,80}"),
    Shape("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{16,247}"),
    Shape("stripe_key", "whsec_", r"[A-Za-z0-9+/=]{24,80}"),
    Shape("google_key", "AIza", r"[A-Za-z0-9_-]{35}"),
    Shape("google_key", "GOCSPX-", r"[A-Za-z0-9_-]{28}"),
    Shape("google_token", "ya29.", r"[A-Za-z0-9_-]{30,400}"),
    Shape("anthropic_key", "sk-ant-", r"[a-z0-9]{3,8}-[A-Za-z0-9_-]{24,160}"),
    Shape("openrouter_key", "sk-or-", r"(?:v1-)?[A-Za-z0-9]{32,100}"),
    Shape("langfuse_key", "sk-lf-", r"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"),
    Shape("openai_key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_-]{32,200}"),
    Shape("openai_key", "sk-", r"[A-Za-z0-9]{32,64}"),
    Shape("huggingface_token", "hf_", r"[A-Za-z0-9]{30,40}"),
    Shape("npm_token", "npm_", r"[A-Za-z0-9]{36}", crc=True),
    Shape("pypi_token", "pypi-", r"AgE[A-Za-z0-9_-]{40,300}"),
    Shape("sendgrid_key", "SG.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    Shape("twilio_key", "SK", r"[0-9a-f]{32}"),
    Shape("digitalocean_token", "doo_v1_ dop_v1_ dor_v1_", r"[a-f0-9]{64}"),
    Shape("groq_key", "gsk_", r"[A-Za-z0-9]{40,60}"),
    Shape("xai_key", "xai-", r"[A-Za-z0-9]{40,120}"),
    Shape("perplexity_key", "pplx-", r"[A-Za-z0-9]{32,80}"),
    Shape("replicate_token", "r8_", r"[A-Za-z0-9]{30,50}"),
    Shape("together_key", "tgp_v1_", r"[A-Za-z0-9_-]{30,80}"),
    Shape("fireworks_key", "fw_", r"(?=[A-Za-z]*(?:\d|[A-Z]{3}))[A-Za-z0-9]{20,60}"),
    Shape("langsmith_key", "lsv2_pt_ lsv2_sk_", r"[a-f0-9]{32}_[a-f0-9]{10}"),
    Shape("databricks_token", "dapi", r"[a-f0-9]{32}(?:-\d)?"),
    Shape("nvidia_key", "nvapi-", r"[A-Za-z0-9_-]{40,90}"),
)
# A text is looked at only where a key may begin, which is found quickly.
_PATTERNS = tuple(
    (shape, mark, re.compile(f"{_FIRST}{re.escape(mark)}(?P<follows>{shape.follows}){_LAST}"))
    for shape in SHAPES
    for mark in shape.begins.split()
)
# In an address of its interface it stands after "bot".
_TELEGRAM = re.compile(rf"(?:(?<=/bot)|{_FIRST})\d{{8,10}}:(?P<follows>A[A-Za-z0-9_-]{{34}}){_LAST}")


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


def places(text: str, mark: str) -> Iterator[int]:
    """Where a mark stands in a text.

    >>> list(places("a-b-c", "-"))
    [1, 3]
    """
    place = text.find(mark)
    while place >= 0:
        yield place
        place = text.find(mark, place + 1)


def find_keys(text: str) -> Iterator[Finding]:
    """Keys that are known by their shape.

    >>> [one.kind for one in find_keys("/AKIA" + "Z7QW2MKX5RTB6PLN/")]
    ['aws_access_key']
    """
    for shape, mark, pattern in _PATTERNS:
        for place in places(text, mark):
            match = pattern.match(text, place)
            if match and _is_random(match["follows"]):
                sure = not shape.crc or has_crc(match[0])
                yield finding(shape.kind, text, place, match.end(), keep=len(mark), sure=sure)
    for place in places(text, ":A"):
        match = _TELEGRAM.search(text, max(0, place - 10), place + 37)
        if match and _is_random(match["follows"]):
            yield finding("telegram_token", text, *match.span(), keep=place - match.start() + 1)


def _is_random(value: str) -> bool:
    return entropy(value) >= LEAST_BITS and not is_placeholder(value)


_PASSWORDS = ("password", "passwd", "passphrase", "passcode", "pwd")
# They also mean something else, and must stand by themselves.
_SHORT_PASSWORDS = ("pass", "pw")
# Each of these in any name, but keys only of something.
_OTHERS = ("token", "secret", "credential", "key")

# What a key, token or secret is of; with a space between, it may be a sentence.
_OWNER = re.compile(rf"(?:{KEYS_OF}|session|refresh|personal|webhook)(?P<joint>[ _-]?)(?:access[ _-]?)?\Z")
# How many characters before a name are read.
_BEFORE = 30
# How many names inside the value of an earlier name are looked at: `key:key:key:…` has a name
# every four characters, and each would be read as a value of 500.
_MOST_NESTED = 4
# Texts within texts have backslashes before their quotes.
_VALUE = re.compile(
    r"\\{0,8}[\"']?(?:[ \t]{0,4}(?P<sign>=>|:=|=|:)[ \t]{0,4}|[ \t]is[ \t](?=\S{8}))"
    r"(?:\[\s{0,8}|\{\s{0,8}\\{0,8}[\"']value\\{0,8}[\"']\s{0,4}:\s{0,4})?"
    r"(?:(?P<slashes>\\{0,8})(?P<quote>[\"'`])(?P<quoted>[^\s\"'`]{4,500}?)(?P=slashes)(?P=quote)"
    r"|(?P<open>[^\s\"'`,;()\[\]]{6,500}))"
)


def find_assigned(text: str) -> Iterator[Finding]:
    """Values that are assigned to a name which says that they are secret.

    >>> [one.kind for one in find_assigned('{"DB_PASSWORD": "hunter22", "max_tokens": "hunter23"}')]
    ['password']
    """
    low = text.lower()
    if len(low) != len(text):
        # A few letters become two when they are made small, and places would no longer agree.
        low = "".join(letter if len(letter.lower()) > 1 else letter.lower() for letter in text)
    for name in (*_PASSWORDS, *_SHORT_PASSWORDS, *_OTHERS):
        value_end = nested = 0
        for place in places(low, name):
            nested = nested + 1 if place < value_end else 0
            if nested > _MOST_NESTED:
                continue
            if name == "key" and not _OWNER.search(low, max(0, place - _BEFORE), place):
                continue
            if match := _VALUE.match(text, place + len(name)):
                value_end = max(value_end, match.end())
                yield from _judged(text, low, name, place, match)


def _judged(text: str, low: str, name: str, place: int, match: re.Match[str]) -> Iterator[Finding]:
    group = "quoted" if match["quoted"] else "open"
    start, end = match.span(group)
    value = match[group] if group == "quoted" else match[group].rstrip("}\\")
    if is_weak(value):
        return
    before = low[max(0, place - _BEFORE) : place]
    if name in _PASSWORDS:
        is_found, kind = is_password(value, quoted=group == "quoted"), "password"
    elif name in _SHORT_PASSWORDS:
        is_found, kind = _is_short(name, before, value, match), "password"
    else:
        is_found, kind = _is_of(name, before, value, match), "assigned_secret"
    if is_found:
        yield finding(kind, text, start, min(end, start + len(value)), keep=0)


def _is_short(name: str, before: str, value: str, match: re.Match[str]) -> bool:
    """For `pass` and `pw`: names of their own, with a value that is no word."""
    joined = before[-1:] in ("_", "-") or name == "pw" or match["sign"] == "="
    if before[-1:].isalnum() or not match["sign"] or not (joined or match["quoted"]):
        return False
    return is_mixed(value) and is_password(value, quoted=False)


def _is_of(name: str, before: str, value: str, match: re.Match[str]) -> bool:
    """For keys, tokens and secrets: random values, and short ones where all else is plain."""
    owner = _OWNER.search(before)
    if name == "key" and owner is None:
        return False
    if is_key(value):
        return True
    is_plain = owner is not None and owner["joint"] != " "
    is_call = match.string[match.end() : match.end() + 1] in ("(", "[")
    tight = match["quoted"] or (match[0].startswith("=") and not is_call)
    return bool(is_plain and tight and is_short_key(value))


_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_LONGEST = 20_000
_BLOCK_LEAST = 60
_JWT = re.compile(
    r"(?<![\w.-])(eyJ[A-Za-z0-9_-]{8,2000})\.(eyJ[A-Za-z0-9_-]{4,8000})\.([A-Za-z0-9_-]{16,2000})"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}\Z")
_AUTHORITY = re.compile(r"://[^\s:/@\"'<>]{0,100}:(?P<value>[^\s/@\"'<>]{1,200})@[A-Za-z0-9\[.-]")
_BEARER = re.compile(r"(?<!\w)[BbT][a-z]{4,5}[ ]{1,3}(?P<value>[A-Za-z0-9._~+/=-]{20,4000})(?![\w])")
_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com/(?:services|workflows)/[A-Z0-9]{8,14}/[A-Z0-9]{8,14}/"
    r"|discord(?:app)?\.com/api/webhooks/\d{15,22}/)(?P<value>[A-Za-z0-9_-]{20,100})"
)
_SIGNED = re.compile(r"(?:(?<=[?&;])|(?<=u0026)|(?<=-))\w{3,9}=(?P<value>[A-Za-z0-9%+/=_-]{20,1000})")
_MARKED = (
    *(("bearer_token", mark, _BEARER) for mark in ("Bearer ", "bearer ", "Basic ", "Token ")),
    *(("webhook", mark, _WEBHOOK) for mark in ("https://hooks.slack.com/", "https://discord")),
    *(("signed_url", mark, _SIGNED) for mark in ("sig=", "Signature=")),
)
_BASIC = re.compile(
    r"uthorization\\{0,8}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,8}[\"']?[Bb]asic[ ]{1,3}"
    r"(?P<value>[A-Za-z0-9+/]{6,400}={0,2})"
)
_COOKIES = re.compile(r"ookies?\\{0,8}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,8}[\"']?(?P<pairs>[^\n\"']{1,4000})")
_COOKIE = re.compile(r"[\w.-]{1,60}=(?P<value>[^;,\s\\]{1,4000})")
_USER = re.compile(r" (?:-u|--user)[ =]?[\"']?[^\s:\"'=]{1,100}:(?P<value>[^\s\"'$\[][^\s\"']{0,200})")
_COMMAND_LONGEST = 500


def find_secrets(text: str) -> list[Finding]:
    """Secrets in a text, in its order, each masked.

    >>> key = "AKIA" + "Z7QW2MKX5RTB6PLN"
    >>> [(one.kind, one.excerpt) for one in find_secrets(f"The key is {key}.")]
    [('aws_access_key', 'AKIA… (20 characters)')]
    >>> find_secrets("api_key = 'YOUR_API_KEY'; the key is AKIAIOSFODNN7EXAMPLE")
    []
    """
    return apart(one for finder in _FINDERS for one in finder(text))


def _blocks(text: str) -> Iterator[Finding]:
    for match in _BLOCK.finditer(text):
        stop = text.find("-----", match.end(), match.end() + _BLOCK_LONGEST)
        end = stop if stop >= 0 else min(len(text), match.end() + _BLOCK_LONGEST)
        body = re.sub(r"\\n|\s", "", text[match.end() : end])
        if len(body) >= _BLOCK_LEAST and not is_placeholder(body):
            yield finding("private_key", text, match.start(), end, keep=10)


def _tokens(text: str) -> Iterator[Finding]:
    """Signed tokens whose head names an algorithm and whose body is an object."""
    for place in places(text, "eyJ"):
        if match := _JWT.match(text, place):
            head, body = _decoded(match[1]), _decoded(match[2])
            if isinstance(head, dict) and "alg" in head and isinstance(body, dict):
                yield finding("jwt", text, match.start(), match.end(), keep=3)


def _decoded(part: str) -> object:
    try:
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None


def _connections(text: str) -> Iterator[Finding]:
    for place in places(text, "://"):
        match = _AUTHORITY.match(text, place)
        if match and _SCHEME.search(text, max(0, place - 31), place) and not is_weak(match[1]):
            yield finding("password_in_url", text, *match.span(1), keep=0)


def _marked(text: str) -> Iterator[Finding]:
    for kind, mark, pattern in _MARKED:
        for place in places(text, mark):
            match = pattern.match(text, place)
            if match and is_key(match["value"]) and not is_placeholder(match["value"]):
                yield finding(kind, text, *match.span("value"), keep=0)


def _basic(text: str) -> Iterator[Finding]:
    """A name and a password in a header, however short: they are only encoded."""
    for place in places(text, "uthorization"):
        match = _BASIC.match(text, place)
        if match and _is_pair(match["value"]):
            yield finding("basic_auth", text, *match.span("value"), keep=0)


def _is_pair(value: str) -> bool:
    try:
        name, colon, password = base64.b64decode(value).decode().partition(":")
    except ValueError:
        return False
    return bool(colon and password) and f"{name}{password}".isprintable()


def _cookies(text: str) -> Iterator[Finding]:
    done = 0
    for place in places(text, "ookie"):
        match = _COOKIES.match(text, place) if place >= done else None
        if match is None:
            continue
        done = match.end()
        for pair in _COOKIE.finditer(text, *match.span("pairs")):
            if is_key(pair["value"]) and not is_placeholder(pair["value"]):
                yield finding("cookie", text, *pair.span("value"), keep=0)


def _commands(text: str) -> Iterator[Finding]:
    """`curl -u name:password`."""
    for mark in (" -u", " --user"):
        for place in places(text, mark):
            first = max(0, place - _COMMAND_LONGEST)
            if text.rfind("curl", first, place) <= text.rfind("\n", first, place):
                continue
            match = _USER.match(text, place)
            if match and not is_weak(match["value"]):
                yield finding("password", text, *match.span("value"), keep=0)


_FINDERS = (*(find_keys, _blocks, _tokens, _connections, _basic, _marked, _cookies, _commands), find_assigned)
