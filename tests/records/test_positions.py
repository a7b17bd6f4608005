"""A set of positions that takes one bit for each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.records.order import Positions


@given(st.lists(st.integers(0, 100_000)), st.lists(st.integers(0, 100_000)))
def test_positions_are_a_set_of_numbers(added: list[int], asked: list[int]) -> None:
    """`add` returns whether the position was free; `in` agrees with a plain set."""
    taken, model = Positions(), set[int]()
    for position in added:
        assert taken.add(position) == (position not in model)
        model.add(position)
    for position in asked + added:
        assert (position in taken) == (position in model)
