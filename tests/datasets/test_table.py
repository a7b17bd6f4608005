"""CSV and TSV files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.datasets.dataset import Dataset
from proctor.datasets.table import CSVDataset
from proctor.errors import DatasetError
from proctor.records.sample import Sample


@dataclass
class Question:
    text: str
    points: int
    hint: str = "none"


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_rows_become_samples_as_often_as_wanted(tmp_path: Path) -> None:
    """Columns named like fields are the fields; others are metadata; an empty cell is not there."""
    path = written(tmp_path / "a.csv", "id,input,expected,topic\n1,2 + 2,4,sums\n2,3 + 3,,\n")
    dataset = CSVDataset(path)
    expected = [Sample("1", "2 + 2", "4", {"topic": "sums"}), Sample("2", "3 + 3")]
    assert list(dataset) == expected
    assert list(dataset) == expected
    assert (len(dataset), dataset.info.length, dataset.info.name) == (2, 2, "a.csv")
    assert repr(dataset) == f"CSVDataset({str(path)!r})"


def test_the_mapping_of_the_runner_specification_works(tmp_path: Path) -> None:
    """Ruling (runner): CSV maps columns to any field."""
    text = 'key,query,passage,answer,kind,group,words\nk1,who?,me,you,easy,g,"a, b"\n'
    mapping = {
        "key": "id",
        "query": "input.query",
        "passage": "input.passage",
        "answer": "expected.text",
        "kind": "labels.kind",
        "group": "cluster",
        "words": "tags",
    }
    (sample,) = CSVDataset(written(tmp_path / "a.csv", text), mapping)
    assert sample == Sample(
        "k1",
        {"query": "who?", "passage": "me"},
        {"text": "you"},
        {"labels": {"kind": "easy"}, "cluster": "g", "tags": ["a", "b"]},
    )


def test_quoted_newlines_work_and_lines_are_real_lines(tmp_path: Path) -> None:
    """Ruling (runner): line numbers count real lines of the file."""
    text = 'id,input\r\n1,"two\r\nlines, and ""quotes"""\r\n\r\n2,\r\n'
    dataset = CSVDataset(written(tmp_path / "a.csv", text))
    samples = iter(dataset)
    assert next(samples).input == 'two\r\nlines, and "quotes"'
    with pytest.raises(DatasetError, match=r"a\.csv:5: input is missing"):
        next(samples)


@pytest.mark.parametrize(
    ("name", "delimiter", "text"),
    [
        ("a.tsv", None, "id\tinput\n1\ta,b\n"),
        ("a.csv", ";", "id;input\n1;a,b\n"),
        ("a.csv", None, '\ufeff id , input \n1,"a,b"'),
    ],
    ids=["tabs", "semicolons", "byte order mark and spaces in the header"],
)
def test_the_delimiter_follows_the_file_name_or_is_given(
    name: str, delimiter: str | None, text: str, tmp_path: Path
) -> None:
    """Tabs separate the columns of a .tsv file, commas those of others, unless `delimiter` is given."""
    dataset = CSVDataset(written(tmp_path / name, text), delimiter=delimiter)
    assert list(dataset) == [Sample("1", "a,b")]


@pytest.mark.parametrize("delimiter", ["", "ab", '"', "\n"])
def test_a_delimiter_is_one_character(delimiter: str, tmp_path: Path) -> None:
    """A delimiter that cannot part columns is refused at once."""
    path = written(tmp_path / "a.csv", "id,input\n1,a\n")
    with pytest.raises(DatasetError, match="must be one character"):
        CSVDataset(path, delimiter=delimiter)


@pytest.mark.parametrize(
    ("kind", "cell", "value"),
    [
        (Any, "42", "42"),
        (str, "42", "42"),
        (int, "42", 42),
        (float, "42", 42.0),
        (float, "-1.5e3", -1500.0),
        (bool, "true", True),
        (bool, "false", False),
        (int | None, "", None),
        (str | int, "42", "42"),
        (Literal["yes", "no"], "yes", "yes"),
        (Literal[1, 2], "2", 2),
        (list[str], '"[""a"", ""b""]"', ["a", "b"]),
        (dict[str, int], '"{""a"": 1}"', {"a": 1}),
        (Question, '"{""text"": ""x"", ""points"": 2}"', Question("x", 2)),
    ],
)
def test_a_cell_is_read_into_the_declared_type(kind: Any, cell: str, value: Any, tmp_path: Path) -> None:
    """A cell is text; where the type takes no text, it holds JSON."""
    path = written(tmp_path / "a.csv", f"id,input,expected\n1,x,{cell}\n")
    (sample,) = CSVDataset(path, expected_type=kind)
    assert sample.expected == value
    assert type(sample.expected) is type(value)


@pytest.mark.parametrize(
    ("kind", "cell", "told"),
    [
        (int, "4.5", "must be an integer, got a number: 4.5"),
        (int, "true", "must be an integer, got a boolean: true"),
        (bool, "yes", "must be a boolean, got a string: 'yes'"),
        (bool, "1", "must be a boolean, got a number: 1"),
        (float, "NaN", "must be a number, got a string: 'NaN'"),
        (list[int], "[1", r"must be a list, got a string: '\[1'"),
    ],
)
def test_a_cell_that_does_not_fit_is_refused(kind: Any, cell: str, told: str, tmp_path: Path) -> None:
    """Nothing is guessed: the message names the expected and the actual type."""
    path = written(tmp_path / "a.csv", f"id,input,expected\n1,x,{cell}\n")
    with pytest.raises(DatasetError, match=told):
        CSVDataset(path, expected_type=kind).inspect()


