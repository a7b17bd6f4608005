"""The table of hashes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proctor.datasets.inspection import IdTable


@given(st.lists(st.integers(min_value=0, max_value=2**64 - 1) | st.integers(0, 40)))
def test_it_agrees_with_a_set(numbers: list[int]) -> None:
    """Adding gives False exactly for a number that was added before."""
    table, known = IdTable(), set[int]()
    for number in numbers:
        assert table.add(number) is (number not in known)
        known.add(number)


def test_it_grows_and_loses_nothing() -> None:
    """Thousands of hashes, 0 and negative ones among them, are all remembered."""
    table = IdTable()
    numbers = [hash(str(number)) for number in range(5000)] + [0, -1]
    assert all(table.add(number) for number in numbers)
    assert not any(table.add(number) for number in numbers)


def test_memory_for_a_million_ids_stays_under_20_megabytes() -> None:
    """A number costs at most 22 bytes once there are many, so that a million stay below 20 MB."""
    table = IdTable()
    for number in range(50_000):
        table.add(hash(str(number)))
    assert table.nbytes <= 50_000 * 20
