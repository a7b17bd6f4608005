"""What the text in a cell of a table means, by the place it goes to and the type declared there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from proctor.datasets.faults import Fault, Unfit, found
from proctor.datasets.mapping import Steps
from proctor.datasets.record import Rules
from proctor.datasets.typed import Read, part_type, reader_of
from proctor.records.sample import LABELS, TAGS

Cell = Callable[[str], Any]


def cell_reader(path: Steps, rules: Rules) -> Cell | None:
    """What makes a plain value of a cell, or None where the text itself is the value.

    A cell is text. Where another type is declared, it holds JSON: 42, true, ["a", "b"]. Whole
    metadata and labels are JSON mappings; tags are a JSON list, or words with commas between.

    >>> cell_reader(("input",), Rules(input_type=list[int]))("[1, 2]")
    [1, 2]
    >>> cell_reader(("metadata", "tags"), Rules())("easy, short")
    ['easy', 'short']
    """
    if path in (("metadata",), ("metadata", LABELS)):
        return _json_mapping(".".join(path))
    if path == ("metadata", TAGS):
        return _words
    if path[0] not in ("input", "expected"):
        return None
    kind = rules.input_type if path[0] == "input" else rules.expected_type
    read = reader_of(part_type(kind, path[1]) if len(path) > 1 else kind, path[0])
    return None if read is None else _by_type(read)


def _by_type(read: Read) -> Cell:
    """Text where the type takes text; else what the text says in JSON, if it is JSON."""

    def cell(text: str) -> Any:
        try:
            read(text)
        except Unfit:
            return _json_or_text(text)
        return text

    return cell


def _json_or_text(text: str) -> Any:
    """Text that is not JSON stays text: reading it into the type will tell what is wrong."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return text


def _json_mapping(field: str) -> Cell:
    def cell(text: str) -> Any:
        value = _json_or_text(text)
        if isinstance(value, dict):
            return value
        fix = 'write it as JSON: {"key": "value"}'
        raise Unfit(
            [Fault(field, f"expected a JSON mapping in the cell, found {found(text)}", fix)]
        )

    return cell


def _words(text: str) -> Any:
    if text.lstrip().startswith("["):
        return _json_or_text(text)
    return [word.strip() for word in text.split(",") if word.strip()]
