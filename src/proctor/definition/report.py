"""The report of a definition: its fields, configurations side by side, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec

from proctor.comparison.deltas import Comparison, compare
from proctor.comparison.ranking import Ranking, rank
from proctor.comparison.readings import Reading
from proctor.errors import ConfigError, FieldMissing, nearest
from proctor.fields.path import compiled
from proctor.fields.view import result_of
from proctor.records.report import EvalReport
from proctor.records.score import Score, parts_of
from proctor.records.trial import EvalResult

ByConfiguration = dict[str, list[Reading]]


class FieldScore(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one field's evaluators said of one trial, and together."""

    sample_id: str
    configuration: str
    epoch: int
    score: Score
    evaluators: dict[str, Score] = {}

    @property
    def passed(self) -> bool:
        """True if the field passed in this trial."""
        return self.score.passed


class FieldResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One field over all trials: it passed if it was judged and passed everywhere."""

    field: str
    scores: tuple[FieldScore, ...] = ()

    @property
    def passed(self) -> bool:
        """True if no trial failed or stayed without a verdict, and at least one passed."""
        told = [one.score for one in self.scores if one.score.status != "skipped"]
        return bool(told) and all(score.passed for score in told)

    @property
    def score(self) -> Score:
        """The score, where there is only one trial."""
        if len(self.scores) == 1:
            return self.scores[0].score
        raise ConfigError(
            f"the field {self.field!r} has {len(self.scores)} scores, one for each trial",
            fix="look at .scores, or at one configuration with .of(name)",
        )

    @property
    def evaluators(self) -> dict[str, Score]:
        """What each evaluator said, where there is only one trial."""
        return self.scores[0].evaluators if len(self.scores) == 1 else {}

    def of(self, configuration: str) -> FieldResult:
        """The same field in one configuration."""
        held = tuple(one for one in self.scores if one.configuration == configuration)
        if not held:
            names = {one.configuration for one in self.scores}
            raise ConfigError(
                f"there is no configuration {configuration!r}", fix=nearest(configuration, names)
            )
        return FieldResult(self.field, held)


class FieldReport(EvalReport):
    """A report whose results are looked at field by field and configuration by configuration."""

    @classmethod
    def of(cls, report: EvalReport) -> FieldReport:
        """The same report, with what a definition's report can do besides."""
        return cls(report.results, report.metadata, report.metrics, report.by_configuration)

    @property
    def passed(self) -> bool:
        """True if every trial got a verdict and passed; what was skipped does not count."""
        counts = self.counts
        return counts.passed > 0 and counts.passed + counts.skipped == counts.total

    @property
    def configurations(self) -> tuple[str, ...]:
        """The names of the configurations."""
        run = self.metadata
        return () if run is None else tuple(one.name for one in run.configurations)

    @cached_property
    def field_results(self) -> Mapping[str, FieldResult]:
        """What the evaluators said, by field; of a trial that failed, that it did."""
        names = [spec.name for spec in self.metadata.evaluators] if self.metadata else []
        held: dict[str, list[FieldScore]] = {name: [] for name in names}
        for result in self.results:
            failed = Score.error(str(result.trial.error)) if result.trial.error else None
            for field in names:
                score = failed or result.scores.get(field)
                if score is not None:
                    held[field].append(_field_score(result, score))
        return {field: FieldResult(field, tuple(scores)) for field, scores in held.items()}

    def compare(self, a: str, b: str) -> Comparison:
        """What configuration `a` is beside `b`: fields and scores, with intervals of 95 %.

        Deltas are a minus b, percentages of b.
        """
        for name in (a, b):
            self._refuse_unknown(name)
        fields = {name: held for name, held in self._fields.items() if _has_numbers(held)}
        return compare(a, b, fields, self._scores)

    def rank_by(self, field: str, order: str = "asc") -> Ranking:
        """The configurations in order of a field, a path, or an evaluator's score.

        "asc" has the lowest first. Ties go by name; those without a number come last.
        """
        readings = self._fields.get(field) or self._scores.get(field)
        readings = readings or self._by_any_path(field)
        if not _has_numbers(readings) and any(readings.values()):
            numeric = [name for name, held in self._fields.items() if _has_numbers(held)]
            raise ConfigError(
                f"the field {field!r} has no numbers to rank by",
                fix=f"rank by one of: {', '.join([*numeric, *self._scores])}",
            )
        return rank(field, order, readings)

    def _by_any_path(self, path: str) -> ByConfiguration:
        """The readings at a path that was not selected; who meant another name is told which."""
        try:
            return self._by_path(path)
        except FieldMissing as missing:
            known = [*self._fields, *self._scores]
            fix = f"{nearest(path, known)}; {missing.fix}" if missing.fix else nearest(path, known)
            raise FieldMissing(missing.what, where=missing.where, fix=fix) from None

    def rows(self) -> list[dict[str, Any]]:
        """One plain mapping for each trial, with its fields and scores: for a table or a plot."""
        fields = self.metadata.fields if self.metadata else {}
        return [_row(result, self._whole(result), fields) for result in self.results]

    def refuse_missing(self) -> None:
        """Raise `FieldMissing` if a trial has not all the fields that were selected."""
        for result in self.results:
            if result.success:
                whole = self._whole(result)
                for name, path in self.metadata.fields.items() if self.metadata else ():
                    if not _was_there(result.scores.get(name)):
                        compiled(path).find(whole)

    def _whole(self, result: EvalResult) -> dict[str, Any]:
        """Everything of a result, as its evaluators saw it: the configuration's options too."""
        whole = result_of(result.trial)
        whole["configuration"] |= self._options.get(result.trial.configuration, {})
        return whole

    @cached_property
    def _options(self) -> dict[str, dict[str, Any]]:
        run = self.metadata
        return {} if run is None else {one.name: one.options for one in run.configurations}

    @cached_property
    def _fields(self) -> dict[str, ByConfiguration]:
        selected = self.metadata.fields if self.metadata else {}
        return {name: self._by_path(path) for name, path in selected.items()}

    @cached_property
    def _scores(self) -> dict[str, ByConfiguration]:
        held: dict[str, ByConfiguration] = {}
        for result in self.results:
            for name, score in _every_score(result):
                by_name = held.setdefault(name, {one: [] for one in self.configurations})
                by_name[result.trial.configuration].append(_reading(result, score.value))
        selected = self.metadata.fields if self.metadata else {}
        # A field's own numbers are meant by its name; its score then is "name.score".
        return {f"{name}.score" if name in selected else name: v for name, v in held.items()}

    def _by_path(self, path: str) -> ByConfiguration:
        found: ByConfiguration = {name: [] for name in self.configurations}
        way = compiled(path)
        seen, missing = False, None
        for result in self.results:
            value = None
            if result.success:
                try:
                    value, seen = way.find(self._whole(result)), True
                except FieldMissing as error:
                    missing = error
            found[result.trial.configuration].append(_reading(result, value))
        if missing is not None and not seen:
            raise missing
        return found

    def _refuse_unknown(self, configuration: str) -> None:
        if configuration not in self.configurations:
            raise ConfigError(
                f"there is no configuration {configuration!r} in this run",
                fix=nearest(configuration, self.configurations),
            )


