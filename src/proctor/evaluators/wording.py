"""Wording: texts taken apart into sentences and words, alike for every local method."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from proctor.core import resources
from proctor.evaluators.plain_values import plain_value

Kind = Literal["function", "content", "number", "name", "speaker", "negation"]

_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th)")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
# Scripts that put no spaces between words are read sign by sign.
_WORD = re.compile(
    r"(?:(?<![\w.,)\]%-])[-−](?=[0-9]))?[0-9]+(?:[.,][0-9]+)*(?:(?:st|nd|rd|th|s)\b)?|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
)
_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
# Endings that are written as words of their own and say nothing: "Norway's", "they're".
_CLITIC = re.compile(r"['’](?:s|d|m|ll|re|ve)\b", re.IGNORECASE)
_SIGNED = re.compile(r"[%$€£¥₹]|[0-9]\s?[apAP]\.?\s?[mM]\b")
_HALF_OF_DAY = re.compile(r"([0-9])\s?([apAP])\.?\s?[mM]\b\.?")
_CURRENCIES = {"$": "dollars", "€": "euros", "£": "pounds", "¥": "yen", "₹": "rupees"}
# Acronyms that are little words in small letters.
_ACRONYMS = frozenset({"WHO", "IT", "US"})
_MONTHS_AND_DAYS = frozenset(
    {
        *("january", "february", "april", "june", "july", "august", "september", "october"),
        *("november", "december", "monday", "tuesday", "wednesday", "thursday", "friday"),
        *("saturday", "sunday"),
    }
)
_MAGNITUDES = frozenset({"thousand", "million", "billion", "trillion"})
# After these a capital makes no name.
_BEGINS = re.compile(r"[:.!?][*_\"”)]*\s")
_PIECES = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*•#>|]|[0-9A-Za-z]{1,3}[.)])\s)")
# Forms of a word agree in so many letters at least; more where the ending makes another word.
_STEM, _LONG_STEM = 4, 5


class English(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The words of `english.yaml`, by what they do in a sentence."""

    function: frozenset[str]
    speaker: frozenset[str]
    negation: frozenset[str]
    not_a_negation_before: frozenset[str]
    denying: frozenset[str]
    inflections: frozenset[str]
    after_e: frozenset[str]
    after_y: frozenset[str]
    derivations: frozenset[str]
    derivations_after_e: frozenset[str]
    derivations_after_forms: frozenset[str]
    peoples: frozenset[str]
    openings: tuple[str, ...]
    courtesies: tuple[str, ...]
    elsewhere: frozenset[str]
    numbers: tuple[str, ...]
    articles: frozenset[str]
    never_after_an_article: frozenset[str]
    refer_back: tuple[str, ...]
    conclude: tuple[str, ...]
    proper_names: frozenset[str]
    goes_on: frozenset[str]
    goes_on_but_in_clauses: frozenset[str]
    begins_clauses: frozenset[str]


@functools.cache
def english() -> English:
    """What is known of English, read once.

    >>> "the" in english().function
    True
    """
    import yaml

    written = yaml.safe_load(resources.text("evaluators", "english.yaml"))
    listed = {name: w.split() if isinstance(w, str) else w for name, w in written.items()}
    return msgspec.convert(listed, English)


class Word(NamedTuple):
    """A word: as it is compared, as it was written, and what kind of word it is."""

    text: str
    written: str
    kind: Kind


def sentences(text: str) -> list[str]:
    """The sentences of a text, the points of a list among them, each on one line.

    >>> sentences("Dr. Smith came. He stayed\\nfor tea.\\n- milk\\n- sugar")
    ['Dr. Smith came.', 'He stayed for tea.', '- milk', '- sugar']
    """
    # Its data is read when it is first used, so nobody else waits for it.
    import nupunkt

    pieces = (" ".join(piece.split()) for piece in _PIECES.split(text))
    return [str(one) for piece in pieces if piece for one in nupunkt.sent_tokenize(piece)]


def words(sentence: str) -> list[Word]:
    """The words of a sentence, without punctuation, each with its kind.

    Capitals, accents and ways to write a number do not matter. A name is what is written with a
    capital and does not begin a sentence. Function words are known in English only.

    >>> [(word.text, word.kind) for word in words("In Oslo I didn't eat 1,000 cakes")][1:4]
    [('oslo', 'name'), ('i', 'speaker'), ('did', 'function')]
    """
    bare = _CLITIC.sub(" ", _NOT.sub(" not", sentence))
    if _SIGNED.search(bare):
        bare = _units_in_words(bare)
    found: list[Word] = []
    end = 0
    for match in _WORD.finditer(bare):
        first = not found or _BEGINS.search(bare, end, match.start()) is not None
        word = _word(match[0], first=first)
        if word.text in ("am", "pm") and found and found[-1].kind == "number":
            word = Word(f"{word.text[0]}.m.", word.written, "number")
        found.append(word)
        end = match.end()
    return found


