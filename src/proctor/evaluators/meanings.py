"""Meanings: texts as vectors, and how near two of them are beyond what any two texts are."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from operator import mul
from typing import Any, TypeVar, TypeVarTuple, Unpack

from proctor.core.threads import in_thread
from proctor.errors import EvaluatorError, UsageError
from proctor.evaluators.language import INSTEAD, first_unreadable, symbols_in
from proctor.models import connect as connections
from proctor.models.embed import Remembered, shared
from proctor.ports import Embedder
from proctor.sessions import current as sessions

Found = TypeVar("Found")
Given = TypeVarTuple("Given")

# Texts of fewer characters are done with before a thread has begun.
SMALL = 10_000


async def aside(size: int, function: Callable[[Unpack[Given]], Found], *args: *Given) -> Found:
    """Call a function, in a thread if there are many characters to go through.

    >>> import asyncio
    >>> asyncio.run(aside(2, len, "ab"))
    2
    """
    if size < SMALL:
        return function(*args)
    found: Found = await in_thread(function, *args)
    return found


LOCAL, LEXICAL = "local:minilm", "lexical"
NO_MEANINGS = (
    "{evaluator} compared letters, not meanings, for no embedder was named and there is no "
    'local one; get it with pip install "proctor[local]" and proctor models pull minilm, or name '
    "one, such as openai:text-embedding-3-small"
)
# They have nothing to do with each other, so that their cosines show where an embedder begins.
UNRELATED_WORDS = ("copper", "sister", "winter", "algebra", "sneeze", "ferry", "purple", "verdict")
UNRELATED_TEXTS = (
    "The ferry leaves the harbour at noon.",
    "My sister is afraid of spiders.",
    "Multiply both sides by the denominator.",
    "Parliament rejected the tax reform.",
    "Add the flour and stir until smooth.",
    "Which bacteria cause pneumonia?",
    "He plays the cello in an orchestra.",
    "The engine of the old tractor would not start.",
)

Vector = Sequence[float]


class Meanings:
    """The embedder of an evaluator: the one that was named, the local one, or letters.

    Every text is embedded once while it is remembered, by all evaluators that have the same
    embedder, whoever made it.

    >>> Meanings("lexical", "relevance").method
    'lexical'
    """

    def __init__(self, embedder: Any, evaluator: str) -> None:
        try:
            live = connections.embedder(_nearest_at_hand() if embedder is None else embedder)
        except UsageError as error:
            raise EvaluatorError(
                error.what, where=evaluator, fix=error.fix, problems=error.problems
            ) from None
        # What is shown and stored is what was connected, not what is put around it here.
        self.live: Embedder = live
        self._remembered = (
            live if isinstance(live, Remembered) else shared(("embedder", id(live)), lambda: Remembered(live))
        )
        self._evaluator = evaluator
        self._fell_back = embedder is None and live.name == LEXICAL
        self._floors: dict[Sequence[str], float] = {}

    @property
    def method(self) -> str:
        """How it compares: by embeddings, or "lexical" by letters."""
        return self.live.method

    @property
    def given(self) -> dict[str, Any]:
        """The option of an evaluator: the embedder itself, for what was given may hold a key."""
        return {"embedder": self.live}

    @property
    def details(self) -> dict[str, Any]:
        """What a score says of it."""
        return {"method": self.method, "embedder": self.live.name}

    def unreadable(self, texts: Iterable[str], *, by_letters: bool = False) -> str:
        """Why one of some texts cannot be read, and what to do; "" if all can.

        Embedders that do not say which languages they read are trusted. Letters can be compared
        in any language; where that is not enough, `by_letters` is False.
        """
        is_english_only = self.languages == ("en",) or (self.method == LEXICAL and not by_letters)
        problem = first_unreadable(texts) if is_english_only else ""
        reader = "the local method" if self.method == LEXICAL else self.live.name
        return f"{problem}, which {reader} cannot read; {INSTEAD}" if problem else ""

    @property
    def languages(self) -> tuple[str, ...] | None:
        """The languages that its embedder reads; None if it does not say."""
        return getattr(self.live, "languages", None)

    def unknown_words(self, text: str) -> frozenset[str]:
        """The words and signs of a text that its embedder cannot tell apart."""
        if self.method == LEXICAL:
            return frozenset(symbols_in(text))
        find = getattr(self.live, "unknown_words", None)
        known = frozenset(find(text)) if callable(find) else frozenset[str]()
        return known | frozenset(symbols_in(text)) if self.languages == ("en",) else known

    async def vectors(self, texts: Iterable[str]) -> dict[str, Vector]:
        """A vector for each text; warns if letters had to stand in for meanings."""
        if self._fell_back:
            sessions.warn(NO_MEANINGS.format(evaluator=self._evaluator))
        wanted = list(dict.fromkeys(texts))
        return dict(zip(wanted, await self._remembered.embed(wanted), strict=True))

    async def floor(self, unrelated: Sequence[str]) -> float:
        """The mean cosine of texts that have nothing to do with each other.

        Embedders differ in this: for some it is near 0, for others above 0.7.
        """
        found = self._floors.get(unrelated)
        if found is None:
            vectors = await self.vectors(unrelated)
            cosines = [cosine(*pair) for pair in combinations(vectors.values(), 2)]
            found = self._floors[unrelated] = max(0.0, math.fsum(cosines) / len(cosines))
        return found


class Nearness:
    """How near texts are in meaning: 0 for texts without relation, 1 for the same text.

    >>> near = Nearness({"a": [1.0, 0.0], "b": [0.6, 0.8]}, floor=0.2)
    >>> round(near("a", "b"), 3), [round(one, 3) for one in near.nearest(["b"], ["a", "b"])]
    (0.5, [1.0])
    """

    def __init__(self, vectors: Mapping[str, Vector], floor: float) -> None:
        self._places = {text: place for place, text in enumerate(vectors)}
        self._floor = floor
        # Made of length 1 once, for they are compared many times.
        self._rows = [_of_length_1(vector) for vector in vectors.values()]

    def __call__(self, one: str, other: str) -> float:
        left, right = self._rows[self._places[one]], self._rows[self._places[other]]
        return self._beyond(sum(map(mul, left, right)))

    def nearest(self, ones: Sequence[str], others: Sequence[str]) -> list[float]:
        """How near each of some texts is to the nearest of others."""
        return self._nearest(ones, others, itself=True)

    def nearest_other(self, texts: Sequence[str]) -> list[float]:
        """How near each of some texts is to the nearest of the rest."""
        return self._nearest(texts, texts, itself=False)

    def _nearest(self, ones: Sequence[str], others: Sequence[str], *, itself: bool) -> list[float]:
        if not (ones and others):
            return [0.0] * len(ones)
        if self._matrix is None:
            return [
                max((self(one, other) for other in others if itself or other != one), default=0.0)
                for one in ones
            ]
        left, right = (self._matrix[[self._places[t] for t in side]] for side in (ones, others))
        found = left @ right.T
        if not itself:
            found[range(len(ones)), range(len(ones))] = -1.0
        return [self._beyond(cosine) for cosine in found.max(axis=1).tolist()]

    @functools.cached_property
    def _matrix(self) -> Any:
        """The vectors in numpy, where that is installed."""
        if importlib.util.find_spec("numpy") is None:
            return None
        import numpy as np

        return np.array(self._rows)

    def _beyond(self, found: float) -> float:
        # Where everything is alike, nothing is known to be near.
        room = 1.0 - self._floor
        return min(1.0, max(0.0, (found - self._floor) / room)) if room > 0 else 0.0


def cosine(left: Vector, right: Vector) -> float:
    """The cosine of the angle between two vectors; 0 where one has no direction.

    >>> cosine([1.0, 0.0], [4.0, 3.0])
    0.8
    """
    size = math.sqrt(math.fsum(map(mul, left, left)) * math.fsum(map(mul, right, right)))
    found = math.fsum(map(mul, left, right)) / size if size else 0.0
    return min(1.0, max(-1.0, found))


def _of_length_1(vector: Vector) -> list[float]:
    size = math.sqrt(math.fsum(map(mul, vector, vector))) or 1.0
    return [number / size for number in vector]


def _nearest_at_hand() -> str:
    """The local model if it can be used, else the comparison of letters."""
    # Whoever names an embedder, or only reads the catalogue, does not wait for it.
    from proctor.models import weights

    there = weights.find("minilm") is not None and importlib.util.find_spec("numpy") is not None
    return LOCAL if there else LEXICAL
