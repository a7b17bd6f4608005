"""Paths that cannot be read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from proctor.datasets.dataset import Dataset
from proctor.datasets.jsonl import JSONLDataset
from proctor.errors import DatasetError


def test_a_missing_file_is_reported_with_a_suggestion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt file name is answered with a file of that folder."""
    monkeypatch.chdir(tmp_path)
    Path("questions.jsonl").touch()
    with pytest.raises(DatasetError) as caught:
        JSONLDataset("question.jsonl")
    assert str(caught.value) == ("file not found: question.jsonl\nFix: did you mean 'questions.jsonl'?")


def test_a_missing_file_without_a_similar_one(tmp_path: Path) -> None:
    """Where nothing is near, nothing is suggested."""
    with pytest.raises(DatasetError, match="check the path"):
        Dataset.load(tmp_path / "a.csv")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """A missing folder is named."""
    with pytest.raises(DatasetError, match="check the path"):
        Dataset.load(tmp_path / "nowhere" / "a.csv")


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    """A folder is refused with a reason, whatever its name."""
    (tmp_path / "a.jsonl").mkdir()
    with pytest.raises(DatasetError, match="this is a folder, not a file"):
        JSONLDataset(tmp_path / "a.jsonl")


def test_a_pipe_cannot_be_read_twice(tmp_path: Path) -> None:
    """What is no regular file is refused, with a way out."""
    os.mkfifo(tmp_path / "a.jsonl")
    with pytest.raises(DatasetError, match="pass the records to IteratorDataset"):
        JSONLDataset(tmp_path / "a.jsonl")


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without read permission is reported."""
    path = tmp_path / "a.jsonl"
    path.touch()
    dataset = JSONLDataset(path)

    def refused(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(DatasetError, match="the file cannot be read: permission denied"):
        dataset.inspect()


@pytest.mark.parametrize("name", ["file/a.jsonl", "a\0b.jsonl"])
def test_a_path_that_makes_no_sense(name: str, tmp_path: Path) -> None:
    """The system's message about an invalid path is shown."""
    (tmp_path / "file").touch()
    with pytest.raises(DatasetError, match="the file cannot be read: "):
        JSONLDataset(tmp_path / name)


@pytest.mark.parametrize("name", ["a.yaml", "a"])
def test_an_unknown_suffix_is_reported_with_the_known_ones(name: str, tmp_path: Path) -> None:
    """An unknown ending is answered with the known ones."""
    (tmp_path / name).touch()
    with pytest.raises(DatasetError, match=r"use one of: \.jsonl, \.ndjson, \.json, \.csv, \.tsv"):
        Dataset.load(tmp_path / name)
