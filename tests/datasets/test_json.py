"""JSON documents as datasets, and files whose suffix does not match their content."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor.datasets.dataset import Dataset, make_source
from proctor.datasets.json_document import JSONDataset
from proctor.datasets.table import CSVDataset
from proctor.errors import DatasetError

ROWS = [{"id": "1", "input": "2 + 2", "expected": "4"}, {"id": "2", "input": "3 + 3", "expected": "6", "topic": "sums"}]


def write(path: Path, content: str | bytes) -> Path:
    """Write a file and give its path."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def error_of(path: Path, **options: Any) -> DatasetError:
    """The error of loading a file."""
    with pytest.raises(DatasetError) as caught:
        Dataset.load(path, **options)
    return caught.value


@pytest.mark.parametrize("indent", [None, 2])
def test_a_json_list_of_objects_is_a_dataset(tmp_path: Path, indent: int | None) -> None:
    """A list of records loads as the same samples that JSON Lines give."""
    path = write(tmp_path / "qa.json", json.dumps(ROWS, indent=indent))
    loaded = Dataset.load(path)
    assert [(s.id, s.input, s.expected) for s in loaded] == [("1", "2 + 2", "4"), ("2", "3 + 3", "6")]
    assert loaded[1].metadata == {"topic": "sums"}
    lines = write(tmp_path / "qa.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
    assert loaded.info.fingerprint == Dataset.load(lines).info.fingerprint


@pytest.mark.parametrize("key", ["samples", "examples", "data", "rows"])
def test_the_list_may_be_under_a_key_of_an_object(tmp_path: Path, key: str) -> None:
    """`samples`, `examples`, `data` and `rows` are where others put their records."""
    path = write(tmp_path / "qa.json", json.dumps({"version": 1, key: ROWS, "note": "x"}, indent=1))
    assert [s.id for s in Dataset.load(path)] == ["1", "2"]


def test_faults_name_the_line_on_which_a_record_begins(tmp_path: Path) -> None:
    """Records over several lines are named by their first line; all problems come at once."""
    text = '[\n  {"id": "1",\n   "input": "a"},\n  {"id": "2"},\n\n  7\n]\n'
    path = write(tmp_path / "qa.json", text)
    found = [str(problem) for problem in error_of(path).problems]
    assert found == [f"{path}:4: input is missing", f"{path}:6: the record must be a JSON object, got a number: 7"]


def test_broken_json_is_reported_with_its_line(tmp_path: Path) -> None:
    """The records before the end are not loaded silently."""
    path = write(tmp_path / "qa.json", '[\n  {"id": "1", "input": "a"},\n  {"id": "2" "input"}\n]')
    (problem,) = error_of(path).problems
    assert str(problem) == f"{path}:3: not JSON: expected ',', at character 14 of the line"


@pytest.mark.parametrize("tail", ['[{"id": "1", "input": "a"}', '[{"id": "1", "input": "a"},', '[{"id": "1", "inp'])
def test_an_unfinished_list_is_refused(tmp_path: Path, tail: str) -> None:
    """A truncated file is an error, not a shorter dataset."""
    assert "ends before its JSON does" in str(error_of(write(tmp_path / "qa.json", tail)))


def test_text_after_the_list_is_refused(tmp_path: Path) -> None:
    """A list ends the document."""
    path = write(tmp_path / "qa.json", '[{"id": "1", "input": "a"}]\n[1]')
    assert f"{path}:2" in str(error_of(path))


def test_values_that_json_does_not_have_are_refused(tmp_path: Path) -> None:
    """NaN is an error of its record, as it is in JSON Lines."""
    path = write(tmp_path / "qa.json", '[{"id": "1", "input": NaN}]')
    assert "NaN is not a number" in str(error_of(path))


@pytest.mark.parametrize("text", ["", " \n ", "\ufeff"])
def test_an_empty_file_is_refused(tmp_path: Path, text: str) -> None:
    """A file without samples is an error, whatever its suffix."""
    for name in ("a.json", "a.jsonl", "a.csv"):
        assert "the file is empty" in str(error_of(write(tmp_path / name, text)))


def test_an_empty_list_is_refused(tmp_path: Path) -> None:
    """A list without records is not a dataset."""
    assert "no samples: the list is empty" in str(error_of(write(tmp_path / "a.json", "[]")))
    assert "no samples: the list is empty" in str(error_of(write(tmp_path / "b.json", '{"samples": []}')))


def test_an_object_without_a_list_of_records_is_refused(tmp_path: Path) -> None:
    """The error names the keys that are there and those that may hold records."""
    path = write(tmp_path / "a.json", '{"version": 1, "sample": [{"id": "1", "input": "a"}]}')
    text = str(error_of(path))
    assert "version, sample" in text
    assert "did you mean 'samples'" in text


def test_a_single_record_is_a_dataset_of_one(tmp_path: Path) -> None:
    """One object with an input is one sample."""
    path = write(tmp_path / "a.json", '{"id": "1",\n "input": "a"}')
    assert [s.id for s in Dataset.load(path)] == ["1"]


def test_json_lines_with_objects_over_several_lines_are_read(tmp_path: Path) -> None:
    """Pretty-printed objects one after the other are recognised; problems keep their line."""
    text = "\n".join(json.dumps(row, indent=2) for row in ROWS)
    for name in ("a.jsonl", "a.json"):
        assert [s.id for s in Dataset.load(write(tmp_path / name, text))] == ["1", "2"]
    bad = write(tmp_path / "bad.jsonl", text + '\n{\n  "id": "3"\n}\n')
    assert [str(p) for p in error_of(bad).problems] == [f"{bad}:12: input is missing"]


def test_a_json_list_in_a_jsonl_file_is_recognised(tmp_path: Path) -> None:
    """The content decides, not the suffix; the description names the recognised format."""
    path = write(tmp_path / "a.jsonl", json.dumps(ROWS))
    assert [s.id for s in make_source(path)] == ["1", "2"]
    assert make_source(path).inspect().details == {"format": "json", "recognised": "a JSON list"}


def test_json_lines_in_a_json_file_are_recognised(tmp_path: Path) -> None:
    """One object on each line is JSON Lines under any name."""
    path = write(tmp_path / "a.json", "".join(json.dumps(row) + "\n" for row in ROWS))
    source = make_source(path)
    assert [s.id for s in source] == ["1", "2"]
    assert source.inspect().details == {"format": "jsonl", "recognised": "JSON Lines"}


def test_a_broken_line_of_json_lines_stays_a_fault_of_its_line(tmp_path: Path) -> None:
    """A first line that breaks off is not mistaken for an object over several lines."""
    path = write(tmp_path / "a.jsonl", '{"id": "1", "input": "a"\n{"id": "2", "input": "b"}\n')
    (problem,) = error_of(path).problems
    assert str(problem) == f"{path}:1: the line ends before its JSON does"


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.json.gz", "a.csv.gz"])
def test_compressed_files_are_read(tmp_path: Path, name: str) -> None:
    """A .gz file is read as what is inside it."""
    inside = {
        "a.jsonl.gz": '{"id": "1", "input": "a"}\n',
        "a.json.gz": '[{"id": "1", "input": "a"}]',
        "a.csv.gz": "id,input\n1,a\n",
    }[name]
    path = write(tmp_path / name, gzip.compress(inside.encode()))
    assert [s.input for s in Dataset.load(path)] == ["a"]


def test_a_damaged_gz_file_is_refused(tmp_path: Path) -> None:
    """A file that breaks off, or is not compressed at all, is an error and not a short dataset."""
    whole = gzip.compress(b'{"id": "1", "input": "a"}\n' * 1)
    assert "cannot be decompressed" in str(error_of(write(tmp_path / "a.jsonl.gz", whole[:-9])))
    assert "is not compressed with gzip" in str(error_of(write(tmp_path / "b.json.gz", b"not gzip")))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_refused_by_name(tmp_path: Path, encoding: str) -> None:
    """UTF-16 and UTF-32 are recognised, with and without a byte order mark."""
    for name, text in (("a.json", json.dumps(ROWS)), ("a.jsonl", '{"id": "1", "input": "a"}')):
        path = write(tmp_path / name, text.encode(encoding))
        assert f"the file is {encoding[:6].upper()}" in str(error_of(path))


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    """UTF-8 with a byte order mark is UTF-8."""
    for name, text in (("a.json", json.dumps(ROWS[:1])), ("a.jsonl", json.dumps(ROWS[0])), ("a.csv", "id,input\n1,a")):
        assert Dataset.load(write(tmp_path / name, "\ufeff" + text))[0].id == "1"


@pytest.mark.parametrize("sign", [";", "\t", "|"])
def test_the_delimiter_of_a_table_is_recognised(tmp_path: Path, sign: str) -> None:
    """The delimiter is detected from the header; the description names it."""
    path = write(tmp_path / "a.csv", f"id{sign}input{sign}expected\n1{sign}2,5{sign}x\n")
    table = CSVDataset(path)
    assert [(s.id, s.input, s.expected) for s in table] == [("1", "2,5", "x")]
    assert table.inspect().details == {"delimiter": sign}


def test_a_named_format_overrides_content_and_ending(tmp_path: Path) -> None:
    """`format` overrides the suffix of a file."""
    path = write(tmp_path / "data.txt", "id,input\n1,a\n")
    assert [s.input for s in Dataset.load(path, format="csv")] == ["a"]
    with pytest.raises(DatasetError, match=r"data\.txt:1: not JSON"):
        Dataset.load(path, format="jsonl")
    with pytest.raises(DatasetError, match="did you mean 'jsonl'"):
        Dataset.load(path, format="jsonnl")


def test_types_and_mapping_work_for_json_documents(tmp_path: Path) -> None:
    """What JSON Lines take, a JSON list takes."""
    path = write(tmp_path / "a.json", '[{"n": 1, "question": 2, "answer": "x"}]')
    mapping = {"n": "id", "question": "input", "answer": "expected"}
    assert JSONDataset(path, int, str, mapping=mapping).load()[0][0].input == 2
    with pytest.raises(DatasetError, match="input must be a string, got a number: 2"):
        Dataset.load(path, str, str, mapping=mapping)


def test_recorded_sessions_are_not_taken_for_samples(tmp_path: Path) -> None:
    """A list of messages is refused with the way to read it."""
    path = write(tmp_path / "a.json", '[{"role": "user", "content": "Hello"}]')
    assert "SessionDataset" in str(error_of(path))


def test_samples_on_one_line_are_numbered(tmp_path: Path) -> None:
    """The line alone would name both places of a repeated id alike; broken samples count too."""
    text = '[{"id": "a", "input": "1"}, {"id": "x"}, {"id": "a", "input": "2"},\n'
    text += ' {"id": "a", "input": "3"}]'
    path = write(tmp_path / "qa.json", text)
    problems = [str(problem) for problem in error_of(path).problems]
    assert [problem.removeprefix(f"{path}:").partition(f"{path}") for problem in problems] == [
        ("1, sample 2: input is missing", "", ""),
        ("1, sample 3: id: 'a' is already used at ", str(path), ":1, sample 1"),
        ("2: id: 'a' is already used at ", str(path), ":1, sample 1"),
    ]


def test_the_number_of_a_sample_is_found_in_linear_time() -> None:
    """Each character of a long line is examined a bounded number of times."""
    from proctor.datasets.json_document import _Document

    class Counting(str):
        searched = 0

        def find(self, sub: str, start: Any = 0, end: Any = None) -> int:
            Counting.searched += (len(self) if end is None else end) - start
            return super().find(sub, start, end)

    document = _Document(Counting(json.dumps([{"id": str(n), "input": "x"} for n in range(2000)])))
    assert sum(1 for _ in document.items(0)) == 2000
    assert Counting.searched <= len(document.text)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"train": ROWS}, "lists of objects are under: 'train' (2)"),
        ({"train": ROWS, "test": ROWS[:1]}, "lists of objects are under: 'train' (2), 'test' (1)"),
        ({"data": ROWS, "test": ROWS[:1]}, "could be the samples: 'data' (2), 'test' (1)"),
        ({"rows": ROWS, "samples": ROWS}, "could be the samples: 'samples' (2), 'rows' (2)"),
    ],
)
def test_an_object_with_unclear_lists_names_them_and_how_to_choose(
    tmp_path: Path, content: dict[str, Any], said: str
) -> None:
    """No list is left out in silence; the command in the advice makes a file that can be read."""
    path = write(tmp_path / "qa.json", json.dumps(content))
    error = error_of(path)
    assert said in str(error)
    code = error.fix.partition('python -c "')[2].partition('"')[0]
    assert code
    new = code.rpartition("open('")[2].partition("'")[0]
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert len(Dataset.load(tmp_path / new)) == 2


