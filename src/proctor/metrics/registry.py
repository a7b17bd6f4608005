"""The metrics of a run by name, and how they are computed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from proctor.core.identity import get_callable_name
from proctor.errors import EvaluatorError, suggest_name
from proctor.metrics.builtin import (
    PERCENTILES,
    CostMetric,
    JudgesMetric,
    LatencyMetric,
    MeanScoreMetric,
    PassKMetric,
    PassRateMetric,
    ScoreDistributionMetric,
    StrictPassRateMetric,
    SuccessRateMetric,
    TokensMetric,
)
from proctor.metrics.estimates import FIELD_PREFIX, FieldsMetric
from proctor.records.metric import Metric, MetricValue
from proctor.records.numbers import is_number
from proctor.records.results import Results
from proctor.records.run import EvaluatorSpec

# The name of a metric, a metric, or a function of the results.
MetricLike = str | Metric | Callable[[Results], Any]


class FunctionMetric:
    """A metric made from a function of the results."""

    def __init__(self, function: Callable[[Results], Any]) -> None:
        self.name = get_callable_name(function)
        self.compute = function


class MetricRegistry:
    """The metrics to compute over results, by name: the built-in metrics, unless others are passed.

    >>> from proctor.records.results import ResultList
    >>> registry = MetricRegistry()
    >>> def silent(results):
    ...     return sum(not result.output for result in results)
    >>> registry.register(silent)
    >>> registry.compute_all(ResultList([]))["silent"].value
    0.0
    """

    def __init__(self, metrics: Iterable[Metric | Callable[[Results], Any]] | None = None) -> None:
        self._metrics: dict[str, Metric] = {}
        for metric in _make_builtins() if metrics is None else metrics:
            self.register(metric)

    @classmethod
    def standard(cls, evaluator_names: Iterable[str] = (), fields: Iterable[str] = ()) -> MetricRegistry:
        """Return the metrics of every run: rates, mean scores, percentiles, latency, tokens and cost.

        The metrics of a field's evaluators have a prefix, such as `field.tokens.pass_rate`, because a
        field may have the name of a metric.

        >>> MetricRegistry.standard(["exact_match"]).get("exact_match.pass_rate").name
        'exact_match.pass_rate'
        """
        evaluators: list[tuple[str, str | None]] = [(name, None) for name in evaluator_names]
        evaluators += [(name, f"{FIELD_PREFIX}.{name}") for name in fields]
        return cls(_make_builtins(evaluators))

    @classmethod
    def of_run(cls, evaluators: Iterable[EvaluatorSpec], fields: Mapping[str, str], epochs: int = 1) -> MetricRegistry:
        """Return the metrics of a run with these evaluators, these fields by name, and this number of epochs."""
        specs = list(evaluators)
        evaluated = [spec.name for spec in specs if spec.uses == FIELD_PREFIX]
        registry = cls.standard([spec.name for spec in specs if spec.uses != FIELD_PREFIX], evaluated)
        for rule in ("all", "any") if epochs > 1 else ():
            registry.register(PassKMetric(rule, epochs))
            for name in [spec.name for spec in specs]:
                label = f"{FIELD_PREFIX}.{name}" if name in evaluated else None
                registry.register(PassKMetric(rule, epochs, name, label))
        if fields:
            registry.register(FieldsMetric(fields, evaluated))
            for spec in specs:
                _require_free_names(spec)
        return registry

    def register(self, metric: Metric | Callable[[Results], Any]) -> None:
        """Add a metric: an object with `name` and `compute`, or a function of the results."""
        checked = to_metric(metric)
        if checked.name in self._metrics:
            raise EvaluatorError(
                f"two metrics are called {checked.name!r}",
                where=checked.name,
                fix="rename one of the metrics, or the evaluator it is about",
            )
        self._metrics[checked.name] = checked

    def find_owners(self, name: str) -> list[Metric]:
        """Return the metrics that may return a number with this name, such as latency_ms for latency_ms.p95."""
        owners = [owner for owner in self._metrics if f"{name}.".startswith(f"{owner}.")]
        return [self._metrics[owner] for owner in sorted(owners, key=len, reverse=True)]

    def get(self, name: str) -> Metric:
        """Return the metric with this name."""
        if name not in self._metrics:
            raise EvaluatorError(f"unknown metric {name!r}", where=name, fix=suggest_name(name, self._metrics))
        return self._metrics[name]

    def compute_all(self, results: Results) -> dict[str, MetricValue]:
        """Compute every metric over the results; a metric with several numbers is flattened as `name.p50`.

        A metric that fails, or returns something that is not a number, has no value and a note with
        the reason; it does not affect other metrics.
        """
        computed: dict[str, MetricValue] = {}
        owners: dict[str, str] = {}
        for name, metric in self._metrics.items():
            for flat, value in compute_metric(metric, results).items():
                if flat in owners:
                    raise EvaluatorError(
                        f"the metrics {owners[flat]!r} and {name!r} both return {flat!r}",
                        where=flat,
                        fix="rename one of the metrics, or the evaluator it is about",
                    )
                owners[flat] = name
                computed[flat] = value
        return computed


def _make_builtins(evaluators: Iterable[tuple[str, str | None]] = ()) -> Iterator[Metric]:
    yield from (PassRateMetric(), StrictPassRateMetric(), SuccessRateMetric(), MeanScoreMetric())
    for name, label in evaluators:
        yield from (PassRateMetric(name, label), MeanScoreMetric(name, label), ScoreDistributionMetric(name, label))
    yield from (LatencyMetric(), TokensMetric(), CostMetric(), JudgesMetric())


def is_metric(value: Any) -> bool:
    """True for an object or class with `compute`, and for a function of the results."""
    if callable(getattr(value, "compute", None)):
        return not callable(getattr(value, "evaluate", None))
    if not inspect.isfunction(value):
        return False
    parameters = [*inspect.signature(value).parameters.values()]
    required = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    return required == ["results"] and parameters[0].name == "results"


def make_metric(value: Any, where: str) -> Any:
    """Make a metric from the object at an address; a class is called without arguments."""
    if not isinstance(value, type):
        return value
    try:
        return value()
    except TypeError as error:
        raise EvaluatorError(
            f"the metric cannot be made: {error}",
            where=where,
            fix="a metric class is called without arguments; name an instance instead",
        ) from None


def _require_free_names(spec: EvaluatorSpec) -> None:
    """Raise an error for a field's evaluator with the same name as a field metric."""
    for part in spec.parameters.get("evaluators", ()) if spec.uses == FIELD_PREFIX else ():
        if part["name"] in ("pass_rate", "score", *(f"p{percent}" for percent in PERCENTILES)):
            raise EvaluatorError(
                f"the evaluator {part['name']!r} of the field {spec.name!r} has the name of a metric of the field",
                where=f"{FIELD_PREFIX}.{spec.name}.{part['name']}",
                fix="choose another name: attach(…, name=…), or `name:` in an eval file",
            )


