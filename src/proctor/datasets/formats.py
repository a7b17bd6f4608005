"""Choose the dataset class for a file by its suffix and content, or by the name of its format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

import msgspec

from proctor.datasets.files import MAX_LINE_BYTES, FileDataset, check_file, open_data
from proctor.datasets.json_document import RECORD_KEYS, JSONDataset
from proctor.datasets.jsonl import JSONLDataset
from proctor.datasets.record import Rules
from proctor.datasets.table import CSVDataset
from proctor.errors import DatasetError, suggest_name

JSONL_ENDINGS = (".jsonl", ".ndjson")
JSON_ENDINGS = (".json",)
TABLE_ENDINGS = (".csv", ".tsv")

FILE_FORMATS = ("jsonl", "json", "csv", "tsv")


def open_file(path: str | Path, rules: Rules, format: str | None = None) -> FileDataset:  # noqa: A002
    """Return the dataset for a file, or raise an error that lists the supported formats."""
    path = Path(path)
    if format is not None and format not in FILE_FORMATS:
        raise DatasetError(
            f"{format!r} is not a dataset format", where=str(path), fix=suggest_name(format, FILE_FORMATS)
        )
    ending = format_suffix(path)
    types = rules.input_type, rules.expected_type
    if format in ("csv", "tsv") or (format is None and ending in TABLE_ENDINGS):
        delimiter = "\t" if format == "tsv" else None
        return CSVDataset(path, rules.mapping, *types, generate_ids=rules.generate_ids, delimiter=delimiter)
    if format is None and ending not in (*JSONL_ENDINGS, *JSON_ENDINGS):
        check_file(path)
        raise DatasetError(
            f"the file suffix {ending!r} is not supported" if ending else "the file name has no suffix",
            where=str(path),
            fix=f"use one of: {', '.join(JSONL_ENDINGS + JSON_ENDINGS + TABLE_ENDINGS)}; or name the "
            f"format: {', '.join(FILE_FORMATS)}; for other formats, read the records yourself and use "
            "Dataset.of or IteratorDataset",
        )
    expects_lines = ending in JSONL_ENDINGS
    is_lines = format == "jsonl" if format else is_json_lines(path, expects_lines=expects_lines)
    dataset_class = JSONLDataset if is_lines else JSONDataset
    dataset = dataset_class(path, *types, mapping=rules.mapping, generate_ids=rules.generate_ids)
    if format is None and is_lines and not expects_lines:
        dataset.details = {"format": "jsonl", "recognised": "JSON Lines"}
    return dataset


def format_suffix(path: Path) -> str:
    """Return the suffix that names the format, in lower case and without .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_json_lines(path: Path, *, expects_lines: bool) -> bool:
    """Tell whether a JSON file has one value per line rather than being one document.

    `expects_lines`, from the suffix, decides where the content is ambiguous.
    """
    with open_data(path) as file:
        line = _next_line(file)
        if line is None:
            return expects_lines
        try:
            value = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            return expects_lines and not _spans_lines(line + file.read(MAX_LINE_BYTES))
        if isinstance(value, list):
            return False
        if _next_line(file) is not None:
            return True
    # The object on a single line may be a record, or hold a list of records.
    holds_list = isinstance(value, dict) and any(isinstance(value.get(key), list) for key in RECORD_KEYS)
    return expects_lines and not (holds_list and "input" not in value)


def _next_line(file: BinaryIO) -> bytes | None:
    """Return the next line that is not blank; None at the end."""
    while line := file.readline(MAX_LINE_BYTES):
        if line.strip():
            return line
    return None


def _spans_lines(start: bytes) -> bool:
    """Tell whether the first JSON value of a text is complete and spans several lines."""
    text = start.decode("utf-8", "replace").lstrip()
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return text.startswith("[")
    return "\n" in text[:end]
