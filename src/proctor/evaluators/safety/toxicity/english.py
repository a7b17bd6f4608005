"""Detect whether a text is English, for the methods that know only English words."""

from __future__ import annotations

import functools
import re
import unicodedata

from proctor.evaluators.safety.counterfactual import neutral_words
from proctor.evaluators.safety.toxicity.model import has_words, model
from proctor.evaluators.tokenizer import load_english

# Fewer words may be of any language, and a text that is mostly capitalized may consist of names.
_MIN_WORDS, _MIN_LOWER_CASE = 4, 0.5
# Two-letter content words occur as often in other languages.
_SHORT = 2
# Nearly all words of an English text are known, and at least a quarter are function words; in other
# languages some words look English.
_MIN_KNOWN, _MIN_FUNCTION = 0.5, 0.15
# Function words that other languages have too.
_SHARED = frozenset({"am", "an", "as", "do", "he", "im", "in", "me", "no", "on", "or", "so", "was", "will"})
_WORD = re.compile(r"[^\W\d_]{2,}")
# Code between fences, and addresses.
_NOT_PROSE = re.compile(r"```.*?(?:```|\Z)|\S{1,64}(?:://|@)\S+", re.DOTALL)


def is_foreign(text: str) -> bool:
    """Return whether hardly any word of a text is English; False for fewer than four words."""
    prose = _NOT_PROSE.sub(" ", text)
    if not has_words(prose):
        return any(map(str.isalpha, prose))
    words = _WORD.findall(_remove_accents(prose))
    lower_case = sum(not word.istitle() for word in words)
    if len(words) < _MIN_WORDS or lower_case < _MIN_LOWER_CASE * len(words):
        return False
    words = [word.lower() for word in words]
    known = sum(word in known_words() for word in words) / len(words)
    only_english = function_words() - _SHARED
    function = sum(word in only_english for word in words) / len(words)
    return known < _MIN_KNOWN and function < _MIN_FUNCTION


def _remove_accents(text: str) -> str:
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if unicodedata.category(char) not in ("Mn", "Cf"))


@functools.cache
def function_words() -> frozenset[str]:
    """Return the English function words."""
    return load_english().function | load_english().speaker | load_english().negation


@functools.cache
def known_words() -> frozenset[str]:
    """Return the words of the toxicity model, the words for groups of people, and the function words."""
    longer = (word for word in (*model().words, *neutral_words()) if len(word) > _SHORT)
    return function_words().union(longer)
