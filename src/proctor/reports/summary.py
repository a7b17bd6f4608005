"""What every report says first, whoever reads it: the verdict, the failures, the errors."""

from __future__ import annotations

from collections.abc import Mapping

from proctor.records.metric import MetricValue
from proctor.records.report import EvalReport
from proctor.records.rubric import TOTAL_SCORE, columns_in
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult
from proctor.reports.format import count, interval, percent

EXAMPLES_LOOKED_AT = 200
EVALUATION_FAILED = "evaluation failed (no verdict)"


def headlines(report: EvalReport) -> list[str]:
    """The run in one sentence, or one for each configuration: they are not to be mixed.

    >>> headlines(EvalReport([]))
    ['No results']
    """
    tables = report.by_configuration
    if len(tables) < 2:
        return [*_by_rubrics(report), headline(report)]
    parts = {name: EvalReport(report.results.only(name), None, tables[name]) for name in tables}
    return [f"{name}: {headline(part)}" for name, part in parts.items()]


def _by_rubrics(report: EvalReport) -> list[str]:
    """What sessions came to that were scored by rubrics: nobody asked whether they pass."""
    columns, total = columns_in(report.metadata), report.metrics.get(TOTAL_SCORE)
    if not columns.columns or total is None or total.value is None:
        return []
    span = f" (95 % interval {interval(total)})" if total.interval else ""
    over = count(total.n, "session")
    lack = f"; {partial(total)}" if total.partial else ""
    return [f"Scored {total.value:.2f} of {columns.scale[1]:g} on average over {over}{span}{lack}"]


def partial(metric: MetricValue) -> str:
    """How many of a metric's values lack a part, in words.

    >>> partial(MetricValue(4.5, 80, partial=36))
    '36 of 80 totals lack a rubric without a score'
    """
    return f"{metric.partial:,} of {metric.n:,} totals lack a rubric without a score"


def headline(report: EvalReport) -> str:
    """The run in one sentence, errors and skips always beside the pass rate.

    >>> headline(EvalReport([]))
    'No results'
    """
    counts, rate = report.counts, report.pass_rate
    if not counts.total:
        return "No results"
    parts = ["No result has a verdict"]
    if rate is not None:
        metric = report.metrics.get("pass_rate")
        known = metric is not None and metric.interval is not None
        span = f", 95 % interval {interval(metric).removesuffix(' %')}" if metric and known else ""
        judged = counts.passed + counts.failed
        # The denominator is named where it is not all results.
        of = f"{judged:,}" if judged == counts.total else f"{judged:,} judged"
        parts = [f"{counts.passed:,} of {of} passed ({percent(rate)}{span})"]
    if report.errors:
        parts.append(count(report.errors, "error"))
    if counts.skipped:
        parts.append(f"{counts.skipped:,} skipped")
    return ", ".join(parts)


def status(report: EvalReport, run: RunMetadata) -> str:
    """How a run stands that did not come to its end; empty if it did."""
    if run.status == "completed":
        return ""
    if run.total:
        return f"{run.status}, with {report.total:,} of {run.total:,} results"
    return f"{run.status}, with {count(report.total, 'result')}"


def early(run: RunMetadata) -> str:
    """After how many trials a run was settled, and how; empty if it was not stopped early."""
    if (stopped := run.stopped_early) is None:
        return ""
    whole = "" if stopped.of is None else f" of {stopped.of:,}"
    return f"stopped early after {stopped.after:,}{whole}: {stopped.reason}"


def samples(run: RunMetadata) -> str:
    """How many samples the run is about, and of how many if it was limited."""
    whole = count(run.dataset.length or 0, "sample")
    limit = run.options.limit
    if limit is None or run.dataset.length is None or limit >= run.dataset.length:
        return whole
    if run.options.shuffle is not None:
        return f"{limit:,} of {whole}, drawn with seed {run.options.shuffle}"
    return f"the first {limit:,} of {whole}"


def failures(report: EvalReport, limit: int) -> list[EvalResult]:
    """The worst results: those that failed, lowest score first; then, if there is room, errors.

    Failures come first because errors are told by kind elsewhere, and a hundred time-outs would
    hide the answers that were wrong.
    """
    found = list(report.results.page(outcome="failed", limit=limit)) if limit else []
    if len(found) < limit:
        found += report.results.page(outcome="unscored", limit=limit - len(found))
    if len(found) < limit:
        found += report.results.page(outcome="error", limit=limit - len(found))
    return found


