"""Stored outputs lead to the verdicts of the original outputs."""

from __future__ import annotations

import math
from array import array
from collections import OrderedDict, UserDict, UserList, defaultdict, deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from proctor import evaluate, rescore
from tests.tables import each_row

NAN = math.nan
EXPECTED: list[Any] = [None, [1.0, None], {"x": None}, [None], {"a": [{"x": None}]}, NAN, 0.1, [0.3], "2020-01-01"]


class Number(float):
    """A subclass of a built-in type."""


@dataclass
class Point:
    """An output with a field."""

    x: Any


class Struct(msgspec.Struct):
    """An output that msgspec encodes."""

    x: Any


OUTPUTS: dict[str, Any] = {
    "float": NAN,
    "infinity": math.inf,
    "subclass of float": Number("nan"),
    "NumPy float": np.float64("nan"),
    "NumPy float32": np.float32("-inf"),
    "NumPy array": np.array([1.0, NAN]),
    "NumPy table": np.array([[1.0, NAN]]),
    "NumPy records": np.array([(1, NAN)], dtype=[("a", int), ("b", float)]),
    "NumPy float32 of 0.1": np.float32(0.1),
    "NumPy float16 in a list": [np.float16(0.3)],
    "NumPy array of float32": np.array([0.1, NAN], dtype=np.float32),
    "NumPy date": np.datetime64("2020-01-01"),
    "NumPy dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "NumPy complex": np.array([1j, complex(NAN, 0)]),
    "missing NumPy date": np.datetime64("NaT", "D"),
    "missing NumPy duration": np.timedelta64("NaT", "D"),
    "array": array("d", [1.0, NAN]),
    "dataclass": Point(NAN),
    "struct": Struct(NAN),
    "nested": {"a": [Point(NAN)]},
    "tuple in a dataclass": Point((1.0, NAN)),
    "huge integer in a dataclass": Point(10**30),
    "other keys in a dataclass": Point({True: NAN, (1, 2): 1}),
    "UserDict": UserDict(x=NAN),
    "UserList": UserList([NAN]),
    "defaultdict": defaultdict(int, x=NAN),
    "OrderedDict": OrderedDict(x=NAN),
    "deque": deque([NAN]),
    "set": {NAN},
    "list of NumPy numbers": [np.float32("nan"), 1],
}


# Stored as a description of the object, which has no verdict.
DESCRIBED = {"missing NumPy date", "missing NumPy duration", "UserList", "deque"}


@each_row("name, cache", [(name, cache) for name in OUTPUTS for cache in (False, True)])
def test_rescore_gives_the_verdicts_of_evaluate_or_none(name: str, cache: bool, tmp_path: Path) -> None:
    """Values that JSON writes as null, such as NumPy's NaN, keep their verdicts; what is not restored has none."""
    output, history = OUTPUTS[name], tmp_path / "history.db"
    samples = [{"id": str(number), "input": "x", "expected": value} for number, value in enumerate(EXPECTED)]
    evaluators = ["exact_match", "json_validity", "contains"]
    before = evaluate(lambda _: output, samples, evaluators, history=history, progress=False, cache=cache)
    after = rescore(before.run_id, evaluators, history=history, progress=False)
    for first, second in zip(before.results, after.results, strict=True):
        for evaluator in evaluators:
            old, new = first.scores[evaluator], second.scores[evaluator]
            is_same = (new.passed, new.value) == (old.passed, old.value)
            assert is_same or (new.passed is None and name in DESCRIBED), (first.trial.sample, old, new)


@each_row("output", [np.array([1.0, NAN]), Point([1.0, NAN]), [1.0, NAN]], ids=["array", "object", "list"])
def test_not_a_number_is_not_none_in_a_report(output: Any, tmp_path: Path) -> None:
    """The report shows the output that the evaluators got: NaN, not None."""
    report = evaluate(
        lambda _: output, [{"id": "1", "input": "x"}], ["exact_match"], history=tmp_path / "history.db", progress=False
    )
    stored = report.results[0].output
    numbers = stored["x"] if isinstance(stored, dict) else stored
    assert math.isnan(numbers[1])
