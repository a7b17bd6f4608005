"""The dataset of an eval file or a command line: samples or recorded sessions, in any format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from proctor.datasets.files import GZIP
from proctor.datasets.formats import FILE_FORMATS, JSON_ENDINGS, TABLE_ENDINGS, ending_of
from proctor.datasets.json_document import RECORD_KEYS
from proctor.datasets.sessions import SessionDataset
from proctor.datasets.source import as_source
from proctor.datasets.table import CSVDataset
from proctor.errors import ConfigError, nearest
from proctor.records.run import DatasetInfo
from proctor.sessions.importers.reading import AUTO, FORMATS, detect, first_values
from proctor.wiring.eval_file import DatasetEntry


def open_dataset(entry: str | DatasetEntry | list[dict[str, Any]], folder: Path) -> Any:
    """A dataset's entry as a dataset; paths are seen from the file's folder."""
    if isinstance(entry, str):
        entry = DatasetEntry(entry)
    if isinstance(entry, list):
        return entry
    where, ids = folder / entry.path, entry.generate_ids
    _check_format(entry)
    if holds_sessions(entry, where):
        if entry.mapping or ids or entry.delimiter is not None:
            raise ConfigError(
                "mapping, generate_ids and delimiter are for samples, not for recorded sessions",
                where=str(where),
            )
        return SessionDataset(where, entry.format, pattern=entry.pattern)
    if entry.delimiter is not None:
        if entry.format not in ("csv", "tsv") and ending_of(where) not in TABLE_ENDINGS:
            raise ConfigError(f"a delimiter is for tables ({', '.join(TABLE_ENDINGS)})", where=str(where))
        return CSVDataset(where, entry.mapping, generate_ids=ids, delimiter=entry.delimiter)
    return as_source(where, mapping=entry.mapping, generate_ids=ids, format=entry.format)


def holds_sessions(entry: DatasetEntry, where: Path) -> bool:
    """True if a dataset is logs or traces: its format says so, or it is a folder, or its content.

    Only the content of .json files and of compressed ones is looked at: a .jsonl, .csv or .tsv
    file holds samples, unless a format is named.
    """
    if entry.format is not None:
        return entry.format not in FILE_FORMATS
    if entry.pattern is not None or where.is_dir():
        return True
    if entry.mapping or entry.generate_ids or entry.delimiter is not None:
        return False
    return _content_decides(where) and not _holds_samples(where)


def recognised(dataset: Any, info: DatasetInfo) -> str:
    """What the content of a file was recognised as, in words; empty if its name said it."""
    details = info.details
    if "recognised" in details:
        return f"samples ({details['recognised']})"
    if "delimiter" in details:
        return f"a table separated by {details['delimiter']!r}"
    if isinstance(dataset, SessionDataset) and dataset.format is None:
        return f"recorded sessions ({', '.join(details.get('formats', ()))})"
    return ""


def _check_format(entry: DatasetEntry) -> None:
    known = (*FILE_FORMATS, AUTO, *FORMATS)
    if entry.format is not None and entry.format not in known:
        raise ConfigError(
            f"there is no format {entry.format!r}", where="format", fix=nearest(entry.format, known)
        )


def _content_decides(where: Path) -> bool:
    ending = ending_of(where)
    return ending in JSON_ENDINGS or (where.name.lower().endswith(".gz") and ending not in TABLE_ENDINGS)


def _holds_samples(where: Path) -> bool:
    """True if the first records of a file are samples, or at least not a chat or a trace.

    A record with an input and an expected value is a sample, whatever else it has.
    """
    values = first_values(where)
    records = [record for value in values for record in _records_in(value)]
    if not records and (values or _is_not_gzip(where)):
        # Reading it as samples says so: there are none, or the file is not what its name says.
        return True
    if not records or not all(isinstance(record, Mapping) for record in records):
        return False
    if all("input" in one for one in records) and any("expected" in one for one in records):
        return True
    if detect(values) is not None:
        return False
    # A single object that nobody knows is neither: reading it as a session lists the formats.
    is_single = records == values and len(values) == 1
    return not is_single or "input" in records[0] or _holds_lists(records[0])


def _is_not_gzip(where: Path) -> bool:
    """True if a file is called .gz and is not compressed with gzip."""
    if not where.name.lower().endswith(".gz") or not where.is_file():
        return False
    try:
        with where.open("rb") as file:
            return not file.read(len(GZIP)).startswith(GZIP)
    except OSError:
        return False


def _holds_lists(value: Mapping[str, Any]) -> bool:
    """True if an object holds lists of objects: reading it as samples names their keys."""
    return any(isinstance(item, list) and item and isinstance(item[0], Mapping) for item in value.values())


def _records_in(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value[:50]
    if isinstance(value, Mapping) and "input" not in value:
        for key in RECORD_KEYS:
            if isinstance(value.get(key), list):
                return list(value[key][:50])
    return [value]
