"""Find the fact in which two English texts of nearly the same words differ.

Sentence embeddings hardly notice a changed number, date, name or unit, a negation, an opposite, or
persons who change roles. Only sentences that share most of their words are compared, because other
words may express the same fact in another way.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, islice, pairwise
from typing import NamedTuple

from proctor.evaluators.data_files import load_patterns
from proctor.evaluators.grounding.contradictions import find_opposites, find_replaced_words
from proctor.evaluators.grounding.denials import find_denials
from proctor.evaluators.grounding.features import load_antonyms, load_roles
from proctor.evaluators.language import is_english_word
from proctor.evaluators.text.opposites import (
    DEGREES,
    are_persons_exchanged,
    find_other_limit,
    find_replaced_opposite,
    mean_same,
)
from proctor.evaluators.tokenizer import Word, are_related, load_english, split_sentences, split_words

# The share of the content words of the shorter sentence that both have: for a pair of sentences, and to find the
# counterpart of a sentence in a longer text.
MIN_SHARED, MIN_SHARED_IN_TEXTS = 0.5, 0.6
MIN_SHARED_FOR_DENIALS = 0.75
# Longer texts are compared by their first sentences.
MAX_SENTENCES = 30
# Exceptions are read at the start of a text, and the first ones are compared.
_MAX_CHARACTERS, _MAX_EXCEPTIONS = 4_000, 20
# Longer sentences are tables or lists.
MAX_WORDS = 80
# Shorter references, and those of much longer outputs, are phrases.
_MIN_SENTENCE, _MAX_RATIO = 3, 2.5
# A number after "about" may differ this much.
_ROUNDING = 0.1
_ABOUT = frozenset({"about", "around", "roughly", "approximately", "nearly", "almost", "circa", "over", "some"})
_MAGNITUDES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12.0}
# Words that deny as much as "not" does.
_DENIALS = frozenset({
    "fail", "fails", "failed", "failing", "refuse", "refuses", "refused", "deny", "denies", "denied", "unable",
    "prevent", "prevents", "prevented", "lack", "lacks", "lacked", "lacking",
})  # fmt: skip
# Prefixes of opposites, the shortest word that takes one, and how many words may be between a negation and a word.
_PREFIXES, _MIN_BASE, _NEGATION_REACH = ("in", "un", "im", "dis", "non", "ir", "il"), 4, 3
_OBJECTS = {"i": "me", "he": "him", "she": "her", "we": "us", "they": "them"}
_ROLE_PREPOSITIONS = frozenset({"of", "to", "for", "in", "on", "at", "after", "before", "about", "against", "over"})
_MEANINGFUL = ("content", "name", "number")
_TITLES = frozenset({"mr", "mrs", "ms", "dr", "prof", "professor", "sir", "president", "st", "inc", "ltd", "corp"})
# A name of this many letters may be the start of another form of it ("Rob" and "Robert").
_MIN_PREFIX = 3
# Names of countries that are not like the names of their people.
_PEOPLES = {
    "french": "france", "dutch": "netherlands", "british": "britain", "english": "england", "danish": "denmark",
    "spanish": "spain", "polish": "poland", "turkish": "turkey", "swiss": "switzerland", "welsh": "wales",
    "greek": "greece", "thai": "thailand", "american": "america", "chinese": "china", "irish": "ireland",
    "swedish": "sweden", "finnish": "finland", "scottish": "scotland", "norwegian": "norway",
}  # fmt: skip
_PERIODS = frozenset({"hour", "day", "week", "month", "quarter", "year", "decade", "century"})
_BEFORE_PERIODS = frozenset({"a", "an", "per", "every", "each", "last", "next", "this"})
# Units of the same dimension, each with its size in the first.
_SIZES: dict[str, tuple[str, float]] = {
    "mm": ("m", 1e-3), "millimeter": ("m", 1e-3), "cm": ("m", 1e-2), "centimeter": ("m", 1e-2),
    "m": ("m", 1.0), "meter": ("m", 1.0), "metre": ("m", 1.0), "km": ("m", 1e3), "kilometer": ("m", 1e3),
    "kilometre": ("m", 1e3), "mg": ("g", 1e-3), "milligram": ("g", 1e-3), "g": ("g", 1.0), "gram": ("g", 1.0),
    "kg": ("g", 1e3), "kilogram": ("g", 1e3), "kilo": ("g", 1e3), "ton": ("g", 1e6), "tonne": ("g", 1e6),
    "ml": ("l", 1e-3), "milliliter": ("l", 1e-3), "l": ("l", 1.0), "liter": ("l", 1.0), "litre": ("l", 1.0),
    "second": ("s", 1.0), "minute": ("s", 60.0), "min": ("s", 60.0), "hour": ("s", 3600.0), "day": ("s", 86400.0),
    "week": ("s", 604800.0), "month": ("months", 1.0), "year": ("months", 12.0), "decade": ("months", 120.0),
    "century": ("months", 1200.0), "cent": ("dollars", 0.01), "dollar": ("dollars", 1.0),
}  # fmt: skip
# The kind of a difference that may only be one of words: "did not sail", "was cancelled".
DOUBT = "doubt"
# The kind of words that may mean the same: "is sold here", "can be bought here".
UNCLEAR = "unclear"
_EXCEPTIONS = frozenset({"except", "excepting", "excluding", "besides"})


class Difference(NamedTuple):
    """What differs: the kind, and the words of the output and of the reference."""

    kind: str
    output: str
    reference: str

    def __str__(self) -> str:
        if self.kind in ("negation", "roles"):
            return {"negation": "only one of the texts is negated", "roles": "the roles are exchanged"}[self.kind]
        if self.kind == UNCLEAR:
            return f"{self.output!r} and {self.reference!r} may not mean the same"
        if self.kind == DOUBT:
            return f"only one of the texts has {(self.output or self.reference)!r}, and other words may say the same"
        return f"another {self.kind}: {self.output!r}, not {self.reference!r}"


class _Quantity(NamedTuple):
    value: float
    dimension: str
    is_rounded: bool
    text: str


class _Scope(NamedTuple):
    """What a text in lower case excludes and includes; `inclusions` are words, each with its phrase."""

    text: str
    exceptions: list[re.Match[str]]
    inclusions: list[tuple[str, str]]
    universals: frozenset[str]
    is_ambiguous: bool


def find_difference(output: str, reference: str) -> Difference | None:
    """Return the first difference between two English texts that have most of their words in common."""
    if fold(output) == fold(reference):
        return None
    if exception := find_other_exception(output, reference):
        return exception
    output, reference = (
        load_patterns("text", "exceptions.yaml")["only"].sub("only", text) for text in (output, reference)
    )
    outputs, references = _split(output), _split(reference)
    if len(outputs) == len(references) == 1 and (opposite := _find_opposite_in_place(outputs[0], references[0])):
        return opposite
    # A few words in a longer text are compared as an excerpt.
    if not references or (len(references) == 1 and _is_phrase(references[0], outputs)):
        return None
    if len(outputs) == len(references) == 1:
        return _compare(outputs[0], references[0], MIN_SHARED)
    contents = [frozenset(word.text for word in _list_content(sentence)) for sentence in outputs]
    for sentence in references:
        content = frozenset(word.text for word in _list_content(sentence))
        # Equal words only, because each sentence is compared with all others.
        shared, index = max(
            ((_count_shared(content, other), index) for index, other in enumerate(contents)), default=(0, 0)
        )
        is_other = shared >= MIN_SHARED_IN_TEXTS and outputs[index] != sentence
        if is_other and (difference := _compare(outputs[index], sentence, MIN_SHARED_IN_TEXTS)):
            return difference
    return None


def find_other_sentence(output: str, reference: str) -> Difference | None:
    """Return an opposite in the same place, if an output has nearly the same words as a short reference."""
    outputs, references = _split(output), _split(reference)
    return _find_opposite_in_place(outputs[0], references[0]) if len(outputs) == len(references) == 1 else None


def _find_opposite_in_place(output: Sequence[Word], reference: Sequence[Word]) -> Difference | None:
    opposite = find_replaced_opposite(output, reference)
    if opposite and opposite.is_certain:
        return Difference("word", opposite.output, opposite.reference)
    if opposite:
        return Difference(UNCLEAR, opposite.output, opposite.reference)
    limit = find_other_limit(output, reference)
    return Difference(DOUBT, limit, "") if limit else None


def _count_shared(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / (min(len(left), len(right)) or 1)


def find_other_exception(output: str, reference: str) -> Difference | None:
    """Return an exception that only one of two texts makes: "all but Saturn", "all of them, including Saturn"."""
    output, reference = output[:_MAX_CHARACTERS], reference[:_MAX_CHARACTERS]
    scopes = _read_scope(output), _read_scope(reference)
    # In a longer text, another sentence may make the exception.
    is_short = all(len(split_sentences(text)) == 1 for text in (output, reference))
    for scope, other in (scopes, scopes[::-1]):
        may_differ = is_short and not other.exceptions and not scope.universals.isdisjoint(other.universals)
        for match in scope.exceptions:
            inclusion = next((text for head, text in other.inclusions if are_related(head, match["head"])), "")
            if not inclusion and not may_differ:
                continue
            is_certain = inclusion or not (scope.is_ambiguous or _has_text(match["head"], other.text))
            kind = "word" if is_certain else DOUBT
            found = re.sub(r"^.*(?= but )", "", match[0]).strip(), inclusion
            words = found if scope is scopes[0] else found[::-1]
            return Difference(kind, *(word or "no exception" for word in words) if kind == "word" else words)
    return None


def _read_scope(text: str) -> _Scope:
    text, patterns = " ".join(text.lower().split()), load_patterns("text", "exceptions.yaml")
    inclusions = islice(patterns["inclusion"].finditer(text), _MAX_EXCEPTIONS)
    return _Scope(
        text,
        list(islice(patterns["exception"].finditer(text), _MAX_EXCEPTIONS)),
        [(match["head"] or match["before"], match[0]) for match in inclusions],
        frozenset(patterns["universal"].findall(text)),
        patterns["besides"].match(text) is not None,
    )


def _has_text(word: str, text: str) -> bool:
    return any(are_related(word, other) for other in re.findall(r"[\w'-]+", text))


def find_other_number(output: str, reference: str) -> Difference | None:
    """Return a number of an output that has none of the numbers of a short reference."""
    outputs, references = ([*_find_quantities(split_words(text))] for text in (output, reference))
    if not outputs or not references or any(_are_equal(item, other) for item in outputs for other in references):
        return None
    return Difference("number", outputs[0].text, references[0].text)


def find_other_digits(output: str, reference: str) -> Difference | None:
    """Return a number in digits in which two texts of any language differ, as a doubt if other words differ too."""
    outputs, references = (
        [re.sub(r"\W(?=\d{3}(?!\d))", "", number) for number in re.findall(r"\d+(?:[.,]\d+)*", text)]
        for text in (output, reference)
    )
    changed = [(number, other) for number, other in zip(outputs, references, strict=False) if number != other]
    if len(outputs) != len(references) or sorted(outputs) == sorted(references):
        return None
    is_same = re.findall(r"[^\W\d]+", output.casefold()) == re.findall(r"[^\W\d]+", reference.casefold())
    return Difference("number", *changed[0]) if is_same else Difference(DOUBT, changed[0][0], "")


def fold(text: str) -> list[str]:
    """Return the normalized words of a text."""
    return [word.text for word in split_words(text)]


def _split(text: str) -> list[list[Word]]:
    sentences = split_sentences(text) if re.search(r"[.!?]\s|\n", text.strip()) else [text]
    words = (split_words(sentence) for sentence in sentences[:MAX_SENTENCES])
    return [_mark_first_name(sentence) for sentence in words if 0 < len(sentence) <= MAX_WORDS]


def _is_phrase(reference: Sequence[Word], outputs: Sequence[Sequence[Word]]) -> bool:
    return len(reference) < _MIN_SENTENCE or sum(map(len, outputs)) > _MAX_RATIO * len(reference)


def _mark_first_name(sentence: list[Word]) -> list[Word]:
    """Mark a first word as a name if it is not an ordinary English word."""
    first = sentence[0]
    is_name = first.kind == "content" and first.original[0].isupper() and not _is_ordinary(first.text)
    return [first._replace(kind="name"), *sentence[1:]] if is_name else sentence


@functools.lru_cache(maxsize=16384)
def _is_ordinary(word: str) -> bool:
    return word not in load_english().proper_names and is_english_word(word)


def _measure_shared(left: Sequence[Word], right: Sequence[Word]) -> float:
    """Return the share of the content words of the shorter sentence that the other has."""
    shorter, longer = sorted((_list_content(left), _list_content(right)), key=len)
    if not shorter:
        return 0.0
    return sum(_has(word, longer) for word in shorter) / len(shorter)


def _list_content(sentence: Sequence[Word]) -> list[Word]:
    return [word for word in sentence if word.kind in _MEANINGFUL]


def _has(word: Word, others: Sequence[Word]) -> bool:
    return any(word.text == other.text or are_related(word.text.lower(), other.text.lower()) for other in others)


def _compare(output: Sequence[Word], reference: Sequence[Word], min_shared: float) -> Difference | None:
    # Numbers and names that differ are no reason to believe that the sentences are about something else.
    frames = [[word for word in side if word.kind not in ("number", "name")] for side in (output, reference)]
    shared = max(_measure_shared(output, reference), _measure_shared(*frames))
    if shared < min_shared:
        return None
    return (
        _find_other_number(output, reference)
        or _find_opposite_in_place(output, reference)
        or _find_other_name(output, reference)
        or _find_polarity(output, reference)
        or _find_exchanged_roles(output, reference)
    )


def _find_other_number(output: Sequence[Word], reference: Sequence[Word]) -> Difference | None:
    """Return a number that only the output has, if the reference has another one instead."""
    outputs, references = list(_find_quantities(output)), list(_find_quantities(reference))
    extra = [item for item in outputs if not any(_are_equal(item, other) for other in references)]
    missing = [item for item in references if not any(_are_equal(item, other) for other in outputs)]
    if not extra and not missing:
        halves = [{word.text for word in side if word.text in ("a.m.", "p.m.")} for side in (output, reference)]
        return Difference("time", *halves[0], *halves[1]) if len(halves[0] ^ halves[1]) > 1 else None
    if extra and missing:
        kind = "unit" if extra[0].value == missing[0].value else "number"
        return Difference(kind, extra[0].text, missing[0].text)
    return None


def _find_quantities(sentence: Sequence[Word]) -> Iterator[_Quantity]:
    index = 0
    while index < len(sentence):
        word = sentence[index]
        start, index = index, index + 1
        if word.kind != "number" or not re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", word.text):
            continue
        value = float(word.text)
        while index < len(sentence) and sentence[index].text in _MAGNITUDES:
            value *= _MAGNITUDES[sentence[index].text]
            index += 1
        unit = sentence[index].text.lower() if index < len(sentence) else ""
        before = sentence[start - 1].text.lower() if start else ""
        if before in ("dollars", "euros", "pounds", "yen", "rupees"):
            unit = before
        dimension, size = _SIZES.get(unit) or _SIZES.get(unit.removesuffix("s")) or ("", 1.0)
        # "One" is also a pronoun.
        if word.text != "1" or dimension or word.original.isdigit():
            text = " ".join(item.original for item in sentence[start : index + (1 if dimension else 0)])
            is_rounded = before in _ABOUT or (start > 1 and sentence[start - 2].text in _ABOUT)
            yield _Quantity(value * size, dimension, is_rounded, text)


def _are_equal(left: _Quantity, right: _Quantity) -> bool:
    if left.dimension and right.dimension and left.dimension != right.dimension:
        return False
    tolerance = _ROUNDING if left.is_rounded or right.is_rounded else 1e-9
    return abs(left.value - right.value) <= tolerance * max(abs(left.value), abs(right.value))


def _find_other_name(output: Sequence[Word], reference: Sequence[Word]) -> Difference | None:
    """Return a name that only the output has, if the reference has another one instead."""
    extra, missing = _find_unmatched_names(output, reference), _find_unmatched_names(reference, output)
    if not extra or not missing or _is_abbreviation(extra, missing):
        return None
    # "The capital, Oslo" and "Oslo": a longer name has more words, but no other ones.
    return Difference("name", extra[0].original, missing[0].original)


def _find_unmatched_names(sentence: Sequence[Word], other: Sequence[Word]) -> list[Word]:
    groups = {word for pair in find_replaced_words(sentence, other) for word in pair}
    names = [word for word in sentence if word.kind == "name" and word not in groups and word.text not in _TITLES]
    return [word for word in names if not _has(word, other) and not any(_is_variant(word, item) for item in other)]


def _is_variant(name: Word, other: Word) -> bool:
    left, right = name.text.lower(), other.text.lower()
    if _PEOPLES.get(left) == right or _PEOPLES.get(right) == left:
        return True
    shorter, longer = sorted((left, right), key=len)
    return len(shorter) >= _MIN_PREFIX and longer.startswith(shorter)


def _is_abbreviation(left: Sequence[Word], right: Sequence[Word]) -> bool:
    """Return True if one side is the acronym of the other ("EU" and "European Union")."""
    for short, long in ((left, right), (right, left)):
        initials = "".join(word.original[0] for word in long).lower()
        acronym = "".join(word.text for word in short if word.original.isupper()).lower()
        if acronym and (acronym in initials or initials in acronym):
            return True
    return False


def _find_polarity(output: Sequence[Word], reference: Sequence[Word]) -> Difference | None:
    """Return a negation or an opposite, unless both together keep the meaning ("not safe", "dangerous")."""
    opposites = _find_antonyms(output, reference)
    denials, other_denials = _count_denials(output), _count_denials(reference)
    is_denied = (_count_negations(output) + denials) % 2 != (_count_negations(reference) + other_denials) % 2
    if is_denied and not opposites:
        if _has_negated_opposite(output, reference) or _has_negated_opposite(reference, output):
            return None
        # A weaker word of denial may replace the negation ("rarely"), and a stronger one needs more evidence.
        sides = [{word.text for word in side} for side in (output, reference)]
        is_excused = any(word in load_english().denial_verbs - _DENIALS for word in sides[0] ^ sides[1])
        is_certain = denials == other_denials or _measure_shared(output, reference) >= MIN_SHARED_FOR_DENIALS
        if is_excused or not is_certain:
            return None
        return _find_unmatched_denial(output, reference) or Difference("negation", "", "")
    # "Less safe" and "more dangerous".
    if len(opposites) > 1 and any({word.text for word in pair} <= DEGREES for pair in opposites):
        return None
    # "A is taller than B" and "B is shorter than A".
    if opposites and not is_denied and not _are_turned(output, reference):
        ours, theirs = opposites[0]
        # "Every day except Sunday" and "from Monday to Saturday".
        exceptions = _find_exception(output, reference), _find_exception(reference, output)
        if any(exceptions):
            return Difference(DOUBT, *exceptions)
        return Difference("word", ours.original, theirs.original)
    return None


def _find_unmatched_denial(output: Sequence[Word], reference: Sequence[Word]) -> Difference | None:
    """Return the word that one text denies, if the other may express that with a word of its own.

    A word with the same first letter may be an irregular form of it ("did not freeze", "froze").
    """
    for side, other in ((output, reference), (reference, output)):
        extra = [word for word in _list_content(other) if not _has(word, side)]
        initials = {word.text[0] for word in extra}
        for denial in find_denials(side):
            verb = next(iter(denial.denied), None)
            if verb and verb.kind == "content" and not _has(verb, other) and extra and verb.text[0] not in initials:
                text = f"{denial.word.original} {verb.original}"
                return Difference(DOUBT, text, "") if side is output else Difference(DOUBT, "", text)
    return None


def _find_exception(sentence: Sequence[Word], other: Sequence[Word]) -> str:
    words = (word for word in sentence if word.text in _EXCEPTIONS and not _has(word, other))
    return next((word.original for word in words), "")


def _has_negated_opposite(sentence: Sequence[Word], other: Sequence[Word]) -> bool:
    """Return True if a sentence negates a word whose opposite by prefix the other has: "not polite", "impolite"."""
    texts = {word.text for word in other}
    return any(
        len(word.text) >= _MIN_BASE
        and any(item.kind == "negation" for item in sentence[max(0, index - _NEGATION_REACH) : index])
        and any(f"{prefix}{word.text}" in texts or word.text.removeprefix(prefix) in texts for prefix in _PREFIXES)
        and word.text not in texts
        for index, word in enumerate(sentence)
    )


def _are_turned(output: Sequence[Word], reference: Sequence[Word]) -> bool:
    """Return True if each sentence starts with the content word, or the person, with which the other ends."""
    objects = [_OBJECTS.get(side[0].text.lower(), "") for side in (output, reference)]
    if {objects[0]} & {word.text for word in reference[1:]} and {objects[1]} & {word.text for word in output[1:]}:
        return True
    ours, theirs = _list_content(output), _list_content(reference)
    return bool(ours and theirs) and _has(ours[0], theirs[-1:]) and _has(theirs[0], ours[-1:])


def _count_denials(sentence: Sequence[Word]) -> int:
    """Return how many words deny what follows: "failed to", "kept her from"."""
    texts = [word.text for word in sentence]
    is_kept_from = "from" in texts and any(text in ("keep", "keeps", "kept") for text in texts[: texts.index("from")])
    return sum(text in _DENIALS for text in texts) + is_kept_from


def _count_negations(sentence: Sequence[Word]) -> int:
    allowed = load_english().not_a_negation_before
    return sum(
        word.kind == "negation" and not (index + 1 < len(sentence) and sentence[index + 1].text in allowed)
        for index, word in enumerate(sentence)
    )


def _find_antonyms(output: Sequence[Word], reference: Sequence[Word]) -> list[tuple[Word, Word]]:
    pairs = [*find_replaced_words(output, reference), *find_opposites(output, reference)]
    # Quantities in other units are compared as numbers.
    pairs = [pair for pair in pairs if not all(_is_unit(word) for word in pair)]
    ours, theirs = ({word.text.lower(): word for word in side} for side in (output, reference))
    for text, word in ours.items():
        if text not in theirs:
            others = [theirs[other] for other in load_antonyms().get(text, ()) if other in theirs and other not in ours]
            # "Nobody" and "refuses" are already counted as negations.
            pairs += [(word, other) for other in others if not any(map(_is_negative, (word, other)))]
    periods, other_periods = _find_periods(output), _find_periods(reference)
    if periods and other_periods and not periods.keys() & other_periods.keys():
        pairs.append((next(iter(periods.values())), next(iter(other_periods.values()))))
    return [pair for pair in pairs if not mean_same(pair[0].text, pair[1].text, ours.keys() | theirs.keys())]


def _is_negative(word: Word) -> bool:
    return word.kind == "negation" or word.text in _DENIALS


def _is_unit(word: Word) -> bool:
    return word.text in _SIZES or word.text.removesuffix("s") in _SIZES


def _find_periods(sentence: Sequence[Word]) -> dict[str, Word]:
    """Return the periods after an article or the like: "a week", "every year", "last month"."""
    following = pairwise(sentence)
    return {word.text: word for before, word in following if before.text in _BEFORE_PERIODS and word.text in _PERIODS}


def _find_exchanged_roles(output: Sequence[Word], reference: Sequence[Word]) -> Difference | None:
    """Return a difference if the same words stand in exchanged places ("A paid B", "B paid A")."""
    if are_persons_exchanged(output, reference):
        return Difference("roles", "", "")
    # Articles have no role: "A dog bit the man", "The man bit a dog".
    sides = [
        [word for word in side if word.text.lower() not in load_english().articles] for side in (output, reference)
    ]
    ours, theirs = ([word.text.lower() for word in side] for side in sides)
    if sorted(ours) == sorted(theirs):
        # A list of names has no roles.
        if all(word.kind in ("name", "number") for word in output[1:]):
            return None
        if _are_words_exchanged(*sides) or (ours != theirs and _are_parts_exchanged(sides[0], theirs)):
            return Difference("roles", "", "")
        return None
    # "A lies east of B" and "B lies west of A" are the same.
    if _are_roles_exchanged(output, reference) and not _find_antonyms(output, reference):
        return Difference("roles", "", "")
    return _find_exchanged_agent(output, reference) or _find_exchanged_agent(reference, output)


def _are_words_exchanged(output: Sequence[Word], reference: Sequence[Word]) -> bool:
    """Return True if words have changed places in the same frame of function words.

    "Ann told Bob that Eve won" and "Eve told Bob that Ann won" have, "Ann told Bob today" and "Today Ann told Bob" not.
    """
    changed = [index for index, pair in enumerate(zip(output, reference, strict=True)) if pair[0].text != pair[1].text]
    if not changed or not {side[index].kind for index in changed for side in (output, reference)} <= set(_MEANINGFUL):
        return False
    # "Born in Rome in 1980" and "born in 1980 in Rome".
    if len({output[index].kind == "number" for index in changed}) > 1:
        return False
    ours, theirs = ([word.text for word in side[changed[0] : changed[-1] + 1]] for side in (output, reference))
    # "Today Ann called Bob" and "Ann called Bob today": a word has moved, and the others follow each other as before.
    is_moved = any(ours[index:] + ours[:index] == theirs for index in range(len(ours)))
    return _have_roles(ours, output[: changed[0]]) and (not is_moved or len(ours) == 2)


def _are_parts_exchanged(output: Sequence[Word], reference: Sequence[str]) -> bool:
    """Return True if the parts around a verb have changed places: "the old man bit a dog", "a dog bit the old man"."""
    places = enumerate(zip(output, reference, strict=True))
    changed = [index for index, (word, text) in places if word.text.lower() != text]
    place = slice(changed[0], changed[-1] + 1)
    part, other = output[place], reference[place]
    for left, right in combinations(range(1, len(part)), 2):
        first, verb, second = part[:left], part[left:right], part[right:]
        texts = [word.text.lower() for word in (*second, *verb, *first)]
        # Places and times may change places ("on Monday", "at nine"), and so may the sides of "is".
        if texts == other and all(side[0].kind in _MEANINGFUL for side in (first, second)):
            return any(word.kind == "content" for word in verb) and _have_roles(texts, output[: changed[0]])
    return False


def _are_roles_exchanged(output: Sequence[Word], reference: Sequence[Word]) -> bool:
    """Return True if a word is between the same two others in both sentences, but their order is the opposite.

    Attributes may be between them: "Ann, a baker, has paid Bob" and "Bob has paid Ann, a baker from Rome".
    """
    ours, theirs = ([word.text.lower() for word in side] for side in (output, reference))
    contents = [{word.text.lower() for word in _list_content(side)} for side in (output, reference)]
    names = {word.text.lower() for word in (*output, *reference) if word.kind == "name"}
    verbs = [text for text in contents[0] & contents[1] - names if ours.count(text) == theirs.count(text) == 1]
    for shared in (names & contents[0] & contents[1], contents[0] & contents[1]):
        for verb in verbs:
            roles, other_roles = (_find_roles(side, verb, shared, is_name=shared <= names) for side in (ours, theirs))
            # Other prepositions give the places another meaning ("account settings", "settings of the account").
            if roles and other_roles and roles[:2] == other_roles[1::-1] and roles[2] == other_roles[2]:
                return True
    return False


def _find_roles(
    texts: Sequence[str], verb: str, shared: Collection[str], *, is_name: bool
) -> tuple[str, str, frozenset[str]] | None:
    """Return the words before and after a verb, and the prepositions that belong to it; None if they have no roles.

    A name is the first in the sentence, any other word the last before the verb.
    """
    place = texts.index(verb)
    before = [index for index in range(place) if texts[index] in shared]
    if is_name:
        before = [index for index in before if texts[index - 1] not in _ROLE_PREPOSITIONS or not index]
    after = next((index for index in range(place + 1, len(texts)) if texts[index] in shared), None)
    if not before or after is None:
        return None
    first = before[0] if is_name else before[-1]
    between = texts[place:after]
    follows_list = not load_roles()["listing"].isdisjoint(texts[after + 1 : after + 2])
    if follows_list or not _load_unordered().union(("by", "from", "each")).isdisjoint(between):
        return None
    return texts[first], texts[after], frozenset(_ROLE_PREPOSITIONS.intersection(between))


def _have_roles(words: Sequence[str], before: Sequence[Word]) -> bool:
    """Return False for a list, and for words that say the same about both sides: "met", "near", "connects A to B"."""
    is_joined = not {"from", "to", "with"}.isdisjoint(words) and any(w.text in load_roles()["joining"] for w in before)
    return not is_joined and _load_unordered().isdisjoint(words)


@functools.cache
def _load_unordered() -> frozenset[str]:
    return load_roles()["listing"] | load_roles()["both_sides"] | load_roles()["symmetric"]


def _find_exchanged_agent(passive: Sequence[Word], active: Sequence[Word]) -> Difference | None:
    """Compare "the dog was chased by the cat" with "the dog chased the cat"."""
    texts, others = ([word.text.lower() for word in side] for side in (passive, active))
    if "by" not in texts or "by" in others or load_roles()["be"].isdisjoint(texts[: texts.index("by")]):
        return None
    by = texts.index("by")
    be = max(index for index, text in enumerate(texts[:by]) if text in load_roles()["be"])
    verb, agent = (
        next((w for w in part if w.kind in ("content", "name")), None) for part in (passive[be:], passive[by:])
    )
    subject = next((word for word in passive[:be] if word.kind in ("content", "name")), None)
    places = [_find_place(word, active) for word in (subject, verb, agent)]
    return Difference("roles", "", "") if -1 not in places and sorted(places) == places else None


def _find_place(word: Word | None, sentence: Sequence[Word]) -> int:
    return next((index for index, other in enumerate(sentence) if word and _has(word, [other])), -1)
