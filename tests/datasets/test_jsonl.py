"""JSONL files: streamed, checked, fingerprinted."""

from __future__ import annotations

import hashlib
import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.datasets.dataset import Dataset
from proctor.datasets.jsonl import JSONLDataset
from proctor.datasets.record import ID_FIX
from proctor.errors import DatasetError
from proctor.records import codec
from proctor.records.run import DatasetInfo
from proctor.records.sample import Sample

QA = '{"id": "1", "input": "2 + 2", "expected": "4"}\n{"id": "2", "input": "3 + 3"}\n'


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_samples_are_read_in_order_and_as_often_as_wanted(tmp_path: Path) -> None:
    """A file may be iterated many times, and each pass gives the same samples."""
    dataset = JSONLDataset(written(tmp_path / "qa.jsonl", QA))
    expected = [Sample("1", "2 + 2", "4"), Sample("2", "3 + 3")]
    assert list(dataset) == expected
    assert list(dataset) == expected


def test_a_file_describes_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The description has name, source, length and fingerprint; `info` is the same."""
    monkeypatch.chdir(tmp_path)
    dataset = JSONLDataset(written(Path("qa.jsonl"), QA))
    info = dataset.inspect()
    assert info == DatasetInfo("qa.jsonl", "qa.jsonl", 2, info.fingerprint)
    assert (dataset.info, len(dataset), repr(dataset)) == (info, 2, "JSONLDataset('qa.jsonl')")
    content = b'{"expected":"4","id":"1","input":"2 + 2"}\n{"id":"2","input":"3 + 3"}\n'
    assert info.fingerprint == hashlib.sha256(content).hexdigest()


def test_a_changed_file_is_inspected_again(tmp_path: Path) -> None:
    """The description is cached until the file changes."""
    path = written(tmp_path / "qa.jsonl", QA)
    dataset = JSONLDataset(path)
    assert dataset.inspect() is dataset.inspect()
    written(path, QA + '{"id": "3", "input": "4 + 4"}')
    assert len(dataset) == 3


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf" + QA.encode(),
        QA.replace("\n", "\r\n").encode(),
        QA.replace("\n", "\n\n  \n").encode(),
        QA.rstrip("\n").encode(),
    ],
    ids=["byte order mark", "CRLF", "blank lines", "no newline at the end"],
)
def test_the_ways_of_writing_text_do_not_matter(text: bytes, tmp_path: Path) -> None:
    """A byte order mark, line endings, blank lines and the last newline change nothing."""
    plain = JSONLDataset(written(tmp_path / "plain.jsonl", QA))
    other = JSONLDataset(written(tmp_path / "other.jsonl", text))
    assert list(other) == list(plain)
    assert other.inspect().fingerprint == plain.inspect().fingerprint


def test_whole_number_ids_become_strings(tmp_path: Path) -> None:
    """An id of 7 is the id "7"."""
    path = written(tmp_path / "a.jsonl", '{"id": 7, "input": "x"}')
    assert [sample.id for sample in JSONLDataset(path)] == ["7"]


def test_unknown_keys_become_metadata(tmp_path: Path) -> None:
    """A key that is not a field is added to the metadata."""
    text = '{"id": "1", "input": "x", "topic": "sums", "metadata": {"tags": ["easy"]}}'
    (sample,) = JSONLDataset(written(tmp_path / "a.jsonl", text))
    assert sample.metadata == {"tags": ["easy"], "topic": "sums"}
    assert sample.tags == ("easy",)


def test_a_similar_key_next_to_the_field_is_metadata(tmp_path: Path) -> None:
    """`inputs` is a typo only if there is no `input`."""
    path = written(tmp_path / "a.jsonl", '{"id": "1", "input": "x", "inputs": 3}')
    assert [sample.metadata for sample in JSONLDataset(path)] == [{"inputs": 3}]


def test_null_metadata_is_empty_metadata(tmp_path: Path) -> None:
    """`"metadata": null` means that there is none."""
    path = written(tmp_path / "a.jsonl", '{"id": "1", "input": "x", "metadata": null}')
    assert list(JSONLDataset(path)) == [Sample("1", "x")]


def test_a_mapping_gives_keys_their_place(tmp_path: Path) -> None:
    """Keys go to fields, to parts of input, and to metadata by the shorthands."""
    text = '{"n": 1, "question": "who?", "passage": "me", "topic": "t", "doc": "d", "by": "m"}'
    mapping = {
        "n": "id",
        "question": "input.question",
        "passage": "input.passage",
        "topic": "labels.topic",
        "doc": "cluster",
        "by": "metadata.author",
    }
    (sample,) = JSONLDataset(written(tmp_path / "a.jsonl", text), mapping=mapping)
    assert sample == Sample(
        "1", {"question": "who?", "passage": "me"}, metadata={"labels": {"topic": "t"}, "cluster": "d", "author": "m"}
    )


def test_generated_ids_stay_when_rows_move(tmp_path: Path) -> None:
    """A generated id does not depend on the position of the row; existing ids stay."""
    one, two = '{"input": "a"}\n', '{"id": "own", "input": "b"}\n'
    first = JSONLDataset(written(tmp_path / "1.jsonl", one + two), generate_ids=True)
    second = JSONLDataset(written(tmp_path / "2.jsonl", two + one), generate_ids=True)
    assert [sample.id for sample in first] == ["auto-ac8d8342bbb2", "own"]
    assert [sample.id for sample in second] == ["own", "auto-ac8d8342bbb2"]


def test_declared_types_are_read_and_leave_the_fingerprint_alone(tmp_path: Path) -> None:
    """A whole number becomes the declared float; the fingerprint does not change."""
    path = written(tmp_path / "a.jsonl", '{"id": "1", "input": "x", "expected": 4}')
    typed = JSONLDataset(path, str, float)
    assert [type(sample.expected) for sample in typed] == [float]
    assert typed.inspect() == JSONLDataset(path).inspect()


def test_streaming_stops_at_the_first_bad_line_with_all_its_faults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Samples before the bad line are given; the error names the line and every problem on it."""
    monkeypatch.chdir(tmp_path)
    dataset = JSONLDataset(written(Path("qa.jsonl"), QA + '{"input": null, "metadata": 3}'))
    samples = iter(dataset)
    assert [next(samples).id, next(samples).id] == ["1", "2"]
    with pytest.raises(DatasetError) as caught:
        next(samples)
    assert str(caught.value) == snapshot("""\
qa.jsonl:3: not a valid sample
  - id is missing
  - input must not be null
  - metadata must be a mapping, got a number: 3
Fix: give every sample an id, or generate ids: generate_ids=True (--generate-ids)\
""")


