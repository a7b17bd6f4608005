"""The metrics of a run by name, and what becomes of whatever a metric gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from proctor.core.identity import name_of
from proctor.errors import EvaluatorError, nearest
from proctor.metrics.builtin import (
    PERCENTILES,
    CostMetric,
    JudgesMetric,
    LatencyMetric,
    MeanScoreMetric,
    PassRateMetric,
    ScoreDistributionMetric,
    StrictPassRateMetric,
    SuccessRateMetric,
    TokensMetric,
)
from proctor.metrics.estimates import FIELD, FieldsMetric
from proctor.ports import Metric
from proctor.records.metric import MetricValue
from proctor.records.numbers import is_number
from proctor.records.results import Results
from proctor.records.run import EvaluatorSpec


class FunctionMetric:
    """A plain function of the results, as a metric that bears its name."""

    def __init__(self, function: Callable[[Results], Any]) -> None:
        self.name = name_of(function)
        self.compute = function


class MetricRegistry:
    """The metrics to compute over results, each under its own name.

    >>> from proctor.records.results import ResultList
    >>> registry = MetricRegistry()
    >>> def silent(results):
    ...     return sum(not result.output for result in results)
    >>> registry.register(silent)
    >>> registry.compute_all(ResultList([]))["silent"].value
    0.0
    """

    def __init__(self, metrics: Iterable[Metric | Callable[[Results], Any]] = ()) -> None:
        self._metrics: dict[str, Metric] = {}
        for metric in metrics:
            self.register(metric)

    @classmethod
    def standard(cls, evaluator_names: Iterable[str] = (), fields: Iterable[str] = ()) -> MetricRegistry:
        """The metrics every run has: rates, mean scores, their spread, latency, tokens and cost.

        Those of a field's evaluators are called `field.tokens.pass_rate` and so on, for a field
        may be called as a metric is.

        >>> MetricRegistry.standard(["exact_match"]).get("exact_match.pass_rate").name
        'exact_match.pass_rate'
        """
        registry = cls([PassRateMetric(), StrictPassRateMetric(), SuccessRateMetric()])
        registry.register(MeanScoreMetric())
        named: list[tuple[str, str | None]] = [(name, None) for name in evaluator_names]
        named += [(name, f"{FIELD}.{name}") for name in fields]
        for name, label in named:
            registry.register(PassRateMetric(name, label))
            registry.register(MeanScoreMetric(name, label))
            registry.register(ScoreDistributionMetric(name, label))
        registry.register(LatencyMetric())
        registry.register(TokensMetric())
        registry.register(CostMetric())
        registry.register(JudgesMetric())
        return registry

    @classmethod
    def of_run(cls, evaluators: Iterable[EvaluatorSpec], fields: Mapping[str, str]) -> MetricRegistry:
        """The metrics of a run with these evaluators, and these fields by name."""
        specs = list(evaluators)
        evaluated = [spec.name for spec in specs if spec.uses == FIELD]
        registry = cls.standard([spec.name for spec in specs if spec.uses != FIELD], evaluated)
        if fields:
            registry.register(FieldsMetric(fields, evaluated))
            for spec in specs:
                _refuse_metrics_name(spec)
        return registry

    def register(self, metric: Metric | Callable[[Results], Any]) -> None:
        """Add a metric: an object with `name` and `compute`, or a function of the results."""
        checked = _as_metric(metric)
        if checked.name in self._metrics:
            raise EvaluatorError(
                f"two metrics are called {checked.name!r}",
                where=checked.name,
                fix="rename one of the metrics, or the evaluator it is about",
            )
        self._metrics[checked.name] = checked

    def get(self, name: str) -> Metric:
        """The metric of this name."""
        if name not in self._metrics:
            raise EvaluatorError(f"there is no metric {name!r}", where=name, fix=nearest(name, self._metrics))
        return self._metrics[name]

    def compute_all(self, results: Results) -> dict[str, MetricValue]:
        """Every metric over the results; several numbers of one are flattened as `name.p50`.

        A metric that fails, or gives something that is not a number, has no value and a note
        that says why; the others are not touched by it.
        """
        computed: dict[str, MetricValue] = {}
        owners: dict[str, str] = {}
        for name, metric in self._metrics.items():
            for flat, value in _computed(metric, results).items():
                if flat in owners:
                    raise EvaluatorError(
                        f"the metrics {owners[flat]!r} and {name!r} both give {flat!r}",
                        where=flat,
                        fix="rename one of the metrics, or the evaluator it is about",
                    )
                owners[flat] = name
                computed[flat] = value
        return computed


def is_metric(thing: Any) -> bool:
    """True for an object or class with `compute`, and for a function of the results.

    >>> is_metric(PassRateMetric), is_metric(lambda results: 0.0), is_metric(lambda output: True)
    (True, True, False)
    """
    if callable(getattr(thing, "compute", None)):
        return not callable(getattr(thing, "evaluate", None))
    if not inspect.isfunction(thing):
        return False
    parameters = [*inspect.signature(thing).parameters.values()]
    needed = [one for one in parameters if one.default is one.empty]
    return [one.name for one in needed] == ["results"] and parameters[0].name == "results"


def make_metric(thing: Any, where: str) -> Any:
    """A metric from what an address names; a class is made without arguments."""
    if not isinstance(thing, type):
        return thing
    try:
        return thing()
    except TypeError as error:
        raise EvaluatorError(
            f"the metric cannot be made: {error}",
            where=where,
            fix="a class is made without arguments; name an object that is ready instead",
        ) from None


def _refuse_metrics_name(spec: EvaluatorSpec) -> None:
    """An evaluator of a field must not be called what the field's own numbers are."""
    for part in spec.parameters.get("evaluators", ()) if spec.uses == FIELD else ():
        if part["name"] in ("pass_rate", "score", *(f"p{percent}" for percent in PERCENTILES)):
            raise EvaluatorError(
                f"the evaluator {part['name']!r} of the field {spec.name!r} is called what the "
                "field's own numbers are",
                where=f"{FIELD}.{spec.name}.{part['name']}",
                fix="give it another name: attach(…, name=…), or `name:` in an eval file",
            )


