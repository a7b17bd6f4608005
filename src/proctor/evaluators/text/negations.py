"""Find a negation that only one of two similar texts has, in languages other than English.

English has more rules, in `differences.py`.
"""

from __future__ import annotations

import functools
import re
from collections import Counter

from proctor.evaluators.data_files import load_data
from proctor.evaluators.language import JUDGE_HINT, is_english_word, is_unspaced
from proctor.evaluators.readable_languages import ENGLISH, identify_language, is_plainly_english
from proctor.evaluators.tokenizer import fold_case

# With fewer words in common, two texts may say the same with and without a negation ("not safe", "dangerous").
MIN_SHARED_WORDS = 0.6
MAX_CHARACTERS = 5_000
MAX_SHORT_WORD = 3


def explain_other_negation(output: str, reference: str) -> str:
    """Return why two texts of nearly the same words may contradict each other; "" if nothing shows it.

    >>> explain_other_negation("Der Zug hält heute nicht in Ulm.", "Der Zug hält heute in Ulm.")[:47]
    "only one of the texts has the negation 'nicht',"
    """
    if max(len(output), len(reference)) > MAX_CHARACTERS or is_plainly_english(reference):
        return ""
    language = identify_language(reference)
    denials, other_denials = (_find_negations(text, language) for text in (output, reference))
    if denials.total() == other_denials.total():
        return ""
    words, other_words = (Counter(_split(text)) for text in (output, reference))
    if (words & other_words).total() < MIN_SHARED_WORDS * min(words.total(), other_words.total()):
        return ""
    extra = min((denials - other_denials) or (other_denials - denials))
    return (
        f"only one of the texts has the negation {extra!r}, and changed facts are found in English only; {JUDGE_HINT}"
    )


def _split(text: str) -> list[str]:
    """Return the words of a text, or its characters if it has no spaces."""
    return re.findall(r"\w" if is_unspaced(text) else r"[\w\u0900-\u097f]+", fold_case(text))


def _find_negations(text: str, language: str) -> Counter[str]:
    negations = _load_negations(language)
    # Korean negations are parts of words.
    if is_unspaced(text) or language == "ko":
        longest_first = sorted(negations, key=len, reverse=True)
        return Counter(re.findall("|".join(map(re.escape, longest_first)), text))
    return Counter(word for word in _split(text) if word in negations)


@functools.cache
def _load_negations(language: str) -> frozenset[str]:
    """Return the words of negation of a language; those of all languages if it is not listed."""
    words = load_data("text", "negations.yaml")
    if language == ENGLISH:
        # Without weights, short foreign texts are taken for English; short words are parts of names and formulas.
        foreign = " ".join(words.values()).split()
        return frozenset(word for word in foreign if len(word) > MAX_SHORT_WORD and not is_english_word(word))
    return frozenset((words.get(language) or " ".join(words.values())).split())