def test_a_value_of_the_wrong_type_stops_the_stream(tmp_path: Path) -> None:
    """Typed streaming names the line and the field."""
    dataset = JSONLDataset(written(tmp_path / "qa.jsonl", QA), str, int)
    with pytest.raises(DatasetError, match=r"qa\.jsonl:1: expected must be an integer"):
        next(iter(dataset))


def test_the_full_text_of_an_error_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One error lists all problems of a file by line, with fixes."""
    monkeypatch.chdir(tmp_path)
    lines = [
        '{"id": "a", "input": {"text": "x"}}',
        '{"id": "b", "input": {"text": 42}, "expeced": "y"}',
        "not json",
        '{"input": {"text": "z"}}',
        '{"id": "a", "input": {"text": "x"}}',
        '{"id": "c", "input": {"text": false}}',
    ]
    dataset = JSONLDataset(written(Path("qa.jsonl"), "\n".join(lines)), dict[str, str])
    with pytest.raises(DatasetError) as caught:
        dataset.inspect()
    assert str(caught.value) == snapshot("""\
qa.jsonl: 6 problems in the dataset
  - qa.jsonl:2: expeced is not a known name; did you mean 'expected'?
  - qa.jsonl:2: input.text must be a string, got a number: 42
  - qa.jsonl:3: not JSON: expected a value, at character 1 of the line
  - qa.jsonl:4: id is missing
  - qa.jsonl:5: id: 'a' is already used at qa.jsonl:1
  - qa.jsonl:6: input.text must be a string, got a boolean: false
Fix: rename it, or map it: expeced to expected;
  write one complete JSON object on each line;
  give every sample an id, or generate ids: generate_ids=True (--generate-ids)\
