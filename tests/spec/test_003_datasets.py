"""The runner spec: datasets and their validation."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor import CSVDataset, Dataset, IteratorDataset, JSONLDataset, ProctorError, Sample, evaluate, exact_match
from tests.spec.clauses import clause
from tests.spec.runner_examples import double

MAPPING = {"query": "input.query", "response": "input.response", "expected_followups": "expected"}
LINE = '{"id": "1", "query": "Q", "response": "R", "expected_followups": ["F"]}\n'


@clause("003.DATASET.1", "2. Dataset Abstraction")
def test_a_dataset_can_be_iterated_again() -> None:
    """Iterating over a dataset gives its samples in order, as often as one likes."""
    dataset = Dataset.of([{"id": "1", "input": "a"}, {"id": "2", "input": "b"}])
    assert [sample.id for sample in dataset] == [sample.id for sample in dataset] == ["1", "2"]


@clause("003.DATASET.2", "2. Dataset Abstraction")
def test_a_dataset_has_a_length() -> None:
    """The length of a dataset is the number of its samples."""
    assert len(Dataset.of([{"id": "1", "input": "a"}, {"id": "2", "input": "b"}])) == 2


@clause("003.DATASET.3", "2. Dataset Abstraction")
def test_a_dataset_describes_itself() -> None:
    """The info of a dataset contains its name, its source and its length."""
    info = Dataset.of([{"id": "1", "input": "a"}], name="sums").info
    assert (info.name, info.source, info.length) == ("sums", "memory", 1)


@clause("003.DATASET.4", "2. Dataset Abstraction", ruling="runner: MemoryDataset is Dataset")
def test_a_dataset_in_memory_takes_samples_and_mappings() -> None:
    """A dataset in memory is made of samples and mappings, also mixed."""
    dataset = Dataset.of([Sample("1", "a"), {"id": "2", "input": "b", "expected": "c"}])
    assert [(s.id, s.input, s.expected) for s in dataset] == [("1", "a", None), ("2", "b", "c")]


@clause("003.DATASET.5", "2. Dataset Abstraction")
def test_a_jsonl_file_is_a_dataset(tmp_path: Path) -> None:
    """A JSON Lines file gives one sample for each line that is not blank."""
    path = tmp_path / "qa.jsonl"
    path.write_text('{"id": "1", "input": "a"}\n\n{"id": "2", "input": "b"}\n', encoding="utf-8")
    assert [sample.input for sample in JSONLDataset(path)] == ["a", "b"]
    assert len(JSONLDataset(str(path))) == 2


@clause("003.DATASET.6", "2. Dataset Abstraction", ruling="runner: Example is Sample")
def test_a_file_in_the_format_of_the_spec_can_be_read(tmp_path: Path) -> None:
    """A mapping puts query, response and expected follow-ups where a sample has them."""
    path = tmp_path / "followups.jsonl"
    path.write_text(LINE, encoding="utf-8")
    (sample,) = JSONLDataset(path, mapping=MAPPING)
    assert sample == Sample("1", {"query": "Q", "response": "R"}, ["F"])


@clause("003.DATASET.7", "2. Dataset Abstraction")
def test_a_csv_file_is_a_dataset(tmp_path: Path) -> None:
    """A CSV file whose header names the fields needs no mapping."""
    path = tmp_path / "qa.csv"
    path.write_text("id,input,expected,topic\n1,a,b,sums\n", encoding="utf-8")
    assert list(CSVDataset(path)) == [Sample("1", "a", "b", {"topic": "sums"})]


@clause("003.DATASET.8", "2. Dataset Abstraction", ruling="runner: CSV maps columns to any field")
def test_the_columns_of_a_csv_file_can_be_mapped(tmp_path: Path) -> None:
    """A mapping of column to field reaches the id, parts of the input, labels and metadata."""
    path = tmp_path / "qa.csv"
    path.write_text("n,q,r,f,grade,src\n1,Q,R,F,good,web\n", encoding="utf-8")
    mapping = {
        "n": "id", "q": "input.query", "r": "input.response", "f": "expected",
        "grade": "labels.quality", "src": "metadata.source",
    }  # fmt: skip
    (sample,) = CSVDataset(path, mapping)
    assert (sample.id, sample.query, sample.response, sample.expected) == ("1", "Q", "R", "F")
    assert (sample.labels, sample.metadata["source"]) == ({"quality": "good"}, "web")


@clause("003.DATASET.9", "2. Dataset Abstraction")
def test_an_iterator_is_a_dataset() -> None:
    """Samples of a generator are read one after the other and kept nowhere."""
    stream = IteratorDataset({"id": str(n), "input": n} for n in range(3))
    assert [sample.input for sample in stream] == [0, 1, 2]


@clause("003.DATASET.10", "2. Dataset Abstraction", ruling="runner: dataset length is optional")
def test_the_length_of_an_iterator_is_optional() -> None:
    """An iterator may declare its length; without one it is unknown before it is read."""
    assert len(IteratorDataset(iter([{"id": "1", "input": "a"}]), length=1)) == 1
    with pytest.raises(TypeError, match="is unknown until it is read"):
        len(IteratorDataset(iter([{"id": "1", "input": "a"}])))


@clause("003.DATASET.11", "2. Dataset Abstraction")
def test_a_stream_can_be_evaluated() -> None:
    """A run takes an iterator as its dataset and counts what it gave."""
    rows = ({"id": str(n), "input": "a", "expected": "aa"} for n in range(3))
    assert evaluate(double, rows, exact_match, history=False).total == 3


@clause("003.VALIDATION.1", "Validation")
def test_samples_are_checked_when_they_are_loaded() -> None:
    """An invalid record is refused when the dataset is made, before anything runs."""
    with pytest.raises(ProctorError):
        Dataset.of([{"id": "1"}])


@clause("003.VALIDATION.2", "Validation")
def test_an_error_names_the_index_of_the_record() -> None:
    """A fault of a record in memory names the position of the record, from 0."""
    rows: list[dict[str, Any]] = [{"id": str(n), "input": "a"} for n in range(3)]
    with pytest.raises(ProctorError) as caught:
        Dataset.of([*rows, {"id": "3"}])
    assert [problem.where for problem in caught.value.problems] == ["item 3"]


@clause("003.VALIDATION.3", "Validation")
def test_a_required_field_that_is_missing_is_named() -> None:
    """A record without an input is refused with the name of the field and that it is missing."""
    with pytest.raises(ProctorError, match="input is missing"):
        Dataset.of([{"id": "1"}])


@clause("003.VALIDATION.4", "Validation", ruling="typed loading")
def test_a_value_of_the_wrong_kind_is_shown_with_what_was_expected() -> None:
    """A value that does not fit its declared type is refused, with both kinds and the value."""
    with pytest.raises(ProctorError, match="input must be a string, got a number: 42"):
        Dataset.of([{"id": "1", "input": 42}], str)


@clause("003.VALIDATION.5", "Validation")
def test_an_empty_id_is_refused() -> None:
    """A text that must not be empty is refused when it is."""
    with pytest.raises(ProctorError, match="id must not be empty"):
        Dataset.of([{"id": "", "input": "a"}])


@clause("003.VALIDATION.6", "Validation")
def test_all_faults_of_a_record_are_reported_at_once() -> None:
    """A record with several faults gives one error that lists all of them."""
    with pytest.raises(ProctorError) as caught:
        Dataset.of([{"id": "", "metadata": 7}])
    assert [problem.what for problem in caught.value.problems] == [
        "id must not be empty",
        "input is missing",
        "metadata must be a mapping, got a number: 7",
    ]


@clause("003.VALIDATION.7", "Validation", ruling="runner: line numbers count real lines")
def test_an_error_in_a_file_names_the_line() -> None:
    """A fault of a file names the file and the real line, blank lines counted."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder, "qa.jsonl")
        path.write_text('{"id": "1", "input": "a"}\n\n{"id": "2"}\n', encoding="utf-8")
        with pytest.raises(ProctorError) as caught:
            Dataset.load(path)
    assert [str(p) for p in caught.value.problems] == [f"{path}:3: input is missing"]


