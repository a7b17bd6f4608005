"""Datasets that can be read once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from inline_snapshot import snapshot

from proctor.datasets.dataset import IteratorDataset
from proctor.errors import DatasetError
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample


def records(count: int) -> Iterator[dict[str, Any]]:
    return ({"id": number, "input": number * number} for number in range(count))


def test_items_come_as_samples_once() -> None:
    """The first pass gives samples; the second is a clear error."""
    dataset = IteratorDataset(records(2))
    assert list(dataset) == [Sample("0", 0), Sample("1", 1)]
    with pytest.raises(DatasetError, match="an iterator can be read only once"):
        iter(dataset)


def test_items_are_taken_one_at_a_time() -> None:
    """Nothing is read ahead of what is asked for."""
    taken = []

    def source() -> Iterator[dict[str, Any]]:
        for record in records(10):
            taken.append(record["id"])
            yield record

    samples = iter(IteratorDataset(source()))
    next(samples)
    next(samples)
    assert taken == [0, 1]


def test_the_length_is_known_only_if_given() -> None:
    """Ruling (runner): dataset length is optional; without one `len` is a TypeError."""
    assert len(IteratorDataset(records(2), 2)) == 2
    with pytest.raises(TypeError, match="is unknown until it is read"):
        len(IteratorDataset(records(2)))


@pytest.mark.parametrize("claimed", [1, 3, None])
def test_a_wrong_length_is_corrected_by_reading(claimed: int | None) -> None:
    """More or fewer items than announced are no problem; the true number is known at the end."""
    dataset = IteratorDataset(records(2), claimed)
    assert len(list(dataset)) == 2
    assert len(dataset) == 2


def test_a_negative_length_is_refused() -> None:
    """There is no dataset of less than nothing."""
    with pytest.raises(DatasetError, match="length must be 0 or more"):
        IteratorDataset(records(2), -1)


def test_it_describes_itself_without_reading() -> None:
    """The description has no fingerprint, because that would take a reading."""
    dataset = IteratorDataset(records(2), 2, name="squares")
    assert dataset.info == DatasetInfo("squares", "iterator", 2)
    assert dataset.inspect().fingerprint is None
    assert repr(dataset) == "IteratorDataset(name='squares', length=2)"


def test_a_fault_names_the_index_and_everything_that_is_wrong() -> None:
    """Items before the bad one are given; the index counts from 0."""
    items: list[Any] = [{"id": "1", "input": "x"}, {"input": None, "metadata": []}]
    samples = iter(IteratorDataset(items, name="squares"))
    assert next(samples).id == "1"
    with pytest.raises(DatasetError) as caught:
        next(samples)
    assert str(caught.value) == snapshot("""\
squares, item 1: not a valid sample
  - id is missing
  - input must not be null
  - metadata must be a mapping, got a list
Fix: give every sample an id, or generate ids: generate_ids=True (--generate-ids)\
""")


def test_types_and_ids_are_checked_as_they_come() -> None:
    """A value of the wrong type, or an id that was there before, ends the pass."""
    wrong = IteratorDataset(records(1), input_type=str, expected_type=Any)
    with pytest.raises(DatasetError, match="item 0: input must be a string, got a number: 0"):
        list(wrong)
    with pytest.raises(DatasetError, match="item 1: id: '1' is already used"):
        list(IteratorDataset([Sample("1", "a"), Sample("1", "b")]))


def test_ids_can_be_generated() -> None:
    """Items without ids get them from their inputs."""
    (sample,) = IteratorDataset([{"q": "a"}], mapping={"q": "input"}, generate_ids=True)
    assert sample.id == "auto-ac8d8342bbb2"