def error_kinds(report: EvalReport) -> dict[str, int]:
    """How often each kind of error happened, evaluators that failed included."""
    kinds = report.results.error_kinds()
    unscored = report.counts.unscored
    return {**kinds, EVALUATION_FAILED: unscored} if unscored else kinds


def error_examples(report: EvalReport) -> dict[str, str]:
    """One example of each kind of error: which sample, and what was said."""
    found: dict[str, str] = {}
    for outcome in ("error", "unscored"):
        for result in report.results.page(outcome=outcome, limit=EXAMPLES_LOOKED_AT):
            failure = result.trial.error
            kind = EVALUATION_FAILED if failure is None else failure.kind
            said = result.score.reason if failure is None else failure.message
            found.setdefault(kind, f"{result.sample_id}: {said}")
    return found


def label(result: EvalResult, several: bool) -> str:
    """What to call a result: its sample, and configuration and epoch where there are several."""
    trial = result.trial
    parts = [result.sample_id]
    if several:
        parts.append(f"configuration {trial.configuration}")
    if trial.epoch:
        parts.append(f"repeat {trial.epoch + 1}")
    return ", ".join(parts)


def verdict(result: EvalResult) -> str:
    """The score of a result, or that there is none."""
    outcome, value = result.verdict()
    return outcome if value is None else f"score {value:.2f}"


def distributions(metrics: Mapping[str, MetricValue]) -> dict[str, dict[str, MetricValue]]:
    """The percentiles of scores by evaluator, taken from their flattened names.

    >>> distributions({"exact.p50": MetricValue(1.0, 3, kind="quantile")})["exact"]["p50"].value
    1.0
    """
    found: dict[str, dict[str, MetricValue]] = {}
    for name, metric in metrics.items():
        if is_distribution(metric):
            evaluator, _, percentile = name.rpartition(".")
            found.setdefault(evaluator, {})[percentile] = metric
    return found


def table_metrics(metrics: Mapping[str, MetricValue]) -> dict[str, MetricValue]:
    """The metrics that a table shows: not the percentiles of scores, nor what nobody measured."""
    return {
        name: metric
        for name, metric in metrics.items()
        if not is_distribution(metric) and (metric.n or not metric.unit)
    }


def essential(tables: Mapping[str, Mapping[str, MetricValue]]) -> dict[str, dict[str, MetricValue]]:
    """Metrics by configuration without those that only repeat another one.

    The mean of yes-or-no scores is their pass rate, the strict pass rate is the pass rate where
    nothing failed, and a success rate of 100 % goes without saying.
    """
    names = {name for metrics in tables.values() for name in metrics}
    needless = {name for name in names if all(_repeats(name, m) for m in tables.values())}
    return {
        configuration: {name: m for name, m in metrics.items() if name not in needless}
        for configuration, metrics in tables.items()
    }


def _repeats(name: str, metrics: Mapping[str, MetricValue]) -> bool:
    metric = metrics.get(name)
    if metric is None or name == "latency_ms.max":
        return True
    if name == "success_rate":
        return metric.value == 1.0
    stem, _, last = name.rpartition(".")
    twin = {"strict_pass_rate": "pass_rate", "mean_score": "pass_rate"}.get(name)
    if last in ("mean", "score"):
        twin = f"{stem}.pass_rate"
    elif f"{stem}.score" in metrics and last != "pass_rate":
        # A field with one evaluator has its score.
        twin = f"{stem}.score"
    other = metrics.get(twin or "")
    return other is not None and (other.value, other.n) == (metric.value, metric.n)


def notes(metrics: Mapping[str, MetricValue]) -> dict[str, str]:
    """What is noted of metrics, each note once, with the names of the metrics it is about.

    >>> notes({"a": MetricValue(0.5, 9, note="clustered"), "b": MetricValue(1.0, 9)})
    {'clustered': 'a'}
    """
    found: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        if metric.note:
            found.setdefault(metric.note, []).append(name)
        if metric.partial:
            found.setdefault(partial(metric), []).append(name)
    everything = sum(metric.interval is not None for metric in metrics.values())
    return {
        note: "all intervals" if 1 < len(names) >= everything else ", ".join(names)
        for note, names in found.items()
    }


def is_distribution(metric: MetricValue) -> bool:
    """True of a percentile of scores."""
    return metric.kind == "quantile" and not metric.unit
