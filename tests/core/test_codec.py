"""Objects to JSON and back: records exactly, user types as far as JSON allows."""

from __future__ import annotations

import dataclasses
import enum
import json
from array import array
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from proctor.errors import UsageError
from proctor.records import codec
from proctor.records.metric import MetricValue
from proctor.records.progress import ProgressEvent
from proctor.records.run import DatasetInfo, EvaluatorSpec, RunMetadata, RunOptions, TargetSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import CustomEvent, Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Configuration, EvalResult, Failure, Reply, Trial
from tests.tables import each_row

texts = st.text(max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
data = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
mappings = st.dictionaries(texts, data, max_size=3)
moments = st.datetimes(timezones=st.just(UTC))
counts = st.integers(0, 2**40)
maybe_counts = st.none() | counts

usages = st.builds(Usage, maybe_counts, maybe_counts, maybe_counts, st.none() | numbers)
samples = st.builds(Sample, texts, data, data, mappings)
scores = (
    st.builds(Score, st.floats(0, 1), st.booleans(), texts, mappings)
    | st.builds(Score.error, texts, mappings)
    | st.builds(Score.skipped, texts, mappings)
)
events = (
    st.builds(Message, st.sampled_from(["system", "user", "assistant", "tool"]), data, texts)
    | st.builds(ToolCall, texts, mappings, data, st.none() | texts, st.none() | numbers)
    | st.builds(ModelCall, texts, usages, st.none() | numbers, st.none() | texts, mappings)
    | st.builds(CustomEvent, texts, data)
)
sessions = st.builds(Session, st.lists(events, max_size=4))
replies = st.builds(Reply, data, st.none() | usages, st.none() | sessions, st.none() | numbers)
trials = st.builds(
    Trial,
    samples,
    output=data,
    error=st.none() | st.builds(Failure, texts, texts, texts),
    latency_ms=numbers,
    started_at=st.none() | moments,
    configuration=texts,
    epoch=counts,
    usage=st.none() | usages,
    session=st.none() | sessions,
    cached=st.booleans(),
)
results = st.builds(EvalResult, trials, st.dictionaries(texts, scores, max_size=3))
metrics = st.builds(MetricValue, st.none() | numbers, counts, counts, counts, st.none() | st.tuples(numbers, numbers))
configurations = st.builds(Configuration, texts, mappings)
runs = st.builds(
    RunMetadata,
    texts,
    texts,
    moments,
    status=st.sampled_from(["running", "completed", "interrupted", "failed"]),
    finished_at=st.none() | moments,
    dataset=st.builds(DatasetInfo, texts, texts, maybe_counts, st.none() | texts, mappings),
    target=st.builds(TargetSpec, texts, texts, texts),
    configurations=st.lists(configurations, max_size=2).map(tuple),
    evaluators=st.lists(st.builds(EvaluatorSpec, texts, texts, mappings), max_size=2).map(tuple),
    options=st.builds(RunOptions, concurrency=st.integers(1, 99), epochs=st.integers(1, 9)),
    tags=st.dictionaries(texts, texts, max_size=2),
)
progress = st.builds(
    ProgressEvent,
    st.sampled_from(["start", "end"]),
    st.sampled_from(["running", "failed"]),
    st.floats(0, 100),
    moments,
    texts,
    score=st.none() | scores,
)
records = (samples | scores | events | sessions | usages | replies | trials | results | metrics | runs) | progress


@given(records)
def test_records_survive_a_round_trip(record: Any) -> None:
    """Compact and pretty."""
    assert codec.decode(codec.encode(record), type(record)) == record
    assert codec.decode(codec.encode_pretty(record), type(record)) == record
    assert codec.decode(codec.encode_canonical(record), type(record)) == record


@given(data)
def test_plain_data_agrees_with_the_json_module(value: Any) -> None:
    assert json.loads(codec.encode(value)) == json.loads(json.dumps(value))
    assert codec.decode(codec.encode(value), object) == codec.to_plain(value)


@given(st.dictionaries(st.text() | st.integers() | st.none() | st.booleans(), data))
def test_canonical_text_does_not_depend_on_the_order_of_keys(value: dict[Any, Any]) -> None:
    turned = dict(reversed(value.items()))
    if len(codec.to_plain(value)) == len(value):
        assert codec.encode_canonical(value) == codec.encode_canonical(turned)
        assert codec.digest(value, 1) == codec.digest(turned, 1)


@given(st.sets(st.text() | st.integers() | st.none() | st.tuples(st.text())))
def test_canonical_text_does_not_depend_on_the_order_of_a_set(value: set[Any]) -> None:
    turned: set[Any] = set()
    for part in sorted(value, key=repr):
        turned.add(part)
    assert codec.encode_canonical(value) == codec.encode_canonical(turned)
    assert codec.encode_canonical({1: value}) == codec.encode_canonical({1: turned})


def test_different_contents_have_different_digests() -> None:
    """Another value, another split, another order of a list."""
    digests = {codec.digest(*values) for values in ([1], [2], [1, 2], [[1, 2]], [[2, 1]], ["1"])}
    assert len(digests) == 6


@dataclasses.dataclass
class Point:
    x: int
    seen: Any = None


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    name: str
    extra: Any = None


class Colour(enum.Enum):
    RED = "red"


class Text(str):
    """A string type of another package."""

    __slots__ = ()


class Integer(int):
    """An integer type of another package."""


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("no words")


class Table(Mapping[Any, Any]):
    def __getitem__(self, key: Any) -> Any:
        return {"a": 1}[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(["a"])

    def __len__(self) -> int:
        return 1


@each_row(
    ("value", "written"),
    [
        (Point(1, {2}), {"x": 1, "seen": [2]}),
        (Model(name="n", extra=[1]), {"name": "n", "extra": [1]}),
        (Colour.RED, "red"),
        (Text("a"), "a"),
        (Integer(3), 3),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (np.bool_(True), True),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (array("d", [0.5]), [0.5]),
        ({3, 1}, [1, 3]),
        ({"b": 1, "a": 2}.keys(), ["a", "b"]),
        (MappingProxyType({"a": (1,)}), {"a": [1]}),
        (Table(), {"a": 1}),
        (Path("a") / "b", "a/b"),
        (PurePosixPath("c"), "c"),
        (ValueError("bad"), "ValueError: bad"),
        (Decimal("1.50"), "1.50"),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), "2026-01-02T03:00:00Z"),
        (timedelta(seconds=90), "PT90S"),
        (b"hi", "aGk="),
        (float("nan"), None),
        (1 + 2j, {"$repr": "(1+2j)", "$type": "complex"}),
        (2**70, 2**70),
        ({2: "a", 2.5: "b", None: "c", True: "d"}, {"2": "a", "2.5": "b", "null": "c", "true": "d"}),
        ({Point: 1, frozenset({2}): 3}, {f"{Point!r}": 1, "[2]": 3}),
        ({(1, 2): 3, False: 4, Path("p"): 5}, {"(1, 2)": 3, "false": 4, "p": 5}),
        ({Text("k"): 1}, {"k": 1}),
    ],
)
def test_user_types_are_encoded(value: Any, written: Any) -> None:
    """Dataclasses, models, numpy, sets, paths, exceptions, unusual keys."""
    assert json.loads(codec.encode(value)) == written
    assert json.loads(codec.encode({"in": [value]})) == {"in": [written]}
    assert json.loads(codec.encode_canonical([value])) == [written]


