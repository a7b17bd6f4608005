"""How many more samples a gate promises: never fewer than its own interval would need."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.comparison.compare import compare
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.sides import Side
from proctor.core.stats.differences import paired_rate_interval, rate_difference_interval
from proctor.core.stats.sequential import non_inferiority
from proctor.records.gate import Check


def side(name: str, values: list[float], prefix: str = "s") -> Side:
    numbers_by_name = {f"{prefix}{at}": value for at, value in enumerate(values)}
    return Side(name, scores={"it": numbers_by_name}, samples=tuple(numbers_by_name))


def yes(passed: int, n: int) -> list[float]:
    return [1.0] * passed + [0.0] * (n - passed)


def groups(new: list[float], old: list[float], margin: float = 0.02) -> Check:
    pair = side("new", new, "n"), side("old", old, "o")
    return decide([pair], GateConfig({"it": margin}, unpaired=True)).checks[0]


@pytest.mark.parametrize("n", [20, 21, 25, 30, 40, 56])
def test_a_side_without_spread_is_known_no_better_than_it_is_long(n: int) -> None:
    """All of n against 76 of 80: judged by the spread alone, one more sample would wrongly be enough."""
    check = groups(yes(n, n), yes(76, 80))
    assert (check.verdict, check.more_samples is not None) == ("inconclusive", True)
    more = check.more_samples or 0
    fewer = rate_difference_interval(n + 1, n + 1, 77, 81)
    assert fewer is not None
    assert non_inferiority(fewer, 0.02) == "inconclusive"
    share = 76 / 80 * (80 + more)
    grown = rate_difference_interval(n + more, n + more, share, 80 + more)
    assert grown is not None
    assert non_inferiority(grown, 0.02) == "pass"
    delta = compare(side("new", yes(n, n), "n"), side("old", yes(76, 80), "o")).scores["it"]
    assert delta.verdict == "not enough evidence"
    assert (delta.more_samples or 0) > 100


def test_two_groups_that_all_pass_get_an_estimate_of_more_samples() -> None:
    """40 of 40 each: the interval of both lies within two points from about 270 on."""
    check = groups(yes(40, 40), yes(40, 40))
    assert check.more_samples is not None
    assert 220 <= check.more_samples <= 500
    assert "so close to the margin" not in check.sentence


def test_numbers_of_a_group_that_are_all_equal_promise_nothing() -> None:
    """As long as one side has no spread there is no interval, however many there are."""
    pair = [
        Side(name, {"tokens.mean": {f"{name}{at}": item for at, item in enumerate(values)}},
             samples=tuple(f"{name}{at}" for at in range(len(values))))
        for name, values in (("new", [7.0] * 20), ("old", [6.0, 8.0] * 10))
    ]  # fmt: skip
    [check] = decide([(pair[0], pair[1])], GateConfig({"tokens.mean": 0.1})).checks
    assert (check.verdict, check.interval, check.more_samples) == ("inconclusive", None, None)
    assert "would decide it" not in check.sentence


sizes = st.integers(5, 120)


@given(sizes, sizes, st.data(), st.sampled_from([0.01, 0.02, 0.05, 0.1]))
def test_what_two_groups_are_promised_is_what_their_interval_needs(
    n: int, its_n: int, data: st.DataObject, margin: float
) -> None:
    """So many more of the same on each side lead to a verdict."""
    passed, other = data.draw(st.integers(0, n)), data.draw(st.integers(0, its_n))
    check = groups(yes(passed, n), yes(other, its_n), margin)
    if check.more_samples is None or check.more_samples > 10**8:
        return
    grown, its_own = n + check.more_samples, its_n + check.more_samples
    interval = rate_difference_interval(passed / n * grown, grown, other / its_n * its_own, its_own)
    assert interval is not None
    assert non_inferiority(interval, margin) != "inconclusive"


@given(sizes, st.data(), st.sampled_from([0.01, 0.02, 0.05, 0.1]))
def test_what_pairs_are_promised_is_what_their_interval_needs(n: int, data: st.DataObject, margin: float) -> None:
    """The same where samples flip up and down."""
    up = data.draw(st.integers(0, n))
    down = data.draw(st.integers(0, n - up))
    rest = [1.0] * (n - up - down)
    new = side("new", [*[1.0] * up, *[0.0] * down, *rest])
    old = side("old", [*[0.0] * up, *[1.0] * down, *rest])
    [check] = decide([(new, old)], GateConfig({"it": margin})).checks
    if check.more_samples is None or check.more_samples > 10**8:
        return
    grown = n + check.more_samples
    interval = paired_rate_interval(up / n * grown, down / n * grown, grown)
    assert interval is not None
    assert non_inferiority(interval, margin) != "inconclusive"


@given(
    st.lists(st.sampled_from([0.0, 0.5, 0.75, 1.0]), min_size=4, max_size=30),
    st.lists(st.sampled_from([0.0, 0.5, 0.75, 1.0]), min_size=4, max_size=30),
    st.booleans(),
)
def test_scores_that_go_on_as_they_began_are_settled_by_what_is_promised(
    new: list[float], old: list[float], paired: bool
) -> None:
    """If the same samples are repeated up to the predicted number, there is a verdict."""
    if paired:
        new, old = new[: min(len(new), len(old))], old[: min(len(new), len(old))]

    def held(times: int) -> Check:
        item, other = side("new", new * times), side("old", old * times, "s" if paired else "o")
        return decide([(item, other)], GateConfig({"it": 0.1}, unpaired=not paired)).checks[0]

    check = held(1)
    if check.more_samples is None or check.more_samples > 3000:
        return
    times = -(-(min(len(new), len(old)) + check.more_samples) // min(len(new), len(old)))
    # Several times the larger group may be more than was asked for, never less.
    assert held(times).verdict != "inconclusive"
