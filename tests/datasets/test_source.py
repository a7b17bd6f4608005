"""Whatever a user calls a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.datasets.dataset import Dataset, IteratorDataset, UserDataset, make_source
from proctor.datasets.jsonl import JSONLDataset
from proctor.datasets.table import CSVDataset
from proctor.errors import DatasetError
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample

RECORDS = [{"id": "1", "input": "2 + 2", "expected": "4"}]


class DatabaseDataset:
    """The custom loader of the runner specification."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def info(self) -> dict[str, Any]:
        return {"source": "database", "query": "select *"}


class Endless:
    def __iter__(self) -> Iterator[Any]:
        return iter(RECORDS)


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.jsonl", '{"id": "1", "input": "x"}', JSONLDataset),
        ("a.NDJSON", '{"id": "1", "input": "x"}', JSONLDataset),
        ("a.csv", "id,input\n1,x\n", CSVDataset),
        ("a.tsv", "id\tinput\n1\tx\n", CSVDataset),
    ],
)
def test_a_path_is_opened_by_its_ending(name: str, text: str, kind: type, tmp_path: Path) -> None:
    """Strings and paths open the format of their suffix."""
    path = tmp_path / name
    path.write_text(text)
    for source in (make_source(path), make_source(str(path))):
        assert isinstance(source, kind)
        assert list(source) == [Sample("1", "x")]


def test_a_dataset_is_taken_as_it_is() -> None:
    """What is a source already passes through, and takes no further rules."""
    dataset = Dataset.of(RECORDS)
    assert make_source(dataset) is dataset
    with pytest.raises(DatasetError, match="set them when you create the dataset"):
        make_source(dataset, str)


@pytest.mark.parametrize("items", [RECORDS, tuple(RECORDS), [Sample("1", "2 + 2", "4")]])
def test_a_list_becomes_a_dataset(items: Any) -> None:
    """Lists and tuples of records or samples become a dataset in memory."""
    assert make_source(items, str, str) == Dataset([Sample("1", "2 + 2", "4")])


def test_an_iterator_becomes_a_dataset_of_one_pass() -> None:
    """Generators are read once, as they come."""
    source = make_source((record for record in RECORDS), expected_type=str)
    assert isinstance(source, IteratorDataset)
    assert [sample.expected for sample in source] == ["4"]


def test_the_custom_loader_of_the_runner_specification_works() -> None:
    """Ruling (runner): an object with `__iter__`, `__len__` and `info` is a dataset."""
    theirs = DatabaseDataset(RECORDS)
    source = make_source(theirs)
    assert isinstance(source, UserDataset)
    assert list(source) == list(source) == [Sample("1", "2 + 2", "4")]
    assert len(source) == 1
    assert source.info == DatasetInfo(
        "DatabaseDataset",
        "database",
        1,
        Dataset.of(RECORDS).info.fingerprint,
        {"source": "database", "query": "select *"},
    )
    assert "DatabaseDataset object" in repr(source)


def test_a_loader_of_the_users_own_is_checked_like_a_file() -> None:
    """Problems are named by item: all of them on inspection, the first one in a pass."""
    source = make_source(DatabaseDataset([*RECORDS, *RECORDS, {"id": "2"}]))
    with pytest.raises(DatasetError, match="2 problems"):
        source.inspect()
    with pytest.raises(DatasetError, match="DatabaseDataset, item 2: input is missing"):
        list(source)
    with pytest.raises(DatasetError, match="item 0: expected must be an integer"):
        list(make_source(DatabaseDataset(RECORDS), str, int))


def test_a_loader_needs_neither_length_nor_info() -> None:
    """An object that can only be iterated is enough."""
    source = make_source(Endless())
    assert source.inspect().length == 1
    assert source.inspect().source == "Endless"
    with pytest.raises(TypeError):
        len(source)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("thing", "told"),
    [
        (None, "null is not a dataset"),
        (42, "a number is not a dataset"),
        ({"id": "1", "input": "x"}, "a mapping is not a dataset"),
        (b"a.jsonl", "bytes is not a dataset"),
        (Dataset, "the type Dataset is not a dataset"),
    ],
)
def test_other_objects_are_refused_with_the_possible_types(thing: Any, told: str) -> None:
    """An object that yields no records is refused with a reason."""
    with pytest.raises(DatasetError, match=told) as caught:
        make_source(thing)
    assert "pass a path, a Dataset, a data frame, a list of records" in caught.value.fix
