"""Denial: what a sentence denies, and whether a passage denies it too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proctor.evaluators.wording import Word, english, related

_REACHES = 5
_MOST_DENIED = 2
_MEANING = ("content", "name", "number")


class Denial(NamedTuple):
    """A negation, and the words that it denies."""

    word: Word
    of: tuple[Word, ...]


def denials(sentence: Sequence[Word]) -> list[Denial]:
    """Every negation in a sentence with the words it most likely denies.

    These are the next one or two that have a meaning, up to a little word; where there are none,
    the last one before it.

    >>> from proctor.evaluators.wording import words
    >>> [found] = denials(words("Bergen is not the capital of Norway"))
    >>> [word.text for word in found.of]
    ['capital']
    """
    found = []
    for place, word in enumerate(sentence):
        if word.kind != "negation":
            continue
        after = sentence[place + 1 : place + 1 + _REACHES]
        if after and _is_none(word, after[0]):
            continue
        before = [one for one in sentence[:place] if one.kind in _MEANING][-1:]
        found.append(Denial(word, tuple(_denied(after) or before)))
    return found


def agrees(denial: Denial, others: Iterable[Denial]) -> bool:
    """True if one of the others denies one of the same words."""
    return any(_same(mine, theirs) for other in others for mine in denial.of for theirs in other.of)


def states(passage: Sequence[Word], denial: Denial) -> list[Word]:
    """The words of a denial that a passage has, without a word before them that may deny them."""
    return [
        mine
        for mine in denial.of
        if any(
            _same(mine, theirs) and not _may_deny(passage[max(0, place - _REACHES) : place])
            for place, theirs in enumerate(passage)
        )
    ]


def left_out(sentence: Sequence[Word], passage: Sequence[Word]) -> list[Word]:
    """The words that a sentence states while a passage denies them, and does not state them too."""
    theirs = denials(passage)
    if not theirs or _may_deny(sentence):
        return []
    denied = [word for one in theirs for word in one.of]
    mine = denials(sentence)
    if any(agrees(one, theirs) for one in mine):
        return []
    # What is stated in one half of the passage may be denied in the other.
    once = [word for word in denied if sum(_same(word, other) for other in passage) == 1]
    return [
        word
        for word in sentence
        if word.kind in _MEANING and any(_same(word, other) for other in once)
    ]


def _may_deny(some: Iterable[Word]) -> bool:
    return any(word.text in english().denying for word in some)


def _is_none(word: Word, after: Word) -> bool:
    """True for "not only", which denies nothing, and for "No. 5"."""
    return after.text in english().not_a_negation_before or (
        word.text == "no" and after.kind == "number"
    )


def _denied(after: Sequence[Word]) -> list[Word]:
    found: list[Word] = []
    for word in after:
        if word.kind in _MEANING:
            found.append(word)
        elif found and word.text not in english().articles:
            break
    return found[:_MOST_DENIED]


def _same(one: Word, other: Word) -> bool:
    return other.kind in _MEANING and related(one.text, other.text)
