"""Find secrets in a text: keys of known providers, private keys, tokens, passwords in URLs and
headers, and values assigned to names such as api_key. Placeholders (EXAMPLE, xxxx, <your key>) do not count.

Each finder searches for a short prefix and applies its pattern only there, so long texts are fast.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from proctor.core.redaction.findings import SECRET_KEY_PREFIXES, Finding, drop_overlaps, make_finding

# Random values have at least this many bits of entropy per character.
MIN_ENTROPY = 3.0
_MIN_LENGTH, _MIN_SHORT_LENGTH, _MIN_LETTERS = 12, 6, 16

# Long random values contain short words by chance ("xxx" or "fake" in one of 15 values of 1,600
# characters). So only long words count anywhere; short words must be separate.
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
    """Return the entropy of a value in bits per character."""
    counts = Counter(value).values()
    return math.log2(len(value)) - math.fsum(n * math.log2(n) for n in counts) / len(value)


def is_placeholder(value: str) -> bool:
    """True for a placeholder of a secret: EXAMPLE, xxxx, <your key>."""
    return bool(_PLACEHOLDER.search(value)) or len(set(value)) <= 2


def is_weak(value: str) -> bool:
    """True for a placeholder or a generic word such as "string"."""
    return _WEAK.fullmatch(value) is not None or is_placeholder(value)


def is_key(value: str) -> bool:
    """True for a long random value that is neither words nor code."""
    long = len(value) >= _MIN_LENGTH and entropy(value) >= MIN_ENTROPY
    return long and (is_mixed(value) or _is_mixed_case(value)) and not _CODE.fullmatch(value)


def _is_mixed_case(value: str) -> bool:
    """True for at least 16 letters, about half of them in upper case."""
    upper, lower = sum(map(str.isupper, value)), sum(map(str.islower, value))
    return len(value) >= _MIN_LETTERS and min(upper, lower) >= 0.35 * len(value)


def is_short_key(value: str) -> bool:
    """True for a value that may be a key if its name is unambiguous."""
    plain = len(value) >= _MIN_SHORT_LENGTH and not re.search(r"[./$:]", value)
    return plain and is_mixed(value) and not _CODE.fullmatch(value)


def is_password(value: str, *, quoted: bool) -> bool:
    """True for a possible password: any quoted string that is not code, or an unquoted string with letters and
    digits."""
    if quoted:
        return not re.fullmatch(r"[A-Z_]+|\$\w+|%\w+%|https?:.*", value)
    bare = value.rstrip(".,;!?")
    return bool(_DIGITS.fullmatch(bare)) or (is_mixed(bare) and not _CODE.fullmatch(bare))


def is_mixed(value: str) -> bool:
    """True if a value contains letters and digits."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


_FIRST, _LAST = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_])"
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class KeyFormat(NamedTuple):
    """The format of a provider's keys: prefixes, the pattern after them, and whether they end in a CRC."""

    kind: str
    prefixes: str
    pattern: str
    crc: bool = False


