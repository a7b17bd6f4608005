"""Malformed files: each kind is refused with a helpful message."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from proctor.datasets.dataset import Dataset
from proctor.datasets.formats import open_file
from proctor.datasets.record import Rules
from proctor.errors import DatasetError
from tests.tables import each_row


class Bad(NamedTuple):
    """A file, how it is read, and what the error must say."""

    name: str
    content: bytes
    parts: tuple[str, ...]
    rules: Rules = Rules()


def jsonl(*lines: str | bytes) -> bytes:
    return b"\n".join(line.encode() if isinstance(line, str) else line for line in lines)


GOOD = '{"id": "good", "input": "x"}'
TYPED = Rules(input_type=str, expected_type=int)
MAPPED = Rules(mapping={"question": "input", "answer": "expected"})
AUTO = Rules(generate_ids=True)

BAD: dict[str, Bad] = {
    "an empty file": Bad("a.jsonl", b"", ("a.jsonl: no samples",)),
    "only blank lines": Bad("a.jsonl", b"\n  \n\r\n", ("a.jsonl: no samples",)),
    "only a byte order mark": Bad("a.jsonl", b"\xef\xbb\xbf", ("no samples",)),
    "truncated JSON": Bad("a.jsonl", jsonl(GOOD, '{"id": "1", "inp'), ("a.jsonl:2", "ends before its JSON does")),
    "an unclosed object": Bad("a.jsonl", b'{"id": "1"', ("a.jsonl:1", "ends before its JSON")),
    "a missing comma": Bad("a.jsonl", b'{"id": "1" "input": 2}', ("not JSON: expected ','", "character 12")),
    "two objects on a line": Bad("a.jsonl", jsonl(GOOD + GOOD), ("unexpected text after the end", "one complete JSON")),
    "an object over several lines": Bad(
        "a.jsonl", b'{\n"id": "1"\n}', ("a.jsonl:1: input is missing", "a sequence of JSON objects")
    ),
    "a list": Bad("a.jsonl", b"[1, 2]", ("got a number: 1", "got a number: 2", "read as a JSON list")),
    "a number": Bad("a.jsonl", b"42", ("got a number: 42",)),
    "null on a line": Bad("a.jsonl", b"null", ("a.jsonl:1", "got null")),
    "NaN": Bad("a.jsonl", b'{"id": "1", "input": NaN}', ("NaN is not a number", "write null")),
    "Infinity": Bad("a.jsonl", b'{"id": "1", "input": [-Infinity]}', ("-Infinity is not a number",)),
    "a number without bounds": Bad("a.jsonl", b'{"id": "1", "input": 1e999}', ("a number is out of range",)),
    "a number of 5000 digits": Bad(
        "a.jsonl", b'{"id": "1", "input": ' + b"9" * 5000 + b"}", ("a number is out of range",)
    ),
    "half a surrogate pair": Bad("a.jsonl", b'{"id": "1", "input": "\\ud83d"}', ("\\ud83d is a lone surrogate",)),
    "bytes that are not UTF-8": Bad(
        "a.jsonl",
        jsonl(GOOD, b'{"id": "1", "input": "caf\xe9"}'),
        ("a.jsonl:2", "not UTF-8: byte 0xe9 at offset 25 of the line", "convert the file"),
    ),
    "nesting without end": Bad("a.jsonl", b"[" * 100_000, ("a.jsonl:1", "too deeply nested")),
    "a control character in a string": Bad(
        "a.jsonl", b'{"id": "1", "input": "a\x01"}', ("a control character in a string",)
    ),
    "no id": Bad("a.jsonl", b'{"input": 1}', ("id is missing", "generate_ids=True (--generate-ids)")),
    "an empty id": Bad("a.jsonl", b'{"id": " ", "input": 1}', ("id must not be empty",)),
    "an id that is a boolean": Bad(
        "a.jsonl", b'{"id": true, "input": 1}', ("id must be a string, got a boolean: true",)
    ),
    "an id that is a fraction": Bad("a.jsonl", b'{"id": 1.5, "input": 1}', ("id must be a string, got a number: 1.5",)),
    "no input": Bad("a.jsonl", b'{"id": "1"}', ("input is missing",)),
    "an input of null": Bad("a.jsonl", b'{"id": "1", "input": null}', ("input must not be null",)),
    "metadata that is a list": Bad(
        "a.jsonl", b'{"id": "1", "input": 1, "metadata": []}', ("metadata must be a mapping, got a list",)
    ),
    "tags that are a string": Bad(
        "a.jsonl",
        b'{"id": "1", "input": 1, "metadata": {"tags": "easy"}}',
        ("metadata.tags must be a list of strings, got a string",),
    ),
    "a cluster that is a number, beside the fields": Bad(
        "a.jsonl", b'{"id": "1", "input": 1, "cluster": 7}', ("metadata.cluster must be a string, got a number",)
    ),
    "metadata given twice": Bad(
        "a.jsonl",
        b'{"id": "1", "input": 1, "topic": "a", "metadata": {"topic": "b"}}',
        ("metadata.topic is given twice",),
    ),
    "a slip of the pen": Bad(
        "a.jsonl",
        b'{"id": "1", "input": 1, "expeced": 2}',
        ("expeced", "did you mean 'expected'?", "map it: expeced to expected"),
    ),
    "capital letters": Bad("a.jsonl", b'{"ID": "1", "input": 1}', ("did you mean 'id'?",)),
    "an id used twice": Bad("a.jsonl", jsonl(GOOD, "", GOOD), ("a.jsonl:3: id: 'good' is already used at a.jsonl:1",)),
    "equal inputs without ids": Bad(
        "a.jsonl", b'{"input": 1}\n{"input": 1}', ("is already used at a.jsonl:1", "samples with equal inputs"), AUTO
    ),
    "no input to make an id from": Bad("a.jsonl", b'{"expected": 1}', ("input is missing",), AUTO),
    "neither of the mapped keys": Bad(
        "a.jsonl",
        b'{"querry": 1}',
        ("id is missing", "there is no 'query'", "did you mean 'querry'?"),
        Rules(mapping={"key": "id", "query": "input"}),
    ),
    "an input of another type": Bad(
        "a.jsonl",
        b'{"id": "1", "input": 42, "expected": "x"}',
        (
            "a.jsonl:1: input must be a string, got a number: 42",
            "a.jsonl:1: expected must be an integer, got a string: 'x'",
        ),
        TYPED,
    ),
    "a boolean where a whole number is declared": Bad(
        "a.jsonl",
        b'{"id": "1", "input": "x", "expected": true}',
        ("expected must be an integer, got a boolean: true",),
        TYPED,
    ),
    "a mapped key that no line has": Bad(
        "a.jsonl",
        b'{"id": "1", "question": "x", "anwser": 1}',
        ("a.jsonl: mapping: unknown key 'answer'; there are: id, question, anwser", "did you mean 'anwser'?"),
        MAPPED,
    ),
    "a mapped input that is not there": Bad(
        "a.jsonl",
        b'{"id": "1", "Question": "x"}',
        ("input is missing: there is no 'question', which is mapped", "did you mean 'Question'?"),
        MAPPED,
    ),
    "a key and a mapped key for one field": Bad(
        "a.jsonl",
        b'{"id": "1", "question": "x", "answer": 1, "input": 2}',
        ("input is given both by this key and by the mapping",),
        MAPPED,
    ),
    "UTF-16": Bad("a.jsonl", GOOD.encode("utf-16"), ("the file is UTF-16", "iconv -f UTF-16 -t UTF-8 ")),
    "an empty table": Bad("a.csv", b"", ("a.csv: no samples: the file is empty",)),
    "a header and no rows": Bad("a.csv", b"id,input\n", ("only a header",)),
    "a row with too many cells": Bad(
        "a.csv", b"id,input\n1,a,b\n", ("a.csv:2", "the row has 3 cells, the header has 2", "quote cells")
    ),
    "a row with too few cells": Bad("a.csv", b"id,input\n1\n", ("the row has 1 cell, the header has 2",)),
    "two columns of one name": Bad(
        "a.csv", b"id,input,input\n1,a,b\n", ("a.csv:1: input: two columns have this name",)
    ),
    "a column without a name": Bad("a.csv", b"id,,input\n1,a,b\n", ("column 2 has no name",)),
    "no column for the input": Bad("a.csv", b"id,question\n1,a\n", ("a.csv:1: no column for 'input'", "id, question")),
    "no column for the id": Bad(
        "a.csv", b"input\na\n", ("a.csv:1: no column for 'id'", "generate_ids=True (--generate-ids)")
    ),
    "another delimiter": Bad("a.csv", b"id#input\n1#a\n", ("no column for",)),
    "a column that is nearly a field": Bad(
        "a.csv", b"id,input,expectd\n1,a,b\n", ("a.csv:1: expectd", "did you mean 'expected'?")
    ),
    "a mapped column that is not there": Bad(
        "a.csv", b"id,question,anwser\n1,a,b\n", ("unknown column 'answer'", "did you mean 'anwser'?"), MAPPED
    ),
    "a column and a mapped column for one field": Bad(
        "a.csv",
        b"id,question,answer,input\n1,a,b,c\n",
        ("a.csv:1: input is given both by this key and by the mapping",),
        MAPPED,
    ),
    "an empty input cell": Bad("a.csv", b"id,input\n1,\n", ("a.csv:2: input is missing",)),
    "an empty id cell": Bad("a.csv", b"id,input\n,a\n", ("a.csv:2: id is missing",)),
    "a quote that is never closed": Bad(
        "a.csv", b'id,input\n1,"a\n2,b\n', ("a.csv:2", "a quote is opened in this row and never")
    ),
    "text behind a closed quote": Bad("a.csv", b'id,input\n1,"a"b\n', ("a.csv:2", "not a row of CSV")),
    "a carriage return alone": Bad(
        "a.csv", b"id,input\n1,a\rb\n", ("a.csv:2", "a cell contains a single carriage return")
    ),
    "a table that is not UTF-8": Bad(
        "a.csv", b"id,input\n1,a\n2,\xff\n", ("a.csv:3", "byte 0xff at offset 2 of the line")
    ),
    "a cell of another type": Bad(
        "a.csv", b"id,input,expected\n1,a,four\n", ("expected must be an integer, got a string: 'four'",), TYPED
    ),
    "a metadata cell that is not a mapping": Bad(
        "a.csv", b"id,input,metadata\n1,a,b\n", ("metadata must be a JSON mapping",)
    ),
    "an id used twice behind a long cell": Bad(
        "a.tsv", b'id\tinput\n1\t"a\n\nb"\n1\tc\n', ("a.tsv:5: id: '1' is already used at a.tsv:2",)
    ),
}


@each_row("bad", BAD.values(), ids=BAD)
def test_a_malformed_file_is_refused_with_place_and_reason(
    bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file, the line, the problem and the fix."""
    monkeypatch.chdir(tmp_path)
    Path(bad.name).write_bytes(bad.content)
    with pytest.raises(DatasetError) as caught:
        open_file(bad.name, bad.rules).inspect()
    text = str(caught.value)
    assert [part for part in bad.parts if part not in text] == [], text
    assert len(text.splitlines()) <= 25


@each_row("bad", BAD.values(), ids=BAD)
def test_a_malformed_file_cannot_be_loaded_or_read_to_its_end(
    bad: Bad, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading refuses what inspecting refuses; streaming, too, but for ids that come twice."""
    monkeypatch.chdir(tmp_path)
    Path(bad.name).write_bytes(bad.content)
    with pytest.raises(DatasetError):
        load(bad)
    if "already used" not in " ".join(bad.parts):
        with pytest.raises(DatasetError):
            read_to_the_end(bad)


def read_to_the_end(bad: Bad) -> None:
    # A list would ask for the length first, and with it for an inspection.
    for _ in open_file(bad.name, bad.rules):
        pass


def load(bad: Bad) -> Dataset[Any, Any]:
    rules = bad.rules
    return Dataset.load(
        bad.name, rules.input_type, rules.expected_type, mapping=rules.mapping, generate_ids=rules.generate_ids
    )