@pytest.mark.parametrize("kind", [Question, Question | None])
def test_columns_are_combined_into_a_declared_type(kind: Any, tmp_path: Path) -> None:
    """Each part of the input is read by the type of its field; an empty cell takes the default."""
    path = written(tmp_path / "a.csv", "id,q,p,h\n1,what?,3,\n")
    mapping = {"q": "input.text", "p": "input.points", "h": "input.hint"}
    if kind is Question:
        (sample,) = CSVDataset(path, mapping, kind)
        assert sample.input == Question("what?", 3)
    else:
        with pytest.raises(DatasetError, match=r"input\.points must be an integer"):
            CSVDataset(path, mapping, kind).inspect()


def test_parts_of_a_mapping_have_its_type(tmp_path: Path) -> None:
    """The parts of a dict[str, int] are whole numbers."""
    path = written(tmp_path / "a.csv", "id,a,b\n1,2,3\n")
    mapping = {"a": "input.a", "b": "input.b"}
    (sample,) = CSVDataset(path, mapping, dict[str, int])
    assert sample.input == {"a": 2, "b": 3}


def test_metadata_cells_hold_json_and_tags_may_be_words(tmp_path: Path) -> None:
    """Whole metadata and labels are JSON mappings; tags are a JSON list or words."""
    text = 'id,input,metadata,labels,tags\n1,x,"{""a"": 1}","{""k"": ""v""}","[""t"", ""u""]"\n2,y,,,"t, u,"\n'
    one, two = CSVDataset(written(tmp_path / "a.csv", text))
    assert one.metadata == {"a": 1, "labels": {"k": "v"}, "tags": ["t", "u"]}
    assert two.metadata == {"tags": ["t", "u"]}


def test_the_full_text_of_an_error_in_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One error lists all problems of a table by the line in the file."""
    monkeypatch.chdir(tmp_path)
    text = b'id,input,expected\n1,"a\nb",2\n2,c,two\n\n3,d\n4,\xff,4\n1,e,5\n,,\n5,"x"y,6\n6,f,6\n'
    with pytest.raises(DatasetError) as caught:
        CSVDataset(written(Path("a.csv"), text), None, str, int).inspect()
    assert str(caught.value) == snapshot("""\
a.csv: 8 problems in the dataset
  - a.csv:4: expected must be an integer, got a string: 'two'
  - a.csv:6: the row has 2 cells, the header has 3
  - a.csv:7: not UTF-8: byte 0xff at offset 2 of the line ('ÿ' in Windows-1252)
  - a.csv:8: id: '1' is already used at a.csv:2
  - a.csv:9: id is missing
  - a.csv:9: input is missing
  - a.csv:9: expected must be an integer, but it is missing or null
  - a.csv:10: not a row of CSV: ',' expected after '"'
Fix: give every row as many cells as the header; quote cells that contain the delimiter;
  convert the file to UTF-8, for example: iconv -f Windows-1252 -t UTF-8 FILE > NEW_FILE;
  give every sample a unique id\
""")


def test_a_cell_may_be_as_long_as_a_document(tmp_path: Path) -> None:
    """Cells far beyond the csv module's own limit of 128 KB are read."""
    text = "word " * 100_000
    path = written(tmp_path / "a.csv", f"id,input\n1,{text}\n")
    (sample,) = CSVDataset(path)
    assert sample.input == text


def test_an_open_quote_does_not_swallow_a_large_file(tmp_path: Path) -> None:
    """Reading ends with an error when a cell has no end within the limit."""
    path = written(tmp_path / "a.csv", b'id,input\n1,"a' + b"x" * 1_000_000 * 20 + b"\n" * 2)
    with path.open("ab") as file:
        file.write(b"y" * 1_000_000 * 20)
    with pytest.raises(DatasetError, match=r"a\.csv:2: a cell is longer .* is a quote not closed"):
        CSVDataset(path).inspect()


def test_a_line_that_is_too_long_spoils_its_row_only(tmp_path: Path) -> None:
    """A line over the limit is refused; the rows behind it are read."""
    path = written(tmp_path / "a.csv", b"id,input\n1," + b"x" * 34_000_000 + b"\n2,\n")
    with pytest.raises(DatasetError) as caught:
        CSVDataset(path).inspect()
    assert [problem.where[-2:] for problem in caught.value.problems] == [":2", ":3"]


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), min_size=1)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
def test_text_has_one_fingerprint_from_csv_and_from_memory(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    """The same text gives the same samples and fingerprint, wherever it comes from."""
    path = tmp_path_factory.mktemp("table") / "a.csv"
    cells = [[f"id {index}", *row] for index, row in enumerate(rows)]
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in cells]
    path.write_bytes("\n".join(["id,input,expected", *quoted]).encode())
    memory = Dataset([Sample(name, value, expected) for name, value, expected in cells])
    table = CSVDataset(path)
    assert list(table) == list(memory)
    assert table.inspect().fingerprint == memory.inspect().fingerprint
