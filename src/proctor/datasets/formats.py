"""Which kind of dataset a file is, by the ending of its name."""

from __future__ import annotations

from pathlib import Path

from proctor.datasets.files import check_file
from proctor.datasets.jsonl import JSONLDataset
from proctor.datasets.record import Rules
from proctor.datasets.table import CSVDataset
from proctor.errors import DatasetError

JSONL_ENDINGS = (".jsonl", ".ndjson")
TABLE_ENDINGS = (".csv", ".tsv")


def open_file(path: str | Path, rules: Rules) -> JSONLDataset | CSVDataset:
    """A dataset that reads the file, or an error that lists the endings that are known."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending in JSONL_ENDINGS:
        return JSONLDataset(
            path,
            rules.input_type,
            rules.expected_type,
            mapping=rules.mapping,
            generate_ids=rules.generate_ids,
        )
    if ending in TABLE_ENDINGS:
        return CSVDataset(
            path,
            rules.mapping,
            rules.input_type,
            rules.expected_type,
            generate_ids=rules.generate_ids,
        )
    check_file(path)
    raise DatasetError(
        f"files that end in {ending!r} are not known" if ending else "the file name has no ending",
        where=str(path),
        fix=f"known: {', '.join(JSONL_ENDINGS + TABLE_ENDINGS)}; for others, read the records "
        "yourself and use Dataset.of or IteratorDataset",
    )
