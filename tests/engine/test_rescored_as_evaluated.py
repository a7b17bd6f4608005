"""Rescoring sees the same values as the first scoring."""

from __future__ import annotations

import datetime as dt
import math
from collections import namedtuple
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor import Reply, SQLiteHistory, ToolCall, evaluate, exact_match, record, rescore
from proctor.history.payload import decode_result, encode_result
from proctor.records.lossless import restore_value, tag_value
from proctor.records.sample import Sample
from proctor.records.trial import EvalResult, Trial

Point = namedtuple("Point", "x y")

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.text(max_size=6),
    st.text(st.characters(categories=["Cs", "L"]), max_size=4),
    st.binary(max_size=6),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
    st.uuids(),
    st.datetimes(timezones=st.none() | st.just(dt.UTC)),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.just("$py"),
)
keys = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.binary(max_size=4), st.dates(),
    st.tuples(st.integers(), st.text(max_size=2)), st.sampled_from(["$py", "value", "$repr"]),
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(keys, inner, max_size=3),
        st.fixed_dictionaries({"$py": inner, "value": inner}),
        st.sets(keys, max_size=3),
        st.frozensets(keys, max_size=3),
    ),
    max_leaves=8,
)


def same(one: Any, other: Any) -> bool:
    """Equal in value and type; NaN is NaN, and -0.0 is not 0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return math.isnan(one) == math.isnan(other) and (
            math.isnan(one) or (one == other and math.copysign(1, one) == math.copysign(1, other))
        )
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, Decimal):
        return str(one) == str(other)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            same(mine, theirs) and same(one[mine], other[theirs]) for mine, theirs in zip(one, other, strict=True)
        )
    return bool(one == other)


def stored(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(tag_value(value)))


@given(values)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    """Tuples, sets, bytes, NaN, -0.0, huge integers, times, keys of any kind, halves of characters.

    Sets in any order; everything else with the same type and value.
    """
    assert same(restore_value(stored(value)), value)


@given(st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(max_size=5)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
))  # fmt: skip
def test_values_that_json_supports_are_stored_unchanged(value: Any) -> None:
    """Without tags or copies."""
    if "$py" not in str(value) and str(value).isprintable():
        assert tag_value(value) is value


@given(values, values, values)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_stored_result_has_the_output_and_sample_that_were_scored(output: Any, asked: Any, expected: Any) -> None:
    """What evaluators are given again is what they were given."""
    trial = Trial(Sample("1", asked, expected, {"note": asked}), output)
    data, _ = encode_result(EvalResult(trial))
    again = decode_result(data).trial
    assert same(again.output, output)
    assert same(again.sample.input, asked)
    assert same(again.sample.expected, expected)
    assert same(again.sample.metadata, {"note": asked})


OUTPUTS: list[Any] = [
    float("nan"),
    {"loss": float("nan")},
    [float("inf"), -float("inf")],
    (1, 2),
    {1: "a", "1": "b"},
    {"a", "b"},
    b"\x00\xff",
    -0.0,
    10**40,
    dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC),
    Decimal("1.10"),
    Fraction(1, 3),
    {"share": [Fraction(-2, 7), Fraction(2**80, 3)]},
    complex(1.5, -0.0),
    UUID(int=7),
    {"$py": "tuple", "value": [1]},
    "half \ud83d of it",
    None,
    {None: 1, True: 2, (1, 2): 3},
]


def shape(output: Any) -> float:
    """A number that depends on the type and content of everything in a value."""
    return (hash_of(output) % 1000) / 1000


def hash_of(value: Any) -> int:
    if isinstance(value, set | frozenset):
        parts = "".join(sorted(f"{type(item).__name__}{item!r}" for item in value))
        return sum(map(ord, parts))
    if isinstance(value, dict):
        return 7 + sum(3 * hash_of(key) + hash_of(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return len(type(value).__name__) + sum(map(hash_of, value))
    return sum(map(ord, f"{type(value).__name__} {value!r}"))


@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda value: type(value).__name__)
def test_rescoring_gives_the_scores_of_the_evaluation(output: Any, cache: bool, tmp_path: Path) -> None:
    """The same evaluators on the same trials, the second time out of the history."""

    def target(number: int) -> Any:
        return Reply(output)

    history = SQLiteHistory(tmp_path / "h.db")
    # A dataset that UTF-8 cannot hold is refused; what comes out of a target is not.
    expected = "half" if isinstance(output, str) else output
    dataset = [{"id": "1", "input": 1, "expected": expected}, {"id": "2", "input": 2, "expected": 3}]
    for _ in range(2):
        first = evaluate(target, dataset, [exact_match, shape], history=history, cache=cache)
        again = rescore(first.run_id, [exact_match, shape], history=history)
        results = [[result.scores for result in report.results] for report in (first, again)]
        assert results[0] == results[1]
        assert results[0][0]["shape"].value == shape(output)


def test_a_fraction_of_very_long_integers_is_stored() -> None:
    """Python refuses to write them in decimal."""
    number = Fraction(10**6000 + 1, 3**9000)
    assert restore_value(stored([number])) == [number]


def test_a_null_is_not_nan(tmp_path: Path) -> None:
    """An output that was NaN is NaN when it is scored again, in whatever it is contained."""
    history = SQLiteHistory(tmp_path / "h.db")

    def has_nan(output: Any) -> bool:
        return math.isnan(output["loss"][0])

    first = evaluate(lambda _: {"loss": [float("nan")]}, [{"id": "1", "input": 1}], has_nan, history=history)
    again = rescore(first.run_id, has_nan, history=history)
    assert (first.pass_rate, again.pass_rate) == (1.0, 1.0)


def test_tool_results_are_restored(tmp_path: Path) -> None:
    """Session evaluators see the same session again."""
    history = SQLiteHistory(tmp_path / "h.db")

    def target(text: str) -> str:
        record(ToolCall("look", {"at": (1, 2)}, result={3: float("inf")}))
        return text

    def saw(output: str, session: Any) -> bool:
        (call,) = session[ToolCall]
        return bool(call.arguments == {"at": (1, 2)} and call.result == {3: float("inf")})

    first = evaluate(target, [{"id": "1", "input": "a"}], saw, history=history)
    again = rescore(first.run_id, saw, history=history)
    assert [r.scores for r in again.results] == [r.scores for r in first.results]


def test_the_cache_does_not_take_one_input_for_another(tmp_path: Path) -> None:
    """1 and "1" as keys, a list and a tuple are different questions."""
    history = SQLiteHistory(tmp_path / "h.db")
    inputs: list[Any] = [{1: "a"}, {"1": "a"}, [1, 2], (1, 2), float("nan")]
    dataset: list[Sample[Any, Any]] = [Sample(str(number), each) for number, each in enumerate(inputs)]

    def target(given_input: Any) -> str:
        return repr(given_input)

    for _ in range(2):
        report = evaluate(target, dataset, exact_match, history=history, cache=True)
        assert [result.output for result in report.results] == [repr(each) for each in inputs]


def test_a_named_tuple_is_scored_again_as_a_tuple() -> None:
    """Its class is the user's, and equal to a tuple of its values."""
    assert restore_value(stored(Point(1, 2))) == Point(1, 2)


