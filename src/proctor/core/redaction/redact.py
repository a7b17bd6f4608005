"""Replace secrets and personal data before they are stored: `[secret: github token]`.

Most texts contain none, so a quick check comes first: every secret has a long run without a space, or one of a few
words and characters. Only texts with one of these are searched.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from proctor.core.redaction.findings import (
    Finding,
    drop_overlaps,
    is_descriptive_name,
    is_password_name,
    is_secret_name,
)

# The shortest key that is recognized by its format alone has 20 characters.
_STRETCH = b"x" * 20
_IN_STRETCH = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=-.~"
_STRETCHES = bytes(ord("x") if code in _IN_STRETCH else ord(" ") for code in range(256))
# Shorter keys of a mapping are names, not secrets.
_MIN_KEY_LENGTH = 16
# The shortest possible match: `pw='abcd'`.
_MIN_LENGTH = 9
# Short strings repeat (ids, model names), so their results are cached.
_MAX_CACHED_LENGTH = 100

# Every secret contains another character, so digests are never searched.
_HEX_DIGITS = frozenset("0123456789abcdef")

_BACKSLASH, _QUOTE = "\x00", "\x01"
# `pass` and `pw` occur in many words, so a colon or equals sign must follow.
_SHORT_NAMES = re.compile(r"(?:pass|pw)(?:\\t|[ \t\\\"']){0,20}[:=]")
# Long texts are searched for personal data in overlapping pieces, because a single search blocks all other threads.
_PIECE, _OVERLAP = 20_000, 500
# A number is a password only if it has at least four digits.
_MIN_PASSWORD_NUMBER = 1000


def may_hold_secret(text: str) -> bool:
    """False if `find_secrets` finds nothing in a text; True if the text must be searched."""
    if len(text) < _MIN_LENGTH:
        return False
    # Called for every result of a run. Searching for one character is fastest, so it comes first;
    # a loop would take twice as long.
    is_assigned = "=" in text or ":" in text
    return (
        ((is_assigned or " is " in text or "\t" in text) and _names_secret(text, is_assigned))
        or ("@" in text and "://" in text)
        or (
            text.encode("utf-8", "replace").translate(_STRETCHES).find(_STRETCH) >= 0
            and not _HEX_DIGITS.issuperset(text)
        )
    )


def _names_secret(text: str, is_assigned: bool) -> bool:
    low = text.lower()
    # Common prefixes are searched for once.
    has_pass = "p" in low and "pass" in low
    has_pw = "p" in low and "pw" in low
    return (
        ("k" in low and ("key" in low or "token" in low))
        or ("c" in low and ("secret" in low or "credential" in low))
        or (has_pass and ("passw" in low or "passphrase" in low or "passcode" in low))
        or (has_pw and "pwd" in low)
        or (is_assigned and _assigns_secret(low, has_pass or has_pw))
    )


def _assigns_secret(low: str, is_short_name: bool) -> bool:
    return (
        (is_short_name and _SHORT_NAMES.search(low) is not None)
        or "authorization" in low
        or ("curl" in low and " -" in low)
        or ("=" in low and ("sig=" in low or "cookie" in low))
    )


def may_hold_secrets(data: str) -> bool:
    """False if compact JSON contains nothing to redact; True if it must be searched.

    Each distinct string is checked once, without decoding the JSON.
    """
    if "\\" in data:
        # Escaped quotes would look like the end of a string; these characters never occur in JSON.
        data = data.replace("\\\\", _BACKSLASH).replace('\\"', _QUOTE)
    parts = data.split('"')
    texts = parts[1::2]
    names = {text for text, after in zip(texts, parts[2::2], strict=True) if after[:1] == ":"}
    if any(is_secret_name(_unescape(name)) for name in names):
        return True
    # Escaped strings are never shorter than the original strings.
    long_texts = {text for text in texts if len(text) >= _MIN_LENGTH}
    return any(_needs_search(_unescape(text)) for text in long_texts)


def _unescape(text: str) -> str:
    if not ("\\" in text or _BACKSLASH in text or _QUOTE in text):
        return text
    text = text.replace(_BACKSLASH, "\\\\").replace(_QUOTE, '\\"')
    return msgspec.json.decode(f'"{text}"', type=str)


def _needs_search(text: str) -> bool:
    return may_hold_secret(text) and not (len(text) <= _MAX_CACHED_LENGTH and _is_clean(text))


def make_marker(kind: str, *, category: str = "secret") -> str:
    """Return the text that replaces a finding."""
    return f"[{category}: {kind.replace('_', ' ')}]"


class Redaction:
    """Redacts secrets, and personal data if `personal`, in plain data; `counts` counts them by kind."""

    def __init__(self, *, personal: bool = False) -> None:
        self.personal = personal
        self.counts: Counter[str] = Counter()

    def may_find(self, text: str) -> bool:
        """False if a text certainly contains nothing to redact."""
        return self.personal or may_hold_secret(text)

    def text(self, text: str) -> str:
        """Return the redacted text; the same object if nothing was found."""
        if _needs_search(text):
            text = self._redact(text, _find_secrets(text), "secret")
        if self.personal:
            text = self._redact(text, _find_personal_data(text), "personal")
        return text

    def value(self, value: Any, *, by_name: bool = False) -> Any:
        """Return redacted plain data; the same object if nothing was found.

        `by_name` redacts every value inside a name such as `api_key`.
        """
        if isinstance(value, str):
            return self.text(value)
        if value is None:
            return None
        if isinstance(value, dict | Mapping):
            return self._mapping(value, by_name)
        if isinstance(value, list | tuple):
            return _keep_if_equal(value, [self.value(item, by_name=by_name) for item in value])
        return value

    def _mapping(self, values: Mapping[Any, Any], by_name: bool) -> Mapping[Any, Any]:
        redacted: dict[Any, Any] = {}
        has_changed = False
        for key, value in values.items():
            new_key = self._key(key, redacted)
            redacted[new_key] = new_value = self._named_value(key, value, by_name)
            has_changed = has_changed or new_key is not key or new_value is not value
        return redacted if has_changed else values

    def _key(self, key: Any, used_keys: Mapping[Any, Any]) -> Any:
        """Return a redacted key, with a number if another key was redacted to the same string."""
        if not isinstance(key, str) or (len(key) < _MIN_KEY_LENGTH and not self.personal):
            return key
        name = unique = self.text(key)
        number = 2
        while unique is not key and unique in used_keys:
            unique, number = f"{name} {number}", number + 1
        return unique

    def _named_value(self, key: Any, value: Any, by_name: bool) -> Any:
        if not isinstance(key, str) or not is_secret_name(key):
            return self.value(value, by_name=by_name)
        if by_name:
            return self._redact_all(value)
        return self._redact_below(key, self.value(value))

    def _redact_below(self, name: str, value: Any) -> Any:
        """Redact values anywhere inside a secret name, as if they were assigned to it directly."""
        if isinstance(value, str):
            findings = _find_secrets(f'{name}="{value}"')
            return self._make_counted_marker(findings[0].kind, "secret") if findings else value
        if isinstance(value, Mapping):
            items = {
                key: item if is_descriptive_name(str(key)) else self._redact_below(name, item)
                for key, item in value.items()
            }
            return items if any(items[key] is not value[key] for key in value) else value
        if isinstance(value, list | tuple):
            return _keep_if_equal(value, [self._redact_below(name, item) for item in value])
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and value >= _MIN_PASSWORD_NUMBER and is_password_name(name):
            return self._make_counted_marker("password", "secret")
        return value

    def _redact_all(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._redact_all(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self._redact_all(item) for item in value]
        if value is None or isinstance(value, bool) or value == "" or _is_marker(value):
            return value
        return self._make_counted_marker("assigned_secret", "secret")

    def _redact(self, text: str, findings: Iterable[Finding], category: str) -> str:
        pieces, position = [], 0
        for finding in findings:
            pieces += [text[position : finding.start], self._make_counted_marker(finding.kind, category)]
            position = finding.end
        return "".join([*pieces, text[position:]]) if pieces else text

    def _make_counted_marker(self, kind: str, category: str) -> str:
        self.counts[kind.replace("_", " ")] += 1
        return make_marker(kind, category=category)


def _is_marker(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("[secret: ") and value.endswith("]")


def _keep_if_equal(original: list[Any] | tuple[Any, ...], items: list[Any]) -> Any:
    """Return the original object if no item was replaced, else a new object of its type."""
    has_changed = any(new is not old for new, old in zip(items, original, strict=True))
    return type(original)(items) if has_changed else original


def _find_personal_data(text: str) -> list[Finding]:
    from proctor.core.redaction.pii import find_pii

    if len(text) <= _PIECE + _OVERLAP:
        return find_pii(text)
    findings = []
    for piece in range(0, len(text), _PIECE):
        offset = max(0, piece - _OVERLAP)
        for finding in find_pii(text[offset : piece + _PIECE + _OVERLAP]):
            start, end = finding.start + offset, finding.end + offset
            if piece <= start < piece + _PIECE:
                findings.append(msgspec.structs.replace(finding, start=start, end=end))
    return drop_overlaps(findings)


@functools.lru_cache(maxsize=4096)
def _is_clean(text: str) -> bool:
    """True if a text contains no secret. Only for short texts: the results are cached."""
    return not _find_secrets(text)


def _find_secrets(text: str) -> list[Finding]:
    # Imported on first use: compiling the patterns takes time, and most runs need no patterns.
    from proctor.core.redaction.secrets import find_secrets

    return find_secrets(text)
