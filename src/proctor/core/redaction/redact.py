"""What must not be stored is replaced by a word on what it was: `[secret: github token]`.

Most texts hold nothing of the kind, so each is first asked for what every secret has somewhere: a
long stretch without a space, or one of a few words and signs. Only then the finders look.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from proctor.core.redaction.findings import Finding, apart, says_password, says_secret, tells_about

# The shortest key or token that is known by its shape alone has twenty characters.
_STRETCH = b"x" * 20
_IN_STRETCH = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=-.~"
_STRETCHES = bytes(ord("x") if code in _IN_STRETCH else ord(" ") for code in range(256))
# A shorter key of a mapping is a name, not a secret.
_SHORTEST_KEY = 16
# The shortest things that are found: `pw='abcd'`, and a password in an address.
_SHORTEST = 9
# Short texts come again and again (ids, names of models), and are looked at once.
_SHORT = 100

_BACKSLASH, _QUOTE = "\x00", "\x01"
# `pass` and `pw` are in many words, so they must stand before a sign.
_SHORT_NAMES = re.compile(r"(?:pass|pw)(?:\\t|[ \t\\\"']){0,20}[:=]")
# A longer text is looked through for personal data in pieces, which overlap so that nothing is cut:
# one search would let no other thread work while it lasts.
_PIECE, _OVERLAP = 20_000, 500
# A number under a name that says password is one if it has four digits.
_LEAST_NUMBER = 1000


def may_hold_secret(text: str) -> bool:
    """False if a text holds nothing that `find_secrets` finds; True if it is worth a look.

    >>> may_hold_secret("What is the capital of France?"), may_hold_secret("my password is x")
    (False, True)
    """
    if len(text) < _SHORTEST:
        return False
    # Every result of a run comes by here. To look for one character takes next to no time, so
    # that comes first; a loop would take twice as long.
    is_assigned = "=" in text or ":" in text
    return (
        ((is_assigned or " is " in text or "\t" in text) and _names_one(text, is_assigned))
        or ("@" in text and "://" in text)
        or text.encode("utf-8", "replace").translate(_STRETCHES).find(_STRETCH) >= 0
    )


def _names_one(text: str, is_assigned: bool) -> bool:
    low = text.lower()
    # What several words begin with is looked for once.
    has_pass = "p" in low and "pass" in low
    has_pw = "p" in low and "pw" in low
    return (
        ("k" in low and ("key" in low or "token" in low))
        or ("c" in low and ("secret" in low or "credential" in low))
        or (has_pass and ("passw" in low or "passphrase" in low or "passcode" in low))
        or (has_pw and "pwd" in low)
        or (is_assigned and _assigns_one(low, has_pass or has_pw))
    )


def _assigns_one(low: str, is_short_name: bool) -> bool:
    return (
        (is_short_name and _SHORT_NAMES.search(low) is not None)
        or "authorization" in low
        or ("curl" in low and " -" in low)
        or ("=" in low and ("sig=" in low or "cookie" in low))
    )


def may_hold_secrets(data: str) -> bool:
    """False if nothing would be taken out of what compact JSON holds; True if it is worth a look.

    Each text in it is looked at once, however often it stands there, and nothing is read into
    objects: of most results that is all there is to do.

    >>> may_hold_secrets('{"max_tokens":9,"said":"hello"}'), may_hold_secrets('{"password":"x"}')
    (False, True)
    """
    if "\\" in data:
        # Signs that stand nowhere in JSON, in place of what would be taken for the end of a text.
        data = data.replace("\\\\", _BACKSLASH).replace('\\"', _QUOTE)
    parts = data.split('"')
    texts = parts[1::2]
    names = {text for text, after in zip(texts, parts[2::2], strict=True) if after[:1] == ":"}
    if any(says_secret(_read(name)) for name in names):
        return True
    # An escape is longer than what it stands for.
    long = {text for text in texts if len(text) >= _SHORTEST}
    return any(_is_worth_it(_read(text)) for text in long)


def _read(said: str) -> str:
    """A text without its escapes."""
    if not ("\\" in said or _BACKSLASH in said or _QUOTE in said):
        return said
    said = said.replace(_BACKSLASH, "\\\\").replace(_QUOTE, '\\"')
    return msgspec.json.decode(f'"{said}"', type=str)


def _is_worth_it(text: str) -> bool:
    return may_hold_secret(text) and not (len(text) <= _SHORT and _is_clean(text))


def marker(kind: str, *, of: str = "secret") -> str:
    """What stands in the place of what was found.

    >>> marker("github_token")
    '[secret: github token]'
    """
    return f"[{of}: {kind.replace('_', ' ')}]"


class Redaction:
    """Takes secrets, and if asked personal data too, out of plain data; `counts` them by kind.

    >>> redaction = Redaction()
    >>> redaction.text("The key is AKIA" + "Z7QW2MKX5RTB6PLN.")
    'The key is [secret: aws access key].'
    >>> redaction.value({"api_key": "abc", "max_tokens": 9}, by_name=True)
    {'api_key': '[secret: assigned secret]', 'max_tokens': 9}
    >>> dict(redaction.counts)
    {'aws access key': 1, 'assigned secret': 1}
    """

    def __init__(self, *, personal: bool = False) -> None:
        self.personal = personal
        self.counts: Counter[str] = Counter()

    def may_find(self, text: str) -> bool:
        """False if there is certainly nothing to take out of a text."""
        return self.personal or may_hold_secret(text)

    def text(self, text: str) -> str:
        """A text without what was found in it; the same text if that is nothing."""
        if _is_worth_it(text):
            text = self._without(text, _secrets_in(text), "secret")
        if self.personal:
            text = self._without(text, _personal_in(text), "personal")
        return text

    def value(self, value: Any, *, by_name: bool = False) -> Any:
        """Plain data without what was found in it; the same object if that is nothing.

        `by_name` takes out whatever stands under a name that says it is secret.
        """
        if isinstance(value, str):
            return self.text(value)
        if value is None:
            return None
        if isinstance(value, dict | Mapping):
            return self._mapping(value, by_name)
        if isinstance(value, list | tuple):
            return _same(value, [self.value(part, by_name=by_name) for part in value])
        return value

    def _mapping(self, values: Mapping[Any, Any], by_name: bool) -> Mapping[Any, Any]:
        kept: dict[Any, Any] = {}
        changed = False
        for key, value in values.items():
            name = self._key(key, kept)
            kept[name] = now = self._named(key, value, by_name)
            changed = changed or name is not key or now is not value
        return kept if changed else values

    def _key(self, key: Any, taken: Mapping[Any, Any]) -> Any:
        """A key without a secret in it, told from others that became the same."""
        if not isinstance(key, str) or (len(key) < _SHORTEST_KEY and not self.personal):
            return key
        name = free = self.text(key)
        number = 2
        while free is not key and free in taken:
            free, number = f"{name} {number}", number + 1
        return free

    def _named(self, key: Any, value: Any, by_name: bool) -> Any:
        """The value of a key, which may say what it is."""
        if not isinstance(key, str) or not says_secret(key):
            return self.value(value, by_name=by_name)
        if by_name:
            return self._all_of(value)
        return self._under(key, self.value(value))

    def _under(self, name: str, value: Any) -> Any:
        """A value somewhere below a secret name: taken out if it would be, were it right there."""
        if isinstance(value, str):
            found = _secrets_in(f'{name}="{value}"')
            return self._marked(found[0].kind, "secret") if found else value
        if isinstance(value, Mapping):
            parts = {
                key: value[key] if tells_about(str(key)) else self._under(name, value[key]) for key in value
            }
            return parts if any(parts[key] is not value[key] for key in value) else value
        if isinstance(value, list | tuple):
            return _same(value, [self._under(name, part) for part in value])
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if is_number and value >= _LEAST_NUMBER and says_password(name):
            return self._marked("password", "secret")
        return value

    def _all_of(self, value: Any) -> Any:
        """A value under a secret name: nothing of it stays but that it was there."""
        if isinstance(value, Mapping):
            return {key: self._all_of(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [self._all_of(part) for part in value]
        if value is None or isinstance(value, bool) or value == "" or _is_marker(value):
            return value
        return self._marked("assigned_secret", "secret")

    def _without(self, text: str, found: Iterable[Finding], of: str) -> str:
        pieces, done = [], 0
        for one in found:
            pieces += [text[done : one.start], self._marked(one.kind, of)]
            done = one.end
        return "".join([*pieces, text[done:]]) if pieces else text

    def _marked(self, kind: str, of: str) -> str:
        self.counts[kind.replace("_", " ")] += 1
        return marker(kind, of=of)


def _is_marker(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("[secret: ") and value.endswith("]")


def _same(before: list[Any] | tuple[Any, ...], parts: list[Any]) -> Any:
    """The parts as what they were before; the same object if none is another."""
    changed = any(new is not old for new, old in zip(parts, before, strict=True))
    return type(before)(parts) if changed else before


def _personal_in(text: str) -> list[Finding]:
    from proctor.core.redaction.pii import find_pii

    if len(text) <= _PIECE + _OVERLAP:
        return find_pii(text)
    found = []
    for place in range(0, len(text), _PIECE):
        first = max(0, place - _OVERLAP)
        for one in find_pii(text[first : place + _PIECE + _OVERLAP]):
            start, end = one.start + first, one.end + first
            if place <= start < place + _PIECE:
                found.append(msgspec.structs.replace(one, start=start, end=end))
    return apart(found)


@functools.lru_cache(maxsize=4096)
def _is_clean(text: str) -> bool:
    """True if nothing is found in a text; it is kept with the answer, so it is a short one."""
    return not _secrets_in(text)


def _secrets_in(text: str) -> list[Finding]:
    # Its patterns take a while to compile, and most runs never need them.
    from proctor.core.redaction.secrets import find_secrets

    return find_secrets(text)
