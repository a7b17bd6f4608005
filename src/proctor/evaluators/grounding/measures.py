"""Find rates, limits in time and shares of a group that a sentence gives otherwise than its context does."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from proctor.evaluators.data_files import load_data
from proctor.evaluators.grounding.contradictions import YEAR, get_unit, is_number
from proctor.evaluators.grounding.features import index_words, load_roles
from proctor.evaluators.tokenizer import Word, are_related

_DISTANCE = "100 kilometers"
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
        is_time = YEAR.fullmatch(word.text) or start < place or any(map(_is_time, following))
        preposition = sentence[start - 1].text if start and is_time else ""
        is_start = preposition in roles["span_starts"]
        is_end = preposition in roles["span_ends"] or [item.text for item in sentence[max(0, start - 2) : start]] == [
            "up",
            "to",
        ]
        text = " ".join(item.original for item in (*sentence[max(0, start - 1) : place + 1], *following))
        yield _Limit(word.text, is_start if is_start or (is_end and is_time) else None, text)


def _is_time(word: Word) -> bool:
    return get_unit(word) in _load_durations() or word.text in ("a.m.", "p.m.") or word.text in _load_months()


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
