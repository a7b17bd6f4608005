"""BM25, the usual way to say how well a text fits the words of a question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

SATURATION, LENGTH_SHARE = 1.2, 0.75  # known as k1 and b, at their usual values


class Bm25:
    """Some documents, each a list of terms, made ready to be compared with questions.

    Rare terms weigh more; a term said again and again counts ever less; long documents, which
    hold more of everything, are held back. `rarity` may come from a greater set of documents.

    >>> index = Bm25([["red", "planet"], ["blue", "planet"]])
    >>> index.best(["blue", "planet"])
    1
    """

    def __init__(
        self, documents: Sequence[Sequence[str]], rarity: Mapping[str, float] | None = None
    ) -> None:
        self._counts = [Counter(document) for document in documents]
        self._lengths = [len(document) for document in documents]
        self._mean_length = sum(self._lengths) / len(documents)
        self.rarity = _rarity(self._counts) if rarity is None else rarity

    def best(self, asked: Sequence[str]) -> int:
        """The number of the document that fits best; the first of equals."""
        return max(range(len(self._counts)), key=lambda number: self.score(asked, number))

    def score(self, asked: Sequence[str], number: int) -> float:
        """How well one document fits: 0 if it has none of the terms, with no upper end."""
        counts, length = self._counts[number], self._lengths[number] / self._mean_length
        dampening = SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length)
        return sum(
            self.rarity[term] * counts[term] * (SATURATION + 1) / (counts[term] + dampening)
            for term in asked
            if term in counts
        )

    def covered(self, asked: Sequence[str], number: int) -> float:
        """The share of the question, by weight, that one document has terms for.

        >>> Bm25([["red", "planet"], ["blue", "planet"]]).covered(["red", "planet"], 0)
        1.0
        """
        rarest = max(self.rarity.values())
        weights = [self.rarity.get(term, rarest) for term in asked]
        known = [term in self._counts[number] for term in asked]
        met = sum(weight for weight, is_known in zip(weights, known, strict=True) if is_known)
        return met / sum(weights) if weights else 0.0


def _rarity(counts: Sequence[Counter[str]]) -> dict[str, float]:
    """How much each term tells: the fewer documents hold it, the more."""
    holding = Counter(term for count in counts for term in count)
    return {
        term: math.log(1 + (len(counts) - held + 0.5) / (held + 0.5))
        for term, held in holding.items()
    }
