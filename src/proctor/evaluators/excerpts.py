"""Excerpts: the words of a long text that look most like a short one."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from proctor.evaluators.wording import english, words

# A reference of more words is compared as a whole: an excerpt of that size is a text of its own.
LONGEST_REFERENCE = 12
# Texts that have at least so many times the words of the reference have excerpts.
LONGER_BY = 1.5
# What comes after so many characters of a text is not looked at.
MOST_CHARACTERS = 200_000
# How many words fewer or more than the reference an excerpt may have.
_FEWER, _MORE = 1, 2
_RUNS = (2, 3, 4)
# A negation so many words before an excerpt, in the same clause, denies it.
_NEGATION_REACHES = 4
_CLAUSE_END = re.compile(r"[.!?;:,\n]+(?=\s|\Z)")
_ENDS_NEGATION = frozenset({"but", "only"})


class Excerpt(NamedTuple):
    """Some words of a text, which reference they look like, and how much, by their letters."""

    alike: float
    text: str
    reference: int


def excerpts(text: str, references: Iterable[tuple[int, str]], most: int = 2) -> list[Excerpt]:
    """The excerpts of a text that look most like one of the references, each by its number.

    What a negation stands before ("not Paris") is no excerpt, unless the reference has one too.

    >>> excerpts("In 1813 it was written by Jane Austen.", [(0, "Jane Austin")])[0].text
    'jane austen'
    """
    there, negated = _words_and_negated(text)
    found = []
    for number, reference in references:
        wanted = [word.text for word in words(reference)]
        best = _best(there, wanted, frozenset() if _has_negation(wanted) else negated)
        if best[0] > 0:
            found.append(Excerpt(*best, number))
    return sorted(found, key=lambda one: -one.alike)[:most]


def is_negated(text: str, reference: str) -> bool:
    """True if a text has the words of a reference, each time behind a negation.

    >>> is_negated("It is certainly not Paris but Lyon.", "Paris")
    True
    >>> is_negated("It is not Lyon but Paris.", "Paris")
    False
    """
    there, negated = _words_and_negated(text)
    wanted = [word.text for word in words(reference)]
    if not negated or not wanted or _has_negation(wanted):
        return False
    size = len(wanted)
    starts = [
        start
        for start, word in enumerate(there)
        if word == wanted[0] and there[start : start + size] == wanted
    ]
    return bool(starts) and negated.issuperset(starts)


def _words_and_negated(text: str) -> tuple[list[str], frozenset[int]]:
    """The words of a text, and the places of those that a negation in their clause denies."""
    there: list[str] = []
    negated: set[int] = set()
    for clause in _CLAUSE_END.split(text[:MOST_CHARACTERS]):
        reaches = 0
        for word in words(clause):
            if word.text in _ENDS_NEGATION:
                reaches = 0
            if reaches:
                negated.add(len(there))
                reaches -= 1
            if word.kind == "negation":
                reaches = _NEGATION_REACHES
            there.append(word.text)
    return there, frozenset(negated)


def _has_negation(some: Iterable[str]) -> bool:
    return not english().negation.isdisjoint(some)


def has_excerpts(text: str, references: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Those of some references that are short beside a text.

    >>> has_excerpts("The capital of France is Paris.", [(0, "Paris"), (1, "France has Paris.")])
    [(0, 'Paris'), (1, 'France has Paris.')]
    """
    length = len(words(text[:MOST_CHARACTERS]))
    sized = [(len(words(reference)), number, reference) for number, reference in references]
    return [
        (number, reference)
        for size, number, reference in sized
        if 0 < size <= LONGEST_REFERENCE and length >= LONGER_BY * size
    ]


def _best(
    there: Sequence[str], wanted: Sequence[str], negated: frozenset[int]
) -> tuple[float, str]:
    """How much the best excerpt looks like the wanted words, and that excerpt."""
    letters = frozenset[str]().union(*map(_runs, wanted))
    best, chosen = 0.0, ""
    # The most promising first, so that the others need not be looked at.
    for bound, start, size in sorted(_windows(there, letters, len(wanted)), key=_promise):
        if bound <= best:
            break
        if start in negated:
            continue
        part = there[start : start + size]
        mine = frozenset[str]().union(*map(_runs, part))
        alike = len(mine & letters) / math.sqrt(len(mine) * len(letters))
        if alike > best:
            best, chosen = alike, " ".join(part)
    return best, chosen


def _windows(
    there: Sequence[str], letters: frozenset[str], wanted: int
) -> Iterator[tuple[float, int, int]]:
    """Where an excerpt may stand: how much it can look like the reference at most, start, size."""
    known = {word: len(_runs(word) & letters) for word in set(there)}
    shared = [known[word] for word in there]
    for size in range(max(1, wanted - _FEWER), wanted + _MORE + 1):
        for start in range(len(there) - size + 1):
            end = start + size
            # It begins and ends with something of the reference; else a shorter one is as good.
            if shared[start] and shared[end - 1]:
                most = min(len(letters), sum(shared[start:end]))
                yield math.sqrt(most / len(letters)), start, size


def _promise(window: tuple[float, int, int]) -> tuple[float, int, int]:
    bound, start, size = window
    return -bound, size, start


@functools.lru_cache(maxsize=65536)
def _runs(word: str) -> frozenset[str]:
    """The runs of letters in a word, its ends among them."""
    framed = f" {word} "
    return frozenset(
        framed[at : at + size] for size in _RUNS for at in range(len(framed) - size + 1)
    )
