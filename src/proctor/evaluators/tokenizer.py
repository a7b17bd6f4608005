"""Split texts into sentences and words, in the same way for every local method."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.evaluators.data_files import load_data
from proctor.evaluators.plain_values import to_plain

WordKind = Literal["function", "content", "number", "name", "speaker", "negation"]

_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th)")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
# "09:30"
_TIME_LETTERS = 5
# A time such as 9:30 is one word. In scripts without spaces between words, each character is a word.
_WORD = re.compile(
    r"(?<![0-9:.,])(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?![\w:]|[.,][0-9])|(?:(?<![\w.,)\]%-])[-−](?=[0-9]))?[0-9]+(?:[.,][0-9]+)*(?:(?:st|nd|rd|th|s)\b)?|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
# Endings without meaning: "Norway's", "they're".
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)\b", re.IGNORECASE)
_UNIT_SYMBOL = re.compile(r"[%$€£¥₹]|[0-9]\s?[apAP]\.?\s?[mM]\b")
_AM_PM = re.compile(r"([0-9])\s?([apAP])\.?\s?[mM]\b\.?")
_CURRENCIES = {"$": "dollars", "€": "euros", "£": "pounds", "¥": "yen", "₹": "rupees"}
# Acronyms that are function words in lower case.
_ACRONYMS = frozenset({"WHO", "IT", "US"})
_MONTHS_AND_DAYS = frozenset({
    "january", "february", "april", "june", "july", "august", "september", "october", "november",
    "december", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
})  # fmt: skip
_MAGNITUDES = frozenset({"thousand", "million", "billion", "trillion"})
# After these, a capital letter does not mark a name.
_SENTENCE_START = re.compile(r"[:.!?][*_\"”)]*\s")
_BLOCK_END = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*•#>|]|[0-9A-Za-z]{1,3}[.)])\s)")
# Forms of a word share at least this many letters, or more if the ending forms a different word.
_MIN_STEM, _MIN_DERIVED_STEM = 4, 5


class English(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The word lists of `english.yaml`, by their function in a sentence."""

    function: frozenset[str]
    speaker: frozenset[str]
    negation: frozenset[str]
    not_a_negation_before: frozenset[str]
    denial_verbs: frozenset[str]
    inflections: frozenset[str]
    after_e: frozenset[str]
    after_y: frozenset[str]
    derivations: frozenset[str]
    derivations_after_e: frozenset[str]
    derivations_after_forms: frozenset[str]
    demonym_endings: frozenset[str]
    openings: tuple[str, ...]
    courtesies: tuple[str, ...]
    deferral_words: frozenset[str]
    numbers: tuple[str, ...]
    articles: frozenset[str]
    back_references: tuple[str, ...]
    conclusions: tuple[str, ...]
    proper_names: frozenset[str]
    continuations: frozenset[str]
    continuations_outside_clauses: frozenset[str]
    clause_starters: frozenset[str]
    english_endings: tuple[str, ...]
    shared_function_words: frozenset[str]
    name_particles: frozenset[str]


@functools.cache
def load_english() -> English:
    """Load the English word lists once."""
    data = load_data("english.yaml")
    lists = {name: value.split() if isinstance(value, str) else value for name, value in data.items()}
    return msgspec.convert(lists, English)


class Word(NamedTuple):
    """A word: its normalized form, its original form, and its kind."""

    text: str
    original: str
    kind: WordKind


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences and list items, each on one line."""
    # The splitter loads its data on import.
    import nupunkt

    return [str(sentence) for block in split_blocks(text) for sentence in nupunkt.sent_tokenize(block)]


def split_blocks(text: str) -> list[str]:
    """Split a text into paragraphs and list items, each on one line."""
    blocks = (" ".join(block.split()) for block in _BLOCK_END.split(text))
    return [block for block in blocks if block]


def split_words(sentence: str) -> list[Word]:
    """Split a sentence into words without punctuation, each with its kind.

    Case, accents and number formats are normalized. A capitalized word that does not start a
    sentence is a name. Only English function words are recognized.
    """
    cleaned = _CLITIC.sub(" ", _NOT.sub(" not", sentence))
    if _UNIT_SYMBOL.search(cleaned):
        cleaned = _AM_PM.sub(r"\1 \2m", cleaned).replace("%", " percent ")
        for symbol, name in _CURRENCIES.items():
            cleaned = cleaned.replace(symbol, f" {name} ")
    result: list[Word] = []
    end = 0
    for match in _WORD.finditer(cleaned):
        is_first = not result or _SENTENCE_START.search(cleaned, end, match.start()) is not None
        word = _make_word(match[0], is_first=is_first)
        if word.text in ("am", "pm") and result and result[-1].kind == "number":
            word = Word(f"{word.text[0]}.m.", word.original, "number")
        result.append(word)
        end = match.end()
    return result


class WordIndex:
    """The words of a text, to look up a word or another form of it without comparing it with every one of them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = set(texts)
        self._by_stem: dict[str, list[str]] = {}
        for text in self._texts:
            if text.isalpha() and len(text) >= _MIN_STEM:
                self._by_stem.setdefault(text[:_MIN_STEM], []).append(text)
        self._answers = dict.fromkeys(self._texts, True)

    def __contains__(self, text: str) -> bool:
        if text not in self._answers:
            # Shorter forms differ by an "s" only.
            plurals = [form for form in (f"{text}s", text.removesuffix("s")) if form in self._texts]
            candidates = chain(plurals, self._by_stem.get(text[:_MIN_STEM], ()))
            self._answers[text] = any(are_related(text, other) for other in candidates)
        return self._answers[text]


