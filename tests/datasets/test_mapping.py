"""Mappings of keys and columns to fields."""

from __future__ import annotations

from typing import Any

import pytest
from inline_snapshot import snapshot

from proctor.datasets.mapping import guess_field, read_mapping
from proctor.errors import DatasetError
from tests.tables import each_row


def test_every_place_a_key_can_go() -> None:
    """Fields, parts of fields, and the shorthands for known metadata."""
    assert read_mapping(
        {
            "a": "id",
            "b": "input.question",
            "c": "expected.answer.text",
            "d": "metadata",
            "e": "metadata.source",
            "f": "labels.topic",
            "g": "metadata.labels.kind",
            "h": "context",
            "i": "cluster",
            "j": "tags",
        }
    ) == {
        "a": ("id",),
        "b": ("input", "question"),
        "c": ("expected", "answer.text"),
        "d": ("metadata",),
        "e": ("metadata", "source"),
        "f": ("metadata", "labels", "topic"),
        "g": ("metadata", "labels", "kind"),
        "h": ("metadata", "context"),
        "i": ("metadata", "cluster"),
        "j": ("metadata", "tags"),
    }
    assert read_mapping(None) == {}


def test_all_faults_of_a_mapping_are_reported_together() -> None:
    """Unknown fields, two keys for one field, and a field with one of its keys are refused together."""
    mapping: dict[str, Any] = {
        "a": "input",
        "b": "input",
        "c": "input.x",
        "d": "expectd",
        "e": "answer",
        "f": "input.",
        "g": 3,
        "h": "labels.x",
        "i": "labels",
    }
    with pytest.raises(DatasetError) as caught:
        read_mapping(mapping)
    assert str(caught.value) == snapshot("""\
the mapping is invalid
  - 'b' is mapped to input, like 'a'
  - 'c' is mapped to input.x, but 'a' is mapped to input
  - 'c' is mapped to input.x, but 'b' is mapped to input
  - 'd': 'expectd' is not a field; did you mean 'expected'?
  - 'e': 'answer' is not a field
  - 'f': 'input.' is not a field; did you mean 'input'?
  - 'g': 3 is not a field
  - 'i' is mapped to metadata.labels, but 'h' is mapped to metadata.labels.x
Fix: map each column to a different field: id, input, expected, metadata, evaluators,
  input.<key>, expected.<key>, metadata.<key>, labels.<key>,
  labels, context, cluster or tags\
""")


def test_a_mapping_is_a_dict() -> None:
    """A list of pairs is refused with an example of what is wanted."""
    wrong: Any = [("a", "input")]
    with pytest.raises(DatasetError, match=r'write it as {"question": "input"'):
        read_mapping(wrong)


@each_row(
    ("key", "field"),
    [
        ("inputs", "input"),
        ("imput", "input"),
        ("Expected", "expected"),
        ("expect", "expected"),
        ("meta_data", "metadata"),
        (" Id ", "id"),
        ("idx", None),
        ("output", None),
        ("label", None),
        ("category", None),
    ],
)
def test_typos_are_distinguished_from_other_words(key: str, field: str | None) -> None:
    """A key similar to a field is a typo; ordinary column names are not."""
    assert guess_field(key) == field