""")


def test_an_error_fits_on_one_screen_and_reading_stops_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many problems a thousand are gathered and twenty are shown."""
    monkeypatch.chdir(tmp_path)
    dataset = JSONLDataset(written(Path("qa.jsonl"), "{}\n" * 5000))
    with pytest.raises(DatasetError) as caught:
        dataset.inspect()
    text = str(caught.value).splitlines()
    assert len(caught.value.problems) == 1000
    assert [text[0], text[1], *text[-2:]] == snapshot(
        [
            "qa.jsonl: 1000 problems in the dataset; reading stopped there",
            "  - qa.jsonl:1: id is missing",
            f"Fix: {ID_FIX};",
            "  give every sample an input, or map a key to it",
        ]
    )


def test_very_many_ids_used_twice_stop_the_reading_too(tmp_path: Path) -> None:
    """A file written twice is found out before all of it is read."""
    lines = [f'{{"id": {number}, "input": 1}}' for number in range(1500)]
    dataset = JSONLDataset(written(tmp_path / "a.jsonl", "\n".join(lines + lines)))
    with pytest.raises(DatasetError, match="reading stopped") as caught:
        dataset.inspect()
    assert len(caught.value.problems) == 1000


def test_a_line_that_is_too_long_is_skipped_in_pieces(tmp_path: Path) -> None:
    """The limit is in bytes, the line is named, and the lines behind it are read as usual."""
    long = '{"id": "long", "input": "' + "x" * 100 + '"}\n'
    path = written(tmp_path / "a.jsonl", QA + long + "{}")
    with pytest.raises(DatasetError) as caught:
        JSONLDataset(path, max_line_bytes=60).inspect()
    assert [problem.what for problem in caught.value.problems] == [
        "the line is longer than 60 bytes",
        "id is missing",
        "input is missing",
    ]
    assert [problem.where[-2:] for problem in caught.value.problems] == [":3", ":4", ":4"]


def test_a_line_of_exactly_the_limit_is_read(tmp_path: Path) -> None:
    """The newline does not count, and the last line may lack it."""
    line = '{"id": "1", "input": "x"}'
    other = '{"id": "2", "input": "x"}'
    path = written(tmp_path / "a.jsonl", f"{line}\n{other}")
    assert len(JSONLDataset(path, max_line_bytes=25)) == 2
    with pytest.raises(DatasetError, match="2 problems"):
        JSONLDataset(path, max_line_bytes=24).inspect()


json_values = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
keys = st.text(string.ascii_lowercase, min_size=12, max_size=14)
sample_values = st.builds(
    Sample,
    id=st.text(min_size=1).filter(lambda name: name.strip()),
    input=json_values,
    expected=st.none() | json_values,
    metadata=st.dictionaries(keys, json_values, max_size=2),
)


@given(st.lists(sample_values, min_size=1, max_size=5, unique_by=lambda sample: sample.id))
def test_samples_written_as_jsonl_come_back_the_same(
    tmp_path_factory: pytest.TempPathFactory, samples: list[Sample[Any, Any]]
) -> None:
    """Samples to JSONL and back are equal, and so is the fingerprint."""
    path = tmp_path_factory.mktemp("round") / "a.jsonl"
    path.write_bytes(b"\n".join(codec.encode(sample) for sample in samples))
    back = JSONLDataset(path)
    assert list(back) == samples
    assert back.inspect().fingerprint == Dataset(samples).inspect().fingerprint


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_with_a_dataset_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    """Whatever a file holds, it is read or refused with a DatasetError."""
    path = tmp_path_factory.mktemp("bytes") / "a.jsonl"
    path.write_bytes(content)
    with pytest.raises(DatasetError):
        JSONLDataset(path, generate_ids=True).inspect()


@given(json_values)
def test_any_json_is_read_or_refused_with_a_dataset_error(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """Any JSON on a line is a sample or raises a DatasetError."""
    path = tmp_path_factory.mktemp("values") / "a.jsonl"
    path.write_text(json.dumps(value))
    with pytest.raises(DatasetError):
        JSONLDataset(path).inspect()
    path.write_text(json.dumps({"id": "1", "input": value, "expected": value}))
    assert list(JSONLDataset(path)) == [Sample("1", value, value)]
