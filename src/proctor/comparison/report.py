"""The report of a run whose configurations stand side by side, and its fields one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from proctor.comparison.compare import compare
from proctor.comparison.ranking import Ranked, rank
from proctor.comparison.sides import Numbers, Reading, Side, Table, by_sample, is_time, side_of
from proctor.comparison.totals import at, scale_in
from proctor.comparison.verdicts import WORTH
from proctor.errors import ConfigError, FieldMissing, nearest
from proctor.records.comparison import Comparison, Ranking, also_known_as
from proctor.records.fields.path import compiled
from proctor.records.fields.view import result_of
from proctor.records.report import EvalReport
from proctor.records.rubric import TOTAL_SCORE
from proctor.records.score import NOT_ASKED, Score, combine_all, parts_of
from proctor.records.trial import EvalResult

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


ByConfiguration = dict[str, list[Reading]]


class _Readings(NamedTuple):
    """The numbers of fields and scores, by name and configuration."""

    fields: dict[str, ByConfiguration]
    scores: dict[str, ByConfiguration]


class FieldReport(EvalReport):
    """A report whose results are looked at field by field and configuration by configuration."""

    @classmethod
    def of(cls, report: EvalReport) -> FieldReport:
        """The same report, with what can be asked of fields and configurations besides."""
        if isinstance(report, cls):
            return report
        return cls(report.results, report.metadata, report.metrics, report.by_configuration)

    @property
    def passed(self) -> bool:
        """True if every trial got a verdict and passed.

        A skipped trial did not pass, unless the run ignores skips and another trial passed. A
        selected field that no result has leaves a question open, so the report does not pass.
        """
        counts = self.counts
        ignored = counts.skipped
        if ignored and (self.metadata is None or self.metadata.options.skipped != "ignore"):
            # Scores that are left out by design are not missing.
            page = self.results.page(outcome="skipped", limit=counts.skipped)
            ignored = sum(result.score.reason in NOT_ASKED for result in page)
        is_passed = counts.passed > 0 and counts.passed + ignored == counts.total
        return is_passed and not self.missing_fields

    @cached_property
    def missing_fields(self) -> dict[str, FieldMissing]:
        """The selected fields that no successful result has, by name, with what is missing."""
        ways = {n: compiled(p) for n, p in self.metadata.fields.items()} if self.metadata else {}
        missing: dict[str, FieldMissing] = {}
        for result in self.results if ways else ():
            if not result.success:
                continue
            whole = self._whole(result)
            for name, way in list(ways.items()):
                try:
                    if not _was_there(result.scores.get(name)):
                        way.find(whole)
                    del ways[name]
                except FieldMissing as error:
                    missing.setdefault(name, error)
            if not ways:
                break
        return {name: error for name, error in missing.items() if name in ways}

    @cached_property
    def configurations(self) -> tuple[str, ...]:
        """The names of the configurations."""
        if self.metadata is None:
            return tuple(dict.fromkeys(result.trial.configuration for result in self.results))
        return tuple(one.name for one in self.metadata.configurations)

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
        return FieldResults({field: FieldResult(field, tuple(s)) for field, s in held.items()})

    def compare(
        self,
        a: str,
        b: str,
        *,
        metrics: Sequence[str] | None = None,
        better: Mapping[str, bool | None] | None = None,
        worth: float = WORTH,
    ) -> Comparison:
        """What configuration `a` is beside `b`: what passed, scores, fields, times and costs.

        Deltas are a minus b, percentages of b. `metrics` narrows it to some, `better` says which
        way a field is better where its name does not tell, and less than `worth` is no difference
        worth the name.
        """
        return compare(self.side(a), self.side(b), metrics=metrics, better=better, worth=worth)

    def side(self, configuration: str | None = None, name: str | None = None) -> Side:
        """One configuration as a side of a comparison; the only one, if none is named."""
        which = configuration if configuration is not None else self._only_configuration()
        if which not in self.configurations:
            raise ConfigError(
                f"there is no configuration {which!r} in this run", fix=nearest(which, self.configurations)
            )
        selected = self.metadata.fields if self.metadata else {}
        return side_of(
            name or which,
            self.results.only(which),
            self.metadata,
            fields=_table(self._readings.fields, which),
            # The evaluators that a field's score is made of lie in the results themselves.
            scores=_table(self._readings.scores, which) if selected else None,
        )

    def _only_configuration(self) -> str:
        if len(self.configurations) == 1:
            return self.configurations[0]
        if not self.configurations:
            raise ConfigError("the report has no results, and so nothing to compare")
        raise ConfigError(
            f"run {self.run_id} has {len(self.configurations)} configurations",
            fix=f"name one of: {', '.join(self.configurations)}",
        )

    def rank_by(self, field: str, order: str = "asc") -> Ranking:
        """The configurations in order of a field, a path, a metric, or an evaluator's score.

        "asc" has the lowest first. Ties go by name; those without a number come last.
        """
        return rank(field, order, self.ranked(field))

    def ranked(self, field: str) -> dict[str, Ranked]:
        """The numbers that the configurations are ranked by."""
        readings = self._fields_and_scores(field)
        if readings is None:
            sides = {name: self.side(name) for name in self.configurations}
            found = {name: side.find(field) for name, side in sides.items()}
            if any(numbers is not None for numbers in found.values()):
                run = self.run_id if is_time(field, *sides.values()) else ""
                told = {name: self._told(field, numbers or {}) for name, numbers in found.items()}
                return {name: _found(sides[name], told[name], run) for name in sides}
            readings = self._by_any_path(field)
        if not _has_numbers(readings) and any(readings.values()):
            raise ConfigError(
                f"the field {field!r} has no numbers to rank by",
                fix=f"rank by one of: {', '.join(self._names)}",
            )
        sides = {name: side_of(name, self.results.only(name), self.metadata) for name in readings}
        run = self.run_id if is_time(field, *sides.values()) else ""
        return {name: _ranked(held, sides[name].clusters, run) for name, held in readings.items()}

    def _told(self, metric: str, numbers: Numbers) -> Numbers:
        """Numbers as people know them: totals of rubrics on their scale."""
        ends = scale_in(self.metadata)
        if ends is None or TOTAL_SCORE not in also_known_as(metric):
            return numbers
        return {sample: at(share, ends) for sample, share in numbers.items()}

    def _fields_and_scores(self, name: str) -> ByConfiguration | None:
        if not self.metadata or not self.metadata.fields:
            return None
        return self._readings.fields.get(name) or self._readings.scores.get(name)

    def _by_any_path(self, path: str) -> ByConfiguration:
        """The readings at a path that was not selected; who meant another name is told which."""
        try:
            return self._by_path(path)
        except FieldMissing as missing:
            known = self._names
            fix = f"{nearest(path, known)}; {missing.fix}" if missing.fix else nearest(path, known)
            raise FieldMissing(missing.what, where=missing.where, fix=fix) from None

    @property
    def _names(self) -> list[str]:
        """What samples have numbers of."""
        return list(dict.fromkeys(n for c in self.configurations for n in self.side(c).names))

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
    def _readings(self) -> _Readings:
        """The selected fields and all scores, in one pass; none where no field was selected."""
        selected = self.metadata.fields if self.metadata else {}
        fields = {name: self._empty() for name in selected}
        scores: dict[str, ByConfiguration] = {}
        ways = {name: compiled(path) for name, path in selected.items()}
        for result in self.results if selected else ():
            where, whole = result.trial.configuration, self._whole(result)
            for name, way in ways.items():
                there = result.success and way.exists(whole)
                fields[name][where].append(_reading(result, way.find(whole) if there else None))
            for name, score in _every_score(result):
                # A field's own numbers are meant by its name; its score then is "name.score".
                held = scores.setdefault(f"{name}.score" if name in ways else name, self._empty())
                held[where].append(_reading(result, score.value))
        return _Readings(fields, scores)

    def _by_path(self, path: str) -> ByConfiguration:
        found, way = self._empty(), compiled(path)
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

    def _empty(self) -> ByConfiguration:
        return {name: [] for name in self.configurations}


def _was_there(score: Score | None) -> bool:
    """True if an evaluator saw the field: what is kept of an object may lack its properties."""
    return score is not None and any(part.ok for part in parts_of(score).values())


def _table(readings: Mapping[str, ByConfiguration], configuration: str) -> Table:
    held = {name: by_sample(each.get(configuration, ())) for name, each in readings.items()}
    return {name: numbers for name, numbers in held.items() if numbers}


def _ranked(readings: Sequence[Reading], clusters: dict[str, str] | None, run: str) -> Ranked:
    return Ranked(by_sample(readings), clusters, sum(one.value is None for one in readings), run)


def _found(side: Side, numbers: Numbers, run: str) -> Ranked:
    return Ranked(numbers, side.clusters, len(side.samples) - len(numbers), run)


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
