"""The loop spec: samples, datasets and scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from proctor import Dataset, Sample, Score
from proctor.errors import DatasetError
from tests.spec.clauses import clause

CAPITALS = (
    '{"id": "1", "input": "What is 2+2?", "expected": "4"}\n'
    '{"id": "2", "input": "Capital of France?", "expected": "Paris"}\n'
)


@dataclass(frozen=True)
class Problem:
    text: str
    level: int = 1


class Answer(msgspec.Struct):
    city: str


class Place(pydantic.BaseModel):
    city: str


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Write a JSONL file and return its path."""

    def write(text: str) -> Path:
        path = tmp_path / "data.jsonl"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def fault(path: Path, *types: Any) -> str:
    """The error that loading a file gives."""
    with pytest.raises(DatasetError) as caught:
        list(Dataset.load(path, *types))
    return str(caught.value)


@clause("000.SAMPLE.1", "Sample")
def test_a_sample_has_an_id_an_input_and_an_expected_value() -> None:
    """A sample pairs an input with its expected value under an id."""
    sample = Sample(id="1", input="2+2", expected="4")
    assert (sample.id, sample.input, sample.expected) == ("1", "2+2", "4")


@clause("000.SAMPLE.2", "Sample")
def test_a_sample_cannot_be_changed() -> None:
    """A sample is frozen: assigning to a field raises."""
    with pytest.raises(AttributeError):
        Sample("1", "a", "b").input = "c"  # type: ignore[misc]


@clause("000.SAMPLE.3", "Sample")
def test_a_sample_takes_type_parameters() -> None:
    """`Sample[Problem, int]` can be written as a type."""
    sample: Sample[Problem, int] = Sample("1", Problem("2+2"), 4)
    assert sample.input.text == "2+2"


@clause("000.DATASET.1", "Dataset")
def test_a_dataset_knows_its_length() -> None:
    """`len(dataset)` is the number of samples."""
    assert len(Dataset(samples=(Sample("1", "a", "b"), Sample("2", "c", "d")))) == 2


@clause("000.DATASET.2", "Dataset")
def test_a_dataset_is_iterated_in_order() -> None:
    """A dataset can be iterated repeatedly, and gives its samples in order."""
    dataset = Dataset(samples=(Sample("1", "a", "b"), Sample("2", "c", "d")))
    assert [s.id for s in dataset] == [s.id for s in dataset] == ["1", "2"]


@clause("000.DATASET.3", "Dataset")
def test_a_dataset_is_indexed() -> None:
    """`dataset[i]` is the sample at that position."""
    dataset = Dataset(samples=(Sample("1", "a", "b"), Sample("2", "c", "d")))
    assert dataset[1].input == "c"


@clause("000.DATASET.4", "Dataset")
def test_a_dataset_cannot_be_changed() -> None:
    """A dataset is immutable: its samples are a tuple that cannot be replaced."""
    dataset = Dataset(samples=(Sample("1", "a", "b"),))
    assert isinstance(dataset.samples, tuple)
    with pytest.raises(AttributeError):
        dataset.samples = ()  # type: ignore[misc]


@clause("000.LOAD.1", "Dataset")
def test_load_reads_one_sample_from_each_line(write: Callable[[str], Path]) -> None:
    """`Dataset.load(path, str, str)` reads id, input and expected from each line."""
    dataset = Dataset.load(write(CAPITALS), str, str)
    assert [(s.id, s.input, s.expected) for s in dataset] == [
        ("1", "What is 2+2?", "4"),
        ("2", "Capital of France?", "Paris"),
    ]


@clause("000.LOAD.2", "Dataset")
def test_primitives_are_used_directly(write: Callable[[str], Path]) -> None:
    """Texts, whole numbers, floats and booleans are kept as they are."""
    lines = '{"id": "1", "input": 3, "expected": true}\n'
    (sample,) = Dataset.load(write(lines), int, bool)
    assert (sample.input, sample.expected) == (3, True)


@clause("000.LOAD.3", "Dataset")
def test_a_primitive_of_another_type_is_refused(write: Callable[[str], Path]) -> None:
    """A text where a number is declared is refused with the expected and the found type."""
    message = fault(write('{"id": "1", "input": "3", "expected": "x"}\n'), int, str)
    assert "input must be an integer, got a string: '3'" in message


@clause("000.LOAD.4", "Dataset")
@pytest.mark.parametrize("kind", [Problem, Answer, Place], ids=lambda kind: kind.__name__)
def test_mappings_become_declared_types(write: Callable[[str], Path], kind: Any) -> None:
    """A mapping becomes a dataclass, a msgspec struct or a pydantic model."""
    body = '{"text": "2+2", "level": 2}' if kind is Problem else '{"city": "Paris"}'
    (sample,) = Dataset.load(write(f'{{"id": "1", "input": {body}, "expected": "x"}}'), kind, str)
    assert isinstance(sample.input, kind)


@clause("000.LOAD.5", "Dataset")
def test_what_is_no_mapping_cannot_become_a_dataclass(write: Callable[[str], Path]) -> None:
    """A text where a dataclass is declared is refused."""
    message = fault(write('{"id": "1", "input": "2+2", "expected": "4"}\n'), Problem, str)
    assert "input" in message


