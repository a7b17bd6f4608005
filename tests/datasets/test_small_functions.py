"""Functions of the datasets that turn a value into another one."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from proctor.datasets.dataset import UserDataset, make_source
from proctor.datasets.files import decode_line
from proctor.datasets.formats import format_suffix
from proctor.datasets.inspection import IdTable
from proctor.datasets.jsonl import find_repeated_keys, may_repeat_keys
from proctor.datasets.mapping import find_missing_keys, guess_field, read_mapping
from proctor.datasets.problems import SharedLine, describe_value
from proctor.datasets.record import Fingerprint, RecordReader, Rules, check_sample, generate_id
from proctor.datasets.rerun import move_recording_to_baseline, recorded_configurations
from proctor.datasets.sessions import make_sample
from proctor.datasets.table import make_cell_reader
from proctor.datasets.type_readers import field_type, find_unknown_keys, make_reader
from proctor.records.sample import Sample
from proctor.records.session import Session
from proctor.sessions.importers.imported_session import ImportedSession
from tests.tables import each_row

RECORD = {"id": 7, "input": "2 + 2", "expected": "4", "topic": "sums"}
RECORDED: Sample[str, str] = Sample("1", "q", metadata={"recorded": {"low": {"output": "x"}}})
LOGGED = ImportedSession("s1", Session(), "openai", "a.json", "Hello", "Hi", {"reward": 1.0})


class Sums:
    info = {"source": "arithmetic"}  # noqa: RUF012 - as a user writes it

    def __iter__(self) -> Any:
        return iter([{"id": "1", "input": "2 + 2", "expected": "4"}])


@each_row(
    ("actual", "expected"),
    [
        ((SharedLine(1, sample=3), SharedLine(1, sample=3).sample), (1, 3)),
        (
            [describe_value(value) for value in (42, True, None, [1])],
            ["a number: 42", "a boolean: true", "null", "a list"],
        ),
        (str(decode_line(b"caf\xe9")), "not UTF-8: byte 0xe9 at offset 3 of the line ('é' in Windows-1252)"),
        (format_suffix(Path("qa.JSONL.gz")), ".jsonl"),
        (may_repeat_keys(b'{"id": "1", "input": "at 10:30"}', {"id": "1", "input": "at 10:30"}), False),
        (may_repeat_keys(b'{"id": "1", "input": "a", "input": "b"}', {"id": "1", "input": "b"}), True),
        (
            [problem.what for problem in find_repeated_keys('{"a": 1, "b": {"c": 1, "c": 2}}')],
            ["the key 'c' is repeated in one object"],
        ),
        (
            read_mapping({"question": "input", "topic": "labels.topic"}),
            {"question": ("input",), "topic": ("metadata", "labels", "topic")},
        ),
        (find_missing_keys({"questoin": ("input",)}, ["id", "question"]), [("questoin", "did you mean 'question'?")]),
        ([guess_field(key) for key in ("expeced", "ID", "topic")], ["expected", "id", None]),
        (generate_id("What is 2 + 2?"), "auto-fb3eb78712d6"),
        (RecordReader(Rules()).sample(RECORD), Sample("7", "2 + 2", "4", {"topic": "sums"})),
        (
            [str(problem) for problem in check_sample(Sample("", None))],
            ["id must not be empty", "input must not be null"],
        ),
        (recorded_configurations(make_source([RECORDED])), ("low",)),
        (
            move_recording_to_baseline(Sample("1", "?", metadata={"output": "5", "topic": "sums"})).metadata,
            {"topic": "sums", "baseline": {"output": "5"}},
        ),
        (make_sample(LOGGED, "s1").metadata["reward"], 1.0),
        (UserDataset(Sums()).inspect().source, "arithmetic"),
        (make_reader(Any, "input"), None),
        (field_type(dict[str, int], "n"), int),
    ],
)
def test_the_result_is(actual: Any, expected: Any) -> None:
    assert actual == expected


def test_ids_are_added_once() -> None:
    table = IdTable()
    assert [table.add(hash(name)) for name in ("a", "b", "a")] == [True, True, False]


def test_a_fingerprint_ignores_the_order_of_keys() -> None:
    one, two = Fingerprint(), Fingerprint()
    one.add(Sample("1", {"a": 1, "b": 2}))
    two.add(Sample("1", {"b": 2, "a": 1}))
    assert one.hexdigest() == two.hexdigest()


def test_cells_are_read_by_their_field() -> None:
    read_list = make_cell_reader(("input",), Rules(input_type=list[int]))
    read_tags = make_cell_reader(("metadata", "tags"), Rules())
    assert read_list is not None
    assert read_tags is not None
    assert (read_list("[1, 2]"), read_tags("easy, short")) == ([1, 2], ["easy", "short"])


def test_an_unknown_key_is_reported_with_a_suggestion() -> None:
    kind = dataclasses.make_dataclass("kind", [("km", float), ("unit", str, "km")])
    (problem,) = find_unknown_keys({"km": 3, "unti": "mi"}, kind(3.0), kind, "input")
    assert (problem.where, problem.what) == ("input.unti", "is unknown; did you mean 'unit'?")
