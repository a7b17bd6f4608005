"""Datasets of Hugging Face: Parquet, Arrow, JSON Lines, CSV and saved folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import DatasetError
from proctor.interop.readers.huggingface import read, recognize
from tests.interop.support import FORMATS, needs_public_files, read_head

FOLDER = FORMATS / "huggingface"


def write_parquet(path: Path, columns: dict[str, Any], features: dict[str, Any]) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    parquet.write_table(pyarrow.table(columns).replace_schema_metadata(metadata), path)
    return path


def test_class_labels_become_names_at_any_depth(tmp_path: Path) -> None:
    """Labels in columns, lists and mappings become names; -1 is no label; bytes are left out and counted."""
    label = {"_type": "ClassLabel", "names": ["neg", "pos"]}
    columns = {
        "text": ["good", "odd"],
        "label": [1, -1],
        "votes": [[1, 0], []],
        "parts": [{"tone": 0, "n": 3}, {"tone": 1, "n": 4}],
        "image": [{"bytes": b"\x00", "path": "a.png"}, {"bytes": None, "path": None}],
    }
    features = {
        "label": label,
        "votes": {"feature": label, "_type": "List"},
        "parts": {"tone": label, "n": {"dtype": "int64", "_type": "Value"}},
    }
    file = read(write_parquet(tmp_path / "reviews.parquet", columns, features))
    first, second = file.samples
    assert (first.input, first.expected, second.expected) == ("good", "pos", None)
    assert (first.metadata["votes"], first.metadata["parts"]) == (["pos", "neg"], {"tone": "neg", "n": 3})
    assert first.metadata["image"] == {"bytes": None, "path": "a.png"}
    assert file.warnings == (
        "left out: 1 binary value (images or sounds)",
        "columns: 2 rows with text as input and label as expected value",
    )


def test_older_chats_have_other_keys(tmp_path: Path) -> None:
    """`from` and `value` are role and content; the last answer is the expected value."""
    row = {"conversations": [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}], "tags": "x"}
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(row) + "\n")
    assert recognize(path, read_head(path))
    (sample,) = read(path).samples
    assert (sample.input, sample.expected) == ([{"role": "user", "content": "hi"}], "hello")
    # Tags of samples are lists of words, so a text needs another key.
    assert sample.metadata == {"tags_value": "x"}


def test_files_that_are_broken_or_of_proctor(tmp_path: Path) -> None:
    """A cut Parquet file is an error, rows with `input` are Proctor's own, and a folder needs its state."""
    pytest.importorskip("pyarrow")
    path = tmp_path / "cut.parquet"
    path.write_bytes(b"PAR1")
    assert recognize(path, read_head(path))
    with pytest.raises(DatasetError, match="not a readable Parquet file"):
        read(path)
    own = tmp_path / "own.jsonl"
    own.write_text('{"id": "1", "input": "a", "question": "b"}\n')
    assert not recognize(own, read_head(own))
    assert not recognize(tmp_path, b"")
    with pytest.raises(DatasetError, match="no saved dataset"):
        read(tmp_path)


@needs_public_files
@pytest.mark.parametrize(("name", "labels"), [("hf_mcq.parquet", "ABA"), ("hf_mcq.jsonl", [0, 1, 0])])
def test_public_questions(name: str, labels: Any) -> None:
    """Three rows with nested choices; only Parquet has the names of the labels."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    samples = read(path).samples
    assert [sample.expected for sample in samples] == list(labels)
    assert samples[1].metadata == {"choices": {"text": ["Milan", "Rome"], "label": ["A", "B"]}}
    assert samples[2].input == '日本 "q"?\n2nd line'


@needs_public_files
def test_public_table_has_unreadable_arrays() -> None:
    """Nested values of the CSV stay text and are counted."""
    path = FOLDER / "hf_mcq.csv"
    assert recognize(path, read_head(path))
    file = read(path)
    assert [sample.expected for sample in file.samples] == ["0", "1", "0"]
    assert file.warnings[0] == "read as text: 3 cells with NumPy arrays; use Parquet or JSON Lines"


@needs_public_files
@pytest.mark.parametrize("name", ["hf_chat.parquet", "hf_chat.jsonl"])
def test_public_chats(name: str) -> None:
    """Two chats: one ends with an answer, which is the expected value."""
    path = FOLDER / name
    assert recognize(path, read_head(path))
    first, second = read(path).samples
    assert ([message["role"] for message in first.input], first.expected) == (["system", "user"], "hello")
    assert (second.input, second.expected) == ([{"role": "user", "content": "2+2?"}], None)


@needs_public_files
def test_public_folder() -> None:
    """The splits of a saved dataset have 3 and 2 rows, with the names of the labels."""
    path = FOLDER / "hf_saved_to_disk"
    assert recognize(path, b"")
    samples = read(path).samples
    assert [sample.id for sample in samples] == ["train-1", "train-2", "train-3", "test-1", "test-2"]
    assert [sample.metadata["split"] for sample in samples].count("test") == 2
    assert {sample.expected for sample in samples} == {"A", "B"}
    assert len(read(path / "train").samples) == 3
