"""Finding ids that come twice, by hashes first and for certain afterwards."""

from __future__ import annotations

import pytest

from proctor.datasets.inspection import DatasetInspection
from proctor.datasets.record import RecordReader, Rules, read_items
from proctor.errors import DatasetError
from proctor.records.run import DatasetInfo


def census(*ids: str) -> DatasetInfo:
    """Inspect with a hash that is equal for ids of the same length."""
    reader = RecordReader(Rules())
    rows = read_items([{"id": name, "input": 1} for name in ids], reader)
    return DatasetInspection(rows, reader, hash_id=len).run(DatasetInfo("ids"), str)


def test_ids_with_equal_hashes_are_distinguished() -> None:
    """The second pass accepts ids that only share a hash."""
    assert census("ab", "cd", "ef", "g").length == 4


def test_a_duplicate_among_ids_with_equal_hashes_is_found() -> None:
    """The second pass names the duplicate id and both positions."""
    with pytest.raises(DatasetError, match="1 problem in the dataset") as caught:
        census("ab", "cd", "ef", "cd")
    assert [str(problem) for problem in caught.value.problems] == ["3: id: 'cd' is already used at 1"]
