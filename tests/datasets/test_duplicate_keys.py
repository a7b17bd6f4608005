"""A JSON object that has a key twice is refused: the last value must not win silently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.datasets.json_document import JSONDataset
from proctor.datasets.jsonl import JSONLDataset, find_repeated_keys, may_repeat_keys
from proctor.errors import DatasetError

LINES = [
    '{"id": "2", "input": "a", "input": "b"}',
    '{"id": "2", "input": "a", "expected": "yes", "expected": null}',
    '{"id": "2", "id": "3", "input": "a"}',
    '{"id": "2", "input": {"q": 1, "q" : 2}}',
    '{"id": "2", "input": [{"q": 1}, {"q": 1, "\\u0071": 2}]}',
    '{"id": "2", "input": "a\\u003a \\u003A", "input": "x\\u003ay"}',
    '{"id": "2", "input": "a", "level": 1, "level": 2}',
    '{"id": "2", "input": "a", "metadata": {"tags": ["x"], "tags": []}}',
]


@pytest.mark.parametrize("line", LINES)
def test_a_repeated_key_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    """At any depth, with other spacing or escapes, also of keys that become metadata."""
    path = tmp_path / "qa.jsonl"
    path.write_text('{"id": "1", "input": "at 10:30", "expected": null}\n' + line + "\n")
    with pytest.raises(DatasetError) as caught:
        JSONLDataset(path).inspect()
    assert "qa.jsonl:2: the key" in str(caught.value)
    assert "is repeated in one object" in str(caught.value)
    with pytest.raises(DatasetError):
        list(JSONLDataset(path))


def test_the_samples_of_a_json_document_are_checked_as_well(tmp_path: Path) -> None:
    """The key is named; documents and lines follow one rule."""
    path = tmp_path / "qa.json"
    path.write_text('[{"id": "1", "input": "a"},\n {"id": "2", "input": "a", "input": "b"}]')
    with pytest.raises(DatasetError, match="the key 'input' is repeated in one object"):
        JSONDataset(path).inspect()


def test_mapped_columns_are_checked_as_well(tmp_path: Path) -> None:
    """With a mapping every line is read key by key."""
    path = tmp_path / "qa.jsonl"
    path.write_text('{"n": "1", "q": "a", "q": "b"}\n')
    with pytest.raises(DatasetError, match="the key 'q' is repeated"):
        JSONLDataset(path, mapping={"n": "id", "q": "input"}).inspect()


KEYS = st.sampled_from(["a", "b:", 'c":', "id", "ü", " "])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", ":", '":', '{"a": 1}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(VALUES, st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" ,", " : ")]))
def test_the_fast_check_agrees_with_a_full_check(value: Any, ascii_only: bool, separators: tuple[str, str]) -> None:
    """Without a repeated key the text passes at once; with one it never does."""
    text = json.dumps({"x": value}, ensure_ascii=ascii_only, separators=separators)
    assert not may_repeat_keys(text.encode(), {"x": value})
    assert find_repeated_keys(text) == []
    again = text[:-1] + separators[0] + '"x"' + separators[1] + "1}"
    assert may_repeat_keys(again.encode(), {"x": 1})
    assert len(find_repeated_keys(again)) == 1
