"""Keys that a JSON object has twice: most parsers keep the last value and drop the others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.datasets.faults import Fault, shortened

FIX = "keep one of the values, or rename one of the keys"
_encode = msgspec.json.Encoder().encode


def may_repeat_keys(line: bytes, value: Any) -> bool:
    """True if a JSON text may have keys that are not in the value decoded from it.

    Each key has one colon, and colons inside texts are in the value as well: so the text has more
    colons than the encoded value if a key was dropped, and only rarely for another reason.

    >>> may_repeat_keys(b'{"id": "1", "input": "at 10:30"}', {"id": "1", "input": "at 10:30"})
    False
    >>> may_repeat_keys(b'{"id": "1", "input": "a", "input": "b"}', {"id": "1", "input": "b"})
    True
    """
    if b"\\u003" in line:
        # An escaped colon is one in the value only.
        return True
    try:
        return line.count(b":") > _encode(value).count(b":")
    except (ValueError, OverflowError, RecursionError):
        return True


def find_repeated_keys(text: str) -> list[Fault]:
    """A fault for every key that one object of a JSON text has twice.

    >>> [fault.what for fault in find_repeated_keys('{"a": 1, "b": {"c": 1, "c": 2}}')]
    ["the key 'c' is repeated in one object"]
    """
    repeated: dict[str, None] = {}

    def look(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen:
                repeated[key] = None
            seen[key] = value
        return seen

    json.loads(text, object_pairs_hook=look)
    return [Fault("", f"the key {shortened(repr(key))} is repeated in one object", FIX) for key in repeated]
