"""Choose the dataset class for a file by its suffix and content, or by the name of its format.

All formats, including the built-in ones, are entry points of the group `proctor.datasets`. A plugin is a function that
takes a path and returns an iterable of records.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from proctor.core import imports as plugins
from proctor.datasets.files import MAX_LINE_BYTES, FileDataset, check_file, open_data
from proctor.datasets.json_document import RECORD_KEYS, JSONDataset
from proctor.datasets.jsonl import JSONLDataset
from proctor.datasets.problems import WHOLE_DATASET, ReportProblems
from proctor.datasets.record import Rules, read_items
from proctor.errors import DatasetError, Problem, suggest_name
from proctor.records.sample import Sample

JSONL_ENDINGS = (".jsonl", ".ndjson")
JSON_ENDINGS = (".json",)
TABLE_ENDINGS = (".csv", ".tsv")
OWN_ENDINGS = JSONL_ENDINGS + JSON_ENDINGS + TABLE_ENDINGS


class RecordFile(FileDataset):
    """Samples from a file that a plugin's function reads on each pass, as dicts or other records."""

    def __init__(self, path: str | Path, read: Callable[[Path], Iterable[Any]], **options: Any) -> None:
        super().__init__(path, **options)
        self._read = read

    def _rows(self, report: ReportProblems) -> Iterator[tuple[int, Sample[Any, Any]]]:
        yield from read_items(self._read_records(), self._reader)(report)

    def _read_records(self) -> Iterator[Any]:
        try:
            yield from self._read(self._file)
        except (DatasetError, MemoryError):
            raise
        except Exception as error:
            raise DatasetError(
                f"the file cannot be read: {type(error).__name__}: {error}",
                where=str(self.path),
                fix="correct the file, or the plugin that reads it",
            ) from error

    def _locate(self, line: int) -> str:
        return str(self.path) if line == WHOLE_DATASET else f"{self.path}, record {line + 1}"


def dataset_formats() -> list[str]:
    """Return the names of all dataset formats, including plugins."""
    return plugins.plugin_names(plugins.DATASETS)


def open_file(path: str | Path, rules: Rules, format: str | None = None) -> FileDataset:  # noqa: A002
    """Return the dataset for a file, or raise an error that lists the supported formats."""
    path = Path(path)
    suffix = format_suffix(path)
    options = {name: getattr(rules, name) for name in ("input_type", "expected_type", "mapping", "generate_ids")}
    if format is not None or suffix not in OWN_ENDINGS:
        return _open_plugin(path, options, format)
    if suffix in TABLE_ENDINGS:
        from proctor.datasets.table import CSVDataset

        return CSVDataset(path, **options)
    expects_lines = suffix in JSONL_ENDINGS
    is_lines = is_json_lines(path, expects_lines=expects_lines)
    dataset = (JSONLDataset if is_lines else JSONDataset)(path, **options)
    if is_lines and not expects_lines:
        dataset.details = {"format": "jsonl", "recognised": "JSON Lines"}
    return dataset


def _open_plugin(path: Path, options: dict[str, Any], name: str | None) -> FileDataset:
    plugin = _find_plugin(path) if name is None else _load(name, path)
    if isinstance(plugin, type) and issubclass(plugin, FileDataset):
        return plugin(path, **options)
    return RecordFile(path, plugin, **options)


def _find_plugin(path: Path) -> Any:
    """Return the plugin for the suffix of a file: one of its `extensions`, by default the name of the format."""
    suffix = format_suffix(path)
    by_ending: dict[str, Any] = {}
    broken_plugins: list[Problem] = []
    for name in dataset_formats() if suffix else ():
        try:
            plugin = _load(name, path)
        except DatasetError as error:
            broken_plugins.append(Problem("", error.what, error.fix))
        else:
            by_ending |= dict.fromkeys(getattr(plugin, "extensions", (f".{name}",)), plugin)
    if suffix not in by_ending:
        check_file(path)
        raise DatasetError(
            f"the file suffix {suffix!r} is not supported" if suffix else "the file name has no suffix",
            where=str(path),
            fix=f"use one of: {', '.join(dict.fromkeys(OWN_ENDINGS + tuple(by_ending)))}; or name the format: "
            f"{', '.join(dataset_formats())}; for other formats, read the records yourself and use Dataset.of or "
            "IteratorDataset",
            problems=broken_plugins,
        )
    return by_ending[suffix]


def _load(name: str, path: Path) -> Any:
    try:
        plugin = plugins.load_plugin(plugins.DATASETS, name)
    except Exception as error:
        raise DatasetError(
            f"the format {name!r} cannot be loaded: {type(error).__name__}: {error}",
            where=str(path),
            fix="update or uninstall the plugin that provides it",
        ) from error
    if plugin is None:
        raise DatasetError(
            f"{name!r} is not a dataset format", where=str(path), fix=suggest_name(name, dataset_formats())
        )
    return plugin


def format_suffix(path: Path) -> str:
    """Return the suffix that names the format, in lower case and without .gz."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


def is_json_lines(path: Path, *, expects_lines: bool) -> bool:
    """Return True if a JSON file has one value per line, False if it is one document.

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
    """Return True if the first JSON value of a text is complete and spans several lines."""
    text = start.decode("utf-8", "replace").lstrip()
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return text.startswith("[")
    return "\n" in text[:end]
