"""Embed texts and compare their vectors with the vectors of unrelated texts."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from operator import mul
from typing import Any, TypeVar, TypeVarTuple, Unpack

from proctor.core.threads import compute
from proctor.errors import EvaluatorError, UsageError
from proctor.evaluators.language import EMBEDDER_OR_JUDGE_HINT, find_symbols
from proctor.evaluators.readable_languages import ENGLISH, explain_unread
from proctor.models import connect as connections
from proctor.models.embedding_cache import CachedEmbedder, shared_embedder
from proctor.ports import Embedder
from proctor.sessions import current as sessions

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")
Vector = Sequence[float]

# For fewer characters, a thread would cost more than the work itself.
MIN_THREAD_SIZE = 10_000
LOCAL, LEXICAL = "local:minilm", "lexical"
NO_EMBEDDER = (
    "{evaluator} compared letters, not meanings, because no embedder is set and the local one is not installed. "
    'Fix: run pip install "proctor[local]" and proctor models pull minilm, or set embedder: '
    "openai:text-embedding-3-small"
)
# The mean cosine of these unrelated texts is the lowest similarity that an embedder returns.
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


async def run_off_loop(size: int, function: Callable[[Unpack[Arguments]], Result], *args: *Arguments) -> Result:
    """Call a function, in a thread when a core is free if it has to read many characters."""
    if size < MIN_THREAD_SIZE:
        return function(*args)
    result: Result = await compute(function, *args)
    return result


class TextEmbedder:
    """The embedder of an evaluator: the selected or the local embedder, or a comparison by spelling.

    Evaluators with the same embedder share a cache of vectors.
    """

    def __init__(self, embedder: Any, evaluator: str) -> None:
        try:
            connected = connections.embedder(_choose_default() if embedder is None else embedder)
        except UsageError as error:
            raise EvaluatorError(error.what, where=evaluator, fix=error.fix, problems=error.problems) from None
        # Without the cache wrapper: scores show and store this embedder.
        self.embedder: Embedder = connected
        self._cached = (
            connected
            if isinstance(connected, CachedEmbedder)
            else shared_embedder(("embedder", id(connected)), lambda: CachedEmbedder(connected))
        )
        self._evaluator = evaluator
        self._is_fallback = embedder is None and connected.name == LEXICAL
        self._floors: dict[Sequence[str], float] = {}

    @property
    def method(self) -> str:
        """The method of comparison: "embedding", or "lexical" for spelling."""
        return self.embedder.method

    @property
    def options(self) -> dict[str, Any]:
        """The embedder as an option; the user's argument may contain a key."""
        return {"embedder": self.embedder}

    @property
    def details(self) -> dict[str, Any]:
        """The details of a score."""
        return {"method": self.method, "embedder": self.embedder.name}

    def explain_unreadable(self, texts: Iterable[str], *, by_letters: bool = False) -> str:
        """Return why one of the texts cannot be read, and what to do; "" if all can.

        Embedders that do not declare their languages are trusted. `by_letters` accepts any language if only the
        spelling is compared.
        """
        if self.languages == ("en",) or (self.method == LEXICAL and not by_letters):
            problem = explain_unread(texts, (ENGLISH,))
        else:
            problem = explain_unread(texts, self.languages) if self.languages else ""
        reader = "the local method" if self.method == LEXICAL else self.embedder.name
        return f"{problem}, which {reader} cannot read; {EMBEDDER_OR_JUDGE_HINT}" if problem else ""

    @property
    def languages(self) -> tuple[str, ...] | None:
        """The languages that the embedder reads; None if it does not declare them."""
        return getattr(self.embedder, "languages", None)

    def unknown_words(self, text: str) -> frozenset[str]:
        """Return the words and symbols of a text that the embedder does not know."""
        if self.method == LEXICAL:
            return frozenset(find_symbols(text))
        find = getattr(self.embedder, "unknown_words", None)
        words = frozenset(find(text)) if callable(find) else frozenset[str]()
        return words | frozenset(find_symbols(text)) if self.languages == ("en",) else words

    async def vectors(self, texts: Iterable[str]) -> dict[str, Vector]:
        """Embed the texts; warn if there is no embedder and only the spelling is compared."""
        if self._is_fallback:
            sessions.warn(NO_EMBEDDER.format(evaluator=self._evaluator))
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, await self._cached.embed(distinct), strict=True))

    async def floor(self, unrelated_texts: Sequence[str]) -> float:
        """Return the mean cosine of unrelated texts: close to 0 for some embedders, above 0.7 for others."""
        floor = self._floors.get(unrelated_texts)
        if floor is None:
            vectors = await self.vectors(unrelated_texts)
            cosines = [cosine(*pair) for pair in combinations(vectors.values(), 2)]
            floor = self._floors[unrelated_texts] = max(0.0, math.fsum(cosines) / len(cosines))
        return floor


class VectorSimilarity:
    """The similarity of embedded texts: 0 for unrelated texts, 1 for the same text."""

    def __init__(self, vectors: Mapping[str, Vector], floor: float) -> None:
        self._indexes = {text: index for index, text in enumerate(vectors)}
        self._floor = floor
        # Normalized once, because each is compared many times.
        self._rows = [_normalize(vector) for vector in vectors.values()]

    def __call__(self, left: str, right: str) -> float:
        return self._rescale(sum(map(mul, self._rows[self._indexes[left]], self._rows[self._indexes[right]])))

    def nearest(self, texts: Sequence[str], others: Sequence[str]) -> list[float]:
        """Return the similarity of each text to the nearest of the others."""
        return self._find_nearest(texts, others, include_self=True)

    def nearest_other(self, texts: Sequence[str]) -> list[float]:
        """Return the similarity of each text to its nearest neighbor in the same list."""
        return self._find_nearest(texts, texts, include_self=False)

    def _find_nearest(self, texts: Sequence[str], others: Sequence[str], *, include_self: bool) -> list[float]:
        if not (texts and others):
            return [0.0] * len(texts)
        if self._matrix is None:
            return [
                max((self(text, other) for other in others if include_self or other != text), default=0.0)
                for text in texts
            ]
        left, right = (self._matrix[[self._indexes[text] for text in side]] for side in (texts, others))
        cosines = left @ right.T
        if not include_self:
            cosines[range(len(texts)), range(len(texts))] = -1.0
        return [self._rescale(value) for value in cosines.max(axis=1).tolist()]

    @functools.cached_property
    def _matrix(self) -> Any:
        if importlib.util.find_spec("numpy") is None:
            return None
        import numpy as np

        return np.array(self._rows)

    def _rescale(self, value: float) -> float:
        # With a floor of 1, all texts look alike, so none counts as similar.
        room = 1.0 - self._floor
        return min(1.0, max(0.0, (value - self._floor) / room)) if room > 0 else 0.0


def cosine(left: Vector, right: Vector) -> float:
    """Return the cosine of the angle between two vectors; 0 if one is all zeros."""
    size = math.sqrt(math.fsum(map(mul, left, left)) * math.fsum(map(mul, right, right)))
    value = math.fsum(map(mul, left, right)) / size if size else 0.0
    return min(1.0, max(-1.0, value))


def _normalize(vector: Vector) -> list[float]:
    size = math.sqrt(math.fsum(map(mul, vector, vector))) or 1.0
    return [number / size for number in vector]


def _choose_default() -> str:
    # Imported only if no embedder is selected.
    from proctor.models import weights

    is_installed = weights.find("minilm") is not None and importlib.util.find_spec("numpy") is not None
    return LOCAL if is_installed else LEXICAL
