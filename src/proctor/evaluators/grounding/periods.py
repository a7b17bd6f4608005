"""Find amounts that a sentence gives for another year, month, quarter or rank than its context does."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from proctor.evaluators.data_files import load_data
from proctor.evaluators.grounding.contradictions import YEAR, are_same, get_magnitude, get_unit, is_number
from proctor.evaluators.grounding.features import load_roles
from proctor.evaluators.tokenizer import Word

_YEARS = "year"
_MAX_DAY_DIGITS = 2
# Groups of days, and "other days", may have amounts of their own beside single days.
_DAYS = frozenset({"weekdays", "weekends"})
_RANK = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)")


class _Period(NamedTuple):
    """A year, a month, a quarter or a rank, and which of these it is."""

    kind: str
    name: str


class _Amount(NamedTuple):
    """A number of one period, its unit or magnitude, and the content words after it."""

    period: str
    number: str
    unit: str
    things: Sequence[str]

    def __str__(self) -> str:
        return f"{self.number} {self.unit}".rstrip()


@functools.cache
def _load_periods() -> dict[str, str]:
    """Return the kind of each period that has a name: the first word of its group."""
    lines = [line.split() for line in load_data("grounding", "exclusive.yaml")["periods"]]
    return {word: line[0] for line in lines for word in line}


def find_exchanged_periods(
    sentence: Sequence[Word],
    passages: Sequence[Sequence[Word]],
    find_passages: Callable[[Word], Sequence[Sequence[Word]]],
) -> Iterator[str]:
    """Describe the amounts that the passages give for another period, while they give its period another amount.

    "In 2019 it was 7 million" has the amount of 2020 if the passages have "5 million in 2019 and 7 million in 2020".
    `find_passages` returns the passages of the context with a word; one of them may say it as the sentence does.
    """
    comparisons = load_roles()["comparisons"]
    if any(word.kind == "negation" or word.original.lower() in comparisons for word in sentence):
        return
    for kind in dict.fromkeys(period.kind for period in _find_periods(sentence).values()):
        stated = _list_amounts(sentence, kind) or []
        known = [amount for passage in passages for amount in _list_amounts(passage, kind) or []]
        for amount in stated:
            homes = [item for item in known if item.number == amount.number and _is_comparable(item, amount)]
            rivals = [item for item in known if item.period == amount.period and _is_comparable(item, amount)]
            own = {item.number for item in stated if item.period == amount.period}
            if not homes or not rivals or any(item.number in own for item in rivals):
                continue
            word = next(word for word in sentence if word.text == amount.number)
            if not any(_may_state(passage, kind, amount) for passage in find_passages(word)):
                yield f"{amount} (not {rivals[0]}) for {amount.period}"


def _find_periods(words: Sequence[Word]) -> dict[int, _Period]:
    """Return the periods of a sentence by their places."""
    periods = ((place, _read_period(words, place)) for place in range(len(words)))
    return {place: period for place, period in periods if period}


def _read_period(words: Sequence[Word], place: int) -> _Period | None:
    """Return the kind and the name of the period at a place: a year, a month, a quarter, "the first"."""
    word, before = words[place], words[place - 1] if place else None
    if word.kind == "number":
        rank = _RANK.fullmatch(word.original.lower())
        ranks = [name for name, kind in _load_periods().items() if kind == "first"]
        if rank and 0 < int(rank[1]) < len(ranks):
            return _Period("first", ranks[int(rank[1]) - 1])
        return _Period(_YEARS, word.text) if YEAR.fullmatch(word.text) else None
    name = word.text.lower()
    if name in _DAYS or (name == "other" and words[place + 1 : place + 2] and words[place + 1].text == "days"):
        return _Period("monday", name)
    kind = _load_periods().get(name) or _load_periods().get(name := name.removesuffix("s"))
    if kind is None or (name in ("may", "march") and word.kind != "name"):
        return None
    # "It first opened", "5 second".
    is_rank = before is None or before.text in load_roles()["determiners"]
    return None if kind == "first" and not is_rank else _Period(kind, name)


def _list_amounts(words: Sequence[Word], kind: str) -> list[_Amount] | None:
    """Return the amounts of a passage with their periods of one kind; None if it is not clear which belongs to which.

    The amounts follow their period each time, or precede it each time.
    """
    marks, names, amounts = "", list[str](), list[_Amount]()
    periods = _find_periods(words)
    for place, word in enumerate(words):
        period = periods.get(place)
        if period and period.kind == kind:
            if _is_span(words, place):
                return None
            marks, names = marks + "P", [*names, period.name]
        elif is_number(word) and not period and not _is_day(words, place, periods):
            marks, amounts = marks + "A", [*amounts, _read_amount(words, place)]
    if re.fullmatch("(?:PA+)+", marks):
        counts = [len(part) for part in marks.split("P")[1:]]
    elif re.fullmatch("(?:A+P)+", marks):
        counts = [len(part) for part in marks.split("P")[:-1]]
    elif len(names) == len(amounts) and re.fullmatch("P+A+|A+P+", marks) and words[-1].text == "respectively":
        counts = [1] * len(names)
    else:
        return None
    owners = [name for name, count in zip(names, counts, strict=True) for _ in range(count)]
    return [amount._replace(period=owner) for amount, owner in zip(amounts, owners, strict=True)]


def _is_span(words: Sequence[Word], place: int) -> bool:
    """Return whether a period starts or ends a span ("before 2019", "up on 2019"), or belongs to an event."""
    roles = load_roles()
    before = [word.original.lower() for word in words[max(0, place - 3) : place]]
    if before and before[-1] in roles["determiners"]:
        before.pop()
    if before[-2:] == ["up", "on"] or before[-2:] == ["down", "on"]:
        return True
    if (
        before
        and before[-1] in roles["placing"]
        and before[-2:-1]
        and before[-2] in (*roles["spans"], *roles["events"])
    ):
        return True
    return bool(before) and before[-1] in roles["spans"]


def _is_day(words: Sequence[Word], place: int, periods: Mapping[int, _Period]) -> bool:
    """Return whether a number is the day of a month: "May 5", "5 of May"."""
    if len(words[place].text) > _MAX_DAY_DIGITS:
        return False
    after = place + 2 if words[place + 1 : place + 2] and words[place + 1].text == "of" else place + 1
    return any(item in periods and periods[item].kind == "january" for item in (place - 1, after))


def _read_amount(words: Sequence[Word], place: int) -> _Amount:
    following = words[place + 1 : place + 4]
    unit = get_magnitude(words, place) or next(filter(None, map(get_unit, following[:1])), "")
    if not unit and following and following[0].text == "percent":
        unit = "percent"
    things = [word.text for word in following if word.kind == "content"][:1] if not unit else []
    return _Amount("", words[place].text, unit, things)


def _is_comparable(item: _Amount, other: _Amount) -> bool:
    if item.unit != other.unit:
        return False
    return not (item.things and other.things) or are_same(item.things, other.things)


def _may_state(passage: Sequence[Word], kind: str, amount: _Amount) -> bool:
    """Return whether a passage may give an amount for its period."""
    known = _list_amounts(passage, kind)
    if known is None:
        return _Period(kind, amount.period) in _find_periods(passage).values()
    return any((item.period, item.number) == (amount.period, amount.number) for item in known)