def test_an_export_and_import_changes_no_value(tmp_path: Path) -> None:
    """A run that came from another history is rescored as it was there."""
    from proctor.history.exchange.read import import_runs
    from proctor.history.exchange.write import export_runs

    output = {"t": (1, 2), 3: float("nan"), "s": {"a"}, "b": b"x"}
    here, there = (SQLiteHistory(tmp_path / name) for name in ("a.db", "b.db"))
    first = evaluate(lambda _: output, [{"id": "1", "input": 1}], shape, history=here)
    assert first.metadata is not None
    for number, form in enumerate(("jsonl", "csv")):
        file = tmp_path / f"runs.{form}"
        file.write_bytes(b"".join(export_runs(here, [first.metadata], form)))  # type: ignore[arg-type]
        (run,) = import_runs(there, file)
        assert run.new is (number == 0)
        assert same(there.results(first.run_id)[0].output, output)


class Odd:
    """An object that only this program knows."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd)

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("output", [Odd(), {"a": [Odd()]}, (1, Odd())], ids=["bare", "list", "tuple"])
def test_an_object_that_cannot_be_stored_is_not_rescored(output: Any, tmp_path: Path) -> None:
    """Its description is not the object."""
    history = SQLiteHistory(tmp_path / "h.db")
    first = evaluate(lambda _: output, [Sample("1", 1, output)], exact_match, history=history)
    assert first.pass_rate == 1.0
    again = rescore(first.run_id, exact_match, history=history)
    score = again.results[0].scores["exact_match"]
    assert (score.status, score.value) == ("skipped", None)
    assert "an object of type Odd" in score.reason