@clause("003.VALIDATION.8", "Validation")
def test_a_mapped_column_that_is_missing_is_refused(tmp_path: Path) -> None:
    """A mapping that names a column which is not there is an error with the likely column."""
    path = tmp_path / "qa.csv"
    path.write_text("id,question\n1,a\n", encoding="utf-8")
    with pytest.raises(ProctorError) as caught:
        Dataset.load(path, mapping={"questoin": "input"})
    assert "unknown column 'questoin'; there are: id, question" in str(caught.value)
    assert "did you mean 'question'?" in str(caught.value)


class DatabaseDataset:
    """The spec's custom loader: samples out of a database."""

    def __init__(self, query: str) -> None:
        self.query = query
        self._samples = self._load()

    def _load(self) -> list[Sample[Any, Any]]:
        database = sqlite3.connect(":memory:")
        database.execute("CREATE TABLE questions (id, question, answer)")
        database.execute("INSERT INTO questions VALUES ('1', 'a', 'aa'), ('2', 'b', 'x')")
        rows = database.execute(self.query).fetchall()
        database.close()
        return [Sample(name, question, answer) for name, question, answer in rows]

    def __iter__(self) -> Iterator[Sample[Any, Any]]:
        return iter(self._samples)

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def info(self) -> dict[str, str]:
        """What the run keeps about the dataset."""
        return {"source": "database", "query": self.query}


@clause("003.EXTENSION.1", "Custom Dataset Loader")
def test_an_object_with_iter_len_and_info_is_a_dataset() -> None:
    """An object of the user's own that can be iterated is evaluated as it is."""
    report = evaluate(double, DatabaseDataset("SELECT * FROM questions"), exact_match, history=False)
    assert [(result.sample_id, result.passed) for result in report.results] == [
        ("1", True), ("2", False),
    ]  # fmt: skip


@clause("003.EXTENSION.2", "Custom Dataset Loader")
def test_the_info_of_a_custom_dataset_is_kept_with_the_run() -> None:
    """The `info` of a custom dataset is in the metadata of the run."""
    query = "SELECT * FROM questions"
    report = evaluate(double, DatabaseDataset(query), exact_match, history=False)
    assert report.metadata is not None
    assert report.metadata.dataset.source == "database"
    assert report.metadata.dataset.details["query"] == query
