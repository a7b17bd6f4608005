"""Words and terms: what of a text is compared with a question."""

from __future__ import annotations

import re

ENDINGS = {"ies": "y", "'s": "", "ing": "", "ed": "", "es": "", "s": ""}


def words(text: str) -> list[str]:
    """All words and numbers of a text, in small letters.

    >>> words("Halley's Comet, 1986")
    ["halley's", 'comet', '1986']
    """
    return re.findall(r"[a-z]+(?:'[a-z]+)?|\d+(?:[.,]\d+)*", text.lower())


STOP_WORDS = frozenset(
    words(
        "a about after all an and are as at be been by can could did do does for from had has have "
        "he her his how in into is it its many much of on one only or our so than that the their "
        "them there they this to us was we were what when where which who whom whose why will with"
    )
)


def terms(text: str) -> list[str]:
    """The words that tell what a text is about, each brought to its stem.

    >>> terms("Who discovered the moons?")
    ['discover', 'moon']
    """
    return [stem(word) for word in words(text) if word not in STOP_WORDS]


def stem(word: str) -> str:
    """A word without its common endings, so that its forms meet.

    >>> [stem(word) for word in ("name", "names", "named", "bodies", "body", "mass")]
    ['nam', 'nam', 'nam', 'body', 'body', 'mass']
    """
    if word.endswith("ss"):
        return word
    for ending, instead in ENDINGS.items():
        if word.endswith(ending) and len(word) >= len(ending) + 3:
            return word.removesuffix(ending) + instead
    return word.removesuffix("e") if len(word) > 3 else word
