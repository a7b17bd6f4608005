"""The scores of one field: in each trial, in each configuration, and over all of them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from proctor.errors import ConfigError, nearest
from proctor.records.score import NOT_ASKED, Score, combine_all

REASONS_SHOWN = 5


class FieldScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one field's evaluators said of one trial, and together."""

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
    """One field over all trials: it passed if it was judged and passed everywhere."""

    field: str
    scores: tuple[FieldScore, ...] = ()

    @property
    def passed(self) -> bool:
        """True if the field passed in every trial; a trial without a verdict did not pass."""
        judged = [one for one in self.scores if one.score.reason not in NOT_ASKED]
        return bool(judged) and all(one.passed is True for one in judged)

    @property
    def score(self) -> Score:
        """The field's score; over several trials all must pass, and the value is the mean.

        `details["parts"]` then holds the score of each trial, named by what tells them apart.
        """
        return self._over_trials([one.score for one in self.scores])

    @property
    def evaluators(self) -> dict[str, Score]:
        """The score of each evaluator; over several trials combined like the field's score."""
        names = dict.fromkeys(name for one in self.scores for name in one.evaluators)
        return {
            # Where the target failed no evaluator was asked.
            name: self._over_trials([one.evaluators.get(name, one.score) for one in self.scores])
            for name in names
        }

    @property
    def by_configuration(self) -> dict[str, FieldResult]:
        """The same field in each configuration, by its name."""
        return {name: self.of(name) for name in dict.fromkeys(s.configuration for s in self.scores)}

    def of(self, configuration: str) -> FieldResult:
        """The same field in one configuration."""
        held = tuple(one for one in self.scores if one.configuration == configuration)
        if not held:
            names = {one.configuration for one in self.scores}
            raise ConfigError(
                f"there is no configuration {configuration!r}", fix=nearest(configuration, names)
            )
        return FieldResult(self.field, held)

    def _over_trials(self, scores: Sequence[Score]) -> Score:
        if len(scores) == 1:
            return scores[0]
        if not scores:
            return Score.skipped("the run has no results")
        labelled = dict(zip(self._labels, scores, strict=True))
        together = combine_all(labelled)
        decisive = {n: s for n, s in labelled.items() if s.passed is not True} or labelled
        if len(decisive) <= REASONS_SHOWN:
            return together
        reasons = [f"{n}: {s.reason or 'did not pass'}" for n, s in decisive.items()]
        shown = "; ".join(reasons[:REASONS_SHOWN])
        reason = f"{shown}; … and {len(reasons) - REASONS_SHOWN} more"
        return msgspec.structs.replace(together, reason=reason)

    @property
    def _labels(self) -> list[str]:
        """A name for each trial: its configuration, with sample and epoch where they differ."""
        several_samples = len({one.sample_id for one in self.scores}) > 1
        several_epochs = len({one.epoch for one in self.scores}) > 1
        return [
            one.configuration
            + (f", sample {one.sample_id}" if several_samples else "")
            + (f", epoch {one.epoch}" if several_epochs else "")
            for one in self.scores
        ]


class FieldResults(dict[str, FieldResult]):
    """The results of all fields by name; a name that is not there comes with the nearest one."""

    def __missing__(self, field: str) -> FieldResult:
        raise KeyError(f"no field {field!r} was evaluated; {nearest(str(field), self)}")