def _units_in_words(text: str) -> str:
    """The same text with the signs of percent, money and halves of the day written out."""
    text = _HALF_OF_DAY.sub(r"\1 \2m", text).replace("%", " percent ")
    for sign, name in _CURRENCIES.items():
        text = text.replace(sign, f" {name} ")
    return text


def related(left: str, right: str) -> bool:
    """True if two words look like forms of one: they differ in their endings only.

    The endings are those of English. Some words of one form have different senses ("organ" and
    "organic"), which is not seen; irregular forms ("went") are not known.

    >>> related("ferries", "ferry"), related("stopped", "stops"), related("cat", "cot")
    (True, True, False)
    >>> related("universe", "university"), related("contract", "contrast")
    (False, False)
    """
    if left == right:
        return True
    if not (left.isalpha() and right.isalpha()):
        return False
    shared = 0
    for mine, theirs in zip(left, right, strict=False):
        if mine != theirs:
            break
        shared += 1
    if shared < _STEM:
        return {left, right} in ({left, f"{left}s"}, {right, f"{right}s"})
    stem = left[:shared]
    short, long = sorted((left[shared:], right[shared:]), key=lambda end: (len(end), end))
    return _are_endings(stem, short, long)


def _are_endings(stem: str, short: str, long: str) -> bool:
    """True if two endings may stand after one stem."""
    # "Stopped" is "stop" and "ed".
    doubled = long[1:] if long[0] == stem[-1] else long
    return any(_fit(short, ending, is_long=len(stem) >= _LONG_STEM) for ending in {long, doubled})


def _fit(short: str, long: str, *, is_long: bool) -> bool:
    known = english()
    if len(short) < min(len(long), 3) and long in known.peoples:
        return True
    if short == "y":
        return long in known.after_y
    if short == "e":
        return long in known.after_e or (is_long and long in known.derivations_after_e)
    if not short:
        return long in known.inflections or (is_long and long in known.derivations)
    forms = known.inflections | known.derivations_after_forms if is_long else known.inflections
    return short in forms and long in forms


def folded(text: str) -> str:
    """A text without capitals and accents.

    >>> folded("Brontë")
    'bronte'
    """
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(c for c in apart if not unicodedata.combining(c)))


def texts_in(value: Any) -> list[str]:
    """All texts in a value: itself, or those in its lists and mappings, empty ones left out.

    >>> texts_in([{"title": "Oslo", "text": "A city."}, "And a port.", None])
    ['Oslo', 'A city.', 'And a port.']
    """
    if isinstance(value, str):
        return [value] if value.strip() else []
    value = plain_value(value)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [text for item in value for text in texts_in(item)]
    return [] if value is None else [str(value)]


def ends_well(text: str) -> bool:
    """True if a text ends as a sentence does, or with what closes a bracket or mark-up.

    >>> ends_well('She said "no."'), ends_well("She said"), ends_well("[signed]")
    (True, False, True)
    """
    bare = text.rstrip("\"'”’» \n\t")
    # The full stops and signs of all scripts, but nothing that announces more.
    closed = unicodedata.category(bare[-1]) in ("Po", "Pe", "Sk", "Sm", "So") if bare else True
    return closed and bare[-1:] not in (",", ";", "&", "/", "、", "，", "+", "=")


@functools.lru_cache(maxsize=65536)
def _word(written: str, *, first: bool) -> Word:
    # What is nothing but accents stays as it is.
    text, known = folded(written) or written, english()
    if text[0].isdigit():
        return Word(_number(text), written, "number")
    if text[0] in "-−":
        return Word("-" + _number(text[1:]), written, "number")
    if written in _ACRONYMS:
        return Word(written, written, "name")
    if text in _MONTHS_AND_DAYS or (written == "May" and not first):
        return Word(text, written, "name")
    if text.removesuffix("s") in _MAGNITUDES:
        return Word(text.removesuffix("s"), written, "number")
    if text in known.numbers:
        return Word(str(known.numbers.index(text)), written, "number")
    if text in known.speaker:
        return Word(text, written, "speaker")
    if text in known.negation:
        return Word(text, written, "negation")
    if text in known.function:
        return Word(text, written, "function")
    return Word(text, written, "name" if written[0].isupper() and not first else "content")


def _number(text: str) -> str:
    ordinal = _ORDINAL.fullmatch(text)
    if ordinal:
        return ordinal[1]
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    elif text.count(",") == 1 and "." not in text:
        # Not in groups of three, so the comma is the one before decimals.
        text = text.replace(",", ".")
    if text.count(".") == 1:
        text = text.rstrip("0").rstrip(".")
    # "07" is 7, but "0.7" is not ".7".
    return re.sub(r"^0+(?=[0-9])", "", text)
