"""Several tries at each sample: does one of k pass, do all k pass?

pass@k (Chen et al. 2021, arXiv 2107.03374) and pass^k (Yao et al. 2024, arXiv 2406.12045), each
without bias from n >= k tries. The error is that between samples; the tries of one sample are
averaged first, so that they do not count as independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal, NamedTuple

from proctor.statistics.differences import spread
from proctor.statistics.intervals import (
    Interval,
    clustered_error,
    clustered_mean_interval,
    mean_interval,
)

Kind = Literal["any", "all"]


class Passes(NamedTuple):
    """A pass@k or pass^k over samples: how many gave it, how many had fewer than k tries.

    `error` and `interval` are None where they cannot be told (one sample, fewer than five
    clusters); where all samples have the same value, their spread is no measure of doubt.
    """

    value: float
    error: float | None
    interval: Interval | None
    n: int
    too_few: int


def pass_at_k(tries: int, passed: int, k: int) -> float | None:
    """How likely at least one of k tries passes, of which `passed` of all `tries` did.

    None where there are fewer than k tries.

    >>> round(pass_at_k(8, 5, 3), 4)
    0.9821
    """
    ways = _ways(tries, passed, k)
    return None if ways is None else 1 - math.comb(tries - passed, k) / ways


def pass_hat_k(tries: int, passed: int, k: int) -> float | None:
    """How likely all of k tries pass, of which `passed` of all `tries` did: pass^k.

    None where there are fewer than k tries.

    >>> round(pass_hat_k(8, 5, 3), 4)
    0.1786
    """
    ways = _ways(tries, passed, k)
    return None if ways is None else math.comb(passed, k) / ways


def passes(
    samples: Iterable[tuple[int, int]],
    k: int,
    kind: Kind = "any",
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> Passes | None:
    """pass@k ("any" of k) or pass^k ("all" of k) of samples, each given as (tries, passed).

    Samples with fewer than k tries cannot tell it: they are left out and counted. None of nothing.

    >>> found = passes([(4, 4), (4, 2), (4, 0), (3, 3)], 4, "all")
    >>> round(found.value, 3), found.n, found.too_few
    (0.333, 3, 1)
    """
    measure: Callable[[int, int, int], float | None] = pass_at_k if kind == "any" else pass_hat_k
    all_values = [measure(tries, passed, k) for tries, passed in samples]
    values = [value for value in all_values if value is not None]
    if not values:
        return None
    n, too_few = len(values), len(all_values) - len(values)
    centre, variance = spread(values)
    if clusters is None:
        error = math.sqrt(variance / n) if n > 1 else None
        return Passes(centre, error, mean_interval(values, confidence), n, too_few)
    known = [c for c, value in zip(clusters, all_values, strict=True) if value is not None]
    found = clustered_error(values, known)
    interval = clustered_mean_interval(values, known, confidence)
    return Passes(centre, None if found is None else found[1], interval, n, too_few)


def _ways(tries: int, passed: int, k: int) -> int | None:
    if not 0 <= passed <= tries:
        raise ValueError(f"{passed!r} of {tries!r} tries cannot have passed")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k!r}")
    return math.comb(tries, k) if k <= tries else None
