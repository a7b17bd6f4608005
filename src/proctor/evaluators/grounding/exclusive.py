"""Words that exclude each other: months, units, directions, opposites."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from proctor import resources
from proctor.evaluators.wording import Word, related


class _Groups(NamedTuple):
    """The groups of each word, and the words that count only beside a number."""

    of: dict[str, tuple[frozenset[str], ...]]
    units: frozenset[str]


@functools.cache
def _groups() -> _Groups:
    import yaml

    written = yaml.safe_load(resources.text("evaluators", "grounding", "exclusive.yaml"))
    found: dict[str, tuple[frozenset[str], ...]] = {}
    for line in (*written["anywhere"], *written["beside_a_number"]):
        group = frozenset(line.split())
        for word in group:
            found[word] = (*found.get(word, ()), group)
    units = frozenset(word for line in written["beside_a_number"] for word in line.split())
    return _Groups(found, units)


def replaced_words(said: Sequence[Word], there: Sequence[Word]) -> list[tuple[Word, Word]]:
    """Words of a sentence that a context has another word of their group for, with that word.

    >>> from proctor.evaluators.wording import words
    >>> [(w.text, o.text) for w, o in replaced_words(words("turn right"), words("turn left"))]
    [('right', 'left')]
    >>> replaced_words(words("left or right"), words("turn left"))
    []
    """
    mine, theirs = _members(said), _members(there)
    found = []
    for member, word in mine.items():
        if member in theirs:
            continue
        for group in _groups().of[member]:
            others = [other for other in group if other in theirs]
            # Who names the other word too compares the two.
            if others and not any(other in mine for other in others):
                found.append((word, theirs[others[0]]))
                break
    return found


def _members(some: Sequence[Word]) -> dict[str, Word]:
    """The members of groups among some words, in their basic form."""
    found: dict[str, Word] = {}
    for place, word in enumerate(some):
        member = _member(word)
        if not member:
            continue
        beside = some[max(0, place - 1) : place + 2]
        is_measured = any(one.kind == "number" and one is not word for one in beside)
        if member not in _groups().units or is_measured:
            found.setdefault(member, word)
    return found


def _member(word: Word) -> str:
    text = word.text.lower()
    if text == "may" and word.kind != "name":
        return ""
    return text if text in _groups().of else _singular(text)


@functools.lru_cache(maxsize=65536)
def _singular(text: str) -> str:
    if text.endswith("s") and text[:-1] in _groups().of and related(text, text[:-1]):
        return text[:-1]
    return ""