def to_metric(value: Any) -> Metric:
    """Make a metric from a registered object or function; raise an error if it is neither."""
    if isinstance(value, type):
        raise EvaluatorError(f"{value.__name__} is a class, not a metric", fix=f"register {value.__name__}(…)")
    metric = value if callable(getattr(value, "compute", None)) else None
    if metric is None and callable(value):
        metric = FunctionMetric(value)
    if metric is None:
        raise EvaluatorError(
            f"{value!r} is not a metric",
            fix="pass an object with `name` and `compute(results)`, or a function of the results",
        )
    name = getattr(metric, "name", None)
    if not isinstance(name, str) or not name:
        raise EvaluatorError(f"{type(value).__name__} has no name", fix="add a `name`, as a string")
    if inspect.iscoroutinefunction(metric.compute):
        raise EvaluatorError("a metric cannot be async", where=name, fix="use def instead of async def")
    return metric  # type: ignore[no-any-return]


def compute_metric(metric: Metric, results: Results) -> dict[str, MetricValue]:
    """Compute the values of one metric by flattened name, without raising an exception."""
    name = metric.name
    try:
        output = metric.compute(results)
        if isinstance(output, Mapping):
            flat = {f"{name}.{key}": _to_value(part, results) for key, part in output.items()}
            return flat or {name: MetricValue(None, 0, note="the metric returned no numbers")}
        return {name: _to_value(output, results)}
    except Exception as error:
        return {name: MetricValue(None, 0, note=f"the metric failed: {type(error).__name__}: {error}")}


def _to_value(output: Any, results: Results) -> MetricValue:
    value = output if isinstance(output, MetricValue) else MetricValue(output, len(results))
    parts = [part for part in (value.value, *(value.interval or ())) if part is not None]
    wrong = [part for part in parts if not is_number(part)]
    if wrong:
        return MetricValue(None, 0, note=f"the metric returned {wrong[0]!r}, which is not a finite number")
    number = None if value.value is None else float(value.value)
    return msgspec.structs.replace(value, value=number)
