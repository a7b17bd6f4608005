"""Many messages in lists that a mailbox takes in one go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

BATCH = 100

T = TypeVar("T")


def batches(items: Iterable[T]) -> Iterator[list[T]]:
    """Split into lists of a hundred.

    >>> [len(batch) for batch in batches(range(250))]
    [100, 100, 50]
    """
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
