"""`lexical`: compares texts by spelling, not by meaning; it needs no model."""

from __future__ import annotations

import functools
import math
import zlib
from collections import Counter
from collections.abc import Sequence

from proctor.core.threads import compute
from proctor.errors import ModelError

NAME = "lexical"
BUCKETS = 4096
LENGTHS = (2, 3, 4)
# For fewer characters, starting a thread takes longer than the work.
THREAD_MIN_CHARS = 20_000


def connect(address: str) -> Lexical:
    if address != NAME:
        raise ModelError(f"{address!r} is not an address", fix=f"write {NAME}")
    return _shared_instance()


@functools.cache
def _shared_instance() -> Lexical:
    # One instance, so that all users share one cache of vectors.
    return Lexical()


class Lexical:
    """Counts runs of two to four letters within words, so that forms of a word are similar.

    A checksum maps the runs to 4,096 buckets; the value of a bucket is the square root of its count.
    """

    name = NAME
    method = "lexical"

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        if sum(map(len, texts)) < THREAD_MIN_CHARS:
            return list(map(letter_vector, texts))
        vectors: list[Sequence[float]] = await compute(lambda: list(map(letter_vector, texts)))
        return vectors


def letter_vector(text: str) -> list[float]:
    """Return a vector of length 1, or a zero vector for an empty text."""
    counts: Counter[int] = Counter()
    for word in text.casefold().split():
        framed = f" {word} "
        for length in LENGTHS:
            for start in range(len(framed) - length + 1):
                run = framed[start : start + length].encode("utf-8", "surrogatepass")
                counts[zlib.crc32(run) % BUCKETS] += 1
    vector = [0.0] * BUCKETS
    norm = math.sqrt(sum(counts.values())) or 1.0
    for bucket, count in counts.items():
        vector[bucket] = math.sqrt(count) / norm
    return vector
