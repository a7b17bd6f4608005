"""Callbacks receive the results of a run one by one, as they are stored."""

from __future__ import annotations

from typing import Any

from proctor.core import bridge
from proctor.engine.start import RunControls
from proctor.records.trial import EvalResult
from proctor.wiring.evaluate import execute
from proctor.wiring.open_history import open_history
from proctor.wiring.prepare import Evaluation

KEY = "sk-proj-" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5z"


def test_callbacks_receive_redacted_results() -> None:
    """Each once, as it is stored."""
    results: list[EvalResult] = []
    data = [{"id": str(n), "input": str(n), "expected": str(n)} for n in range(200)]

    def target(text: str) -> str:
        return f"{text} {KEY}" if text == "7" else text

    evaluation: Any = Evaluation(target, data, "exact_match", options={"concurrency": 8})
    report = bridge.run(execute(evaluation, open_history(False), RunControls(on_result=results.append)))
    assert sorted(results, key=lambda result: int(result.sample_id)) == list(report.results)
    assert len(results) == 200
    assert not any(KEY in str(result.output) for result in results)


def test_a_failing_callback_loses_no_result() -> None:
    """Everything is stored, and the run has one warning."""

    def fail(_: EvalResult) -> None:
        raise OSError("no space left")

    data = [{"id": str(n), "input": str(n), "expected": str(n)} for n in range(100)]
    evaluation: Any = Evaluation(lambda text: text, data, "exact_match")
    report = bridge.run(execute(evaluation, open_history(False), RunControls(on_result=fail)))
    assert len(report.results) == 100
    assert report.metadata is not None
    assert sum("no space left" in warning for warning in report.metadata.warnings) == 1
