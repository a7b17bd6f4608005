"""Which kind of dataset a file is: by its ending and its content, or by the name of its format."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from proctor.datasets.files import MAX_LINE_BYTES, check_file, open_data
from proctor.datasets.json_document import RECORD_KEYS, JSONDataset
from proctor.datasets.jsonl import JSONLDataset
from proctor.datasets.record import Rules
from proctor.datasets.table import CSVDataset
from proctor.errors import DatasetError, nearest

JSONL_ENDINGS = (".jsonl", ".ndjson")
JSON_ENDINGS = (".json",)
TABLE_ENDINGS = (".csv", ".tsv")
COMPRESSED = ".gz"
FILE_FORMATS = ("jsonl", "json", "csv", "tsv")
LINES = "JSON Lines"

FileDataset = JSONLDataset | JSONDataset | CSVDataset


def open_file(path: str | Path, rules: Rules, format: str | None = None) -> FileDataset:  # noqa: A002
    """A dataset that reads the file, or an error that lists the endings that are known."""
    path = Path(path)
    if format is not None and format not in FILE_FORMATS:
        raise DatasetError(
            f"{format!r} is not a format of files with samples",
            where=str(path),
            fix=nearest(format, FILE_FORMATS),
        )
    ending = ending_of(path)
    if format in ("csv", "tsv") or (format is None and ending in TABLE_ENDINGS):
        return CSVDataset(
            path,
            rules.mapping,
            rules.input_type,
            rules.expected_type,
            generate_ids=rules.generate_ids,
            delimiter={"csv": None, "tsv": "\t"}.get(format or ""),
        )
    if format is None and ending in (*JSONL_ENDINGS, *JSON_ENDINGS):
        return _by_content(path, rules, ending)
    if format is not None:
        return _of_json(path, rules, as_lines=format == "jsonl")
    check_file(path)
    raise DatasetError(
        f"files that end in {ending!r} are not known" if ending else "the file name has no ending",
        where=str(path),
        fix=f"known: {', '.join(JSONL_ENDINGS + JSON_ENDINGS + TABLE_ENDINGS)}; or name its "
        f"format: {', '.join(FILE_FORMATS)}; for others, read the records yourself and use "
        "Dataset.of or IteratorDataset",
    )


def ending_of(path: Path) -> str:
    """The ending that tells the format, in small letters and without that of a compression.

    >>> ending_of(Path("qa.JSONL.gz"))
    '.jsonl'
    """
    name = path.name.lower()
    return Path(name.removesuffix(COMPRESSED)).suffix


def _by_content(path: Path, rules: Rules, ending: str) -> FileDataset:
    usual = ending in JSONL_ENDINGS
    as_lines = holds_lines(path, usual=usual)
    dataset = _of_json(path, rules, as_lines=as_lines)
    if as_lines and not usual:
        dataset.stream.details = {"format": "jsonl", "recognised": LINES}
    return dataset


def _of_json(path: Path, rules: Rules, *, as_lines: bool) -> JSONLDataset | JSONDataset:
    kind = JSONLDataset if as_lines else JSONDataset
    return kind(
        path, rules.input_type, rules.expected_type, mapping=rules.mapping, generate_ids=rules.generate_ids
    )


def holds_lines(path: Path, *, usual: bool) -> bool:
    """True if a JSON file has one value on each line, False if it is one document.

    `usual` is what its ending says; it decides where the content does not tell.
    """
    with open_data(path) as file:
        line = _first_line(file)
        if line is None:
            return usual
        try:
            value = msgspec.json.decode(line)
        except (ValueError, RecursionError):
            return not _spans_lines(line + file.read(MAX_LINE_BYTES)) if usual else False
        if isinstance(value, list):
            return False
        if _first_line(file) is not None:
            return True
    # One line alone: an object may be a record, or hold a list of them.
    return usual and not (isinstance(value, dict) and _holds_list(value))


def _first_line(file: object) -> bytes | None:
    """The first line from here on that is not blank; None if there is none that can be read."""
    while line := file.readline(MAX_LINE_BYTES):  # type: ignore[attr-defined]
        if line.strip():
            return line  # type: ignore[no-any-return]
    return None


def _spans_lines(start: bytes) -> bool:
    """True if the first JSON value of a text is whole and goes over more than one line."""
    text = start.decode("utf-8", "replace").lstrip()
    try:
        _, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return text.startswith("[")
    return "\n" in text[:end]


def _holds_list(value: dict[str, object]) -> bool:
    return "input" not in value and any(isinstance(value.get(key), list) for key in RECORD_KEYS)
