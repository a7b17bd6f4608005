"""Find words of a sentence that contradict a context: opposites, different units, different bounds."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from proctor.evaluators.data_files import load_data
from proctor.evaluators.tokenizer import Word, are_related, load_english

WordPairs = list[tuple[Word, Word]]

_MAGNITUDES = frozenset({"hundred", "thousand", "million", "billion", "trillion", "percent"})
_CONJUNCTIONS = frozenset({"and", "or", "to", "through"})
# A negation may deny a word this many words after it.
_NEGATION_REACH = 4
_MIN_BASE_LETTERS = 4
_MAX_OPPOSITES = 20
# Among more numbers, some sum is equal to any number by chance.
_MAX_OPERANDS = 20
# A number belongs to one of this many content words next to it.
_MAX_NOUNS = 4
_FACTORS = {
    "half": Fraction(1, 2), "quarter": Fraction(1, 4), "twice": Fraction(2), "double": Fraction(2),
    "triple": Fraction(3), "tenfold": Fraction(10),
}  # fmt: skip
_PLAIN = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_CURRENCY = re.compile(r"(?: (?:dollars|euros|pounds|yen|rupees|about|around|approximately))+\Z")
_UPPER = re.compile(
    r"(?<= )(?:up to|at most|(?:no|not) (?:more|greater|higher|longer|later|older) than"
    r"|(?<! no )(?<! not )(?:less|fewer|lower|smaller|shorter|younger) than|under|below"
    r"|(?:a )?maximum of)\Z"
)
_LOWER = re.compile(
    r"(?<= )(?:at least|(?:no|not) (?:less|fewer|lower|smaller|shorter|younger) than"
    r"|(?<! no )(?<! not )(?:more|greater|higher|longer|older|larger) than|over|above"
    r"|exceed(?:s|ed|ing)?|(?:a )?minimum of)\Z"
)
_MAX_BOUND_WORDS = 5
# "In 2013, thousand of visitors came."
YEAR = re.compile(r"1[5-9][0-9]{2}|20[0-9]{2}")


class _ExclusiveWords(NamedTuple):
    """The groups of words that exclude each other, and the units that count only next to a number."""

    groups: dict[str, tuple[frozenset[str], ...]]
    units: frozenset[str]
    spellings: dict[str, str]


class _Prefixes(NamedTuple):
    """The words that each prefix negates; an empty set means all words."""

    bases: dict[str, frozenset[str]]
    exceptions: frozenset[str]


class _Measure(NamedTuple):
    number: str
    magnitude: str
    bound: str
    is_upper: bool


@functools.cache
def _load_exclusive_words() -> _ExclusiveWords:
    data = load_data("grounding", "exclusive.yaml")
    groups: dict[str, tuple[frozenset[str], ...]] = {}
    for line in (*data["anywhere"], *data["periods"], *data["next_to_a_number"]):
        group = frozenset(line.split())
        for word in group:
            groups[word] = (*groups.get(word, ()), group)
    units = frozenset(word for line in data["next_to_a_number"] for word in line.split())
    spellings = {word: unit for unit, line in data["spellings"].items() for word in line.split()}
    return _ExclusiveWords(groups, units, spellings)


@functools.cache
def _load_prefixes() -> _Prefixes:
    data = load_data("grounding", "opposites.yaml")
    bases = {prefix: frozenset(words.split()) for prefix, words in data["prefixes"].items()}
    return _Prefixes(bases, frozenset(data["exceptions"].split()))


def find_replaced_words(sentence: Sequence[Word], context: Sequence[Word]) -> WordPairs:
    """Return the words that a context replaces with another word of an exclusive group, with that word."""
    members, context_members = _find_members(sentence), _find_members(context)
    pairs: WordPairs = []
    for member, word in members.items():
        if member in context_members:
            continue
        for group in _load_exclusive_words().groups[member]:
            others = [other for other in group if other in context_members]
            # A sentence with both words compares them.
            if others and not any(other in members for other in others):
                pairs.append((word, context_members[others[0]]))
                break
    return pairs + _find_other_units(sentence, context)


def _find_members(sentence: Sequence[Word]) -> dict[str, Word]:
    """Return the words that belong to an exclusive group, by their base form."""
    exclusive_words = _load_exclusive_words()
    members: dict[str, Word] = {}
    for index, word in enumerate(sentence):
        neighbors = sentence[max(0, index - 1) : index + 2]
        follows_number = index > 0 and sentence[index - 1].kind == "number"
        member = (get_unit(word) if follows_number else "") or _get_member(word)
        if member not in exclusive_words.groups:
            continue
        has_number = any(other.kind == "number" and other is not word for other in neighbors)
        if member not in exclusive_words.units or has_number:
            members.setdefault(member, word)
    return members


def _find_other_units(sentence: Sequence[Word], context: Sequence[Word]) -> WordPairs:
    """Return units whose number has only different units, or a different sign, in the context."""
    context_units: dict[str, dict[str, Word]] = {}
    for number, unit, word in _find_units(context):
        context_units.setdefault(number, {})[unit] = word
    groups = _load_exclusive_words().groups
    pairs: WordPairs = []
    for number, unit, word in _find_units(sentence):
        units = context_units.get(number, {})
        if unit in units:
            continue
        exclusive_units = [other for other in units if any(other in group for group in groups.get(unit, ()))]
        if exclusive_units:
            pairs.append((word, units[exclusive_units[0]]))
            continue
        opposite = context_units.get(number.removeprefix("-") if number[0] == "-" else f"-{number}", {})
        if unit in opposite:
            pairs.append((word, opposite[unit]))
    return pairs


def find_same_measures(sentence: Sequence[Word], context: Sequence[Word]) -> set[Word]:
    """Return the units that follow the same number in a context, in any spelling."""
    measures = {(number, unit) for number, unit, _ in _find_units(context) if unit}
    return {word for number, unit, word in _find_units(sentence) if (number, unit) in measures}


def find_units(sentence: Sequence[Word]) -> set[Word]:
    """Return the units of a sentence that follow a number."""
    return {word for _, unit, word in _find_units(sentence) if unit}


def is_number(word: Word) -> bool:
    return word.kind == "number" and word.text.lstrip("-")[:1].isdigit()


def _find_units(sentence: Sequence[Word]) -> Iterator[tuple[str, str, Word]]:
    """Yield each number, the base form of its unit or "", and the word of the unit or number."""
    for number, word in itertools.zip_longest(sentence, sentence[1:]):
        if is_number(number):
            unit = get_unit(word) if word else ""
            yield number.text, unit, word if unit else number


def get_unit(word: Word) -> str:
    exclusive_words = _load_exclusive_words()
    text = word.text.lower()
    text = exclusive_words.spellings.get(text) or exclusive_words.spellings.get(text.removesuffix("s")) or text
    member = text if text in exclusive_words.groups else _get_singular(text)
    if member in exclusive_words.units:
        return member
    return "degree" if text in ("degree", "degrees", "°c", "°f") else ""


def _get_member(word: Word) -> str:
    text = word.text.lower()
    if text == "may" and word.kind != "name":
        return ""
    return text if text in _load_exclusive_words().groups else _get_singular(text)


@functools.lru_cache(maxsize=65536)
def _get_singular(text: str) -> str:
    is_plural = text.endswith("s") and text[:-1] in _load_exclusive_words().groups
    return text[:-1] if is_plural and are_related(text, text[:-1]) else ""


def find_opposites(sentence: Sequence[Word], context: Sequence[Word]) -> WordPairs:
    """Return the words for which a context has only the opposite, formed with a prefix, with that opposite."""
    context_by_base = _group_by_base(context)
    context_texts = {word.text for _, word in _list_content_words(context)}
    pairs: WordPairs = []
    for index, word in _list_content_words(sentence):
        if word.text in context_texts or _is_denied(sentence, index) or len(pairs) == _MAX_OPPOSITES:
            continue
        other = _find_opposite(word, context, context_by_base)
        if other is None:
            continue
        originals = (word.original, other.original)
        forms = [item.text for item in (*sentence, *context) if item.original not in originals]
        # A sentence with both words compares them.
        if not any(are_related(word.text, form) or are_related(other.text, form) for form in forms):
            pairs.append((word, other))
    return pairs


WordsByBase = dict[tuple[str, str], dict[str, tuple[int, Word]]]


def _group_by_base(sentence: Sequence[Word]) -> WordsByBase:
    """Group words by prefix and the first letters of their base, each with its first index."""
    groups: WordsByBase = {}
    for index, word in _list_content_words(sentence):
        for prefix in ("", *_load_prefixes().bases):
            base = word.text.removeprefix(prefix)
            if (base != word.text or not prefix) and len(base) >= _MIN_BASE_LETTERS:
                group = groups.setdefault((prefix, base[:_MIN_BASE_LETTERS]), {})
                group.setdefault(word.text, (index, word))
    return groups


def _find_opposite(word: Word, context: Sequence[Word], context_by_base: WordsByBase) -> Word | None:
    for prefix in _load_prefixes().bases:
        keys = [(prefix, word.text[:_MIN_BASE_LETTERS])]
        if word.text.startswith(prefix):
            keys.append(("", word.text.removeprefix(prefix)[:_MIN_BASE_LETTERS]))
        for key in keys:
            for index, other in context_by_base.get(key, {}).values():
                if _are_opposite(word.text, other.text) and not _is_denied(context, index):
                    return other
    return None


def are_converse(sentence: Sequence[Word], passage: Sequence[Word], word: Word, other: Word) -> bool:
    """Return True if opposites compare two things in reverse order: "A is younger than B", "B is older than A"."""
    sides, other_sides = _split_comparison(sentence, word), _split_comparison(passage, other)
    if not sides or not other_sides:
        return False
    (left, right), (other_left, other_right) = sides, other_sides
    return bool(left & other_right and right & other_left) and not (left & other_left or right & other_right)


def find_exchanged_comparison(sentence: Sequence[Word], passage: Sequence[Word]) -> tuple[str, str] | None:
    """Return the two sides of a comparison that are exchanged: "A is older than B", "B is older than A"."""
    for word, than in itertools.pairwise(sentence):
        other = next((item for item in passage if item.text == word.text), None)
        if than.text == "than" and other and are_converse(sentence, passage, word, other):
            left, right = _split_comparison(sentence, word) or ((), ())
            return " ".join(sorted(left)), " ".join(sorted(right))
    return None


def _split_comparison(sentence: Sequence[Word], word: Word) -> tuple[set[str], set[str]] | None:
    """Return the content words only before a word, and only after the "than" that follows it."""
    place = next((index for index, item in enumerate(sentence) if item is word), len(sentence))
    than = next((index for index in range(place, len(sentence)) if sentence[index].text == "than"), None)
    if than is None:
        return None
    parts = sentence[:place], sentence[than:]
    before, after = ({item.text for item in part if item.kind in ("content", "name")} for part in parts)
    return before - after, after - before


def find_changed_measures(sentence: Sequence[Word], context: Sequence[Word]) -> list[tuple[str, str]]:
    """Return the numbers that have another magnitude, or the opposite bound, than the same number in a context."""
    context_measures: dict[str, list[_Measure]] = {}
    for measure in _find_measures(context):
        context_measures.setdefault(measure.number, []).append(measure)
    changes = []
    for number, magnitude, bound, is_upper in _find_measures(sentence):
        others = context_measures.get(number, [])
        if not others:
            continue
        if all(other.magnitude and other.magnitude != magnitude for other in others):
            changes.append((f"{number} {magnitude}".rstrip(), f"{number} {others[0].magnitude}"))
        elif bound and all(other.bound and other.is_upper is not is_upper for other in others):
            changes.append((f"{bound} {number}", f"{others[0].bound} {number}"))
    return changes


def _find_measures(sentence: Sequence[Word]) -> Iterator[_Measure]:
    for index, word in enumerate(sentence):
        if not is_number(word):
            continue
        before = "".join(f" {item.text}" for item in sentence[max(0, index - _MAX_BOUND_WORDS) : index])
        before = _CURRENCY.sub("", before)
        upper, lower = _UPPER.search(before), _LOWER.search(before)
        bound = upper or lower
        magnitude = get_magnitude(sentence, index)
        yield _Measure(word.text, magnitude, bound[0].strip() if bound else "", upper is not None)


def get_magnitude(sentence: Sequence[Word], index: int) -> str:
    """Return the magnitude after a number; in "5 to 6 million" both numbers have it."""
    if YEAR.fullmatch(sentence[index].text):
        return ""
    following = [word.text for word in sentence[index + 1 : index + 4]]
    if following[:1] and following[0] in _MAGNITUDES:
        return following[0]
    is_range = len(following) == 3 and following[0] in _CONJUNCTIONS and following[1][:1].isdigit()
    if is_range and following[2] in _MAGNITUDES:
        return following[2]
    # "5-6 million"
    if len(following) > 1 and following[0][:1].isdigit() and following[1] in _MAGNITUDES:
        return following[1]
    return ""


def _list_content_words(sentence: Sequence[Word]) -> Iterator[tuple[int, Word]]:
    """Yield content words and names with their indexes; "non-toxic" is one word."""
    for index, word in enumerate(sentence):
        if word.kind in ("content", "name") and len(word.text) >= _MIN_BASE_LETTERS:
            if index and sentence[index - 1].text == "non":
                yield index, word._replace(text=f"non{word.text}")
            else:
                yield index, word


def _is_denied(sentence: Sequence[Word], index: int) -> bool:
    before = sentence[max(0, index - _NEGATION_REACH) : index]
    return any(word.kind == "negation" or word.text in load_english().denial_verbs for word in before)


@functools.lru_cache(maxsize=65536)
def _are_opposite(left: str, right: str) -> bool:
    longer, shorter = (left, right) if len(left) > len(right) else (right, left)
    prefixes = _load_prefixes()
    for prefix, bases in prefixes.bases.items():
        base = longer.removeprefix(prefix)
        if base == longer or len(base) < _MIN_BASE_LETTERS or base in prefixes.exceptions:
            continue
        if (base == shorter or are_related(base, shorter)) and (
            not bases or any(base == listed_base or are_related(base, listed_base) for listed_base in bases)
        ):
            return True
    return False


def find_exchanged_numbers(sentence: Sequence[Word], passages: Sequence[Sequence[Word]]) -> list[str]:
    """Describe two numbers that have changed places: "8% of adults, 9% of children", "9% of adults, 8% of children".

    Numbers belong to the content words next to them, or else to the nearest ones: "a lamp for 25", "the lamp costs 25".
    """
    # The numbers of two passages may be joined, so that only all of them tell which belongs to what.
    passage = [word for part in passages for word in part]
    units = {number: unit for number, unit, _ in _find_units(sentence)}
    for count in (1, _MAX_NOUNS):
        exchange, sides = None, (_list_number_nouns(side, count) for side in (sentence, passage))
        for nouns, others in itertools.product(*sides):
            common = sorted(nouns.keys() & others.keys())
            for left, right in itertools.combinations(common[:_MAX_OPERANDS], 2):
                if units[left] != units[right] and (count == 1 or (units[left] and units[right])):
                    continue
                # A year may move to the start of its sentence; it never changes places with a count.
                if (YEAR.fullmatch(left) is None) != (YEAR.fullmatch(right) is None):
                    continue
                own, theirs = _separate(nouns[left], nouns[right]), _separate(others[left], others[right])
                same, crossed = (
                    [are_same(a, b) for a, b in zip(own, other, strict=True)] for other in (theirs, theirs[::-1])
                )
                if all(same):
                    return []
                if all(crossed):
                    exchange = left, right
        if exchange:
            return [f"{exchange[0]} and {exchange[1]} (exchanged)"]
    return []


def _separate(left: Sequence[str], right: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of each side that the other does not have."""
    return [word for word in left if not are_same([word], right)], [
        word for word in right if not are_same([word], left)
    ]


