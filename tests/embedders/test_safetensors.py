"""Files of tensors: what is in them is read, what is wrong with them is told."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import ModelError
from proctor.models.embedders import minilm as safetensors

np = pytest.importorskip("numpy")


def write(path: Path, head: Any, body: bytes) -> Path:
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)
    return path


def tensor(shape: list[int], begin: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_tensors_are_read_by_name(tmp_path: Path) -> None:
    head = {
        "__metadata__": {"format": "pt"},
        "matrix": tensor([2, 3], 8, 32),
        "ids": tensor([1], 0, 8, "I64"),
        "number": tensor([], 32, 36),
    }
    body = struct.pack("<q6ff", 7, 1, 2, 3, 4, 5, 6, 0.5)
    found = safetensors.read_tensors(write(tmp_path / "a", head, body), np)
    assert set(found) == {"matrix", "number"}
    assert found["matrix"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert found["number"].tolist() == 0.5


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ({"a": tensor([3], 0, 8)}, "cut off, or its header is wrong"),
        ({"a": tensor([2], 4, 12)}, "cut off, or its header is wrong"),
        ({"a": tensor([2], -8, 0)}, "cut off, or its header is wrong"),
        ({"a": {"dtype": "F32"}}, "its header cannot be read"),
        (b"no json", "its header cannot be read"),
    ],
)
def test_a_header_with_wrong_offsets_is_refused(tmp_path: Path, head: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        safetensors.read_tensors(write(tmp_path / "a", head, b"\0" * 8), np)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"GGUF and so on, and so on")
    with pytest.raises(ModelError, match="it is not a safetensors file"):
        safetensors.read_tensors(tmp_path / "a", np)