KEY_FORMATS = (
    KeyFormat("aws_access_key", "AKIA ASIA", r"[A-Z2-7]{16}"),
    KeyFormat("github_token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36}", crc=True),
    KeyFormat("github_token", "github_pat_", r"[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    KeyFormat("gitlab_token", "glpat- glrt- gldt- glcbt-", r"[A-Za-z0-9_-]{20,64}"),
    KeyFormat("slack_token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs-", r"(?:\d{1,14}-){0,3}[A-Za-z0-9-]{16,160}"),
    KeyFormat("slack_token", "xapp-", r"\d-[A-Z0-9]{8,12}-\d{8,14}-[a-f0-9]{32,80}"),
    KeyFormat("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{16,247}"),
    KeyFormat("stripe_key", "whsec_", r"[A-Za-z0-9+/=]{24,80}"),
    KeyFormat("google_key", "AIza", r"[A-Za-z0-9_-]{35}"),
    KeyFormat("google_key", "GOCSPX-", r"[A-Za-z0-9_-]{28}"),
    KeyFormat("google_token", "ya29.", r"[A-Za-z0-9_-]{30,400}"),
    KeyFormat("anthropic_key", "sk-ant-", r"[a-z0-9]{3,8}-[A-Za-z0-9_-]{24,160}"),
    KeyFormat("openrouter_key", "sk-or-", r"(?:v1-)?[A-Za-z0-9]{32,100}"),
    KeyFormat("langfuse_key", "sk-lf-", r"[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"),
    KeyFormat("openai_key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_-]{32,200}"),
    KeyFormat("openai_key", "sk-", r"[A-Za-z0-9]{32,64}"),
    KeyFormat("huggingface_token", "hf_", r"[A-Za-z0-9]{30,40}"),
    KeyFormat("npm_token", "npm_", r"[A-Za-z0-9]{36}", crc=True),
    KeyFormat("pypi_token", "pypi-", r"AgE[A-Za-z0-9_-]{40,300}"),
    KeyFormat("sendgrid_key", "SG.", r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    KeyFormat("twilio_key", "SK", r"[0-9a-f]{32}"),
    KeyFormat("digitalocean_token", "doo_v1_ dop_v1_ dor_v1_", r"[a-f0-9]{64}"),
    KeyFormat("groq_key", "gsk_", r"[A-Za-z0-9]{40,60}"),
    KeyFormat("xai_key", "xai-", r"[A-Za-z0-9]{40,120}"),
    KeyFormat("perplexity_key", "pplx-", r"[A-Za-z0-9]{32,80}"),
    KeyFormat("replicate_token", "r8_", r"[A-Za-z0-9]{30,50}"),
    KeyFormat("together_key", "tgp_v1_", r"[A-Za-z0-9_-]{30,80}"),
    KeyFormat("fireworks_key", "fw_", r"(?=[A-Za-z]*(?:\d|[A-Z]{3}))[A-Za-z0-9]{20,60}"),
    KeyFormat("langsmith_key", "lsv2_pt_ lsv2_sk_", r"[a-f0-9]{32}_[a-f0-9]{10}"),
    KeyFormat("databricks_token", "dapi", r"[a-f0-9]{32}(?:-\d)?"),
    KeyFormat("nvidia_key", "nvapi-", r"[A-Za-z0-9_-]{40,90}"),
)
_PREFIXES = tuple((key_format, prefix) for key_format in KEY_FORMATS for prefix in key_format.prefixes.split())
# URLs of the Telegram API have the token after "bot".
_TELEGRAM = re.compile(rf"(?:(?<=/bot)|{_FIRST})\d{{8,10}}:(?P<follows>A[A-Za-z0-9_-]{{34}}){_LAST}")


def has_crc(token: str) -> bool:
    """True if the last six characters are the CRC-32, in base 62, of the characters between them and the prefix.

    GitHub and npm tokens end this way; a token whose check fails is invented or misread.
    """
    body, check = token.partition("_")[2][:-6], token[-6:]
    number, digits = zlib.crc32(body.encode()), ""
    while number:
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return digits.rjust(6, "0") == check


def find_positions(text: str, prefix: str) -> Iterator[int]:
    """Yield the positions of a substring."""
    position = text.find(prefix)
    while position >= 0:
        yield position
        position = text.find(prefix, position + 1)


@functools.cache
def _compile_key(prefix: str, pattern: str) -> re.Pattern[str]:
    """Compile the pattern of a key when its prefix first occurs; compiling all patterns takes 10 ms."""
    return re.compile(f"{_FIRST}{re.escape(prefix)}(?P<follows>{pattern}){_LAST}")


def find_keys(text: str) -> Iterator[Finding]:
    """Find keys that are recognized by their format."""
    for key_format, prefix in _PREFIXES:
        for position in find_positions(text, prefix):
            match = _compile_key(prefix, key_format.pattern).match(text, position)
            if match and _is_random(match["follows"]):
                sure = not key_format.crc or has_crc(match[0])
                yield make_finding(key_format.kind, text, position, match.end(), keep=len(prefix), sure=sure)
    for position in find_positions(text, ":A"):
        match = _TELEGRAM.search(text, max(0, position - 10), position + 37)
        if match and _is_random(match["follows"]):
            yield make_finding("telegram_token", text, *match.span(), keep=position - match.start() + 1)


def _is_random(value: str) -> bool:
    return entropy(value) >= MIN_ENTROPY and not is_placeholder(value)


_PASSWORDS = ("password", "passwd", "passphrase", "passcode", "pwd")
# Ambiguous: they must be separate words.
_SHORT_PASSWORDS = ("pass", "pw")
# These may occur anywhere in a name; `key` counts only after a word such as `api`.
_OTHER_NAMES = ("token", "secret", "credential", "key")

# The word before key, token or secret; with a space between them it may be a sentence.
_QUALIFIER = re.compile(
    rf"(?:{SECRET_KEY_PREFIXES}|session|refresh|personal|webhook)(?P<separator>[ _-]?)(?:access[ _-]?)?\Z"
)
# How many characters before a name are examined.
_CONTEXT_LENGTH = 30
# How many names inside the value of an earlier name are examined: in `key:key:key:…` each name would have a value of
# 500 characters.
_MAX_NESTED = 4
# Quotes in nested strings are escaped.
_VALUE = re.compile(
    r"\\{0,8}[\"']?(?:[ \t]{0,4}(?P<sign>=>|:=|=|:)[ \t]{0,4}|[ \t]is[ \t](?=\S{8}))"
    r"(?:\[\s{0,8}|\{\s{0,8}\\{0,8}[\"']value\\{0,8}[\"']\s{0,4}:\s{0,4})?"
    r"(?:(?P<slashes>\\{0,8})(?P<quote>[\"'`])(?P<quoted>[^\s\"'`]{4,500}?)(?P=slashes)(?P=quote)"
    r"|(?P<unquoted>[^\s\"'`,;()\[\]]{6,500}))"
)


def find_assigned_secrets(text: str) -> Iterator[Finding]:
    """Find values that are assigned to a name such as `password` or `api_key`."""
    low = text.lower()
    if len(low) != len(text):
        # Some letters become two characters in lower case, which would shift the positions.
        low = "".join(letter if len(letter.lower()) > 1 else letter.lower() for letter in text)
    for name in (*_PASSWORDS, *_SHORT_PASSWORDS, *_OTHER_NAMES):
        value_end = nested = 0
        for position in find_positions(low, name):
            nested = nested + 1 if position < value_end else 0
            if nested > _MAX_NESTED:
                continue
            if name == "key" and not _QUALIFIER.search(low, max(0, position - _CONTEXT_LENGTH), position):
                continue
            if match := _VALUE.match(text, position + len(name)):
                value_end = max(value_end, match.end())
                yield from _check_value(text, low, name, position, match)


def _check_value(text: str, low: str, name: str, position: int, match: re.Match[str]) -> Iterator[Finding]:
    group = "quoted" if match["quoted"] else "unquoted"
    start, end = match.span(group)
    value = match[group] if group == "quoted" else match[group].rstrip("}\\")
    if is_weak(value):
        return
    context = low[max(0, position - _CONTEXT_LENGTH) : position]
    if name in _PASSWORDS:
        is_secret, kind = is_password(value, quoted=group == "quoted"), "password"
    elif name in _SHORT_PASSWORDS:
        is_secret, kind = _is_short_password(name, context, value, match), "password"
    else:
        is_secret, kind = _is_assigned_secret(name, context, value, match), "assigned_secret"
    if is_secret:
        yield make_finding(kind, text, start, min(end, start + len(value)), keep=0)


def _is_short_password(name: str, context: str, value: str, match: re.Match[str]) -> bool:
    """True if `pass` or `pw` is a separate name and its value is not a word."""
    is_joined = context[-1:] in ("_", "-") or name == "pw" or match["sign"] == "="
    if context[-1:].isalnum() or not match["sign"] or not (is_joined or match["quoted"]):
        return False
    return is_mixed(value) and is_password(value, quoted=False)


def _is_assigned_secret(name: str, context: str, value: str, match: re.Match[str]) -> bool:
    """True if the value of a key, token or secret is random, or short after an unambiguous name."""
    qualifier = _QUALIFIER.search(context)
    if name == "key" and qualifier is None:
        return False
    if is_key(value):
        return True
    is_unambiguous = qualifier is not None and qualifier["separator"] != " "
    is_call = match.string[match.end() : match.end() + 1] in ("(", "[")
    is_adjacent = match["quoted"] or (match[0].startswith("=") and not is_call)
    return bool(is_unambiguous and is_adjacent and is_short_key(value))


_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_MAX_BLOCK_LENGTH = 20_000
_MIN_BLOCK_LENGTH = 60
_JWT = re.compile(r"(?<![\w.-])(eyJ[A-Za-z0-9_-]{8,2000})\.(eyJ[A-Za-z0-9_-]{4,8000})\.([A-Za-z0-9_-]{16,2000})")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}\Z")
_AUTHORITY = re.compile(r"://[^\s:/@\"'<>]{0,100}:(?P<value>[^\s/@\"'<>]{1,200})@[A-Za-z0-9\[.-]")
_BEARER = re.compile(r"(?<!\w)[BbT][a-z]{4,5}[ ]{1,3}(?P<value>[A-Za-z0-9._~+/=-]{20,4000})(?![\w])")
_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com/(?:services|workflows)/[A-Z0-9]{8,14}/[A-Z0-9]{8,14}/"
    r"|discord(?:app)?\.com/api/webhooks/\d{15,22}/)(?P<value>[A-Za-z0-9_-]{20,100})"
)
_SIGNED = re.compile(r"(?:(?<=[?&;])|(?<=u0026)|(?<=-))\w{3,9}=(?P<value>[A-Za-z0-9%+/=_-]{20,1000})")
_PREFIXED = (
    *(("bearer_token", prefix, _BEARER) for prefix in ("Bearer ", "bearer ", "Basic ", "Token ")),
    *(("webhook", prefix, _WEBHOOK) for prefix in ("https://hooks.slack.com/", "https://discord")),
    *(("signed_url", prefix, _SIGNED) for prefix in ("sig=", "Signature=")),
)
_BASIC = re.compile(
    r"uthorization\\{0,8}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,8}[\"']?[Bb]asic[ ]{1,3}"
    r"(?P<value>[A-Za-z0-9+/]{6,400}={0,2})"
)
_COOKIES = re.compile(r"ookies?\\{0,8}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,8}[\"']?(?P<pairs>[^\n\"']{1,4000})")
_COOKIE = re.compile(r"[\w.-]{1,60}=(?P<value>[^;,\s\\]{1,4000})")
_USER = re.compile(r" (?:-u|--user)[ =]?[\"']?[^\s:\"'=]{1,100}:(?P<value>[^\s\"'$\[][^\s\"']{0,200})")
_MAX_COMMAND_LENGTH = 500