def test_other_keys_of_the_object_are_reported_as_ignored(tmp_path: Path) -> None:
    """A version or a list of authors is not a sample; the description names ignored keys."""
    content = {"version": 3, "data": ROWS, "authors": [{"name": "Ada"}]}
    dataset = make_source(write(tmp_path / "qa.json", json.dumps(content)))
    assert dataset.inspect().details["recognised"] == (
        "a JSON object with a list under 'data'; other keys are ignored: version, authors"
    )


@pytest.mark.parametrize("name", ["qa.csv", "qa.jsonl", "qa.json"])
def test_a_file_in_latin_1_names_the_line_the_character_and_the_conversion(tmp_path: Path, name: str) -> None:
    """Line, byte, what the byte probably is, and what to type."""
    rows = {
        "qa.csv": "id,input\n1,a\n2,café\n",
        "qa.jsonl": '{"id": "1", "input": "a"}\n\n{"id": "2", "input": "café"}\n',
        "qa.json": '[\n{"id": "1", "input": "a"},\n{"id": "2", "input": "café"}]',
    }
    path = write(tmp_path / name, rows[name].encode("latin-1"))
    error = error_of(path)
    assert f"{path}:3: not UTF-8: byte " in str(error)
    assert "('é' in Windows-1252)" in str(error)
    assert "iconv -f Windows-1252 -t UTF-8 FILE > NEW_FILE" in error.fix
