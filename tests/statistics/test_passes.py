"""pass@k and pass^k: by hand and by counting."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.core.stats.descriptive import pass_at_k, pass_hat_k

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