def _was_there(score: Score | None) -> bool:
    """True if an evaluator saw the field: what is kept of an object may lack its properties."""
    return score is not None and any(part.ok for part in parts_of(score).values())


def _has_numbers(readings: ByConfiguration) -> bool:
    return any(one.value is not None for held in readings.values() for one in held)


def _reading(result: EvalResult, value: Any) -> Reading:
    return Reading.of(result.sample_id, result.trial.epoch, value)


def _field_score(result: EvalResult, score: Score) -> FieldScore:
    trial = result.trial
    return FieldScore(result.sample_id, trial.configuration, trial.epoch, score, parts_of(score))


def _every_score(result: EvalResult) -> Iterator[tuple[str, Score]]:
    """The scores of a result, and those they were made of."""
    for name, score in result.scores.items():
        yield name, score
        for part, one in parts_of(score).items():
            yield f"{name}.{part}", one


def _row(result: EvalResult, whole: Mapping[str, Any], fields: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "sample_id": result.sample_id,
        "configuration": result.trial.configuration,
        "epoch": result.trial.epoch,
        "outcome": result.outcome,
    }
    for name, path in fields.items():
        way = compiled(path)
        row[name] = way.find(whole) if result.success and way.exists(whole) else None
    return row | {f"{name}.score": score.value for name, score in result.scores.items()}
