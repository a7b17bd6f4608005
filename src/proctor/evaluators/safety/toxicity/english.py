"""Whether a text is English, as far as methods that know only English words must know it."""

from __future__ import annotations

import functools
import re
import unicodedata

from proctor.evaluators.safety.counterfactual import neutral_words
from proctor.evaluators.safety.toxicity.model import has_words, model
from proctor.evaluators.wording import english

# Fewer words may be anything, and what is mostly written like names may be names.
_FEWEST_WORDS, _FEWEST_SMALL = 4, 0.5
# Words of two letters that do no grammatical work are as often those of other languages.
_SHORT = 2
# Of an English text nearly all words are known, and a quarter or more do grammatical work; in other
# languages some look like English words.
_KNOWN, _FUNCTION = 0.5, 0.15
# Words of other languages too, so they show nothing.
_SHARED = frozenset({"am", "an", "as", "do", "he", "im", "in", "me", "no", "on", "or", "so", "was", "will"})
_WORD = re.compile(r"[^\W\d_]{2,}")
# What is no language of people's: code between fences, addresses.
_NO_LANGUAGE = re.compile(r"```.*?(?:```|\Z)|\S{1,64}(?:://|@)\S+", re.DOTALL)


def is_foreign(text: str) -> bool:
    """True if hardly any word of a text is English; of fewer than four words nothing is said.

    >>> is_foreign("Das Wetter ist heute schön."), is_foreign("Worthless scumbag.")
    (True, False)
    """
    prose = _NO_LANGUAGE.sub(" ", text)
    if not has_words(prose):
        return any(map(str.isalpha, prose))
    written = _WORD.findall(_plain(prose))
    small = sum(not word.istitle() for word in written)
    if len(written) < _FEWEST_WORDS or small < _FEWEST_SMALL * len(written):
        return False
    words = [word.lower() for word in written]
    known = sum(word in known_words() for word in words) / len(words)
    only_english = function_words() - _SHARED
    function = sum(word in only_english for word in words) / len(words)
    return known < _KNOWN and function < _FUNCTION


def _plain(text: str) -> str:
    """Letters of special shape as plain ones, without accents and without what is not seen."""
    if text.isascii():
        return text
    apart = unicodedata.normalize("NFKD", text)
    return "".join(one for one in apart if unicodedata.category(one) not in ("Mn", "Cf"))


@functools.cache
def function_words() -> frozenset[str]:
    """English words that do grammatical work."""
    return english().function | english().speaker | english().negation


@functools.cache
def known_words() -> frozenset[str]:
    """The words of the model, of groups of people, and those that do grammatical work."""
    longer = (word for word in (*model().words, *neutral_words()) if len(word) > _SHORT)
    return function_words().union(longer)
