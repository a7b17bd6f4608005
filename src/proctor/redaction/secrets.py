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
import re
from collections.abc import Iterator

from proctor.redaction.assigned import find_assigned
from proctor.redaction.finding import Finding, apart, finding
from proctor.redaction.shapes import find_keys, places
from proctor.redaction.values import is_key, is_placeholder, is_weak

_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_LONGEST = 20_000
_BLOCK_LEAST = 60
_JWT = re.compile(
    r"(?<![\w.-])(eyJ[A-Za-z0-9_-]{8,2000})\.(eyJ[A-Za-z0-9_-]{4,8000})\.([A-Za-z0-9_-]{16,2000})"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}\Z")
_AUTHORITY = re.compile(r"://[^\s:/@\"'<>]{0,100}:(?P<value>[^\s/@\"'<>]{1,200})@[A-Za-z0-9\[.-]")
_BEARER = re.compile(
    r"(?<!\w)[BbT][a-z]{4,5}[ ]{1,3}(?P<value>[A-Za-z0-9._~+/=-]{20,4000})(?![\w])"
)
_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com/(?:services|workflows)/[A-Z0-9]{8,14}/[A-Z0-9]{8,14}/"
    r"|discord(?:app)?\.com/api/webhooks/\d{15,22}/)(?P<value>[A-Za-z0-9_-]{20,100})"
)
_SIGNED = re.compile(
    r"(?:(?<=[?&;])|(?<=u0026)|(?<=-))\w{3,9}=(?P<value>[A-Za-z0-9%+/=_-]{20,1000})"
)
_MARKED = (
    *(("bearer_token", mark, _BEARER) for mark in ("Bearer ", "bearer ", "Basic ", "Token ")),
    *(("webhook", mark, _WEBHOOK) for mark in ("https://hooks.slack.com/", "https://discord")),
    *(("signed_url", mark, _SIGNED) for mark in ("sig=", "Signature=")),
)
_BASIC = re.compile(
    r"uthorization\\{0,8}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,8}[\"']?[Bb]asic[ ]{1,3}"
    r"(?P<value>[A-Za-z0-9+/]{6,400}={0,2})"
)
_COOKIES = re.compile(
    r"ookies?\\{0,8}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,8}[\"']?(?P<pairs>[^\n\"']{1,4000})"
)
_COOKIE = re.compile(r"[\w.-]{1,60}=(?P<value>[^;,\s\\]{1,4000})")
_USER = re.compile(
    r" (?:-u|--user)[ =]?[\"']?[^\s:\"'=]{1,100}:(?P<value>[^\s\"'$\[][^\s\"']{0,200})"
)
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


_FINDERS = (
    *(find_keys, _blocks, _tokens, _connections, _basic, _marked, _cookies, _commands),
    find_assigned,
)
