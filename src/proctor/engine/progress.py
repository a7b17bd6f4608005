"""The progress of a run: cheap counters, and events for callbacks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from proctor.core.clock import Clock
from proctor.core.isolation import outside_task
from proctor.engine.timeouts import WorkerSlot
from proctor.ports import ProgressCallback
from proctor.records.fields.view import field_values
from proctor.records.progress import EventKind, ProgressEvent, ProgressStatus
from proctor.records.score import Score
from proctor.records.trial import OUTCOMES, Outcome, Trial


class Progress:
    """The progress of a run: displays read it at any time, and callbacks receive events."""

    def __init__(
        self,
        run_id: str,
        clock: Clock,
        *,
        total: int | None,
        already_done: int = 0,
        evaluators: int = 1,
        configurations: Sequence[str] = (),
        fields: Mapping[str, str] | None = None,
        callbacks: Sequence[ProgressCallback] = (),
    ) -> None:
        self.run_id = run_id
        self.total = total
        self.resumed = already_done
        self.outcomes: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
        self.slots: list[WorkerSlot] = []
        self.warnings: list[str] = []
        # One entry for each output that ended at the token limit.
        self.truncated_outputs: list[None] = []
        self.stopping = False
        self.dropping = False
        self.notice = ""
        self.started = clock.monotonic()
        self._clock = clock
        self._fields = fields or {}
        self._callbacks = list(callbacks)
        self._failed_callbacks: set[int] = set()
        self.has_listeners = bool(callbacks)
        self._steps_per_trial = max(1, evaluators)
        self._steps = already_done * self._steps_per_trial
        self._percentage = 0.0
        self._started_configurations: set[str] = set()
        self._failed_configurations: set[str] = set()
        self._remaining = Counter(dict.fromkeys(configurations, (total or 0) // max(1, len(configurations))))

    @property
    def done(self) -> int:
        """The number of finished trials, including trials of earlier executions of the run."""
        return self.resumed + sum(self.outcomes.values())

    @property
    def seconds(self) -> float:
        """The duration of this execution in seconds."""
        return self._clock.monotonic() - self.started

    @property
    def rate(self) -> float | None:
        """The number of trials per second in this execution; None before the first."""
        finished = sum(self.outcomes.values())
        return finished / self.seconds if finished and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """The estimated remaining time in seconds; None if the total is unknown."""
        if self.total is None or not self.rate:
            return None
        return max(0.0, (self.total - self.done) / self.rate)

    def running(self) -> list[tuple[str, float]]:
        """Return the ids of running samples and their durations, the longest first."""
        now = self._clock.monotonic()
        jobs = [slot.job for slot in tuple(self.slots) if not slot.is_idle]
        active = [(job[1].id, now - job[4]) for job in jobs if job is not None]
        return sorted(active, key=lambda item: -item[1])

    def count(self, outcome: Outcome) -> None:
        self.outcomes[outcome] += 1

    def expect(self, evaluators: int) -> None:
        """Increase the number of evaluators per trial, if a trial has more than expected."""
        more = max(0, evaluators - self._steps_per_trial)
        self._steps_per_trial += more
        self._steps += self.resumed * more

    def start(self) -> None:
        if self.has_listeners:
            self._emit("start", "pending")

    def trial_start(self, configuration: str) -> None:
        """Report the first trial of each configuration."""
        if configuration not in self._started_configurations:
            self._started_configurations.add(configuration)
            self._emit("config_start", "running", configuration=configuration)

    def evaluator_start(self, trial: Trial, evaluator: str, field: str | None = None) -> None:
        self._emit("evaluator_start", "evaluating", **self._details(trial, field), evaluator=evaluator)

    def evaluator_end(self, trial: Trial, evaluator: str, score: Score, field: str | None = None) -> None:
        self._steps += 1
        values = {} if score.value is None else {evaluator: score.value}
        status: ProgressStatus = "failed" if score.status == "error" else "evaluating"
        self._emit(
            "evaluator_end",
            status,
            **self._details(trial, field),
            evaluator=evaluator,
            score=score,
            quality_metrics=values,
        )

    def trial_end(self, trial: Trial) -> None:
        name = trial.configuration
        if trial.error is not None:
            self._steps += self._steps_per_trial
            self._failed_configurations.add(name)
        self._remaining[name] -= 1
        if self.total is not None and self._remaining[name] == 0:
            self._end_configuration(name)

    def end(self, *, failed: bool) -> None:
        if not self.has_listeners:
            return
        for name in sorted(self._started_configurations):
            self._end_configuration(name)
        self._percentage = 100.0
        # A run in which every trial failed has no outcome.
        failed = failed or 0 < self.done == self.outcomes["error"]
        self._emit("end", "failed" if failed else "completed")

    def _end_configuration(self, name: str) -> None:
        self._started_configurations.discard(name)
        status: ProgressStatus = "failed" if name in self._failed_configurations else "completed"
        self._emit("config_end", status, configuration=name)

    def _emit(self, kind: EventKind, status: ProgressStatus, **details: Any) -> None:
        outcomes = self.outcomes
        if self.total:
            percentage = 100.0 * self._steps / (self.total * self._steps_per_trial)
            self._percentage = max(self._percentage, min(100.0, percentage))
        event = ProgressEvent(
            kind=kind,
            status=status,
            progress=self._percentage,
            timestamp=self._clock.now(),
            run_id=self.run_id,
            done=self.done,
            total=self.total,
            passed=outcomes["passed"],
            failed=outcomes["failed"],
            errors=outcomes["error"] + outcomes["unscored"],
            **details,
        )
        for number, callback in enumerate(self._callbacks):
            try:
                outside_task(callback, event)
            except Exception as error:
                # Warn once; a failing callback does not stop the run.
                if number not in self._failed_callbacks:
                    self._failed_callbacks.add(number)
                    self.warnings.append(f"a progress callback failed: {type(error).__name__}: {error}")

    def _details(self, trial: Trial, field: str | None) -> dict[str, Any]:
        details: dict[str, Any] = {
            "configuration": trial.configuration,
            "sample_id": trial.sample.id,
            "epoch": trial.epoch,
        }
        if self._fields:
            values, deltas = field_values(trial, self._fields)
            details |= {"current_field": field, "field_values": values, "deltas": deltas or None}
        return details
