"""Whether a .json file holds samples or recorded sessions is decided by its content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.wiring.eval_file import DatasetEntry
from proctor.wiring.open_dataset import holds_sessions, open_dataset

CHAT = [{"role": "user", "content": "Hello"}]
TRACE: dict[str, Any] = {
    "id": "t", "timestamp": "2026-01-01T00:00:00Z", "name": "n", "input": "q", "output": "a",
    "sessionId": None, "release": None, "version": None, "userId": None, "metadata": {},
    "tags": [], "public": False, "observations": ["o"], "scores": [],
}  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        [{"id": "1", "input": "q"}],
        [{"id": "1", "input": "q", "output": "a", "usage": {"total_tokens": 3}}],
        [{"id": "1", "input": CHAT, "expected": "x"}],
        [{"question": "q", "answer": "a"}],
        {"samples": [{"id": "1", "input": "q"}]},
        {"version": "1", "rows": [{"question": "q"}]},
        {"data": [{"id": "1", "input": "q", "expected": "a"}], "meta": {"page": 1}},
        {"id": "1", "input": "q"},
    ],
)
def test_records_are_samples(tmp_path: Path, content: Any) -> None:
    """Lists of records, alone or under a key, are samples, also with keys still to be mapped."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert not holds_sessions(DatasetEntry(str(path)), path)


@pytest.mark.parametrize(
    "content",
    [
        CHAT,
        [CHAT],
        {"id": "s", "messages": CHAT},
        [{"id": "s", "messages": CHAT}],
        {"data": [TRACE], "meta": {"page": 1}},
        {"resourceSpans": []},
        {"neither": 1},
        7,
    ],
)
def test_chats_and_traces_are_sessions(tmp_path: Path, content: Any) -> None:
    """Chats and traces need no target; what is neither is explained by the list of formats."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    assert holds_sessions(DatasetEntry(str(path)), path)


def test_options_of_samples_and_named_formats_decide_first(tmp_path: Path) -> None:
    """A mapping, generated ids and a format of samples mean samples; other formats sessions."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(CHAT), encoding="utf-8")
    for entry in (
        DatasetEntry(str(path), mapping={"content": "input"}),
        DatasetEntry(str(path), generate_ids=True),
        DatasetEntry(str(path), format="json"),
    ):
        assert not holds_sessions(entry, path)
    path.write_text('[{"id": "1", "input": "q"}]', encoding="utf-8")
    for name in ("auto", "openai"):
        assert holds_sessions(DatasetEntry(str(path), format=name), path)
    assert holds_sessions(DatasetEntry(str(tmp_path)), tmp_path)
    assert not holds_sessions(DatasetEntry("a.jsonl"), tmp_path / "a.jsonl")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qa.jsonl", '{"id": "1", "input": "a"}\n'),
        ("qa.json", '[{"id": "1", "input": "a"}]'),
        ("qa.csv", "id,input\n1,a\n"),
        ("chat.json", '[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]'),
        ("logs/chat.json", '[{"role": "user", "content": "a"}]'),
    ],
)
def test_a_dataset_is_read_again_after_a_change_of_the_working_directory(
    name: str, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target may call os.chdir between two passes; names in messages stay as they were given."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).write_text(content)
    monkeypatch.chdir(tmp_path)
    dataset = open_dataset(name if "/" not in name else "logs", Path())
    before = [(sample.id, sample.metadata) for sample in dataset]
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert [(sample.id, sample.metadata) for sample in dataset] == before
    assert "elsewhere" not in repr(dataset)
    assert str(tmp_path) not in repr(dataset)
