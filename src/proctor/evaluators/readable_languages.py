"""Identify the language of a text, to choose an embedder that reads it or to say that none does."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Collection, Iterable
from pathlib import Path

from proctor.evaluators.language import explain_foreign, explain_unreadable, load_function_words
from proctor.evaluators.tokenizer import load_english
from proctor.models import weights
from proctor.models.language_id import NAME, LanguageModel

ENGLISH = "en"
# The start of a text shows its language.
MAX_CHARACTERS, MAX_RANKED_CHARACTERS = 400, 200
# Rarer languages, and short texts, get lower probabilities.
MIN_PROBABILITY = 0.4
# A text with English words is in another language only with this probability and this many words besides names.
MIN_PROBABILITY_AGAINST_ENGLISH, MIN_WORDS_AGAINST_ENGLISH = 0.6, 3
# Texts with this share of English function words are English.
MIN_FUNCTION_WORDS = 0.25
# Dialects, and the languages whose embeddings serve them.
_DIALECTS = {"wuu": "zh", "yue": "zh", "arz": "ar"}
# What the rules call a language with only one code. Cyrillic and Arabic letters have several languages.
_CODES = {
    "German": "de", "French": "fr", "Spanish": "es", "Italian": "it", "Portuguese": "pt", "Dutch": "nl",
    "Polish": "pl", "Turkish": "tr", "Thai letters": "th", "Korean characters": "ko", "Japanese characters": "ja",
    "Chinese or Japanese characters": "zh",
}  # fmt: skip
PULL_LANGUAGES = "run proctor models pull languages to identify it"


def identify_language(text: str) -> str:
    """Return the code of the language of a text; "" for code, symbols, and unknown languages."""
    return _identify(text[:MAX_CHARACTERS], _load_model())


@functools.lru_cache(maxsize=4096)
def _identify(text: str, model: LanguageModel | None) -> str:
    problem = explain_unreadable(text)
    foreign = explain_foreign(text) if problem else ""
    if problem and not foreign:
        return ""
    if not foreign and is_plainly_english(text):
        return ENGLISH
    if model is None:
        return _CODES.get(foreign.removeprefix("it is written in "), "") if foreign else ENGLISH
    language, probability = _rank(text, model)
    if not foreign:
        is_sure = probability >= MIN_PROBABILITY_AGAINST_ENGLISH and _has_words(text)
        return language if is_sure else ENGLISH
    return language if probability >= MIN_PROBABILITY and language != ENGLISH else ""


def is_plainly_english(text: str) -> bool:
    """Return True if enough function words are English, so that no model is needed."""
    words = [word.strip(",.;:!?").lower() for word in text.split()]
    only_english = load_function_words() - load_english().shared_function_words
    return sum(word in only_english for word in words) >= max(2, MIN_FUNCTION_WORDS * len(words))


def _has_words(text: str) -> bool:
    return sum(word.islower() for word in text.split()) >= MIN_WORDS_AGAINST_ENGLISH


def explain_unread(texts: Iterable[str], languages: Collection[str]) -> str:
    """Return why a method for some languages cannot read the first text that it cannot read; "" if it reads all."""
    return next((reason for text in texts if (reason := _explain(text, languages))), "")


def _explain(text: str, languages: Collection[str]) -> str:
    problem = explain_unreadable(text)
    if problem and tuple(languages) == (ENGLISH,):
        return problem
    language = identify_language(text)
    if language in languages or not text.strip():
        return ""
    if problem and language == "" and explain_foreign(text):
        return problem if _load_model() else f"{problem} ({PULL_LANGUAGES})"
    return problem or f"it is written in another language ({language})"


def _rank(text: str, model: LanguageModel) -> tuple[str, float]:
    """Return the most probable language and its probability."""
    probabilities: dict[str, float] = {}
    for language, probability in model.rank(text[:MAX_RANKED_CHARACTERS]):
        code = _DIALECTS.get(language, language)
        probabilities[code] = probabilities.get(code, 0.0) + probability
    return max(probabilities.items(), key=lambda item: item[1], default=("", 0.0))


def _load_model() -> LanguageModel | None:
    path = weights.find(NAME)
    return _open_model(path) if path is not None and importlib.util.find_spec("numpy") is not None else None


@functools.cache
def _open_model(path: Path) -> LanguageModel:
    return LanguageModel(path)
