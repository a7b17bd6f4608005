"""A trial (one execution of the target), and its result with scores."""

from __future__ import annotations

from datetime import datetime
from math import fsum
from typing import Any, Literal

import msgspec

from proctor.records.sample import Sample
from proctor.records.score import SKIPPED_BY_DESIGN, Score, Skipped, combine_all
from proctor.records.session import Session, Usage

DEFAULT_CONFIGURATION = "default"

Outcome = Literal["passed", "failed", "error", "unscored", "skipped"]
Verdict = tuple[Outcome, float | None]
ALL_PASSED: Verdict = ("passed", 1.0)
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "error", "unscored", "skipped")


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A named set of options that reach the target as keyword arguments."""

    name: str = DEFAULT_CONFIGURATION
    options: dict[str, Any] = {}


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The output of a target with its usage; a target may also return the output alone.

    `session` and `latency_ms` override the engine's measurements, for targets such as recordings. With a `session`,
    even an empty one, the output is used unchanged; without a session, messages in the output become the session.
    `raw_output` is the value that the target returned, if `output` is only its last answer.

    >>> Reply("Paris", usage=Usage(input_tokens=12, output_tokens=1)).output
    'Paris'
    """

    output: Any
    usage: Usage | None = None
    session: Session | None = None
    latency_ms: float | None = None
    raw_output: Any = None


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The error of a trial without an output: its kind, message and traceback."""

    kind: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One execution of the target on one sample, in one configuration and epoch.

    `latency_ms` is None if it was not measured, for example for a request that no worker answered. `session` is None if
    nothing was recorded; an empty session was recorded and had no events. `raw_output` is the value that the target
    returned if it was, or contained, a list of messages: `output` is then the last answer.
    """

    sample: Sample[Any, Any]
    output: Any = None
    error: Failure | None = None
    latency_ms: float | None = 0.0
    started_at: datetime | None = None
    configuration: str = DEFAULT_CONFIGURATION
    epoch: int = 0
    attempts: int = 1
    usage: Usage | None = None
    session: Session | None = None
    cached: bool = False
    raw_output: Any = None


class Delivery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The run, request, worker and delivery count of a result from a worker."""

    run_id: str
    request_id: str
    worker: str = ""
    count: int = 1


class EvalResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One trial with its scores; `sessions` holds the model calls of evaluators, by their name.

    `delivery` is set if a worker ran the trial. `skipped` is the effect of a skipped score: "skip" (the
    result is skipped too, unless another score failed) or "ignore".
    """

    trial: Trial
    scores: dict[str, Score] = {}
    sessions: dict[str, Session] = {}
    delivery: Delivery | None = None
    skipped: Skipped = "skip"

    @property
    def sample_id(self) -> str:
        """The id of the sample."""
        return self.trial.sample.id

    @property
    def output(self) -> Any:
        """The output of the target."""
        return self.trial.output

    @property
    def latency_ms(self) -> float | None:
        """The latency of the target, for failures too; None if it was not measured."""
        return self.trial.latency_ms

    @property
    def error(self) -> str | None:
        """The reason why there is no output, or None."""
        return None if self.trial.error is None else str(self.trial.error)

    @property
    def success(self) -> bool:
        """True if the target returned an output."""
        return self.trial.error is None

    @property
    def judging(self) -> Usage | None:
        """The model usage of the evaluators, or None if it is unknown."""
        total = sum((session.usage for session in self.sessions.values()), Usage())
        return None if total == Usage() else total

    @property
    def score(self) -> Score:
        """The score of this result: its only score, or all scores combined (all must pass)."""
        if self.trial.error is not None:
            return Score.error(str(self.trial.error))
        if not self.scores:
            return Score.skipped("neither the sample nor the run has evaluators")
        if len(self.scores) == 1:
            return next(iter(self.scores.values()))
        return combine_all(self.scores, self.skipped)

    @property
    def passed(self) -> bool:
        """True if the target returned an output and every evaluator passed it."""
        return self.outcome == "passed"

    @property
    def outcome(self) -> Outcome:
        """The outcome in one word."""
        return self.verdict()[0]

    def verdict(self) -> Verdict:
        """Return the outcome and the value of `score`, without building the score."""
        if self.trial.error is not None:
            return "error", None
        values, passed, errors, has_skips = [], True, False, False
        for score in self.scores.values():
            value = score.value
            if value is not None:
                values.append(value)
                if score.passed is not True:
                    passed = False
            elif score.status == "error":
                errors = True
            elif score.reason not in SKIPPED_BY_DESIGN:
                has_skips = True
        if errors and passed:
            return "unscored", None
        if not values or (has_skips and passed and self.skipped != "ignore"):
            return "skipped", None
        # The sum of two numbers is rounded once, as `fsum` does.
        total = fsum(values) if len(values) > 2 else sum(values)
        return ("passed" if passed else "failed"), total / len(values)


# A result with its position in the plan and its verdict.
PositionedResult = tuple[int, EvalResult, Verdict]
