"""Datasets in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pydantic
import pytest
from inline_snapshot import snapshot

from proctor.datasets.dataset import Dataset
from proctor.datasets.jsonl import JSONLDataset
from proctor.errors import DatasetError
from proctor.ports import SampleSource
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample

Letter = Sample[str, str]
ONE: Letter = Sample("1", "a")
TWO: Letter = Sample("2", "b")
THREE: Letter = Sample("3", "c")


@dataclass
class Question:
    text: str
    level: int = 1


@dataclass
class DataclassItem:
    id: int
    input: str
    topic: str | None = None


class StructItem(msgspec.Struct):
    id: int
    input: str
    topic: str


class ModelItem(pydantic.BaseModel):
    id: int
    input: str
    topic: str


def test_a_dataset_is_a_sequence_that_does_not_change() -> None:
    """It has a length, an order and an index; a slice is a dataset; nothing can be set."""
    dataset = Dataset([ONE, TWO, THREE], name="letters")
    assert (len(dataset), list(dataset), dataset[-1]) == (3, [ONE, TWO, THREE], THREE)
    assert dataset[1:] == Dataset((TWO, THREE))
    assert (dataset[1:].name, dataset.samples) == ("letters", (ONE, TWO, THREE))
    assert isinstance(dataset, SampleSource)
    with pytest.raises(AttributeError):
        dataset.samples = ()  # type: ignore[misc]


def test_datasets_are_equal_by_their_samples() -> None:
    """The name does not matter, the order does, and other things are never equal."""
    assert Dataset([ONE, TWO], name="a") == Dataset((ONE, TWO), name="b")
    assert Dataset([ONE, TWO]) != Dataset([TWO, ONE])
    assert Dataset([ONE]) != [ONE]


def test_a_dataset_is_shown_in_short() -> None:
    """The text for people has the number of samples and the name."""
    assert repr(Dataset([ONE])) == "Dataset(1 sample, name='memory')"
    assert repr(Dataset([], name="none")) == "Dataset(0 samples, name='none')"


def test_all_faults_are_reported_when_a_dataset_is_made() -> None:
    """Wrong samples and ids used twice are refused together."""
    wrong: list[Any] = [
        ONE,
        Sample("", None),
        ONE,
        {"id": "4"},
        Sample("5", 1, metadata={"tags": "easy"}),
        Sample(6, 1, metadata=None),  # type: ignore[arg-type]
    ]
    with pytest.raises(DatasetError) as caught:
        Dataset(wrong, name="letters")
    assert str(caught.value) == snapshot("""\
letters: 7 problems in the dataset
  - item 1: id must not be empty
  - item 1: input must not be null
  - item 2: id: '1' is already used at item 0
  - item 3 must be a Sample, got a mapping
  - item 4: metadata.tags must be a list of strings, got a string
  - item 5: id must be a string, got a number: 6
  - item 5: metadata must be a mapping, got null
Fix: give every sample a unique id;
  use Dataset.of for dicts and other objects\
""")


def test_a_dataset_describes_itself() -> None:
    """Name, length and fingerprint are known, and computed once."""
    dataset = Dataset([ONE, TWO])
    assert dataset.info == DatasetInfo("memory", "memory", 2, dataset.info.fingerprint)
    assert dataset.inspect() is dataset.info
    assert dataset.info.fingerprint != Dataset([TWO, ONE]).info.fingerprint


def test_dicts_samples_and_objects_make_a_dataset() -> None:
    """Whatever has the fields of a sample is taken; further fields are metadata."""
    items = [
        {"id": 1, "input": "a", "topic": "t"},
        Sample("2", "b"),
        DataclassItem(3, "c"),
        StructItem(4, "d", "t"),
        ModelItem(id=5, input="e", topic="t"),
        SimpleNamespace(id="6", input="f", expected="g", metadata=None, other=1),
    ]
    topic = {"topic": "t"}
    assert list(Dataset.of(items, name="mixed")) == [
        Sample("1", "a", metadata=topic),
        Sample("2", "b"),
        Sample("3", "c"),
        Sample("4", "d", metadata=topic),
        Sample("5", "e", metadata=topic),
        Sample("6", "f", "g"),
    ]


def test_items_that_are_not_records_are_refused_by_index() -> None:
    """What has no fields cannot be a sample."""
    with pytest.raises(DatasetError) as caught:
        Dataset.of(["text", 3, Sample, {1: 2}, Sample("", 1), {"id": "1", "input": 1}])
    assert str(caught.value) == snapshot("""\
