"""What one execution left behind: a trial, and a result once it is scored."""

from __future__ import annotations

from datetime import datetime
from math import fsum
from typing import Any, Literal

import msgspec

from proctor.records.sample import Sample
from proctor.records.score import NOT_ASKED, Score, Skipped, combine_all
from proctor.records.session import Session, Usage

DEFAULT_CONFIGURATION = "default"

Outcome = Literal["passed", "failed", "error", "unscored", "skipped"]
Verdict = tuple[Outcome, float | None]
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "error", "unscored", "skipped")


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A named set of options that reach the target as keyword arguments."""

    name: str = DEFAULT_CONFIGURATION
    options: dict[str, Any] = {}


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a target may return instead of the bare output: the output and what it cost.

    `session` and `latency_ms` are for targets that know better than the engine what happened and
    how long it took, such as recordings. With a `session`, an empty one included, the output is
    used as it is; without one, messages in the output become the session. `raw_output` is what
    the target returned, where `output` is only the last answer of it.

    >>> Reply("Paris", usage=Usage(input_tokens=12, output_tokens=1)).output
    'Paris'
    """

    output: Any
    usage: Usage | None = None
    session: Session | None = None
    latency_ms: float | None = None
    raw_output: Any = None


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why a trial has no output: the kind of error, its message, and where it was raised."""

    kind: str
    message: str
    traceback: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind


class Trial(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One execution of the target on one sample, in one configuration and epoch.

    `latency_ms` is None where nobody measured it, as for a request that no worker could answer.
    `session` is None where nothing was recorded; an empty session was recorded and had no events.
    `raw_output` is what the target returned, where that was a list of messages (or held one) and
    `output` is the last answer in it; else None.
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
    """How a result came from a worker: for which run and request, from whom, at which delivery."""

    run_id: str
    request_id: str
    worker: str = ""
    count: int = 1


class EvalResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One trial with its scores; `sessions` hold what evaluators asked of models, by their name.

    `delivery` is there if a worker ran the trial. `skipped` says what a skipped score means for
    the result: "skip" (it is skipped too, unless another score failed) or "ignore".
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
        """What the target gave."""
        return self.trial.output

    @property
    def latency_ms(self) -> float | None:
        """How long the target took, measured for failures too; None if nobody could."""
        return self.trial.latency_ms

    @property
    def error(self) -> str | None:
        """Why there is no output, or None."""
        return None if self.trial.error is None else str(self.trial.error)

    @property
    def success(self) -> bool:
        """True if the target gave an output."""
        return self.trial.error is None

    @property
    def judging(self) -> Usage | None:
        """What its evaluators used of models, or None if they told nothing."""
        total = sum((session.usage for session in self.sessions.values()), Usage())
        return None if total == Usage() else total

    @property
    def score(self) -> Score:
        """The one score of this result: its only one, or all of them combined (all must pass)."""
        if self.trial.error is not None:
            return Score.error(str(self.trial.error))
        if not self.scores:
            return Score.skipped("no evaluator was given")
        if len(self.scores) == 1:
            return next(iter(self.scores.values()))
        return combine_all(self.scores, self.skipped)

    @property
    def passed(self) -> bool:
        """True if the target gave an output and every evaluator passed it."""
        return self.outcome == "passed"

    @property
    def outcome(self) -> Outcome:
        """How it came out, in one word."""
        return self.verdict()[0]

    def verdict(self) -> Verdict:
        """The outcome and the value of `score`, without building it."""
        if self.trial.error is not None:
            return "error", None
        values, passed, errors, unknown = [], True, False, False
        for score in self.scores.values():
            if score.value is not None:
                values.append(score.value)
                passed = passed and score.passed is True
            elif score.status == "error":
                errors = True
            elif score.reason not in NOT_ASKED:
                unknown = True
        if errors and passed:
            return "unscored", None
        if not values or (unknown and passed and self.skipped != "ignore"):
            return "skipped", None
        return ("passed" if passed else "failed"), fsum(values) / len(values)
