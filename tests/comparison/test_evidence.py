"""What the numbers of two sides say of their difference."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.comparison.evidence import Evidence, estimate_interval


@given(st.lists(st.integers(1, 30), min_size=5, max_size=60), st.sampled_from([0.0, 1.0]))
def test_samples_that_all_pass_have_an_interval_in_clusters_of_any_size(sizes: list[int], value: float) -> None:
    """Or too few of them count; it is never a fault."""
    clusters = [f"c{number}" for number, size in enumerate(sizes) for _ in range(size)]
    result = estimate_interval([value] * len(clusters), clusters)
    assert result is None or result[0] <= value <= result[1]
    same = Evidence([value] * len(clusters), [value] * len(clusters), clusters=clusters)
    interval = same.interval()
    assert interval is None or interval[0] <= 0 <= interval[1]
