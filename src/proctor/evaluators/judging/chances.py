"""How sure a judge was: the chances of each verdict, from those of the tokens in its place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from proctor.records.model import TokenChances

# With less than half of it in sight, an expectation would be a guess.
LEAST_SEEN = 0.5
_DRESS = " \t\r\n*_`'\"<>[](){}:.,"


class Chances(NamedTuple):
    """The chance of each verdict; `seen` is what they add up to, the rest were other tokens."""

    of: dict[str, float]
    seen: float

    def expected(self, values: Mapping[str, float]) -> float:
        """The mean of the verdicts' values, each weighed by its chance.

        >>> Chances({"good": 0.75, "poor": 0.25}, 1.0).expected({"good": 1.0, "poor": 0.0})
        0.75
        """
        whole = math.fsum(self.of.values())
        mean = math.fsum(chance * values[label] for label, chance in self.of.items()) / whole
        return min(1.0, max(0.0, mean))


def chances_at(
    text: str, place: int, tokens: Sequence[TokenChances], labels: Sequence[str]
) -> Chances | str:
    """The chances of the labels where the verdict begins in an answer, or why there are none.

    A token counts for a label if it can be the beginning of that one alone.

    >>> tokens = [TokenChances("RATING:", -0.1), TokenChances(" good", -0.5, {" poor": -1.0})]
    >>> sorted(chances_at("RATING: good", 8, tokens, ["good", "poor"]).of)
    ['good', 'poor']
    """
    if not tokens:
        return "the provider gave no chances"
    if not labels:
        return "the verdicts are too many to tell their chances apart"
    token = _covering(text, place, tokens)
    if token is None:
        return "the provider's tokens are not those of the answer"
    said = _label(token.token, labels)
    found = dict.fromkeys(labels, 0.0)
    for other, logprob in {**token.others, token.token: token.logprob}.items():
        label = _label(other, labels)
        if label is not None:
            found[label] += math.exp(min(0.0, logprob))
    seen = math.fsum(found.values())
    if said is None or seen < LEAST_SEEN:
        return "the tokens do not tell the verdicts apart"
    told = {label: chance for label, chance in found.items() if chance > 0.0}
    return Chances(told, min(1.0, seen))


def _covering(text: str, place: int, tokens: Sequence[TokenChances]) -> TokenChances | None:
    """The token in which the verdict begins, with nothing but dress before it."""
    whole = "".join(token.token for token in tokens)
    begin = whole.find(text)
    if begin < 0:
        return None
    wanted, at = begin + place, 0
    for token in tokens:
        if at <= wanted < at + len(token.token):
            return None if token.token[: wanted - at].strip(_DRESS) else token
        at += len(token.token)
    return None


def _label(token: str, labels: Sequence[str]) -> str | None:
    """The only label that a token can be the beginning of."""
    bare = token.strip(_DRESS).casefold()
    fitting = [label for label in labels if bare and label.casefold().startswith(bare)]
    return fitting[0] if len(fitting) == 1 else None
