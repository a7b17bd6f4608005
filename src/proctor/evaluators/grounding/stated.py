"""What a sentence states, without marks of citation, numbers of a list, and words of courtesy."""

from __future__ import annotations

import functools
import re

from proctor.evaluators.short_texts import is_english_word
from proctor.evaluators.wording import Word, english, folded, words

# [1], [2, 3], [4-6], [^1], 【1】, and small raised figures.
_CITED = re.compile(r"\[\^?[0-9]{1,3}(?:\s*[,;–-]\s*[0-9]{1,3})*\]|【[^】]*】|[⁰¹²³⁴-⁹]+")
_LIST_NUMBER = re.compile(r"^\W*\(?[0-9]{1,2}[.)]\s+(?=\S)")
_HEADING = re.compile(r"^\s*#")
# A courtesy is short, and does not go on to say something.
_LONGEST_COURTESY = 14
# "Yes, it is", "I do".
_SAYS_NOTHING = ("function", "speaker")
_SHORTEST_NAME = 3
_ORDINARY_END = re.compile(r"(?:(?<![suia])s|\w{3}(?:ing|ed|ly))\Z")
_GOES_ON = frozenset({"but", "that", "because", "however"})


def stated(sentence: str) -> list[Word]:
    """The words of a sentence that states something; none if it does not.

    >>> [word.text for word in stated("1. Sure! Oslo is old [2].")]
    ['oslo', 'is', 'old']
    >>> stated("Here is what I found:"), stated("I don't know.")
    ([], [])
    """
    bare = _LIST_NUMBER.sub("", _CITED.sub(" ", sentence))
    bare = _openings().sub("", bare)
    found = words(bare)
    if _is_courtesy(bare, found) or all(word.kind in _SAYS_NOTHING for word in found):
        return []
    if _HEADING.match(sentence) or sentence.isupper():
        # They have capitals where there are no names.
        return [word._replace(kind="content") if word.kind == "name" else word for word in found]
    return [word._replace(kind="name") if _is_name(word) else word for word in found]


def _is_name(word: Word) -> bool:
    """True for a capitalised word at the beginning that is no ordinary English word."""
    if word.kind != "content" or not word.written[0].isupper() or len(word.text) < _SHORTEST_NAME:
        return False
    if word.text in english().proper_names:
        return True
    # A rare word in the plural or with the ending of a verb is no name: "Felines", "Ferreting".
    return _ORDINARY_END.search(word.text) is None and not is_english_word(word.text)


def _is_courtesy(sentence: str, found: list[Word]) -> bool:
    if len(found) > _LONGEST_COURTESY or any(
        word.kind in ("name", "number") or word.text in _GOES_ON for word in found
    ):
        return False
    plain = folded(sentence).replace("’", "'").replace(" n't", "n't")
    start = " ".join([*re.findall(r"[^\W_]+", plain), ""])
    return any(start.startswith(f"{phrase} ") for phrase in english().courtesies)


@functools.cache
def _openings() -> re.Pattern[str]:
    """Words of courtesy before the first sign."""
    listed = "|".join(phrase.replace(" ", r"[\s'’]+") for phrase in english().openings)
    sign = r"(?:[,.!:;–—-]+\s*|$|(?=but\b))(?:but\b)?"
    return re.compile(rf"^\W*(?:(?:{listed})\s*{sign}\s*)+", re.IGNORECASE)
