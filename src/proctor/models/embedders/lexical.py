"""`lexical`: texts compared by their letters, where no model is at hand. It knows no meanings."""

from __future__ import annotations

import functools
import math
import zlib
from collections import Counter
from collections.abc import Sequence

from proctor.core.threads import in_thread
from proctor.errors import ModelError

NAME = "lexical"
BUCKETS = 4096
LENGTHS = (2, 3, 4)
# Fewer characters than these are counted before a thread has begun.
SMALL = 20_000


def connect(address: str) -> Lexical:
    """The embedder at `lexical`."""
    if address != NAME:
        raise ModelError(f"{address!r} is not an address", fix=f"write {NAME}")
    return _lexical()


@functools.cache
def _lexical() -> Lexical:
    # It keeps nothing, so all may have the same; what it gave is then remembered once.
    return Lexical()


class Lexical:
    """Counts runs of two to four letters within words, so that forms of a word come near it.

    The runs are put into 4,096 places by a checksum; each counts by the root of how often it
    occurs.

    >>> import asyncio
    >>> car, cars, sheep = asyncio.run(Lexical().embed(["the red car", "two red cars", "a sheep"]))
    >>> near, far = (sum(a * b for a, b in zip(car, other)) for other in (cars, sheep))
    >>> round(near, 1), round(far, 1)
    (0.6, 0.0)
    """

    name = NAME
    method = "lexical"

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """One vector for each text, in order."""
        if sum(map(len, texts)) < SMALL:
            return list(map(letter_vector, texts))
        found: list[Sequence[float]] = await in_thread(lambda: list(map(letter_vector, texts)))
        return found


def letter_vector(text: str) -> list[float]:
    """A text's runs of letters as a vector of length 1, or of zeros for an empty text."""
    counts: Counter[int] = Counter()
    for word in text.casefold().split():
        framed = f" {word} "
        for length in LENGTHS:
            for start in range(len(framed) - length + 1):
                run = framed[start : start + length].encode("utf-8", "surrogatepass")
                counts[zlib.crc32(run) % BUCKETS] += 1
    found = [0.0] * BUCKETS
    norm = math.sqrt(sum(counts.values())) or 1.0
    for place, count in counts.items():
        found[place] = math.sqrt(count) / norm
    return found
