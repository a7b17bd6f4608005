"""Whether a text of one to three words is English: too few words for the shares of longer texts."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from proctor import resources
from proctor.evaluators.toxicity.english import known_words

UNKNOWN_WORDS = "words of which not one is known to be English"
# Endings of forms, and endings that only words of English, Latin and Greek descent have.
_FORMS = ("'s", "ing", "ers", "er", "est", "ed", "es", "ly", "s")
_ENGLISH_ENDINGS = (
    "tion", "tions", "sion", "ology", "ologist", "ness", "ful", "less", "able", "ship", "hood",
    "ward", "wards", "wise", "ism", "isms", "ists", "ize", "ized", "izing", "ise", "ised", "ings",
    "ously", "ous", "ically", "ility", "ivity", "ography", "graph", "phobia", "osis", "esis",
    "itis", "ium", "oxide", "phone", "scope", "sphere", "berry", "fish", "bird", "wood", "work",
    "works", "house", "board", "book", "light", "th",
)  # fmt: skip
_FEWEST_LETTERS = 6
# So few unknown words are no evidence of another language.
_FEWEST_UNKNOWN = 3
# Codes, names of files and of variables: GPT-4o, user_id, e.g., src/main.py.
_CODE = re.compile(r"\d|_|\w[./\\@#:+=]\w|^[#@$/.-]")


class ShortTexts(NamedTuple):
    """The words of `short_texts.yaml`."""

    languages: dict[str, str]
    shared: frozenset[str]
    english: frozenset[str]
    abuse: frozenset[str]


def short_text_language(text: str, words: Sequence[str]) -> str:
    """What a text of few words in Latin letters is written in; "" for English, names and codes.

    >>> short_text_language("Guten Tag", ["Guten", "Tag"])
    'German'
    >>> [short_text_language(name, name.split()) for name in ("Rio de Janeiro", "Blue whale")]
    ['', '']
    """
    small = [word.lower().replace("’", "'") for word in words]
    everyday = {word: _lists().languages[word] for word in small if word in _lists().languages}
    if not everyday and all(map(str.istitle, _content(words))):
        return ""
    shared = _lists().shared.union(everyday) if everyday else frozenset[str]()
    if any(is_english_word(word) for word in small if word not in shared):
        return ""
    if everyday:
        return next(iter(everyday.values()))
    is_named = any(not word.islower() and not word.istitle() for word in words)
    # A word or two that no list has are rare English words ("basalt") as often as foreign ones.
    is_rare = len(words) < _FEWEST_UNKNOWN
    return "" if is_rare or is_named or _CODE.search(text) else UNKNOWN_WORDS


def _content(words: Sequence[str]) -> list[str]:
    """The words that a name writes with a capital: all but particles ("de", "van", "of")."""
    capital = [word for word in words if word.istitle() or len(word) > 3]
    return capital or list(words)


def is_english_word(word: str) -> bool:
    """True if a word in small letters is known in English, or looks like a form of such a word.

    >>> is_english_word("shipped"), is_english_word("lyon")
    (True, False)
    """
    word = _without_accents(word)
    if _is_known(word):
        return True
    for ending in _FORMS:
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2:
            # Doubled letters and lost ones: "shipped", "hoping".
            forms = (stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem)
            if any(map(_is_known, forms)):
                return True
    return len(word) >= _FEWEST_LETTERS and word.endswith(_ENGLISH_ENDINGS)


def _is_known(word: str) -> bool:
    return word in known_words() or word in _lists().english


@functools.cache
def _lists() -> ShortTexts:
    import yaml

    listed = yaml.safe_load(resources.text("evaluators", "short_texts.yaml"))
    languages = {
        word: language for language, words in listed["everyday"].items() for word in words.split()
    }
    english = frozenset(map(_without_accents, listed["english"].split()))
    shared, abuse = (frozenset(listed[name].split()) for name in ("shared", "abuse"))
    return ShortTexts(languages, shared, english, abuse)


def foreign_abuse(words: Iterable[str]) -> str:
    """The first word of abuse in another language among some words; "" if there is none.

    >>> foreign_abuse(["You", "are", "a", "Hurensohn"])
    'Hurensohn'
    """
    return next((word for word in words if word.lower() in _lists().abuse), "")


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in apart if not unicodedata.combining(letter))