def _list_number_nouns(sentence: Sequence[Word], count: int) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Return the first content words after each number, and those before it; numbers that occur twice are left out.

    Of one word before it, the first after the number before; of several, the last.
    """
    places = [index for index, word in enumerate(sentence) if is_number(word)]
    counts = Counter(sentence[place].text for place in places)
    after, before = dict[str, list[str]](), dict[str, list[str]]()
    for start, place, end in zip([-1, *places], places, [*places[1:], len(sentence)], strict=False):
        if counts[sentence[place].text] > 1:
            continue
        following = [word.text for word in sentence[place + 1 : end] if _is_noun(word)]
        preceding = [word.text for word in sentence[start + 1 : place] if _is_noun(word)]
        # "30 people and room B 50": the people belong to the number before.
        is_joined = start >= 0 and _is_noun(sentence[start + 1]) and sentence[start + 2].text in _CONJUNCTIONS
        if len(preceding) > 1 and is_joined:
            del preceding[0]
        after |= {sentence[place].text: following[:count]} if following else {}
        before |= {sentence[place].text: preceding[:1] if count == 1 else preceding[-count:]} if preceding else {}
    return after, before


class MovedNumber(NamedTuple):
    """An amount whose number a context has for something else, its amount of the same thing, and if both are units."""

    amount: str
    other_amount: str
    is_certain: bool


def find_moved_numbers(sentence: Sequence[Word], context: Sequence[Sequence[Word]]) -> Iterator[MovedNumber]:
    """Yield the amounts whose number the passages of a context have only for other things.

    "12 euros" has moved if the context has "12 kg" and "8 euros". It has not if the words after the number say the same
    as the sentence: "30 employees joined" after "12 employees left and 30 workers joined".
    """
    numbers, texts = {word.text for word in sentence}, {word.text for word in sentence if word.kind != "function"}
    amounts = [amount for passage in context for amount in _find_amounts(passage)]
    for number, things, unit, _ in _find_amounts(sentence):
        homes = [amount for amount in amounts if amount.number == number]
        rivals = [item for item in amounts if item.number not in numbers and are_same(item.things, things)]
        if not things or not homes or not rivals:
            continue
        if any(not home.things or are_same(home.things, things) for home in homes):
            continue
        stated = texts.difference(*(item.part for item in rivals), things)
        is_certain = bool(unit) and all(home.unit for home in homes)
        if not is_certain and any(stated & home.part for home in homes):
            continue
        yield MovedNumber(f"{number} {things[0]}", f"{rivals[0].number} {things[0]}", is_certain)


class _Amount(NamedTuple):
    """A number, the content words after it, their unit, and the words up to the next number."""

    number: str
    things: Sequence[str]
    unit: str
    part: frozenset[str]


def _find_amounts(sentence: Sequence[Word]) -> Iterator[_Amount]:
    """Yield each number that is no year. A passage with one number is about it; of others, the start is shared."""
    places = [index for index, word in enumerate(sentence) if is_number(word) and not YEAR.fullmatch(word.text)]
    for place, end in zip(places, [*places[1:], len(sentence)], strict=False):
        following = list(itertools.takewhile(lambda word: word.kind == "content", sentence[place + 1 : end]))
        unit = next(filter(None, map(get_unit, sentence[place + 1 : place + 2])), "")
        unit = unit or next((word.text for word in following[:1] if word.text == "percent"), "")
        part = sentence[place + 1 : end] if len(places) > 1 else sentence
        things = [unit] if unit else [word.text for word in following]
        yield _Amount(sentence[place].text, things, unit, frozenset(word.text for word in part))


def are_same(left: Sequence[str], right: Sequence[str]) -> bool:
    return any(are_related(word, other) for word in left for other in right)


def _is_noun(word: Word) -> bool:
    return word.kind in ("content", "name") and word.text not in _MAGNITUDES and not get_unit(word)


def find_operands(number: Word, context: Sequence[Word], unit: str = "") -> tuple[str, str] | None:
    """Return two numbers of a context whose sum or difference a number is, or a number and a factor ("half").

    Two years have a difference if the unit of the number is a year; otherwise years are left out.
    """
    if not is_number(number) or YEAR.fullmatch(number.text) or not _PLAIN.fullmatch(number.text):
        return None
    is_span, target = unit in ("year", "years"), Fraction(number.text)
    texts = dict.fromkeys(
        word.text for word in context if is_number(word) and (is_span or not YEAR.fullmatch(word.text))
    )
    values = {text: Fraction(text) for text in itertools.islice(texts, _MAX_OPERANDS) if _PLAIN.fullmatch(text)}
    for factor in dict.fromkeys(word.text for word in context if word.text in _FACTORS):
        for text, value in values.items():
            if target == value * _FACTORS[factor]:
                return text, factor
    for left, right in itertools.combinations(values, 2):
        if target in (values[left] + values[right], abs(values[left] - values[right])):
            return left, right
    return None
