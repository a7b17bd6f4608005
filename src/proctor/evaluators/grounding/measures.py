"""Find rates, limits in time and shares of a group that a sentence gives otherwise than its context does."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from proctor.evaluators.data_files import load_data
from proctor.evaluators.grounding.contradictions import YEAR, get_unit, is_number
from proctor.evaluators.grounding.features import index_words, load_roles, measure_overlap
from proctor.evaluators.tokenizer import Word, are_related

_DISTANCE = "100 kilometers"
_FREE = "free"
# A passage with this share of the other content words is about the same thing.
_MIN_SAME = 0.6
# "Per person and night"; "free admission for children".
_MAX_BASE_WORDS, _MAX_BEFORE_GROUP = 4, 3
# "All of the members": the words between a quantifier and what it is about.
_MAX_BETWEEN = 2


class _Rate(NamedTuple):
    """A number with its unit per time or the like, and its text: "20 km/h", "900 per month"."""

    number: str
    unit: str
    period: str
    text: str


class _Limit(NamedTuple):
    """A point or a length of time, and whether something starts after it; None if it is no limit."""

    number: str
    is_start: bool | None
    text: str


class _Share(NamedTuple):
    """A quantifier such as "most", its place from few to all, and what it is about."""

    quantifier: str
    level: int
    thing: str

    def __str__(self) -> str:
        return f"{self.quantifier} {self.thing}"


def find_changed_rates(sentence: Sequence[Word], context: Sequence[Word]) -> Iterator[tuple[str, str]]:
    """Yield the rates whose number a context has only in another unit or per something else, with the other rate."""
    others = list(_find_rates(context))
    for rate in _find_rates(sentence):
        known = [other for other in others if other.number == rate.number]
        if known and not any(_is_same_rate(rate, other) for other in known):
            yield rate.text, known[0].text


def _is_same_rate(rate: _Rate, other: _Rate) -> bool:
    return rate.period == other.period and (rate.unit == other.unit or not (rate.unit and other.unit))


def _find_rates(sentence: Sequence[Word]) -> Iterator[_Rate]:
    rates = _load_rates()
    for place, word in enumerate(sentence[:-1]):
        if not is_number(word):
            continue
        following = sentence[place + 1 :][:4]
        unit = get_unit(following[0])
        period, length = _read_period(following[bool(unit) :], unit)
        names = rates.get(following[0].text, ())
        if len(names) > 1:
            unit, period, length = names[0], names[1], 1
        if period:
            text = " ".join(item.original for item in (word, *following[: bool(unit) + length]))
            yield _Rate(word.text, unit, period, text)


def _read_period(following: Sequence[Word], unit: str) -> tuple[str, int]:
    """Return what a number is given per, or "", and how many words say that: "per day", "daily", the h of "km/h"."""
    if not following:
        return "", 0
    first, second = following[0], following[1] if len(following) > 1 else None
    names = _load_rates().get(first.text, ())
    if len(names) == 1:
        return names[0], 1
    if second and first.text in load_roles()["per"]:
        return get_unit(second), 2
    if second and unit == "liter" and first.text == "100" and get_unit(second) == "kilometer":
        return _DISTANCE, 2
    return (get_unit(first), 1) if unit and len(first.text) == 1 else ("", 0)


@functools.cache
def _load_rates() -> dict[str, list[str]]:
    return {word: names.split() for word, names in load_data("grounding", "exclusive.yaml")["rates"].items()}


class _Frequency(NamedTuple):
    """How many times a year something happens, if the text says how many times in a period, and its words."""

    yearly: int
    period: str
    is_counted: bool
    words: Sequence[Word]

    def agrees(self, other: _Frequency) -> bool:
        """Return whether both may be true: what happens twice a day happens daily."""
        if not (self.is_counted and other.is_counted) and self.period == other.period:
            return True
        return self.yearly == other.yearly

    def __str__(self) -> str:
        return " ".join(word.original for word in self.words)


def find_changed_frequencies(
    sentence: Sequence[Word], near: Sequence[Sequence[Word]], others: Sequence[Sequence[Word]]
) -> Iterator[tuple[str, str]]:
    """Yield the frequencies for which near passages, of the same content words, have only others: "twice a day".

    The other passages may state it as the sentence does.
    """
    frequencies = list(_find_frequencies(sentence))
    words = {word for frequency in frequencies for word in frequency.words}
    rest = [word for word in sentence if word not in words]
    same = [passage for passage in near if frequencies and measure_overlap(rest, passage) >= _MIN_SAME]
    known = [frequency for passage in same for frequency in _find_frequencies(passage)]
    stated = [*known, *(frequency for passage in others for frequency in _find_frequencies(passage))]
    for frequency in frequencies:
        if known and not any(frequency.agrees(other) for other in stated):
            yield str(frequency), str(known[0])


def find_frequency_words(sentence: Sequence[Word]) -> set[Word]:
    """Return the words of a sentence that say how often something happens."""
    return {word for frequency in _find_frequencies(sentence) for word in frequency.words}


def _find_frequencies(sentence: Sequence[Word]) -> Iterator[_Frequency]:
    """Yield "twice a day", "3 times per year", "once weekly", "daily" and "every day"."""
    yearly, rates, place = _load_frequencies(), _load_rates(), 0
    while place < len(sentence):
        count, start = _read_count(sentence, place)
        rest = [word.text for word in sentence[start : start + 2]]
        period, end = "", start
        names = rates.get(rest[0], ()) if rest else ()
        if len(names) == 1 or rest[:1] == ["quarterly"]:
            period, end = names[0] if names else rest[0], start + 1
        elif len(rest) > 1 and rest[0] in (load_roles()["per"] if count else ("every", "each")) and rest[1] in yearly:
            period, end = rest[1], start + 2
        if period:
            yield _Frequency((count or 1) * yearly[period], period, count > 0, sentence[place:end])
        place = max(end, place + 1)


@functools.cache
def _load_frequencies() -> dict[str, int]:
    return dict(load_data("grounding", "exclusive.yaml")["frequencies"])


def _read_count(sentence: Sequence[Word], place: int) -> tuple[int, int]:
    """Return how many times something happens, or 0, and the place after that."""
    count = {"once": 1, "twice": 2}.get(sentence[place].text, 0)
    if count:
        return count, place + 1
    is_count = sentence[place].text.isdecimal() and [word.text for word in sentence[place + 1 : place + 2]] == ["times"]
    return (int(sentence[place].text), place + 2) if is_count else (0, place)


def find_changed_bases(sentence: Sequence[Word], context: Sequence[Word]) -> Iterator[tuple[str, str]]:
    """Yield what an amount is per, if a context has the same number only per something else: "per room"."""
    known = list(_find_bases(context))
    for number, bases in _find_bases(sentence):
        others = [names for other, names in known if other == number]
        if others and all(bases.keys().isdisjoint(names) for names in others):
            yield f"per {next(iter(bases.values()))}", f"per {next(iter(others[0].values()))}"


def find_base_words(sentence: Sequence[Word]) -> set[Word]:
    """Return the words of a sentence that say what an amount is per."""
    names = {name for _, bases in _find_bases(sentence) for name in bases.values()}
    return {word for word in sentence if word.text in names}


def _find_bases(sentence: Sequence[Word]) -> Iterator[tuple[str, dict[int, str]]]:
    """Yield each number with what it is per, by the kind of that."""
    places = [place for place, word in enumerate(sentence) if is_number(word)]
    for place, end in zip(places, [*places[1:], len(sentence)], strict=False):
        part = [word.text for word in sentence[place + 1 : end]]
        if "per" in part:
            names = part[part.index("per") + 1 :][:_MAX_BASE_WORDS]
            bases = {kind: name for name in names if (kind := _load_bases().get(name.removesuffix("s"))) is not None}
            if bases:
                yield sentence[place].text, bases


@functools.cache
def _load_bases() -> dict[str, int]:
    lines = load_data("grounding", "exclusive.yaml")["bases"]
    return {word: kind for kind, line in enumerate(lines) for word in line.split()}


class _Price(NamedTuple):
    """What somebody pays: a number with its unit, or "free"."""

    amount: str
    payer: str

    def __str__(self) -> str:
        return f"{self.amount} for {self.payer}"


def find_changed_prices(sentence: Sequence[Word], passages: Sequence[Sequence[Word]]) -> Iterator[tuple[str, str]]:
    """Yield the prices of one group that passages give only for another one: "12 euros for adults, free for children".

    What is free for a group is changed if the passages give it any other price.
    """
    known = [price for passage in passages for price in _find_prices(passage)]
    for price in _find_prices(sentence):
        own = [other for other in known if are_related(other.payer, price.payer)]
        is_moved = price.amount == _FREE or any(other.amount == price.amount for other in known)
        if own and is_moved and all(other.amount != price.amount for other in own):
            yield str(price), str(own[0])


def _find_prices(sentence: Sequence[Word]) -> Iterator[_Price]:
    amount, age = "", 0
    for place, word in enumerate(sentence):
        following = sentence[place + 1 : place + 2]
        if word.kind == "negation":
            return
        if word.text == _FREE or (is_number(word) and any(get_unit(item) in _load_currencies() for item in following)):
            amount, age = (_FREE, 0) if word.text == _FREE else (f"{word.text} {following[0].original}", -1)
        elif is_number(word):
            amount = ""
        age += 1
        is_group = word.text == "for" or (word.text == "and" and age == 1)
        if amount and is_group and age <= _MAX_BEFORE_GROUP and following and following[0].kind == "content":
            # Any "and" after the group adds another one.
            yield _Price(amount, following[0].text)
            age = -1


@functools.cache
def _load_currencies() -> frozenset[str]:
    lines = (line.split() for line in load_data("grounding", "exclusive.yaml")["next_to_a_number"])
    return frozenset(next(line for line in lines if "euro" in line))


def find_changed_limits(sentence: Sequence[Word], passages: Sequence[Sequence[Word]]) -> Iterator[tuple[str, str]]:
    """Yield the limits in time that a passage with the same words has the other way: "within 30 days", "after 30 days".

    Words that the passage lacks may turn it: "closed until 9 am" is "open from 9 am".
    """
    limits = [limit for limit in _find_limits(sentence) if limit.is_start is not None]
    for passage in passages if limits and not _may_turn(sentence) else ():
        index = index_words(passage)
        if _may_turn(passage) or not all(word.text in index for word in sentence if word.kind == "content"):
            continue
        known = list(_find_limits(passage))
        for limit in limits:
            others = [other for other in known if other.number == limit.number]
            if others and all(other.is_start is (not limit.is_start) for other in others):
                yield limit.text, others[0].text


def _may_turn(words: Sequence[Word]) -> bool:
    return any(word.kind == "negation" or word.text in load_roles()["alternatives"] for word in words)


def _find_limits(sentence: Sequence[Word]) -> Iterator[_Limit]:
    """Yield the numbers of a sentence; those of times, dates and durations with the preposition before them."""
    roles = load_roles()
    for place, word in enumerate(sentence):
        if not is_number(word):
            continue
        following = sentence[place + 1 : place + 2]
        start = place - 1 if place and sentence[place - 1].text in _load_months() else place
        is_time = YEAR.fullmatch(word.text) or ":" in word.text or start < place or any(map(_is_time, following))
        preposition = sentence[start - 1].text if start and is_time else ""
        is_start = preposition in roles["span_starts"]
        is_end = preposition in roles["span_ends"] or [item.text for item in sentence[max(0, start - 2) : start]] == [
            "up",
            "to",
        ]
        text = " ".join(item.original for item in (*sentence[max(0, start - 1) : place + 1], *following))
        yield _Limit(word.text, is_start if is_start or (is_end and is_time) else None, text)


def _is_time(word: Word) -> bool:
    return get_unit(word) in _load_durations() or word.text in _load_months()


@functools.cache
def _load_months() -> frozenset[str]:
    return frozenset(load_data("grounding", "exclusive.yaml")["periods"][0].split())


@functools.cache
def _load_durations() -> frozenset[str]:
    lines = (line.split() for line in load_data("grounding", "exclusive.yaml")["next_to_a_number"])
    return frozenset(next(line for line in lines if "minute" in line))


def find_changed_shares(sentence: Sequence[Word], context: Sequence[Word]) -> Iterator[tuple[str, str]]:
    """Yield the shares of a group for which a context has only other ones: "most members", "all members".

    What is true of all is true of some and of many; "most" says that some are left out.
    """
    if any(word.kind == "negation" for word in (*sentence, *context)):
        return
    known = list(_find_shares(context))
    for share in _find_shares(sentence):
        others = [other for other in known if are_related(other.thing, share.thing)]
        is_weak = share.quantifier in load_roles()["weak_quantifiers"]
        if others and not any(
            share.level == other.level or (is_weak and share.level < other.level) for other in others
        ):
            yield str(share), str(others[0])


def _find_shares(sentence: Sequence[Word]) -> Iterator[_Share]:
    levels = _load_quantifiers()
    for place, word in enumerate(sentence):
        if word.text not in levels:
            continue
        rest = sentence[place + 1 :]
        between = 0
        while between < min(_MAX_BETWEEN, len(rest)) and (rest[between].text in (*load_roles()["determiners"], "of")):
            between += 1
        if between < len(rest) and rest[between].kind == "content":
            yield _Share(word.text, levels[word.text], rest[between].text)


@functools.cache
def _load_quantifiers() -> dict[str, int]:
    lines = load_data("grounding", "exclusive.yaml")["quantifiers"]
    return {word: level for level, line in enumerate(lines) for word in line.split()}
