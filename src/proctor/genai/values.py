"""Values that stand in attributes: JSON in texts, arguments of tools, nesting that has no end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

# Nobody nests messages deeper; what is deeper is kept as it is and not looked into.
DEEPEST = 100
# How much space may stand before JSON.
_SPACE = 40


def decoded(given: Any) -> Any:
    """What an attribute holds: structure out of JSON where it is some, else as it is.

    >>> decoded('{"city": "Paris"}'), decoded('"Paris"'), decoded("42"), decoded("[draft]")
    ({'city': 'Paris'}, 'Paris', '42', '[draft]')
    """
    if isinstance(given, str) and given[:_SPACE].lstrip()[:1] in ("{", "[", '"'):
        try:
            found = msgspec.json.decode(given)
        except (msgspec.DecodeError, RecursionError):
            return given
        could_be = given.count("[") + given.count("{")
        return given if could_be > DEEPEST and is_too_deep(found) else found
    return given


def is_too_deep(value: Any) -> bool:
    """True if the lists and mappings of JSON stand in each other more often than anybody means.

    >>> is_too_deep([[1], {"a": [2]}])
    False
    """
    level = _within([value])
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _within(outer)]
        if not level:
            return False
    return True


def _within(value: dict[str, Any] | list[Any]) -> list[Any]:
    inside = value.values() if isinstance(value, dict) else value
    return [item for item in inside if isinstance(item, dict | list)]


def arguments_in(given: Any) -> dict[str, Any]:
    """The arguments of a tool as a mapping; what is none stands under an empty name.

    >>> arguments_in('{"q": "Paris"}'), arguments_in("Paris"), arguments_in(None)
    ({'q': 'Paris'}, {'': 'Paris'}, {})
    """
    found = decoded(given)
    if isinstance(found, Mapping):
        return {str(key): plain(value) for key, value in found.items()}
    return {} if found is None or found == "" else {"": plain(found)}


def plain(value: Any) -> Any:
    """The same without the SDK's own kinds of mappings and sequences.

    >>> plain(({"a": (1,)},))
    [{'a': [1]}]
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def text_or_none(given: Any) -> str | None:
    """An id or a name as text; None if there is none.

    >>> text_or_none(7), text_or_none(""), text_or_none(None)
    ('7', None, None)
    """
    return None if given is None or given == "" else str(given)
