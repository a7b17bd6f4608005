"""Words that exclude each other: months, units, directions, opposites."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from proctor.core import resources
from proctor.evaluators.wording import Word, related


class _Groups(NamedTuple):
    """The groups of each word, and the words that count only beside a number."""

    of: dict[str, tuple[frozenset[str], ...]]
    units: frozenset[str]
    spelt: dict[str, str]


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
    spelt = {one: unit for unit, line in written["spellings"].items() for one in line.split()}
    return _Groups(found, units, spelt)


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
    return found + _measured_otherwise(said, there)


def _members(some: Sequence[Word]) -> dict[str, Word]:
    """The members of groups among some words, in their basic form."""
    found: dict[str, Word] = {}
    for place, word in enumerate(some):
        beside = some[max(0, place - 1) : place + 2]
        follows = place > 0 and some[place - 1].kind == "number"
        member = (_unit(word) if follows else "") or _member(word)
        if member not in _groups().of:
            continue
        is_measured = any(one.kind == "number" and one is not word for one in beside)
        if member not in _groups().units or is_measured:
            found.setdefault(member, word)
    return found


def _measured_otherwise(said: Sequence[Word], there: Sequence[Word]) -> list[tuple[Word, Word]]:
    """Units of a sentence whose number has only other units, or another sign, in a context.

    >>> from proctor.evaluators.wording import words
    >>> said, there = words("It is 120 km long"), words("It is 120 m long, the road 3 km")
    >>> [(word.text, other.text) for word, other in _measured_otherwise(said, there)]
    [('km', 'm')]
    """
    theirs: dict[str, dict[str, Word]] = {}
    for number, unit, word in _measures(there):
        theirs.setdefault(number, {})[unit] = word
    found = []
    for number, unit, word in _measures(said):
        units = theirs.get(number, {})
        others = [units[other] for other in units if _exclude(unit, other)]
        if others and unit not in units:
            found.append((word, others[0]))
            continue
        opposite = theirs.get(number.removeprefix("-") if number[0] == "-" else f"-{number}", {})
        if unit in opposite and unit not in units:
            found.append((word, opposite[unit]))
    return found


def same_measures(said: Sequence[Word], there: Sequence[Word]) -> set[Word]:
    """Units of a sentence that a context has after the same number, however they are written.

    >>> from proctor.evaluators.wording import words
    >>> [word.text for word in same_measures(words("120 m long"), words("120 metres long"))]
    ['m']
    """
    known = {(number, unit) for number, unit, _ in _measures(there) if unit}
    return {word for number, unit, word in _measures(said) if (number, unit) in known}


def _measures(some: Sequence[Word]) -> Iterator[tuple[str, str, Word]]:
    """Numbers with their signs, and the unit that follows in its basic form; empty if none does."""
    for number, word in itertools.zip_longest(some, some[1:]):
        if number.kind == "number" and number.text.lstrip("-")[:1].isdigit():
            unit = _unit(word) if word else ""
            yield number.text, unit, word if unit else number


def _unit(word: Word) -> str:
    """The unit that a word beside a number stands for; empty if it is none."""
    text = word.text.lower()
    text = _groups().spelt.get(text) or _groups().spelt.get(text.removesuffix("s")) or text
    member = text if text in _groups().of else _singular(text)
    if member in _groups().units:
        return member
    return "degree" if text in ("degree", "degrees", "°c", "°f") else ""


def _exclude(one: str, other: str) -> bool:
    return one != other and any(other in group for group in _groups().of.get(one, ()))


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