def find_secrets(text: str) -> list[Finding]:
    """Find all secrets in a text, in order, with masked excerpts."""
    return drop_overlaps(item for finder in _FINDERS for item in finder(text))


def _find_private_keys(text: str) -> Iterator[Finding]:
    for match in _BLOCK.finditer(text):
        stop = text.find("-----", match.end(), match.end() + _MAX_BLOCK_LENGTH)
        end = stop if stop >= 0 else min(len(text), match.end() + _MAX_BLOCK_LENGTH)
        body = re.sub(r"\\n|\s", "", text[match.end() : end])
        if len(body) >= _MIN_BLOCK_LENGTH and not is_placeholder(body):
            yield make_finding("private_key", text, match.start(), end, keep=10)


def _find_jwts(text: str) -> Iterator[Finding]:
    """Find JWTs: the header names an algorithm and the payload is an object."""
    for position in find_positions(text, "eyJ"):
        if match := _JWT.match(text, position):
            header, payload = _decode_json(match[1]), _decode_json(match[2])
            if isinstance(header, dict) and "alg" in header and isinstance(payload, dict):
                yield make_finding("jwt", text, match.start(), match.end(), keep=3)


def _decode_json(text: str) -> object:
    try:
        return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return None


def _find_url_passwords(text: str) -> Iterator[Finding]:
    for position in find_positions(text, "://"):
        match = _AUTHORITY.match(text, position)
        if match and _SCHEME.search(text, max(0, position - 31), position) and not is_weak(match[1]):
            yield make_finding("password_in_url", text, *match.span(1), keep=0)


