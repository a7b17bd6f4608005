"""Opposites by prefix ("safe", "unsafe"), and numbers that lost their magnitude or their bound."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from proctor.core import resources
from proctor.evaluators.wording import Word, english, related

_MAGNITUDES = frozenset({"hundred", "thousand", "million", "billion", "trillion", "percent"})
_JOINS = frozenset({"and", "or", "to", "through"})
# A negation so many words before a word may deny it.
_REACHES = 4
_SHORTEST_BASE = 4
_MOST_FOUND = 20
_CURRENCY = re.compile(r"(?: (?:dollars|euros|pounds|yen|rupees|about|around|approximately))+\Z")
_UPPER = re.compile(
    r"(?<= )(?:up to|at most|(?:no|not) (?:more|greater|higher|longer|later|older) than"
    r"|(?<! no )(?<! not )(?:less|fewer|lower|smaller|shorter|younger) than|under|below"
    r"|(?:a )?maximum of)\Z"
)
_LOWER = re.compile(
    r"(?<= )(?:at least|(?:no|not) (?:less|fewer|lower|smaller|shorter|younger) than"
    r"|(?<! no )(?<! not )(?:more|greater|higher|longer|older|larger) than|over|above"
    r"|exceed(?:s|ed|ing)?|(?:a )?minimum of)\Z"
)
_LONGEST_BOUND = 5
# "In 2013, thousand of visitors came."
_YEAR = re.compile(r"1[5-9][0-9]{2}|20[0-9]{2}")


class _Prefixes(NamedTuple):
    """The words that a prefix turns into their opposite; no words stand for any word."""

    bases: dict[str, frozenset[str]]
    exceptions: frozenset[str]


def opposites(said: Sequence[Word], there: Sequence[Word]) -> list[tuple[Word, Word]]:
    """Words of a sentence of which a context has only the opposite by prefix, with that one.

    >>> from proctor.evaluators.wording import words
    >>> def found(said, there):
    ...     return [(w.text, o.text) for w, o in opposites(words(said), words(there))]
    >>> found("It is safe.", "It is unsafe."), found("It is not safe.", "It is unsafe.")
    ([('safe', 'unsafe')], [])
    """
    there_by_base = _by_base(there)
    known = {word.text for _, word in _plain_words(there)}
    found: list[tuple[Word, Word]] = []
    for place, word in _plain_words(said):
        if word.text in known or _is_denied(said, place) or len(found) == _MOST_FOUND:
            continue
        other = _opposite_of(word, there, there_by_base)
        if other is None:
            continue
        forms = (one.text for one in (*said, *there) if one.written not in (word.written, other.written))
        # Who has both words compares them.
        if not any(related(word.text, form) or related(other.text, form) for form in forms):
            found.append((word, other))
    return found


def _by_base(some: Sequence[Word]) -> dict[tuple[str, str], dict[str, tuple[int, Word]]]:
    """Words by prefix and the first letters of their base, each at its first place."""
    found: dict[tuple[str, str], dict[str, tuple[int, Word]]] = {}
    for place, word in _plain_words(some):
        for prefix in ("", *_prefixes().bases):
            base = word.text.removeprefix(prefix)
            if (base != word.text or not prefix) and len(base) >= _SHORTEST_BASE:
                bucket = found.setdefault((prefix, base[:_SHORTEST_BASE]), {})
                bucket.setdefault(word.text, (place, word))
    return found


def _opposite_of(
    word: Word, there: Sequence[Word], there_by_base: dict[tuple[str, str], dict[str, tuple[int, Word]]]
) -> Word | None:
    """The first word of a context that is the opposite of a word by prefix, and not denied."""
    for prefix in _prefixes().bases:
        keys = [(prefix, word.text[:_SHORTEST_BASE])]
        if word.text.startswith(prefix):
            keys.append(("", word.text.removeprefix(prefix)[:_SHORTEST_BASE]))
        for key in keys:
            for place, other in there_by_base.get(key, {}).values():
                if _are_opposite(word.text, other.text) and not _is_denied(there, place):
                    return other
    return None


def changed_measures(said: Sequence[Word], there: Sequence[Word]) -> list[tuple[str, str]]:
    """Numbers without the magnitude, or with the opposite bound, that they have in a context.

    >>> from proctor.evaluators.wording import words
    >>> changed_measures(words("It cost 5 dollars."), words("It cost 5 million dollars."))
    [('5', '5 million')]
    >>> changed_measures(words("It takes at least 3 days."), words("It takes up to 3 days."))
    [('at least 3', 'up to 3')]
    """
    theirs: dict[str, list[_Measure]] = {}
    for measure in _measures(there):
        theirs.setdefault(measure.number, []).append(measure)
    found = []
    for measure in _measures(said):
        others = theirs.get(measure.number, [])
        if not others:
            continue
        if not measure.magnitude and all(other.magnitude for other in others):
            found.append((measure.number, f"{measure.number} {others[0].magnitude}"))
        elif measure.bound and all(
            other.bound and other.is_upper is not measure.is_upper for other in others
        ):
            found.append((f"{measure.bound} {measure.number}", f"{others[0].bound} {measure.number}"))
    return found


class _Measure(NamedTuple):
    number: str
    magnitude: str
    bound: str
    is_upper: bool


def _measures(some: Sequence[Word]) -> Iterator[_Measure]:
    """Every number in digits or words, with its magnitude and what bounds it."""
    for place, word in enumerate(some):
        if word.kind != "number" or not word.text.lstrip("-")[:1].isdigit():
            continue
        before = "".join(f" {one.text}" for one in some[max(0, place - _LONGEST_BOUND) : place])
        before = _CURRENCY.sub("", before)
        upper, lower = _UPPER.search(before), _LOWER.search(before)
        bound = upper or lower
        yield _Measure(
            word.text, _magnitude(some, place), bound[0].strip() if bound else "", upper is not None
        )


def _magnitude(some: Sequence[Word], place: int) -> str:
    """The magnitude behind a number; in "5 to 6 million" both numbers have it, a year has none."""
    if _YEAR.fullmatch(some[place].text):
        return ""
    behind = [word.text for word in some[place + 1 : place + 4]]
    if behind[:1] and behind[0] in _MAGNITUDES:
        return behind[0]
    is_joined = len(behind) == 3 and behind[0] in _JOINS and behind[1][:1].isdigit()
    if is_joined and behind[2] in _MAGNITUDES:
        return behind[2]
    # "5-6 million"
    if len(behind) > 1 and behind[0][:1].isdigit() and behind[1] in _MAGNITUDES:
        return behind[1]
    return ""


def _plain_words(some: Sequence[Word]) -> Iterator[tuple[int, Word]]:
    """The words that have a meaning, "non-toxic" as one word."""
    for place, word in enumerate(some):
        if word.kind in ("content", "name") and len(word.text) >= _SHORTEST_BASE:
            if place and some[place - 1].text == "non":
                yield place, word._replace(text=f"non{word.text}")
            else:
                yield place, word


def _is_denied(some: Sequence[Word], place: int) -> bool:
    before = some[max(0, place - _REACHES) : place]
    return any(word.kind == "negation" or word.text in english().denying for word in before)


@functools.lru_cache(maxsize=65536)
def _are_opposite(one: str, other: str) -> bool:
    long, short = (one, other) if len(one) > len(other) else (other, one)
    known = _prefixes()
    for prefix, bases in known.bases.items():
        base = long.removeprefix(prefix)
        if base == long or len(base) < _SHORTEST_BASE or base in known.exceptions:
            continue
        if (base == short or related(base, short)) and (
            not bases or any(base == listed or related(base, listed) for listed in bases)
        ):
            return True
    return False


@functools.cache
def _prefixes() -> _Prefixes:
    import yaml

    written = yaml.safe_load(resources.text("evaluators", "grounding", "opposites.yaml"))
    bases = {prefix: frozenset(words.split()) for prefix, words in written["prefixes"].items()}
    return _Prefixes(bases, frozenset(written["exceptions"].split()))
