"""Find the words that negations deny, and whether two texts agree on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proctor.evaluators.tokenizer import Word, are_related, load_english

_NEGATION_REACH = 5
_MAX_DENIED_WORDS = 2
_MEANINGFUL = ("content", "name", "number")


class Denial(NamedTuple):
    """A negation and the words that it denies."""

    word: Word
    denied: tuple[Word, ...]


def find_denials(sentence: Sequence[Word]) -> list[Denial]:
    """Return every negation in a sentence with the words it most likely denies.

    These are the next one or two meaningful words before a function word, or else the last
    meaningful word before the negation.
    """
    denials = []
    for index, word in enumerate(sentence):
        if word.kind != "negation":
            continue
        following = sentence[index + 1 : index + 1 + _NEGATION_REACH]
        # "not only" and "No. 5" deny nothing.
        if following and (
            following[0].text in load_english().not_a_negation_before
            or (word.text == "no" and following[0].kind == "number")
        ):
            continue
        preceding = [other for other in sentence[:index] if other.kind in _MEANINGFUL][-1:]
        denials.append(Denial(word, tuple(_find_denied_after(following) or preceding)))
    return denials


def _find_denied_after(following: Sequence[Word]) -> list[Word]:
    denied: list[Word] = []
    for word in following:
        if word.kind in _MEANINGFUL:
            denied.append(word)
        elif denied and word.text not in load_english().articles:
            break
    return denied[:_MAX_DENIED_WORDS]


def is_confirmed(denial: Denial, others: Iterable[Denial]) -> bool:
    """Return True if one of the others denies the same word."""
    return any(
        _is_same_word(word, other_word) for other in others for word in denial.denied for other_word in other.denied
    )


def find_stated_words(passage: Sequence[Word], denial: Denial) -> list[Word]:
    """Return the denied words that a passage contains without denying them."""
    return [
        word
        for word in denial.denied
        if any(
            _is_same_word(word, other) and not _may_deny(passage[max(0, index - _NEGATION_REACH) : index])
            for index, other in enumerate(passage)
        )
    ]


def find_denied_words(sentence: Sequence[Word], passage: Sequence[Word]) -> list[Word]:
    """Return the words that a sentence states while a passage only denies them."""
    denials = find_denials(passage)
    if not denials or _may_deny(sentence):
        return []
    if any(is_confirmed(denial, denials) for denial in find_denials(sentence)):
        return []
    denied = [word for denial in denials for word in denial.denied]
    # A word that occurs twice may be stated in one half of the passage and denied in the other.
    unique = [word for word in denied if sum(_is_same_word(word, other) for other in passage) == 1]
    return [
        word for word in sentence if word.kind in _MEANINGFUL and any(_is_same_word(word, other) for other in unique)
    ]


def _may_deny(words: Iterable[Word]) -> bool:
    return any(word.text in load_english().denial_verbs for word in words)


def _is_same_word(word: Word, other: Word) -> bool:
    return other.kind in _MEANINGFUL and are_related(word.text, other.text)


def find_polarity_changes(words: Sequence[Word], passages: Sequence[Sequence[Word]]) -> list[str]:
    """Describe what a sentence denies although passages state it, and what it states although a passage denies it."""
    denials = find_denials(words)
    changes = []
    for passage in passages:
        passage_denials = find_denials(passage)
        if _agree(words, passage_denials):
            continue
        for denial in denials:
            if not is_confirmed(denial, passage_denials):
                changes += [f"{denial.word.original} {word.original}" for word in find_stated_words(passage, denial)]
        changes += [f"(not) {word.original}" for word in find_denied_words(words, passage)]
    # The verb may have another form: "did not freeze", "froze".
    is_denied = any(map(find_denials, passages)) or any(map(_may_deny, passages))
    return changes or ([denials[0].word.original] if denials and passages and not is_denied else [])


def _agree(words: Sequence[Word], passage_denials: Sequence[Denial]) -> bool:
    """Return True if what a passage denies follows a negation of the sentence too."""
    negations = [index for index, word in enumerate(words) if word.kind == "negation"]
    scope = [word for index in negations for word in words[index + 1 : index + 2 + _NEGATION_REACH]]
    denied = [word for denial in passage_denials for word in denial.denied]
    return any(_is_same_word(word, other) for word in denied for other in scope)
