"""pass@k and pass^k: by hand, by counting, and over samples."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.reliability import PassRule, pass_at_k, pass_hat_k, pass_probability

TRIES = st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


def test_five_of_eight() -> None:
    """Of 56 choices of 3, 1 has no pass and 10 have three: 0.9821 and 0.1786."""
    assert pass_at_k(8, 5, 3) == pytest.approx(1 - 1 / 56)
    assert pass_hat_k(8, 5, 3) == pytest.approx(10 / 56)


@given(TRIES)
def test_both_agree_with_enumerating_all_choices(counts: tuple[int, int, int]) -> None:
    tries, passed, k = counts
    chosen = list(combinations([1] * passed + [0] * (tries - passed), k))
    assert pass_at_k(*counts) == pytest.approx(sum(map(any, chosen)) / len(chosen))
    assert pass_hat_k(*counts) == pytest.approx(sum(map(all, chosen)) / len(chosen))


def test_k_above_the_number_of_trials_is_undefined() -> None:
    """None, never 0; impossible counts are refused."""
    assert pass_at_k(3, 3, 4) is None
    assert pass_hat_k(3, 3, 4) is None
    with pytest.raises(ValueError, match="cannot have passed"):
        pass_at_k(3, 4, 1)
    with pytest.raises(ValueError, match="k must be 1 or more, got 0"):
        pass_hat_k(3, 2, 0)


def test_over_samples_by_hand() -> None:
    """pass^2 of (4,4) (4,2) (4,0): 1, 1/6, 0; mean 7/18, with the error of their variance."""
    result = pass_probability([(4, 4), (4, 2), (4, 0), (1, 1)], 2, "all")
    assert result is not None
    assert result.value == pytest.approx(7 / 18)
    assert (result.n, result.too_few) == (3, 1)
    squares = sum((x - 7 / 18) ** 2 for x in (1, 1 / 6, 0))
    assert result.error == pytest.approx((squares / 2 / 3) ** 0.5)
    assert result.interval is not None
    assert result.interval[1] - result.value == pytest.approx(4.302653 * (result.error or 0), rel=1e-6)


@pytest.mark.parametrize("kind", ["any", "all"])
def test_clustered_samples_count_less(kind: PassRule) -> None:
    """Copies in one cluster count once; below five clusters there is no error."""
    counts = [(3, 3), (3, 1), (3, 0), (3, 2), (3, 2), (2, 2)]
    once = pass_probability(counts, 3 if kind == "any" else 2, kind, clusters="abcdef")
    twice = pass_probability(counts * 2, 3 if kind == "any" else 2, kind, clusters="abcdef" * 2)
    assert once is not None
    assert twice is not None
    assert twice.error == pytest.approx(once.error)
    assert twice.interval == pytest.approx(once.interval)
    few = pass_probability(counts[:4], 2, kind, clusters="abcd")
    assert few is not None
    assert (few.error, few.interval) == (None, None)


def test_no_sample_and_one_sample() -> None:
    """No sample with k trials: None. One sample: a value without an error."""
    assert pass_probability([], 1) is None
    assert pass_probability([(2, 1)], 3) is None
    assert pass_probability([(2, 1)], 1) == (0.5, None, None, 1, 0)
