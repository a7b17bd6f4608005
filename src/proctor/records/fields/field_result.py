"""The scores of one field over the trials of a run."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from proctor.errors import ConfigError, suggest_name
from proctor.records.score import SKIPPED_BY_DESIGN, Score, combine_all

MAX_REASONS = 5


class FieldScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The score of one field in one trial, and the scores of its evaluators."""

    sample_id: str
    configuration: str
    epoch: int
    score: Score
    evaluators: dict[str, Score] = {}

    @property
    def passed(self) -> bool | None:
        """True if the field passed in this trial; None if it was skipped or got an error."""
        return self.score.passed


class FieldResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One field over all trials; it passed if every trial has a verdict and passed."""

    field: str
    scores: tuple[FieldScore, ...] = ()

    @property
    def passed(self) -> bool:
        """True if the field passed in every trial; a trial without a verdict did not pass."""
        scored_trials = [trial for trial in self.scores if trial.score.reason not in SKIPPED_BY_DESIGN]
        return bool(scored_trials) and all(trial.passed is True for trial in scored_trials)

    @property
    def score(self) -> Score:
        """The field's score; over several trials all must pass, and the value is the mean.

        `details["parts"]` then holds the score of each trial, with a label for the differences between them.
        """
        return self._combine([trial.score for trial in self.scores])

    @property
    def evaluators(self) -> dict[str, Score]:
        """The score of each evaluator; over several trials combined like the field's score."""
        names = dict.fromkeys(name for trial in self.scores for name in trial.evaluators)
        return {
            # A trial whose target failed has no scores of evaluators.
            name: self._combine([trial.evaluators.get(name, trial.score) for trial in self.scores])
            for name in names
        }

    @property
    def by_configuration(self) -> dict[str, FieldResult]:
        """The same field in each configuration, by its name."""
        return {name: self.for_configuration(name) for name in dict.fromkeys(s.configuration for s in self.scores)}

    def for_configuration(self, configuration: str) -> FieldResult:
        """Return the same field in one configuration."""
        scores = tuple(trial for trial in self.scores if trial.configuration == configuration)
        if not scores:
            names = {trial.configuration for trial in self.scores}
            raise ConfigError(f"unknown configuration {configuration!r}", fix=suggest_name(configuration, names))
        return FieldResult(self.field, scores)

    def _combine(self, scores: Sequence[Score]) -> Score:
        if len(scores) == 1:
            return scores[0]
        if not scores:
            return Score.skipped("the run has no results")
        by_label = dict(zip(self._labels, scores, strict=True))
        combined = combine_all(by_label)
        decisive = {n: s for n, s in by_label.items() if s.passed is not True} or by_label
        if len(decisive) <= MAX_REASONS:
            return combined
        reasons = [f"{n}: {s.reason or 'did not pass'}" for n, s in decisive.items()]
        reason = f"{'; '.join(reasons[:MAX_REASONS])}; … and {len(reasons) - MAX_REASONS} more"
        return msgspec.structs.replace(combined, reason=reason)

    @property
    def _labels(self) -> list[str]:
        """A label for each trial: its configuration, with sample and epoch if they differ."""
        has_samples = len({trial.sample_id for trial in self.scores}) > 1
        has_epochs = len({trial.epoch for trial in self.scores}) > 1
        return [
            trial.configuration
            + (f", sample {trial.sample_id}" if has_samples else "")
            + (f", epoch {trial.epoch + 1}" if has_epochs else "")
            for trial in self.scores
        ]


class FieldResults(dict[str, FieldResult]):
    """The results of all fields by name; an unknown name raises an error with a suggestion."""

    def __missing__(self, field: str) -> FieldResult:
        raise KeyError(f"no field {field!r} was evaluated; {suggest_name(str(field), self)}")
