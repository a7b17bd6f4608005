"""Hugging Face datasets: Parquet, Arrow, JSON Lines and CSV files, and folders of `save_to_disk`."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proctor.datasets.arrow import read_arrow, read_parquet
from proctor.errors import DatasetError
from proctor.interop.files import read_json
from proctor.interop.imported import ImportedFile
from proctor.interop.run_builder import Notes
from proctor.interop.tables import find_column, make_samples, read_header, read_records, require_object
from proctor.records.sample import Sample

NAME = "huggingface"
_PARQUET, _ARROW = (".parquet",), (".arrow",)
_STATE, _SPLITS = "state.json", "dataset_dict.json"
# NumPy arrays as text, which cannot be read back.
_ARRAY = re.compile(r"\barray\(")


def recognize(path: Path, head: bytes) -> bool:
    """Return True for Parquet, Arrow, folders of `save_to_disk`, and rows with a usual input column but no `input`."""
    if path.is_dir():
        return (path / _SPLITS).is_file() or (path / _STATE).is_file()
    if head.startswith(b"PAR1") or path.suffix.lower() in _PARQUET + _ARROW:
        return True
    columns = read_header(path, head)
    if path.suffix.lower() == ".jsonl" and head.lstrip().startswith(b"{"):
        columns = _list_keys(head)
    return "input" not in columns and find_column("input", columns) is not None


def _list_keys(head: bytes) -> list[str]:
    """Return the keys of the first line, if it is short enough to be complete."""
    line, end, _ = head.partition(b"\n")
    with contextlib.suppress(ValueError):
        record = json.loads(line) if end else None
        return list(record) if isinstance(record, dict) else []
    return []


def read(path: Path) -> ImportedFile:
    """Read a file or a saved folder; the splits of a folder are in the ids and in the metadata."""
    notes = Notes()
    if not path.is_dir():
        return ImportedFile(NAME, samples=tuple(_read_file(path, notes)), warnings=notes.texts)
    if (path / _SPLITS).is_file():
        splits = require_object(read_json(path / _SPLITS), str(path / _SPLITS)).get("splits") or []
        samples = [sample for name in splits for sample in _read_split(path / str(name), notes, str(name))]
    elif (path / _STATE).is_file():
        samples = _read_split(path, notes)
    else:
        raise DatasetError("the folder is no saved dataset", where=str(path), fix="save it: dataset.save_to_disk(path)")
    return ImportedFile(NAME, samples=tuple(samples), warnings=notes.texts)


def _read_split(folder: Path, notes: Notes, split: str = "") -> list[Sample[Any, Any]]:
    state = require_object(read_json(folder / _STATE), str(folder / _STATE))
    rows = [row for file in state.get("_data_files") or () for row in read_arrow(folder / str(file["filename"]))]
    notes.add("left out", "selection", "of rows in an indices file", bool(state.get("_indices_files")))
    if split:
        rows = [{**row, "split": split} for row in rows]
    return make_samples(list(_drop_binary(rows, notes)), notes, f"{split}-" if split else "")


def _read_file(path: Path, notes: Notes) -> list[Sample[Any, Any]]:
    suffix = path.suffix.lower()
    if suffix in _PARQUET:
        rows = list(read_parquet(path))
    elif suffix in _ARROW:
        rows = list(read_arrow(path))
    else:
        rows = read_records(path)
        unreadable = sum(
            isinstance(cell, str) and _ARRAY.search(cell) is not None for row in rows for cell in row.values()
        )
        notes.add("read as text", "cell", "with NumPy arrays; use Parquet or JSON Lines", unreadable)
    return make_samples(list(_drop_binary(rows, notes)), notes)


def _drop_binary(rows: list[dict[str, Any]], notes: Notes) -> Iterator[dict[str, Any]]:
    """Yield the rows without the bytes of images and sounds, which samples cannot hold."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: clean(item) for key, item in value.items()}
        if isinstance(value, list):
            return [clean(item) for item in value]
        if isinstance(value, bytes):
            notes.add("left out", "binary value", "(images or sounds)")
            return None
        return value

    return (clean(row) for row in rows)
