"""Data frames are datasets: one sample per row, missing values left out, no value changed silently."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

from proctor import Dataset, Sample, evaluate, exact_match
from proctor.datasets.dataset import is_frame, make_source
from proctor.errors import DatasetError, MissingExtra

NAN = math.nan


class Series(list[Any]):
    """A column with the methods of pandas and Polars that Proctor calls."""

    def tolist(self) -> list[Any]:
        return list(self)

    to_list = tolist

    def isna(self) -> Series:
        return Series(value is None or value != value for value in self)


class Index:
    nlevels = 1

    def __init__(self, name: str | None, values: list[Any]) -> None:
        self.name, self.values = name, values

    def to_series(self) -> Series:
        return Series(self.values)


class Columns:
    def __init__(self, columns: list[tuple[Any, list[Any]]]) -> None:
        self.columns = columns

    def __getitem__(self, key: tuple[slice, int]) -> Series:
        return Series(self.columns[key[1]][1])


def pandas_frame(*columns: tuple[Any, list[Any]], index: tuple[str, list[Any]] | None = None) -> Any:
    """A frame that looks like one of pandas."""
    attributes = {
        "columns": [name for name, _ in columns],
        "shape": (len(columns[0][1]), len(columns)),
        "iloc": Columns(list(columns)),
        "index": Index(*index) if index else Index(None, []),
    }
    return type("DataFrame", (), {"__module__": "pandas.core.frame", **attributes})()


def polars_frame(**columns: list[Any]) -> Any:
    """A frame that looks like one of Polars."""
    attributes = {"columns": list(columns), "shape": (0, 0), "__getitem__": lambda _, name: Series(columns[name])}
    return type("DataFrame", (), {"__module__": "polars.dataframe.frame", **attributes})()


def test_columns_are_fields_and_others_are_metadata() -> None:
    """As in a file; a numeric id becomes text."""
    frame = pandas_frame(("id", [1, 2]), ("input", ["a", "b"]), ("expected", ["A", None]), ("topic", [NAN, "x"]))
    assert list(make_source(frame)) == [Sample("1", "a", "A"), Sample("2", "b", None, {"topic": "x"})]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        ([4.0, NAN, 6.0], [4, None, 6]),  # pandas stores integers as floats if one is missing
        ([4.0, 5.0, 6.0], [4.0, 5.0, 6.0]),
        ([4.5, NAN, 6.0], [4.5, None, 6.0]),
        ([NAN, NAN, NAN], [None, None, None]),
        ([True, None, "x"], [True, None, "x"]),
        ([[1], {"a": NAN}, "x"], [[1], {"a": NAN}, "x"]),
        ([Series([1, 2]), 2, 3], [[1, 2], 2, 3]),
    ],
)
def test_values_stay_what_they_were(cells: list[Any], values: list[Any]) -> None:
    """Missing values are None; integers stay integers."""
    frame = pandas_frame(("id", ["a", "b", "c"]), ("input", ["x"] * 3), ("expected", cells))
    result = [sample.expected for sample in Dataset.of(frame)]
    assert repr(result) == repr(values)
    assert [type(value) for value in result] == [type(value) for value in values]


def test_a_named_index_is_a_column() -> None:
    """After set_index("id"); an index without a name is only a number."""
    frame = pandas_frame(("input", ["a", "b"]), index=("id", ["x", "y"]))
    assert [sample.id for sample in Dataset.of(frame)] == ["x", "y"]
    with pytest.raises(DatasetError, match="id"):
        Dataset.of(pandas_frame(("input", ["a"])))


def test_a_mapping_and_generated_ids() -> None:
    """The options of every dataset."""
    frame = pandas_frame(("question", ["a"]), ("answer", ["A"]))
    [sample] = Dataset.of(frame, mapping={"question": "input", "answer": "expected"}, generate_ids=True)
    assert (sample.input, sample.expected) == ("a", "A")


def test_polars() -> None:
    """Null and NaN are missing; the content is the same dataset as a list of records."""
    frame = polars_frame(id=["1", "2"], input=["a", "b"], expected=["A", None], weight=[1.5, NAN])
    records = [{"id": "1", "input": "a", "expected": "A", "weight": 1.5}, {"id": "2", "input": "b"}]
    assert list(Dataset.of(frame)) == list(Dataset.of(records))
    assert make_source(frame).inspect().fingerprint == make_source(records).inspect().fingerprint


def test_a_frame_is_evaluated() -> None:
    """`evaluate(target, frame, …)`."""
    report = evaluate(str.upper, polars_frame(id=["1"], input=["a"], expected=["A"]), exact_match, history=False)
    assert (report.pass_rate, report.metadata and report.metadata.dataset.name) == (1.0, "DataFrame")


def test_what_cannot_be_read_says_why() -> None:
    """Two columns of one name, and a query that has not run."""
    with pytest.raises(DatasetError, match="several columns are called 'a'"):
        Dataset.of(pandas_frame(("a", [1]), ("a", [2])))
    lazy = type("LazyFrame", (), {"__module__": "polars.lazyframe.frame"})()
    assert is_frame(lazy)
    with pytest.raises(DatasetError, match=r"frame\.collect\(\)"):
        make_source(lazy)
    assert not is_frame([])
    assert not is_frame(Series())


def run() -> Any:
    samples = [
        {"id": "a", "input": 1, "expected": 2, "metadata": {"n": 1, "mixed": "x", "list": [1]}},
        {"id": "b", "input": 2, "metadata": {"n": 2.5, "mixed": 3, "big": 2**70}},
    ]
    return evaluate(lambda number: number + 1, samples, exact_match, history=False, progress=False)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_without_the_library_the_extra_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that says what to install."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtra, match=rf'pip install "proctor\[{library}\]"'):
        getattr(run(), f"to_{library}")()


def test_rows_have_everything() -> None:
    """Input, output, expected value, the scores with status and reason, metadata and usage."""
    row = run().rows()[0]
    latency = row.pop("latency_ms")
    assert latency >= 0
    assert row == {
        "sample_id": "a",
        "configuration": "default",
        "epoch": 0,
        "outcome": "passed",
        "score": 1.0,
        "input": 1,
        "expected": 2,
        "output": 2,
        "error": None,
        "exact_match.score": 1.0,
        "exact_match.passed": True,
        "exact_match.status": "ok",
        "exact_match.reason": "",
        "metadata.n": 1,
        "metadata.mixed": "x",
        "metadata.list": [1],
        "input_tokens": None,
        "output_tokens": None,
        "total_tokens": None,
        "cost": None,
        "judge_tokens": None,
        "judge_cost": None,
        "attempts": 1,
        "cached": False,
    }


def test_to_pandas() -> None:
    """One row per trial; values are not converted."""
    pytest.importorskip("pandas")
    frame = run().to_pandas()
    assert list(frame["sample_id"]) == ["a", "b"]
    assert [type(value) for value in frame["expected"]] == [int, type(None)]
    again = Dataset.of(frame[["sample_id", "input", "expected"]].rename(columns={"sample_id": "id"}))
    assert list(again) == [Sample("a", 1, 2), Sample("b", 2)]


def test_to_polars() -> None:
    """Columns of several types become texts, so that no value is lost."""
    pytest.importorskip("polars")
    frame = run().to_polars()
    assert frame["metadata.n"].to_list() == [1.0, 2.5]
    assert frame["metadata.mixed"].to_list() == ["x", "3"]
    assert frame["metadata.list"].to_list() == ["[1]", None]
    assert frame["metadata.big"].to_list() == [None, str(2**70)]
    assert frame["expected"].to_list() == [2, None]
