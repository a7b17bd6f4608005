"""Choose the dataset class for a file by its suffix and content, or by the name of its format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
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

_CLASSES: Mapping[str, Callable[..., FileDataset]] = {
    "jsonl": JSONLDataset,
    "json": JSONDataset,
    "csv": CSVDataset,
    "tsv": partial(CSVDataset, delimiter="\t"),
}
FILE_FORMATS = tuple(_CLASSES)


def open_file(path: str | Path, rules: Rules, format: str | None = None) -> FileDataset:  # noqa: A002
    """Return the dataset for a file, or raise an error that lists the supported formats."""
    path = Path(path)
    if format is not None and format not in FILE_FORMATS:
        raise DatasetError(
            f"{format!r} is not a dataset format", where=str(path), fix=suggest_name(format, FILE_FORMATS)
        )
    open_format = _CLASSES[format or _detect_format(path)]
    dataset = open_format(
        path,
        input_type=rules.input_type,
        expected_type=rules.expected_type,
        mapping=rules.mapping,
        generate_ids=rules.generate_ids,
    )
    if format is None and isinstance(dataset, JSONLDataset) and format_suffix(path) not in JSONL_ENDINGS:
        dataset.details = {"format": "jsonl", "recognised": "JSON Lines"}
    return dataset


def _detect_format(path: Path) -> str:
    suffix = format_suffix(path)
    if suffix in TABLE_ENDINGS:
        return "csv"  # the file decides the delimiter
    if suffix in (*JSONL_ENDINGS, *JSON_ENDINGS):
        return "jsonl" if is_json_lines(path, expects_lines=suffix in JSONL_ENDINGS) else "json"
    check_file(path)
    raise DatasetError(
        f"the file suffix {suffix!r} is not supported" if suffix else "the file name has no suffix",
        where=str(path),
        fix=f"use one of: {', '.join(JSONL_ENDINGS + JSON_ENDINGS + TABLE_ENDINGS)}; or name the "
        f"format: {', '.join(FILE_FORMATS)}; for other formats, read the records yourself and use "
        "Dataset.of or IteratorDataset",
    )


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
