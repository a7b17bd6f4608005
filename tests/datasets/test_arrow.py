"""Parquet files, Arrow tables and objects like those of Hugging Face are datasets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor import Dataset, evaluate, exact_match
from proctor.datasets.arrow import read_arrow
from proctor.errors import DatasetError

ROWS = [{"id": "a", "input": "x", "expected": "x"}, {"id": "b", "input": "y", "expected": "z"}]


def write_table(path: Path) -> Any:
    """Write rows with a class label as Parquet and return the table."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    features = {"expected": {"_type": "ClassLabel", "names": ["x", "z"]}}
    table = pyarrow.table({"id": ["a", "b"], "input": ["x", "y"], "expected": [0, 1]})
    parquet.write_table(
        table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})}), path
    )
    return table


def test_a_parquet_file_is_a_dataset(tmp_path: Path) -> None:
    """The suffix selects the format, and class labels are read as their names."""
    path = tmp_path / "qa.parquet"
    write_table(path)
    assert [sample.expected for sample in Dataset.load(path)] == ["x", "z"]
    assert evaluate(lambda text: text, path, exact_match).pass_rate == 0.5


def test_an_arrow_table_is_a_dataset(tmp_path: Path) -> None:
    """Each row of a table in memory is a record."""
    table = write_table(tmp_path / "qa.parquet")
    report = evaluate(lambda text: text, table, exact_match)
    assert report.total == 2


def test_an_object_that_yields_dicts_is_a_dataset() -> None:
    """Objects like `datasets.Dataset` have a length, yield dicts and have an `info` that is no mapping."""

    class Rows:
        info = object()

        def __iter__(self) -> Iterator[dict[str, Any]]:
            return iter(ROWS)

        def __len__(self) -> int:
            return len(ROWS)

    assert evaluate(lambda text: text, Rows(), exact_match).pass_rate == 0.5


def test_a_json_list_is_a_dataset(tmp_path: Path) -> None:
    """A JSON file with a list of objects is read like JSON Lines."""
    path = tmp_path / "qa.json"
    path.write_text(json.dumps(ROWS))
    assert evaluate(lambda text: text, path, exact_match).pass_rate == 0.5


def test_a_broken_file_is_an_error(tmp_path: Path) -> None:
    """Bytes that are not Parquet or Arrow are reported with the file."""
    pytest.importorskip("pyarrow")
    path = tmp_path / "broken.parquet"
    path.write_bytes(b"PAR1 nothing")
    with pytest.raises(DatasetError, match=r"broken\.parquet: not a readable Parquet file"):
        Dataset.load(path)
    arrow = tmp_path / "broken.arrow"
    arrow.write_bytes(b"nothing at all")
    with pytest.raises(DatasetError, match="not a readable Arrow file"):
        list(read_arrow(arrow))
