"""Open the dataset of an eval file or a command line: samples or recorded sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.datasets.dataset import make_source
from proctor.datasets.files import GZIP
from proctor.datasets.formats import JSON_ENDINGS, TABLE_ENDINGS, dataset_formats, format_suffix
from proctor.datasets.json_document import RECORD_KEYS
from proctor.datasets.sessions import SessionDataset
from proctor.errors import ConfigError, suggest_name
from proctor.records.run import DatasetInfo
from proctor.sessions.importers.session_files import AUTO, FORMATS, detect_format, read_first_values
from proctor.wiring.eval_file import DatasetEntry

MAX_RECORDS = 50


def open_dataset(entry: str | DatasetEntry | list[dict[str, Any]], folder: Path) -> Any:
    """Open the dataset of an entry; paths are relative to `folder`."""
    if isinstance(entry, list):
        return entry
    if isinstance(entry, str):
        entry = DatasetEntry(entry)
    path = folder / entry.path
    if entry.format is not None and entry.format not in known_formats():
        raise ConfigError(
            f"unknown dataset format {entry.format!r}", where="format", fix=suggest_name(entry.format, known_formats())
        )
    if holds_sessions(entry, path):
        if entry.mapping or entry.generate_ids or entry.delimiter is not None:
            raise ConfigError(
                "mapping, generate_ids and delimiter apply to samples, not to recorded sessions",
                where=str(path),
                fix="leave them out, or name the format of the samples: format: jsonl",
            )
        return SessionDataset(path, entry.format, pattern=entry.pattern)
    if entry.delimiter is not None:
        if entry.format not in ("csv", "tsv") and format_suffix(path) not in TABLE_ENDINGS:
            raise ConfigError(
                f"delimiter applies only to tables ({', '.join(TABLE_ENDINGS)})",
                where=str(path),
                fix="leave delimiter out, or add format: csv",
            )
        from proctor.datasets.table import CSVDataset

        return CSVDataset(path, entry.mapping, generate_ids=entry.generate_ids, delimiter=entry.delimiter)
    return make_source(path, mapping=entry.mapping, generate_ids=entry.generate_ids, format=entry.format)


def known_formats() -> tuple[str, ...]:
    """Return the names of all dataset formats and session formats."""
    return (*dataset_formats(), AUTO, *FORMATS)


def holds_sessions(entry: DatasetEntry, path: Path) -> bool:
    """True if a dataset consists of logs or traces, judging by its format or content, or because it is a folder.

    Only the content of .json and compressed files is read: without a format, a .jsonl, .csv or .tsv file holds samples.
    """
    if entry.format is not None:
        return entry.format in (AUTO, *FORMATS) or entry.format not in dataset_formats()
    if entry.pattern is not None or path.is_dir():
        return True
    if entry.mapping or entry.generate_ids or entry.delimiter is not None:
        return False
    ending = format_suffix(path)
    content_decides = ending in JSON_ENDINGS or (_is_named_gzip(path) and ending not in TABLE_ENDINGS)
    return content_decides and not _holds_samples(path)


def describe_detected(dataset: Any, info: DatasetInfo) -> str:
    """Describe the format if it was detected from the content of a file; empty if the file name shows it."""
    details = info.details
    if "recognised" in details:
        return f"samples ({details['recognised']})"
    if "delimiter" in details:
        return f"a table separated by {details['delimiter']!r}"
    if isinstance(dataset, SessionDataset) and dataset.format is None:
        return f"recorded sessions ({', '.join(details.get('formats', ()))})"
    return ""


def _holds_samples(path: Path) -> bool:
    """True if the first records of a file are samples, or are neither a chat nor a trace.

    A record with an input and an expected value is always a sample.
    """
    values = read_first_values(path)
    records = [record for value in values for record in _list_records(value)]
    if not records and (values or _is_fake_gzip(path)):
        # The dataset reports later that it has no samples, or that the file is not compressed.
        return True
    if not records or not all(isinstance(record, Mapping) for record in records):
        return False
    if all("input" in record for record in records) and any("expected" in record for record in records):
        return True
    if detect_format(values) is not None:
        return False
    # Reading a single unknown object as a session reports the formats; an object with lists is read as samples, which
    # reports the keys.
    is_single = records == values and len(values) == 1
    return not is_single or "input" in records[0] or _has_record_list(records[0])


def _is_named_gzip(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def _is_fake_gzip(path: Path) -> bool:
    """True if a file has the extension .gz but is not compressed with gzip."""
    try:
        with path.open("rb") as file:
            return _is_named_gzip(path) and not file.read(len(GZIP)).startswith(GZIP)
    except OSError:
        return False


def _has_record_list(value: Mapping[str, Any]) -> bool:
    return any(isinstance(item, list) and item and isinstance(item[0], Mapping) for item in value.values())


def _list_records(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value[:MAX_RECORDS]
    if isinstance(value, Mapping) and "input" not in value:
        for key in RECORD_KEYS:
            if isinstance(value.get(key), list):
                return list(value[key][:MAX_RECORDS])
    return [value]