def are_related(left: str, right: str) -> bool:
    """Return True if two English words differ only in their endings.

    It does not know irregular forms ("went"), and does not distinguish senses ("organ" and "organic").
    """
    if left == right:
        return True
    if not (left.isalpha() and right.isalpha()):
        return False
    mismatch = (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b)
    stem = left[: next(mismatch, min(len(left), len(right)))]
    if len(stem) < _MIN_STEM:
        return {left, right} in ({left, f"{left}s"}, {right, f"{right}s"})
    endings = (left[len(stem) :], right[len(stem) :])
    short, long = sorted(endings, key=lambda ending: (len(ending), ending))
    # "Stopped" is "stop" and "ed".
    undoubled = long[1:] if long[0] == stem[-1] else long
    is_long = len(stem) >= _MIN_DERIVED_STEM
    return any(_are_endings(short, ending, is_long=is_long) for ending in {long, undoubled})


def _are_endings(short: str, long: str, *, is_long: bool) -> bool:
    english = load_english()
    if len(short) < min(len(long), 3) and long in english.demonym_endings:
        return True
    if short == "y":
        return long in english.after_y
    if short == "e":
        return long in english.after_e or (is_long and long in english.derivations_after_e)
    if not short:
        return long in english.inflections or (is_long and long in english.derivations)
    forms = english.inflections | english.derivations_after_forms if is_long else english.inflections
    return short in forms and long in forms


def fold_case(text: str) -> str:
    """Return a text in lower case and without accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if not unicodedata.combining(c)))


def collect_texts(value: Any) -> list[str]:
    """Return all non-empty strings in a value, including those in lists and mappings."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    value = to_plain(value)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [text for item in value for text in collect_texts(item)]
    return [] if value is None else [str(value)]


def is_complete_sentence(text: str) -> bool:
    """Return True if a text ends like a sentence, or with a closing bracket or markup."""
    stripped = text.rstrip("\"'”’» \n\t")
    # Punctuation of all scripts, except marks that signal a continuation.
    is_closed = unicodedata.category(stripped[-1]) in ("Po", "Pe", "Sk", "Sm", "So") if stripped else True
    return is_closed and stripped[-1:] not in (",", ";", "&", "/", "、", "，", "+", "=")


@functools.lru_cache(maxsize=65536)
def _make_word(original: str, *, is_first: bool) -> Word:
    # A word that consists only of accents stays unchanged.
    text, english = fold_case(original) or original, load_english()
    if text[0].isdigit():
        return Word(_normalize_number(text), original, "number")
    if text[0] in "-−":
        return Word("-" + _normalize_number(text[1:]), original, "number")
    if original in _ACRONYMS:
        return Word(original, original, "name")
    if text in _MONTHS_AND_DAYS or (original == "May" and not is_first):
        return Word(text, original, "name")
    if text.removesuffix("s") in _MAGNITUDES:
        return Word(text.removesuffix("s"), original, "number")
    if text in english.numbers:
        return Word(str(english.numbers.index(text)), original, "number")
    kinds: tuple[WordKind, ...] = ("speaker", "negation", "function")
    for kind in kinds:
        if text in getattr(english, kind):
            return Word(text, original, kind)
    return Word(text, original, "name" if original[0].isupper() and not is_first else "content")


def _normalize_number(text: str) -> str:
    if ":" in text:
        return text.zfill(_TIME_LETTERS)
    ordinal = _ORDINAL.fullmatch(text)
    if ordinal:
        return ordinal[1]
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    elif text.count(",") == 1 and "." not in text:
        # The digits are not in groups of three, so this is a decimal comma.
        text = text.replace(",", ".")
    if text.count(".") == 1:
        text = text.rstrip("0").rstrip(".")
    # "07" is 7, but "0.7" is not ".7".
    return re.sub(r"^0+(?=[0-9])", "", text)