def test_plain_converts_keys_to_text() -> None:
    """As JSON does."""
    assert codec.to_plain({(1, 2): {3}}) == {"(1, 2)": [3]}
    assert codec.to_plain(Point(1, {None: 1})) == {"x": 1, "seen": {"null": 1}}


def test_canonical_text_of_user_types_inside_records() -> None:
    """Content that msgspec cannot sort is sorted first."""
    point = Point(1, {1: {"b", "a"}, "z": ({2, None},)})
    assert codec.encode_canonical(point) == b'{"seen":{"1":["a","b"],"z":[[2,null]]},"x":1}'
    sample: Sample[Any, Any] = Sample("s", {2: 1, "1": 0})
    assert codec.encode_canonical(sample) == codec.encode_canonical(Sample("s", {"1": 0, 2: 1}))
    assert json.loads(codec.encode_canonical({1: Point}))["1"]["$type"] == "type"


def test_a_model_with_a_field_that_pydantic_cannot_write() -> None:
    """The other fields are stored; that one by its repr."""
    written = json.loads(codec.encode(Model(name="n", extra=Silent())))
    assert written["name"] == "n"
    assert written["extra"]["$type"] == "Silent"


def test_an_unknown_object_is_stored_as_its_repr() -> None:
    """Even if its repr fails."""
    assert codec.to_plain(Silent()) == snapshot(
        {"$repr": "<Silent, which cannot be shown: RuntimeError>", "$type": "Silent"}
    )
    assert codec.to_plain(object)["$repr"] == "<class 'object'>"


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ('{"id": 1}', Sample, "not a valid Sample: id must be a string, got an integer"),
        ("[1", list, "not a valid list: input data was truncated"),
        ('"a"', int | None, "not a valid int | None: it must be an integer, got a string"),
        (b'"\xff"', str, "not a valid str"),
        ('{"value": 2, "passed": true}', Score, "not a valid Score: Score.value must be a number from 0 to 1, got 2.0"),
        ('{"id": "1", "input": 2, "inptu": 3}', Sample, "not a valid Sample: unknown key 'inptu'"),
    ],
)
def test_invalid_json_is_located(text: str, kind: Any, said: str) -> None:
    """Malformed JSON and JSON of another shape."""
    with pytest.raises(UsageError) as caught:
        codec.decode(text, kind, where="qa.json")
    assert caught.value.what.startswith(said)
    assert caught.value.where == "qa.json"


def test_data_that_cannot_be_written_raises() -> None:
    """Endless nesting and lone surrogates."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        codec.encode(endless)
    with pytest.raises(UnicodeEncodeError):
        codec.encode("\ud800")
    with pytest.raises(ValueError, match="4300 digits"):
        codec.encode(10**5000)
    assert msgspec.json.decode(codec.encode([[[[]]]])) == [[[[]]]]
