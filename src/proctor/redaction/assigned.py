"""Values that are assigned to a name which says that they are secret: `api_key = "…"`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from proctor.redaction.finding import Finding, finding
from proctor.redaction.naming import KEYS_OF
from proctor.redaction.shapes import places
from proctor.redaction.values import is_key, is_mixed, is_password, is_short_key, is_weak

_PASSWORDS = ("password", "passwd", "passphrase", "passcode", "pwd")
# They also mean something else, and must stand by themselves.
_SHORT_PASSWORDS = ("pass", "pw")
# Each of these in any name, but keys only of something.
_OTHERS = ("token", "secret", "credential", "key")

# What a key, token or secret is of; with a space between, it may be a sentence.
_OWNER = re.compile(
    rf"(?:{KEYS_OF}|session|refresh|personal|webhook)(?P<joint>[ _-]?)(?:access[ _-]?)?\Z"
)
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