def _find_prefixed(text: str) -> Iterator[Finding]:
    for kind, prefix, pattern in _PREFIXED:
        for position in find_positions(text, prefix):
            match = pattern.match(text, position)
            if match and is_key(match["value"]) and not is_placeholder(match["value"]):
                yield make_finding(kind, text, *match.span("value"), keep=0)


def _find_basic_auth(text: str) -> Iterator[Finding]:
    """Find the base64 of `name:password` in an Authorization header."""
    for position in find_positions(text, "uthorization"):
        match = _BASIC.match(text, position)
        if match and _is_pair(match["value"]):
            yield make_finding("basic_auth", text, *match.span("value"), keep=0)


def _is_pair(value: str) -> bool:
    try:
        name, colon, password = base64.b64decode(value).decode().partition(":")
    except ValueError:
        return False
    return bool(colon and password) and f"{name}{password}".isprintable()


def _find_cookies(text: str) -> Iterator[Finding]:
    end = 0
    for position in find_positions(text, "ookie"):
        match = _COOKIES.match(text, position) if position >= end else None
        if match is None:
            continue
        end = match.end()
        for pair in _COOKIE.finditer(text, *match.span("pairs")):
            if is_key(pair["value"]) and not is_placeholder(pair["value"]):
                yield make_finding("cookie", text, *pair.span("value"), keep=0)


def _find_command_passwords(text: str) -> Iterator[Finding]:
    """Find the password in `curl -u name:password`."""
    for prefix in (" -u", " --user"):
        for position in find_positions(text, prefix):
            first = max(0, position - _MAX_COMMAND_LENGTH)
            if text.rfind("curl", first, position) <= text.rfind("\n", first, position):
                continue
            match = _USER.match(text, position)
            if match and not is_weak(match["value"]):
                yield make_finding("password", text, *match.span("value"), keep=0)


_FINDERS = (
    find_keys,
    _find_private_keys,
    _find_jwts,
    _find_url_passwords,
    _find_basic_auth,
    _find_prefixed,
    _find_cookies,
    _find_command_passwords,
    find_assigned_secrets,
)
