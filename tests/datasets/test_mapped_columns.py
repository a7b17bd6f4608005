"""A mapped column or key that is not there is an error, wherever the records come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from proctor.datasets.dataset import Dataset, IteratorDataset, UserDataset
from proctor.datasets.record import Rules
from proctor.errors import DatasetError

MAPPING = {"question": "input", "anwser": "expected"}
RECORD = {"id": "1", "question": "q", "answer": "a"}
WRONG = "mapping: unknown {what} 'anwser'; there are: id, question, answer"


def refused(load: Any) -> str:
    """The text of the error that loading raises."""
    with pytest.raises(DatasetError) as caught:
        load()
    return str(caught.value)


def test_a_missing_column_of_a_table_is_named_with_those_that_are_there(tmp_path: Path) -> None:
    """The error names the column, the columns present, and the likely one."""
    path = tmp_path / "a.csv"
    path.write_text("id,question,answer\n1,q,a\n")
    text = refused(lambda: Dataset.load(path, mapping=MAPPING))
    assert WRONG.format(what="column") in text
    assert "did you mean 'answer'?" in text


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_a_missing_key_of_a_file_is_named_with_those_that_are_there(tmp_path: Path, name: str) -> None:
    """JSON Lines and JSON lists say it alike."""
    path = tmp_path / name
    line = '{"id": "1", "question": "q", "answer": "a"}'
    path.write_text(line if name == "a.jsonl" else f"[{line}]")
    text = refused(lambda: Dataset.load(path, mapping=MAPPING))
    assert WRONG.format(what="key") in text
    assert "did you mean 'answer'?" in text


def test_a_missing_key_of_records_in_memory_is_an_error() -> None:
    """Lists, objects and iterators check the mapping as files do."""
    for load in (
        lambda: Dataset.of([RECORD], mapping=MAPPING),
        lambda: UserDataset([RECORD], Rules(mapping=MAPPING)).inspect(),
        lambda: list(UserDataset([RECORD], Rules(mapping=MAPPING))),
        lambda: list(IteratorDataset(iter([RECORD]), mapping=MAPPING)),
    ):
        text = refused(load)
        assert WRONG.format(what="key") in text
        assert "did you mean 'answer'?" in text


def test_a_key_that_only_some_records_have_is_a_missing_value() -> None:
    """An expected value may be missing in some records, as long as the key is known."""
    items = [{"id": "1", "q": "a", "note": "x"}, {"id": "2", "q": "b"}]
    dataset = Dataset.of(items, mapping={"q": "input", "note": "expected"})
    assert [sample.expected for sample in dataset] == ["x", None]


def test_a_typo_in_one_record_is_found() -> None:
    """A key similar to a mapped key that the record lacks is a problem of that record."""
    items = [{"id": "1", "q": "a", "answer": "x"}, {"id": "2", "q": "b", "anwser": "y"}]
    text = refused(lambda: Dataset.of(items, mapping={"q": "input", "answer": "expected"}))
    assert "item 1: anwser is not a known name; did you mean 'answer'?" in text
