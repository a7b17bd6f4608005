"""Outputs, sessions and details that are too large or too slow to store end as data."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from proctor import evaluate, exact_match
from proctor.engine.output_limits import SizeEstimator
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.sessions import current as sessions
from tests.support import run_command

LIMIT = 10_000


class Slow:
    """An object whose repr does not come back before it is released."""

    released = threading.Event()

    def __repr__(self) -> str:
        self.released.wait(60)
        return "slow"


class Vast:
    def __repr__(self) -> str:
        return "x" * (2 * LIMIT)


class Broken:
    def __repr__(self) -> str:
        raise SystemExit("no words")


def laughs(depth: int) -> list[Any]:
    """A list that is small in memory and has 10 ** depth texts when it is written out."""
    value: list[Any] = ["lol"]
    for _ in range(depth):
        value = [value] * 10
    return value


def run(outputs: dict[str, Any], **options: Any) -> Any:
    """Each output by the id of its sample, with well-behaved ones before and after."""
    data: list[Any] = [Sample("first", "first"), *(Sample(name, name) for name in outputs), Sample("z", "z")]

    async def target(name: str) -> Any:
        return outputs.get(name, name)

    options = {"max_output_bytes": LIMIT, "history": False, **options}
    return evaluate(target, data, lambda output: True, **options)


@pytest.mark.parametrize(
    "output",
    ["x" * (LIMIT + 1), ["x" * 100] * 200, laughs(30), {"a": {"b": "y" * LIMIT}}, Vast()],
    ids=["text", "list", "laughs", "mapping", "repr"],
)
def test_an_output_above_the_limit_is_an_error_with_its_size(output: Any) -> None:
    """The message names the size, the limit and how to raise it; the neighbours are unchanged."""
    report = run({"odd": output})
    assert [r.outcome for r in report.results] == ["passed", "error", "passed"]
    error = report.results[1].error
    assert error.startswith("OutputTooLarge: the output has about ")
    assert "bytes as JSON, the limit is 10,000. Fix: " in error
    assert "max_output_bytes" in error


def test_an_output_within_the_limit_is_stored() -> None:
    """The limit applies to its JSON, and can be raised."""
    report = run({"odd": "x" * (LIMIT + 1)}, max_output_bytes=2 * LIMIT)
    assert report.results[1].output == "x" * (LIMIT + 1)


def test_the_default_limit_takes_outputs_of_megabytes() -> None:
    """Ten megabytes of JSON are accepted unless a run says otherwise."""
    report = run({"odd": "x" * 9_000_000}, max_output_bytes=10_000_000)
    assert len(report.results[1].output) == 9_000_000


def test_an_output_with_an_endless_repr_is_an_error() -> None:
    """It is encoded in a thread with a timeout, so nothing hangs."""
    Slow.released.clear()
    try:
        report = run({"odd": Slow()}, timeout=0.3)
    finally:
        Slow.released.set()
    assert [r.outcome for r in report.results] == ["passed", "error", "passed"]
    error = report.results[1].error
    assert error.startswith("OutputNotStorable: the output could not be encoded as JSON within")


def test_an_output_with_a_failing_repr_is_stored_as_its_type() -> None:
    """Evaluators see the object."""
    report = run({"odd": Broken()})
    assert report.results[1].output == {
        "$repr": "<Broken, which cannot be shown: SystemExit>", "$type": "Broken"
    }  # fmt: skip
    assert report.results[1].outcome == "passed"


def test_evaluators_of_objects_have_their_time() -> None:
    """Comparing the user's objects calls the user's code: a quick evaluator is bounded as well."""
    released = threading.Event()

    class Comparing:
        def __eq__(self, other: object) -> bool:
            return released.wait(60)

        def __repr__(self) -> str:
            return "comparing"

        __hash__ = None  # type: ignore[assignment]

    async def target(name: str) -> Any:
        return Comparing() if name == "odd" else name

    data = [Sample("odd", "odd", "odd"), Sample("even", "even", "even")]
    try:
        report = evaluate(target, data, exact_match, evaluator_timeout=0.3, history=False)
    finally:
        released.set()
    assert [r.outcome for r in report.results] == ["unscored", "passed"]


def test_a_session_above_the_limit_is_left_out_with_a_warning() -> None:
    """The verdict stays; the report says what was left out."""

    async def target(name: str) -> str:
        sessions.record({"page": "x" * 3 * LIMIT} if name == "odd" else {"page": "x"})
        return name

    report = evaluate(
        target,
        [Sample("odd", "odd", "odd"), Sample("even", "even", "even")],
        exact_match,
        max_output_bytes=LIMIT,
        history=False,
    )
    assert [r.outcome for r in report.results] == ["passed", "passed"]
    assert report.results[0].trial.session is None
    assert len(report.results[1].trial.session) == 1  # type: ignore[arg-type]
    (warning,) = report.metadata.warnings  # type: ignore[union-attr]
    assert warning.startswith("the session of sample 'odd' has about 30,")


def test_details_above_the_limit_are_left_out_with_a_warning() -> None:
    """The value and the verdict of the score stay."""

    def judge(output: str) -> Score:
        return Score(0.7, True, "r" * 3 * LIMIT, {"trace": laughs(20)})

    async def target(name: str) -> str:
        return name

    report = evaluate(target, [Sample("a", "a")], judge, max_output_bytes=LIMIT, history=False)
    score = report.results[0].scores["judge"]
    assert (score.value, score.passed) == (0.7, True)
    assert list(score.details) == ["left_out"]
    assert len(score.reason) < LIMIT
    assert "the score of judge" in report.metadata.warnings[0]  # type: ignore[union-attr]


def test_details_with_an_endless_repr_do_not_hang() -> None:
    """They are encoded in a thread too."""
    Slow.released.clear()

    def judge(output: str) -> Score:
        return Score(1.0, True, "", {"object": Slow()})

    async def target(name: str) -> str:
        return name

    try:
        report = evaluate(target, [Sample("a", "a")], judge, timeout=0.3, history=False)
    finally:
        Slow.released.set()
    assert report.results[0].outcome == "passed"
    assert "could not be encoded as JSON" in report.results[0].scores["judge"].details["left_out"]


def test_weighing_takes_each_shared_part_once() -> None:
    """What has 10 ** 60 parts when it is written out is weighed by its 61 lists."""
    scale = SizeEstimator()
    assert scale.estimate(laughs(60)) > 10**60
    assert scale.is_plain


def test_weighing_calls_no_code_of_the_value() -> None:
    """Not even the class that an object says it has."""

    class Hostile:
        @property  # type: ignore[misc]
        def __class__(self) -> Any:
            raise SystemExit

        def __getattr__(self, name: str) -> Any:
            raise SystemExit

        def __len__(self) -> int:
            raise SystemExit

    scale = SizeEstimator()
    assert scale.estimate([Hostile()]) < 10
    assert not scale.is_plain


def test_a_value_that_contains_itself_is_stored_as_its_repr() -> None:
    """It has no JSON."""
    circle: list[Any] = []
    circle.append(circle)
    report = run({"odd": circle})
    assert report.results[1].output == {"$repr": "[[...]]", "$type": "list"}


def test_the_limit_is_an_option_of_the_command_line(tmp_path: Path) -> None:
    """And of an eval file: both end in the run's options."""
    (tmp_path / "app.py").write_text("def answer(text):\n    return text * 1000\n")
    (tmp_path / "data.jsonl").write_text('{"id": "a", "input": "x", "expected": "x"}\n')
    done = run_command(
        "run", "--dataset", "data.jsonl", "--target", "app.py:answer", "-e", "exact_match",
        "--history", "h.db", "--max-output-bytes", "100", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert '"max_output_bytes": 100' in done.stdout