@clause("000.LOAD.6", "Dataset", ruling="typed loading: bool is not int")
def test_a_boolean_is_not_a_whole_number(write: Callable[[str], Path]) -> None:
    """`true` is refused where an int is declared."""
    message = fault(write('{"id": "1", "input": true, "expected": "4"}\n'), int, str)
    assert "input" in message


@clause("000.LOAD.7", "Dataset", ruling="typed loading: int is accepted for float")
def test_a_whole_number_is_a_float(write: Callable[[str], Path]) -> None:
    """`3` is accepted where a float is declared."""
    (sample,) = Dataset.load(write('{"id": "1", "input": 3, "expected": "4"}\n'), float, str)
    assert sample.input == 3.0


@clause("000.LOAD.8", "Dataset", ruling="typed loading: Optional, unions, lists and mappings")
@pytest.mark.parametrize(
    ("kind", "body", "value"),
    [
        (str | None, "null", None),
        (int | str, '"a"', "a"),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
    ],
    ids=["optional", "union", "list", "mapping"],
)
def test_composed_types_are_read(write: Callable[[str], Path], kind: Any, body: str, value: Any) -> None:
    """Optional types, unions, lists and mappings are read into what they declare."""
    (sample,) = Dataset.load(write(f'{{"id": "1", "input": {body}, "expected": "x"}}'), kind, str)
    assert sample.input == value


@clause("000.LOAD.9", "Dataset", ruling="typed loading: a bad line names file, line and field")
def test_a_bad_line_is_named_with_its_place(write: Callable[[str], Path]) -> None:
    """The error names the file, the line, the field and what was expected."""
    message = fault(write(CAPITALS + '{"id": "3", "input": 7, "expected": "x"}\n'), str, str)
    assert "data.jsonl" in message
    assert "3" in message
    assert "input" in message
    assert "string" in message or "str" in message


@clause("000.LOAD.10", "Dataset", ruling="typed loading: blank lines are passed over")
def test_blank_lines_are_passed_over(write: Callable[[str], Path]) -> None:
    """Blank lines are no samples, and the lines after them keep their numbers."""
    assert len(Dataset.load(write("\n" + CAPITALS + "\n\n"), str, str)) == 2


@clause("000.LOAD.11", "Dataset", ruling="typed loading: duplicate ids are refused")
def test_duplicate_ids_are_refused(write: Callable[[str], Path]) -> None:
    """Two samples with one id are an error that names the id."""
    line = CAPITALS.splitlines(keepends=True)[0]
    assert "'1'" in fault(write(line + line), str, str)


@clause("000.LOAD.12", "Dataset", ruling="typed loading: UTF-8")
def test_files_are_utf_8(write: Callable[[str], Path]) -> None:
    """Text is read as UTF-8 on every system."""
    line = '{"id": "1", "input": "Zürich, 東京, 😀", "expected": "é"}\n'
    (sample,) = Dataset.load(write(line), str, str)
    assert (sample.input, sample.expected) == ("Zürich, 東京, 😀", "é")


@clause("000.LOAD.13", "Dataset", ruling="no evidence: a missing expected value is refused")
@pytest.mark.parametrize("rest", ["", ', "expected": null'], ids=["missing", "null"])
def test_a_declared_expected_value_must_be_there(write: Callable[[str], Path], rest: str) -> None:
    """A line without the declared `expected` is refused; `str | None` allows it."""
    path = write(f'{{"id": "1", "input": "a"{rest}}}\n')
    assert "expected" in fault(path, str, str)
    (sample,) = Dataset.load(path, str, str | None)
    assert sample.expected is None


@clause("000.SCORE.1", "Score")
def test_a_score_has_a_value_a_verdict_and_a_reason() -> None:
    """A score has a value from 0 to 1, passed or not, and a reason that may be empty."""
    score = Score(value=0.75, passed=True)
    assert (score.value, score.passed, score.reason) == (0.75, True, "")


@clause("000.SCORE.2", "Score")
def test_a_score_cannot_be_changed() -> None:
    """A score is frozen."""
    with pytest.raises(AttributeError):
        Score(1.0, True).value = 0.0  # type: ignore[misc]


@clause("000.SCORE.3", "Score", ruling="one score: a value outside 0..1 is refused when made")
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), True, "1", None])
def test_a_value_outside_0_to_1_is_refused(value: Any) -> None:
    """A score with a value that is not a finite number from 0 to 1 cannot be made."""
    with pytest.raises(ValueError, match="value"):
        Score(value, True)


@clause("000.SCORE.4", "Score", ruling="no evidence, no verdict")
def test_without_a_verdict_there_is_no_number() -> None:
    """Skipped and error scores have neither a value nor a verdict."""
    for score in (Score.skipped("no session"), Score.error("no answer")):
        assert (score.value, score.passed) == (None, None)


@clause("000.SCORE.5", "Score")
def test_scores_are_equal_by_their_content() -> None:
    """Two scores with the same content are equal, as dataclasses are."""

    @dataclasses.dataclass
    class Pair:
        score: Score

    assert Pair(Score(1.0, True, "x")) == Pair(Score(1.0, True, "x"))