def _as_metric(given: Any) -> Metric:
    """What was registered, as a metric; or an error that says what is wrong with it."""
    if isinstance(given, type):
        raise EvaluatorError(
            f"{given.__name__} is a class, not a metric", fix=f"register {given.__name__}(…)"
        )
    metric = given if callable(getattr(given, "compute", None)) else None
    if metric is None and callable(given):
        metric = FunctionMetric(given)
    if metric is None:
        raise EvaluatorError(
            f"{given!r} is not a metric",
            fix="give an object with `name` and `compute(results)`, or a function of the results",
        )
    name = getattr(metric, "name", None)
    if not isinstance(name, str) or not name:
        raise EvaluatorError(f"{type(given).__name__} has no name", fix="give it a `name`, as a string")
    if inspect.iscoroutinefunction(metric.compute):
        raise EvaluatorError(
            "a metric cannot be async", where=name, fix="make its function a plain one (def)"
        )
    return metric  # type: ignore[no-any-return]


def _computed(metric: Metric, results: Results) -> dict[str, MetricValue]:
    """What one metric gives, by flattened name; never an exception."""
    name = metric.name
    try:
        given = metric.compute(results)
        if isinstance(given, Mapping):
            flat = {f"{name}.{key}": _as_value(part, results) for key, part in given.items()}
            return flat or {name: _without_value("the metric gave no numbers")}
        return {name: _as_value(given, results)}
    except Exception as error:
        return {name: _without_value(f"the metric failed: {type(error).__name__}: {error}")}


def _as_value(given: Any, results: Results) -> MetricValue:
    value = given if isinstance(given, MetricValue) else MetricValue(given, len(results))
    parts = [part for part in (value.value, *(value.interval or ())) if part is not None]
    wrong = [part for part in parts if not is_number(part)]
    if wrong:
        return _without_value(f"the metric gave {wrong[0]!r}, which is not a finite number")
    number = None if value.value is None else float(value.value)
    return msgspec.structs.replace(value, value=number)


def _without_value(note: str) -> MetricValue:
    return MetricValue(None, 0, note=note)