7 problems in the dataset
  - item 0 must be a mapping, a Sample or an object with an input, got a string: 'text'
  - item 1 must be a mapping, a Sample or an object with an input, got a number: 3
  - item 2 must be a mapping, a Sample or an object with an input, got StructMeta
  - item 3: keys must be strings, got a number: 1
  - item 3: id is missing
  - item 3: input is missing
  - item 4: id must not be empty
Fix: write each sample as {"id": "1", "input": "2 + 2", "expected": "4"};
  give every sample an id, or generate ids: generate_ids=True (--generate-ids);
  give every sample an input, or map a key to it\
""")


def test_items_are_read_into_types_and_mapped_like_files() -> None:
    """Types, mapping and generated ids work in memory, and made objects are left as they are."""
    made = Question("made", 2)
    items = [{"q": {"text": "x"}}, {"q": made}]
    dataset = Dataset.of(items, Question, mapping={"q": "input"}, generate_ids=True)
    assert [sample.input for sample in dataset] == [Question("x"), made]
    assert dataset[1].input is made
    assert all(sample.id.startswith("auto-") for sample in dataset)


def test_a_users_dict_is_never_changed() -> None:
    """Records are read, not rearranged in place."""
    record = {"id": "1", "input": "x", "metadata": {"labels": {"a": 1}}, "topic": "t"}
    before = repr(record)
    Dataset.of([record])
    assert repr(record) == before


def test_loading_gives_the_file_as_a_typed_dataset(tmp_path: Path) -> None:
    """Ruling (loop): `Dataset.load(path, input_type, expected_type)` as the loop spec has it."""
    path = tmp_path / "qa.jsonl"
    path.write_text('{"id": "1", "input": {"text": "2 + 2"}, "expected": 4}\n')
    dataset: Dataset[Question, float] = Dataset.load(path, Question, float)
    assert dataset == Dataset([Sample("1", Question("2 + 2"), 4.0)])
    assert dataset.info == JSONLDataset(path).info
    assert dataset.name == "qa.jsonl"


def test_memory_and_file_have_one_fingerprint_for_one_content(tmp_path: Path) -> None:
    """Keys in another order, and nothing written as null, are the same content."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"input": {"b": 1, "a": 2}, "expected": null, "id": "1", "metadata": {}}')
    memory = Dataset[Any, Any]([Sample("1", {"a": 2, "b": 1})])
    assert JSONLDataset(path).info.fingerprint == memory.info.fingerprint


def test_keys_that_are_numbers_are_fingerprinted_as_json_writes_them() -> None:
    """A mapping with whole-number keys has the fingerprint of its JSON."""
    numbers = Dataset[Any, Any]([Sample("1", {1: "a"})])
    strings = Dataset[Any, Any]([Sample("1", {"1": "a"})])
    assert numbers.info.fingerprint == strings.info.fingerprint


def test_objects_known_by_address_only_have_no_fingerprint() -> None:
    """What is another in each process is not passed off as content."""
    assert Dataset([Sample("1", object())]).info.fingerprint is None
    with pytest.raises(DatasetError, match="no content from which an id can be made"):
        Dataset.of([{"input": object()}], generate_ids=True)


def test_what_json_cannot_hold_is_refused_on_inspection() -> None:
    """Half of a surrogate pair cannot be stored, and the item is named."""
    with pytest.raises(DatasetError, match="item 0: the sample cannot be written as JSON"):
        Dataset([Sample("1", "\ud800")]).inspect()
