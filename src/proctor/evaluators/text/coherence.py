"""Flow: signs that a text hangs together, or does not, without a model that reads it.

Each sign is a number from 0 to 1, where 1 is what ordinary texts have. What is worst decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from proctor.evaluators.meanings import UNRELATED_TEXTS, Meanings, Nearness, aside
from proctor.evaluators.wording import ends_well, english, folded, sentences, texts_in, words
from proctor.records.score import Score

# Neighbours in ordinary texts are at least so near to each other, on the average.
NEIGHBOURS = 0.22
# Up to so much repetition is found in lists, letters and songs; from there on it counts.
REPEATED, ALL_REPEATED = 0.25, 0.75
_RUN = 4
# The same for sentences that come twice in a row.
STUCK, ALL_STUCK = 0.1, 0.5
# So much is a text worth that breaks off in the middle of a sentence, or begins in the middle.
BROKEN_OFF = 0.75
# Up to this share of articles that stand before nothing they could belong to is a slip.
SLIPS, NO_ORDER = 0.06, 0.3
# Fewer words than these say nothing by themselves: headings, numbers of lists, greetings.
_SHORTEST = 4
# One stray article may be a quotation or a slip of the pen.
_FEWEST_STRAY = 2
# Of longer texts no more sentences are compared, and the score says so.
MOST_COMPARED = 300
# Prose has more than this share of little words, or of letters that are not A to Z.
FEWEST_LITTLE_WORDS, FEWEST_FOREIGN = 0.05, 0.02
_POINT_NUMBER = re.compile(r"([0-9]{1,2})[.)]\s")
_LIST_POINT = re.compile(r"[-*•#>|+]|[0-9A-Za-z]{1,3}[.)]\s")
# "Thank you and best wishes," ends a letter.
_FEWEST_BEFORE_COMMA = 6
_NAMES_A_LETTER = re.compile(
    r"\b(?:answer|option|choice|letter|grade|vitamin|variable|column|point|case)\b", re.IGNORECASE
)
# A hashtag, and what closes a letter.
_UNENDED = re.compile(
    r"#\w+\W*$|\b(?:regards|wishes|sincerely|faithfully|yours|thanks|cheers|love),$", re.IGNORECASE
)


MEANING = {
    "connection": "its sentences have little to do with each other",
    "freshness": "it repeats itself",
    "order": "its words are out of order",
    "sequence": "it has sentences where they cannot stand",
    "completeness": "it breaks off in the last sentence",
}


class Flow(NamedTuple):
    """The signs that were found: None where a text is too short to show them.

    `neighbours` is how near each sentence is to the next one, `strangers` the sentences that are
    near to none, `left_out` how many at the end were not compared.
    """

    connection: float | None
    freshness: float
    order: float
    sequence: float
    completeness: float
    neighbours: tuple[float, ...] = ()
    strangers: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def signs(self) -> dict[str, float]:
        """The signs that there are, by name."""
        told = {
            "connection": self.connection,
            "freshness": self.freshness,
            "order": self.order,
            "sequence": self.sequence,
            "completeness": self.completeness,
        }
        return {name: value for name, value in told.items() if value is not None}

    @property
    def value(self) -> float:
        """The worst sign."""
        return min(self.signs.values())

    def reason(self, threshold: float) -> str:
        """The signs that do not reach a threshold, the worst first, or all if they do."""
        bad = sorted((value, name) for name, value in self.signs.items() if value < threshold)
        if bad:
            return "; ".join(f"{name} {value:.2f}: {MEANING[name]}" for value, name in bad)
        held = ", ".join(f"{name} {value:.2f}" for name, value in self.signs.items())
        return f"it hangs together: {held}"


class Flowing:
    """The signs that the output hangs together."""

    def __init__(self, meanings: Meanings, threshold: float) -> None:
        self._meanings, self._threshold = meanings, threshold
        self.given = meanings.given

    async def score(self, output: Any) -> Score:
        """The worst sign; an empty output has none, and what is no prose is not judged."""
        text, details = "\n\n".join(texts_in(output)), self._meanings.details
        if not text:
            return Score(0.0, False, "the output is empty", details)
        problem = await aside(len(text), self._meanings.unreadable, [text])
        if problem:
            return Score.skipped(problem, details)
        if not await aside(len(text), is_prose, text):
            return Score.skipped("it is no prose that could hang together", details)
        found = await flow(text, self._meanings)
        details["signs"] = found.signs
        if found.neighbours:
            details["neighbours"] = [round(near, 3) for near in found.neighbours]
        if found.strangers:
            details["strangers"] = list(found.strangers)
        reason = found.reason(self._threshold)
        if found.left_out:
            details["sentences_left_out"] = found.left_out
            reason += f"; the last {found.left_out:,} sentences were not compared"
        return Score(found.value, found.value >= self._threshold, reason, details)


def is_prose(text: str) -> bool:
    """True if a text has the little words that prose has, in one of some languages.

    Languages with letters beyond A to Z are taken on trust; numbers, names, lists of words and
    mere letters are no prose.

    >>> is_prose("The bridge fell into the sea."), is_prose("asdf qwer zxcv poiu"), is_prose("42")
    (True, False, False)
    """
    known = english()
    there = [word.text for word in words(text) if word.kind != "number"]
    little = known.function | known.negation | known.speaker | known.elsewhere
    if sum(word in little for word in there) > FEWEST_LITTLE_WORDS * len(there):
        return True
    return sum(c.isalpha() and not c.isascii() for c in text) > FEWEST_FOREIGN * len(text)


async def flow(text: str, meanings: Meanings) -> Flow:
    """Look for the signs in a text; letters alone do not show what sentences have in common."""
    found, parts = await aside(len(text), _without_meanings, text)
    if meanings.method == "lexical" or len(parts) < 2:
        # Says that letters are no meanings, where that is all there is.
        await meanings.vectors(())
        return found
    compared = parts[:MOST_COMPARED]
    vectors, floor = await meanings.vectors(compared), await meanings.floor(UNRELATED_TEXTS)
    near = await aside(len(text), Nearness, vectors, floor)
    neighbours = tuple(near(*pair) for pair in pairwise(compared))
    different = list(dict.fromkeys(compared))
    nearest = await aside(len(text), near.nearest_other, different)
    alone = {one for one, nearness in zip(different, nearest, strict=True) if not nearness}
    mean = sum(neighbours) / len(neighbours)
    return found._replace(
        connection=min(1.0, mean / NEIGHBOURS),
        neighbours=neighbours,
        strangers=tuple(one for one in compared if one in alone),
        left_out=len(parts) - len(compared),
    )


def _without_meanings(text: str) -> tuple[Flow, list[str]]:
    """The signs that need no embedder, and the passages of a text."""
    there, parts = sentences(text), passages(text)
    return (Flow(None, _freshness(text, there), _order(there), _sequence(parts), _completeness(there)), parts)


def passages(text: str) -> list[str]:
    """The sentences of a text; those too short to say something are put to the next one.

    >>> passages("1. Milk. Buy it at the shop on the corner.\\n\\nGood luck to all of you!")
    ['1. Milk. Buy it at the shop on the corner.', 'Good luck to all of you!']
    """
    found: list[str] = []
    waiting = ""
    for one in sentences(text):
        waiting = f"{waiting} {one}".strip()
        if len(words(waiting)) >= _SHORTEST:
            found.append(waiting)
            waiting = ""
    if waiting:
        found[-1:] = [f"{found[-1]} {waiting}"] if found else [waiting]
    return found


def _freshness(text: str, parts: Sequence[str]) -> float:
    """1 unless the same words come again and again, or a sentence right after itself."""
    there = [word.text for word in words(text)]
    runs = Counter(zip(*(there[at:] for at in range(_RUN)), strict=False))
    if not runs:
        return 1.0
    stuck = sum(one == other for one, other in pairwise(parts)) / len(parts)
    again = 1.0 - len(runs) / runs.total()
    return min(_falling(again, REPEATED, ALL_REPEATED), _falling(stuck, STUCK, ALL_STUCK))


def _order(parts: Sequence[str]) -> float:
    """1 unless articles stand before what they cannot belong to, as in words that were shuffled."""
    articles, stray, known = 0, 0, english()
    for sentence in parts:
        # A sign between two words parts them, so it is kept, as a word that is no word.
        there = re.findall(r"\w+|[^\w\s]", folded(sentence))
        for word, after in pairwise([*there, "."]):
            if word in known.articles:
                articles += 1
                # A lone "a" may be a letter, so no sign after it tells.
                stray += after in known.never_after_an_article or (word != "a" and after in ".,;!?")
    return 1.0 if stray < _FEWEST_STRAY else _falling(stray / articles, SLIPS, NO_ORDER)


def _sequence(parts: Sequence[str]) -> float:
    """Less than 1 if sentences stand where they cannot: a count runs back, the end comes first."""
    if len(parts) < _SHORTEST:
        return 1.0
    numbers = [int(found[1]) for one in parts if (found := _POINT_NUMBER.match(one))]
    # A second list begins with its first point again, but no list with its second.
    backwards = any(b <= a and b > 1 for a, b in pairwise(numbers))
    backwards |= 1 in numbers and numbers[0] > 1
    known = english()
    concluded = any(_begins(one, known.conclude) for one in parts[: len(parts) // 2])
    refers = _begins(parts[0], known.refer_back)
    return BROKEN_OFF if backwards or concluded or refers else 1.0


def _begins(sentence: str, phrases: Sequence[str]) -> bool:
    start = f"{' '.join(word.text for word in words(sentence)[:4])} "
    return any(start.startswith(f"{phrase} ") for phrase in phrases)


def _completeness(parts: Sequence[str]) -> float:
    """Less than 1 if the last sentence breaks off, or has no end although others have one."""
    if parts and _is_cut_off(parts[-1]):
        return BROKEN_OFF
    if len(parts) < 2 or len(words(parts[-1])) < _SHORTEST or _UNENDED.search(parts[-1]):
        return 1.0
    last = bool(_LIST_POINT.match(parts[-1]))
    others = [one for one in parts[:-1] if bool(_LIST_POINT.match(one)) == last]
    usual = sum(map(ends_well, others)) > len(others) / 2
    return BROKEN_OFF if usual and not ends_well(parts[-1]) else 1.0


def _is_cut_off(sentence: str) -> bool:
    """True if a sentence ends after a word that must be followed by another, or after a comma.

    Headings end as they like, points of a list and closings of letters with a comma.

    >>> _is_cut_off("The bridge was built in the"), _is_cut_off("This is what it is made of")
    (True, False)
    """
    bare = sentence.rstrip("*_ \t")
    found = words(bare)
    if ends_well(bare) or bare.startswith("#") or len(found) < 2:
        return False
    if bare.endswith(","):
        return len(found) >= _FEWEST_BEFORE_COMMA and not _LIST_POINT.match(bare)
    last, known = found[-1], english()
    if not last.written.islower() or not bare.endswith(last.written):
        return False
    if last.text == "a" and _NAMES_A_LETTER.search(bare):
        return False
    if last.text in known.goes_on_but_in_clauses:
        return known.begins_clauses.isdisjoint(word.text for word in found)
    return last.text in known.goes_on


def _falling(found: float, from_: float, to: float) -> float:
    """1 up to one number, 0 from another one on, and a straight line between."""
    return min(1.0, max(0.0, (to - found) / (to - from_)))
