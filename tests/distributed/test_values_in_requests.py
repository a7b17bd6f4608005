"""Values that JSON does not support: a worker receives what was sent, or sending is refused."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proctor import EvalRequest, InMemoryMailbox, Sample, SQLiteHistory, evaluate, exact_match, submit_dataset
from proctor.distributed.check_requests import find_change
from proctor.errors import MessageRefused
from proctor.wiring.dispatch import submit
from proctor.wiring.prepare import Evaluation
from tests.distributed.failing_mailboxes import LONG, boxes, loop_for, running, with_timeout
from tests.tables import each_row


@dataclass(frozen=True)
class Point:
    x: float
    y: float


class Pair(NamedTuple):
    a: int
    b: int


class Colour(StrEnum):
    RED = "red"


class Note(msgspec.Struct):
    text: str


def same(value: Any) -> Any:
    return value


NOW = datetime(2026, 1, 2, tzinfo=UTC)

CHANGED = [
    ((1, 2), "input: a tuple arrives as a list"),
    ({"a": [1, (2,)]}, "input.a.1: a tuple arrives as a list"),
    ({"a", "b"}, "input: a set arrives as a list"),
    (frozenset([1]), "input: a frozenset arrives as a list"),
    (b"bytes", "input: a bytes arrives as a str"),
    (math.nan, "input: nan arrives as null"),
    ([1.0, math.inf], "input.1: inf arrives as null"),
    ({1: "one"}, "input: the key 1 arrives changed"),
    ({"a": {None: 1}}, "input.a: the key None arrives changed"),
    (NOW, "input: a datetime arrives as a str"),
    ({"when": date(2026, 1, 2)}, "input.when: a date arrives as a str"),
    (Decimal("0.1"), "input: a Decimal arrives as a str"),
    (Point(1, 2), "input: a Point arrives as a dict"),
    (Note("a"), "input: a Note arrives as a dict"),
    (Pair(1, 2), "input: a Pair arrives as a list"),
    (Path("/tmp"), "input: a PosixPath arrives as a str"),
    (np.array([1, 2]), "input: a ndarray arrives as a list"),
    (1j, "input: a complex arrives as a dict"),
    (object, "input: a type arrives as a dict"),
]

SAME = [
    True, 0, 1.0, -0.5, 2**53 + 1, "", "Grüße 🙂", [], {}, [1, [2.0, {"a": None}]],
    OrderedDict(a=1), Colour.RED, np.float64(0.5), np.int64(3), {"": {"a.b": [True]}},
]  # fmt: skip


def box(kind: Any = EvalRequest) -> InMemoryMailbox[Any]:
    return InMemoryMailbox("requests", kind)


@each_row(("value", "said"), CHANGED, ids=[said for _, said in CHANGED])
def test_a_value_that_would_change_is_refused_with_its_path(value: Any, said: str) -> None:
    """The error names the sample, the path, the value and what would arrive; nothing is sent."""
    requests = box()
    good: Sample[Any, Any] = Sample("good", "a")
    with pytest.raises(MessageRefused) as caught:
        submit_dataset([good, Sample("bad", value)], requests)
    assert [(problem.where, problem.what) for problem in caught.value.problems] == [("sample 'bad'", said)]
    assert requests.approximate_count() == 0


@each_row("value", SAME, ids=map(repr, SAME))
def test_a_value_that_json_supports_arrives(value: Any) -> None:
    """The received value is equal and has the same type."""
    requests = box()
    submit_dataset([Sample("1", value)], requests)
    [message] = requests.receive()
    assert message.body.sample.input == value


@pytest.mark.parametrize("part", ["expected", "metadata"])
def test_every_part_of_a_sample_is_checked(part: str) -> None:
    """Input, expected output and metadata must all arrive unchanged."""
    value: Any = (1, 2) if part == "expected" else {"places": (1, 2)}
    plain: Sample[Any, Any] = Sample("1", "a")
    sample = msgspec.structs.replace(plain, **{part: value})
    with pytest.raises(MessageRefused, match=rf"{part}.*: a tuple arrives as a list"):
        submit_dataset([sample], box())


def test_the_options_of_a_configuration_are_checked() -> None:
    """The target receives them as keyword arguments."""
    with pytest.raises(MessageRefused, match=r"configuration\.when: a datetime arrives as a str"):
        submit_dataset([Sample("1", "a")], box(), configurations={"c": {"when": NOW}})


def test_a_typed_mailbox_accepts_its_types() -> None:
    """Dataclasses, tuples and times keep their types."""
    sample = Sample("1", Point(1.0, math.pi), (1, NOW))
    requests = box(EvalRequest[Point, tuple[int, datetime]])
    submit_dataset([sample], requests)
    [message] = requests.receive()
    assert message.body.sample == sample


def test_a_mailbox_that_passes_objects_accepts_anything() -> None:
    """Nothing is encoded, so nothing changes."""
    requests: InMemoryMailbox[Any] = InMemoryMailbox("requests")
    submit_dataset([Sample("1", {1, 2})], requests)
    [message] = requests.receive()
    assert message.body.sample.input == {1, 2}


def test_a_run_is_refused_before_it_is_stored(tmp_path: Path) -> None:
    """Neither the history nor the mailbox contains anything of it."""
    history = SQLiteHistory(tmp_path / "h.db")
    requests, _ = boxes()
    samples: list[Sample[Any, Any]] = [Sample(str(number), "a") for number in range(150)]
    samples.append(Sample("bad", {1}))
    with pytest.raises(MessageRefused, match="sample 'bad'"):
        submit(Evaluation(same, samples, exact_match, name="exam"), requests, history)
    assert history.runs() == []
    assert requests.approximate_count() == 0


def test_a_stream_is_checked_while_it_is_sent() -> None:
    """It can be read only once; the batch with the invalid sample is not sent."""
    requests = box()
    values: list[Any] = [*["a"] * 120, (1, 2)]
    stream: Iterator[Sample[Any, Any]] = (Sample(str(number), value) for number, value in enumerate(values))
    with pytest.raises(MessageRefused, match="sample '120'"):
        submit_dataset(stream, requests)
    assert requests.approximate_count() == 100


def test_in_a_run_only_the_samples_that_would_change_are_errors() -> None:
    """The other samples run; the error says what would have changed."""
    requests, _ = boxes()
    data = [Sample("good", "a", "a"), Sample("bad", (1, 2), (1, 2))]
    with running(loop_for(same, requests)):
        report = with_timeout(
            LONG, lambda: evaluate(same, data, exact_match, workers=requests, history=False, progress=False)
        )
    errors = {result.sample_id: result.error for result in report.results}
    assert errors == {
        "good": None,
        "bad": "MessageRefused: the values of 1 request would change on the way to a worker; "
        "input: a tuple arrives as a list",
    }


@settings(max_examples=40)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text()
        | st.binary()
        | st.datetimes()
        | st.decimals(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner)
        | st.tuples(inner, inner),
        max_leaves=6,
    )
)  # fmt: skip
def test_a_value_arrives_unchanged_or_is_refused(value: Any) -> None:
    """Property: every value arrives equal and with the same types, or is refused."""
    requests = box()
    request: EvalRequest[Any, Any] = EvalRequest(Sample("1", value))
    if find_change(requests, request):
        return
    requests.send(request)
    [message] = requests.receive()
    # repr tells 1 from 1.0 and True, a list from a tuple, and shows NaN.
    assert repr(message.body.sample.input) == repr(value)
