"""How far a run is: counters that cost nothing, and events for those who listen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from proctor.core.clock import Clock
from proctor.core.isolation import outside_task
from proctor.engine.limits import Slot
from proctor.ports import ProgressCallback
from proctor.records.fields.view import field_values
from proctor.records.progress import EventKind, ProgressEvent, ProgressStatus
from proctor.records.score import Score
from proctor.records.trial import OUTCOMES, Outcome, Trial


class Progress:
    """What a run has done so far. Displays read it when they like; callbacks are sent events."""

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
        self.outcomes: Counter[Outcome] = Counter(dict.fromkeys(OUTCOMES, 0))
        self.slots: list[Slot] = []
        self.warnings: list[str] = []
        # One entry for each output that was cut off at the token limit.
        self.cut_off: list[None] = []
        self.stopping = False
        self.dropping = False
        self.notice = ""
        self.started = clock.monotonic()
        self._clock = clock
        self._fields = fields or {}
        self._callbacks = list(callbacks)
        self._failed: set[int] = set()
        self.has_listeners = bool(callbacks)
        self._steps_a_trial = max(1, evaluators)
        self._steps = already_done * self._steps_a_trial
        self._highest = 0.0
        self._begun: set[str] = set()
        self._trials_failed: set[str] = set()
        self._left = Counter(dict.fromkeys(configurations, (total or 0) // max(1, len(configurations))))

    @property
    def done(self) -> int:
        """How many trials are finished, those of an earlier sitting included."""
        return self.resumed + sum(self.outcomes.values())

    @property
    def seconds(self) -> float:
        """How long this sitting has lasted."""
        return self._clock.monotonic() - self.started

    @property
    def rate(self) -> float | None:
        """Trials a second in this sitting, once there are some."""
        finished = sum(self.outcomes.values())
        return finished / self.seconds if finished and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        """About how long it will still take, if the length is known."""
        if self.total is None or not self.rate:
            return None
        return max(0.0, (self.total - self.done) / self.rate)

    def running(self) -> list[tuple[str, float]]:
        """Ids of the samples that are being run and for how long, the longest first."""
        now = self._clock.monotonic()
        jobs = [slot.job for slot in tuple(self.slots) if not slot.resting]
        active = [(job[1].id, now - job[4]) for job in jobs if job is not None]
        return sorted(active, key=lambda item: -item[1])

    def count(self, outcome: Outcome) -> None:
        """One more trial is finished."""
        self.outcomes[outcome] += 1

    def expect(self, evaluators: int) -> None:
        """Say how many evaluators speak in a trial, where that was not known at first."""
        more = max(0, evaluators - self._steps_a_trial)
        self._steps_a_trial += more
        self._steps += self.resumed * more

    def start(self) -> None:
        """The run begins."""
        if self.has_listeners:
            self._emit("start", "pending")

    def trial_start(self, configuration: str) -> None:
        """A trial begins; the first of a configuration begins it."""
        if configuration not in self._begun:
            self._begun.add(configuration)
            self._emit("config_start", "running", configuration=configuration)

    def evaluator_start(self, trial: Trial, evaluator: str, field: str | None = None) -> None:
        """An evaluator begins."""
        about = self._about(trial, field)
        self._emit("evaluator_start", "evaluating", **about, evaluator=evaluator)

    def evaluator_end(self, trial: Trial, evaluator: str, score: Score, field: str | None = None) -> None:
        """An evaluator has spoken."""
        self._steps += 1
        values = {} if score.value is None else {evaluator: score.value}
        status: ProgressStatus = "failed" if score.status == "error" else "evaluating"
        self._emit(
            "evaluator_end",
            status,
            **self._about(trial, field),
            evaluator=evaluator,
            score=score,
            quality_metrics=values,
        )

    def trial_end(self, trial: Trial) -> None:
        """A trial is finished; the last of a configuration ends it."""
        name = trial.configuration
        if trial.error is not None:
            self._steps += self._steps_a_trial
            self._trials_failed.add(name)
        self._left[name] -= 1
        if self.total is not None and self._left[name] == 0:
            self._end_configuration(name)

    def end(self, *, failed: bool) -> None:
        """The run is over: every configuration that began has ended."""
        if not self.has_listeners:
            return
        for name in sorted(self._begun):
            self._end_configuration(name)
        self._highest = 100.0
        # A run in which the target failed every time has run to its end, but has no outcome.
        failed = failed or 0 < self.done == self.outcomes["error"]
        self._emit("end", "failed" if failed else "completed")

    def _end_configuration(self, name: str) -> None:
        self._begun.discard(name)
        failed = name in self._trials_failed
        self._emit("config_end", "failed" if failed else "completed", configuration=name)

    def _percentage(self) -> float:
        if self.total:
            reached = 100.0 * self._steps / (self.total * self._steps_a_trial)
            self._highest = max(self._highest, min(100.0, reached))
        return self._highest

    def _emit(self, kind: EventKind, status: ProgressStatus, **about: Any) -> None:
        outcomes = self.outcomes
        event = ProgressEvent(
            kind=kind,
            status=status,
            progress=self._percentage(),
            timestamp=self._clock.now(),
            run_id=self.run_id,
            done=self.done,
            total=self.total,
            passed=outcomes["passed"],
            failed=outcomes["failed"],
            errors=outcomes["error"] + outcomes["unscored"],
            **about,
        )
        for number, callback in enumerate(self._callbacks):
            self._call(number, callback, event)

    def _call(self, number: int, callback: ProgressCallback, event: ProgressEvent) -> None:
        """A failing callback is reported once and does not stop the run."""
        try:
            outside_task(callback, event)
        except Exception as error:
            if number not in self._failed:
                self._failed.add(number)
                problem = f"{type(error).__name__}: {error}"
                self.warnings.append(f"a progress callback failed: {problem}")

    def _about(self, trial: Trial, field: str | None) -> dict[str, Any]:
        about: dict[str, Any] = {
            "configuration": trial.configuration,
            "sample_id": trial.sample.id,
            "epoch": trial.epoch,
        }
        if self._fields:
            values, deltas = field_values(trial, self._fields)
            about |= {"current_field": field, "field_values": values, "deltas": deltas or None}
        return about
