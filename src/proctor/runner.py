"""`EvalRunner`: the main job as an object that is set up once and run on several datasets."""

from __future__ import annotations

from typing import Any, Unpack

from proctor.api import Options, evaluate
from proctor.comparison.report import FieldReport
from proctor.prepare import Metrics


class EvalRunner:
    """A target with its evaluators and metrics, ready for datasets.

    `continue_on_error=False` stops at the first failing sample; `timeout_seconds` is for each call
    of the target.
    """

    def __init__(
        self,
        target: Any,
        evaluators: Any,
        metrics: Metrics | None = None,
        *,
        timeout_seconds: float | None = 30.0,
        continue_on_error: bool = True,
        **options: Unpack[Options],
    ) -> None:
        self.target = target
        self.evaluators = evaluators
        self.metrics = tuple(metrics or ())
        self.options = options
        self.options["timeout"] = timeout_seconds
        self.options["on_error"] = "continue" if continue_on_error else "raise"

    def run(self, dataset: Any, configurations: Any = None, **settings: Any) -> FieldReport:
        """Evaluate the target on a dataset; `settings` are those of `evaluate`."""
        return evaluate(
            self.target,
            dataset,
            self.evaluators,
            configurations=configurations,
            metrics=self.metrics,
            **{**self.options, **settings},
        )
