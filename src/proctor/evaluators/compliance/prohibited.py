"""Claims that must not be made: sentences with a claim's words, or near it in meaning.

A sentence makes a claim if it repeats it (all its content words stand together, in any form and
order) or is near it; if it is neither asked nor supposed; if it has the same number of negations
(an even number is none); and, where both have numbers, the same ones. Opposites without a negation
("gain", "lose"), facts that differ in one word ("a week", "a day") and what others are only said to
claim are not told apart; a judge can do that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from proctor.evaluators.compliance.sentences import Sentence, sentences
from proctor.evaluators.meanings import Meanings, cosine
from proctor.evaluators.wording import related, words

NEAR = 0.75
_LEAST_LETTERS = 8
_CLAUSES = re.compile(r"(?<=[;,])\s+(?=(?:and|but|so|because|which|while|although|though)\b)|;\s+")
_NEGATION = re.compile(
    r"n't\b|\b(?:not|no|never|none|nobody|nothing|neither|nor|without|cannot|hardly|false|falsely"
    r"|untrue|myth|incorrect|wrong|wrongly|lie|fails? to|failed to|deny|denies|denied|stop|stops"
    r"|far from|unable|impossible|refutes?|disproved|debunked|unproven|misleading|beware)\b",
    re.IGNORECASE,
)
# What parts the words of a claim: they belong to different things then.
_CUT = re.compile(r"[,;:()–—]|\b(?:and|or|but|with|without|in|for|than|to|while|because)\b", re.I)
_CONTENT = ("content", "name", "number")
_LACKING = re.compile(r"(?:,|\b(?:with|in|at|and))\s+(?:no|not|never)\b|\bwithout\b", re.IGNORECASE)
_LACKING_BEFORE = re.compile(r"\A\W*(?:no|(?:with no|without)\b[^,]*),", re.IGNORECASE)
_SUPPOSED = re.compile(r"\W*(?:if|whether|suppose|imagine)\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class Nearest(NamedTuple):
    """The sentence or clause that comes nearest to a claim, how near, and whether it makes it.

    `by` is "words" where it repeats the claim and "meaning" where it is near enough; empty where it
    is too far from it; "denied" where it asks, supposes or denies it, or has other numbers.
    """

    claim: str
    start: int
    end: int
    cosine: float
    by: str

    @property
    def made(self) -> bool:
        """True if the sentence makes the claim."""
        return self.by in ("words", "meaning")


async def nearest_to(
    claims: Sequence[str], text: str, meanings: Meanings, near: float = NEAR
) -> list[Nearest]:
    """For each claim where a text makes it or, if it does not, comes nearest to it."""
    least = min(_LEAST_LETTERS, *map(_letters, claims))
    pieces = [one for one in _pieces(text) if _letters(one.text) >= least]
    if not pieces:
        return []
    vectors = await meanings.vectors([*claims, *(piece.text for piece in pieces)])

    def told(claim: str, piece: Sentence) -> Nearest:
        close = cosine(vectors[claim], vectors[piece.text])
        return Nearest(claim, piece.start, piece.end, close, _how(piece.text, claim, close >= near))

    return [
        max(
            (told(claim, piece) for piece in pieces),
            key=lambda one: (one.made, one.by != "denied", one.cosine),
        )
        for claim in claims
    ]


def _how(sentence: str, claim: str, is_near: bool) -> str:
    if repeats(sentence, claim):
        return "words"
    if not says(sentence, claim):
        return "denied"
    return "meaning" if is_near else ""


def repeats(sentence: str, claim: str) -> bool:
    """True if a sentence has all content words of a claim close together, and asserts them.

    >>> repeats("You get guaranteed returns with no risk.", "guaranteed returns")
    True
    >>> repeats("You never get guaranteed returns.", "guaranteed returns")
    False
    """
    own = words(claim)
    wanted = [word.text for word in own if word.kind in _CONTENT]
    if not wanted or _asked(sentence):
        return False
    known = {word.text for word in own}
    cuts = [cut.span() for cut in _CUT.finditer(sentence) if cut[0].lower() not in known]
    begins, stops = [0, *(b for _, b in cuts)], [*(a for a, _ in cuts), len(sentence)]
    stretches = zip(begins, stops, strict=True)
    # One word says little by itself, so all that is around it must be there as well.
    together = _stand_together if len(wanted) > 1 else _stand_as_written
    sought = wanted if len(wanted) > 1 else [word.text for word in own]
    return any(
        together(sought, sentence[begin:stop]) and _asserted(sentence, begin, stop, claim)
        for begin, stop in stretches
    )


def _stand_together(wanted: Sequence[str], stretch: str) -> bool:
    """True if all words stand in a stretch, with no more others between than they are."""
    there = [word.text for word in words(stretch) if word.kind in _CONTENT]
    size = 2 * len(wanted)
    return any(
        all(any(related(one, word) for word in there[at : at + size]) for one in wanted)
        for at in range(max(1, len(there) - size + 1))
    )


def _stand_as_written(wanted: Sequence[str], stretch: str) -> bool:
    there = [word.text for word in words(stretch)]
    return f" {' '.join(wanted)} " in f" {' '.join(there)} "


def _asserted(sentence: str, begin: int, stop: int, claim: str) -> bool:
    """True if what stands in a stretch is neither supposed nor denied by what is around it."""
    before, after = sentence[:begin], sentence[stop:]
    # "If you join, …": what follows the condition is said.
    supposed = _SUPPOSED.match(sentence) and "," not in before
    # "…, no questions asked", "… with no risk": what is lacking is something else.
    scope = _LACKING_BEFORE.sub("", before) + sentence[begin:stop] + _LACKING.sub("", after)
    return not supposed and _negated(scope) == _negated(claim)


def says(sentence: str, claim: str) -> bool:
    """True if a sentence can make a claim: asserted, as often negated, with the same numbers.

    >>> says("It does not cure colds.", "It cures colds."), says("It cures colds.", "It cures flu.")
    (False, True)
    """
    if _asked(sentence) or _SUPPOSED.match(sentence) or _negated(sentence) != _negated(claim):
        return False
    mine, theirs = set(_NUMBER.findall(sentence)), set(_NUMBER.findall(claim))
    return not (mine and theirs) or bool(mine & theirs)


def _asked(sentence: str) -> bool:
    return sentence.rstrip(" \n\"'”’)").endswith("?")


def _negated(text: str) -> bool:
    return len(_NEGATION.findall(text.replace("’", "'"))) % 2 == 1


def _pieces(text: str) -> list[Sentence]:
    """The sentences of a text, and the clauses of those that have several."""
    found = []
    for one in sentences(text):
        # A clause of a question does not show that it is asked.
        cuts = [] if _asked(one.text) else [m.span() for m in _CLAUSES.finditer(one.text)]
        begins, stops = [0, *(b for _, b in cuts)], [*(a for a, _ in cuts), len(one.text)]
        parts = [
            Sentence(one.text[a:b], one.start + a, one.start + b)
            for a, b in zip(begins, stops, strict=True)
        ]
        found += [one, *parts] if cuts else [one]
    return found


def _letters(text: str) -> int:
    return sum(map(str.isalpha, text))
