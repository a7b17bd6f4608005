"""Store the runs of other tools' files in the history, and compare the tools' numbers with Proctor's."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from proctor.comparison.report import EvalReport
from proctor.core.redaction.redact import Redaction
from proctor.datasets.record import Fingerprint
from proctor.engine.finish import summarize
from proctor.engine.redaction import add_redaction_counts, redact_metadata, redact_result
from proctor.interop.formats import list_files
from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.interop.run_builder import apply_pass_marks
from proctor.ports import History
from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue
from proctor.records.results import Counts, ResultList
from proctor.records.run import IMPORTED, DatasetInfo, EvaluatorSpec, Provenance, RunMetadata, RunOptions, TargetSpec
from proctor.records.sample import MAX_TAGS, Sample
from proctor.records.trial import EvalResult

DIGEST_DIGITS = 12
# The tool's number and Proctor's may differ by rounding to three decimals, or by this fraction.
TOLERANCE = 0.0005
# An evaluator cannot have the name of a metric or an empty name.
METRIC_NAMES = frozenset((
    "", "pass_rate", "strict_pass_rate", "success_rate", "mean_score", "latency_ms", "tokens", "cost", "judges",
    "field", "pass_hat_k", "pass_at_k", "total_score",
))  # fmt: skip


class ReportedNumber(msgspec.Struct, frozen=True):
    """A number that the tool reported, and the same number computed from the results; None if Proctor has none."""

    name: str
    reported: float
    computed: float | None = None
    n: int | None = None
    interval: tuple[float, float] | None = None
    differs: bool = False


class StoredImport(msgspec.Struct, frozen=True):
    """A run of a file; `new` is False if the history already had it, `stored` if the history does not have it.

    `total` is None for a run that did not finish, if the file does not say how many results were planned.
    """

    run_id: str
    name: str
    results: int
    total: int | None
    counts: Counts
    new: bool
    stored: bool
    numbers: tuple[ReportedNumber, ...] = ()
    warnings: tuple[str, ...] = ()


def store_file(
    imported: ImportedFile,
    path: Path,
    history: History | None,
    *,
    name: str | None = None,
    pass_marks: Mapping[str, float] | None = None,
) -> Iterator[StoredImport]:
    """Store the runs of a file that are not stored yet; without a history nothing is stored.

    The id of a run depends only on the content of the file and on the pass marks of its scores, so importing it again
    finds the same run.
    """
    if not imported.runs:
        return  # a dataset, which may be a folder
    imported = apply_pass_marks(imported, pass_marks or {})
    digest = _digest_content(imported.format, path, pass_marks)
    for number, run in enumerate(imported.runs, start=1):
        suffix = f"-{number}" if len(imported.runs) > 1 else ""
        run_id = f"{imported.format}-{digest}{suffix}"
        is_new = history is None or run_id not in history.stored_metrics([run_id])
        metadata, report = make_report(imported, run, run_id, path, name)
        if is_new and history is not None and report.total:
            with history.import_run(metadata) as importer:
                for position, result in enumerate(report.results):
                    importer.add(position, result)
                importer.finish(report.metrics, report.by_configuration)
        yield StoredImport(
            run_id,
            metadata.name,
            report.total,
            metadata.total,
            report.counts,
            is_new,
            history is not None and bool(report.total),
            tuple(compare_numbers(run, report)),
            metadata.warnings,
        )


def _digest_content(format_name: str, path: Path, pass_marks: Mapping[str, float] | None) -> str:
    digests = []
    for part in list_files(path, format_name):
        with part.open("rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    if pass_marks:
        digests += [f"{name}={mark!r}" for name, mark in sorted(pass_marks.items())]
    content = digests[0] if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()
    return content[:DIGEST_DIGITS]


def make_report(
    imported: ImportedFile, run: ImportedRun, run_id: str, path: Path, name: str | None = None
) -> tuple[RunMetadata, EvalReport]:
    """Return the metadata and the report of an imported run, with metrics computed from its results."""
    warnings = list(imported.warnings)
    redaction = Redaction()
    results = [redact_result(_rename_scores(result), redaction) for result in _sort_results(run, warnings)]
    started_at = run.started_at or datetime.fromtimestamp(path.stat().st_mtime, UTC)
    finished_at = run.finished_at or (started_at if run.status == "completed" else None)
    total = len(results) if run.total is None and run.status == "completed" else run.total
    is_partial = total is not None and total > len(results)
    if is_partial:
        count = f"{len(results):,} of {total:,} results"
        warnings.append(f"the file has {count}: the numbers of the whole run may differ")
    elif run.status != "completed":
        count = format_count(len(results), "result")
        detail = f"and the file has {count} of an unknown number" if total is None else f"but the file has all {count}"
        warnings.append(f"the run did not finish, {detail}")
    metadata = RunMetadata(
        run_id,
        name or run.name or imported.format,
        started_at,
        "interrupted" if is_partial and run.status == "completed" else run.status,
        finished_at,
        max(0.0, (finished_at - started_at).total_seconds()) if finished_at else 0.0,
        None if total is None else max(total, len(results)),
        _describe_dataset(imported, run, path, results),
        TargetSpec(str(run.details.get("target") or imported.format), IMPORTED),
        run.configurations,
        tuple(_list_evaluators(imported, run, results)),
        RunOptions(epochs=max((result.trial.epoch + 1 for result in results), default=1), skipped="ignore"),
        {IMPORTED: imported.format, **dict(list(run.tags.items())[: MAX_TAGS - 1])},
        warnings=tuple(warnings),
        provenance=Provenance(packages={imported.format: imported.version} if imported.version else {}),
    )
    metadata = add_redaction_counts(redact_metadata(metadata), redaction)
    metadata, table, by_configuration = summarize(ResultList(results), metadata)
    # A check that only some samples have is not missing on the others.
    prefixes = [f"{name} skipped " for name in _list_partial_names(results)]
    # The reader has said why a score has no value.
    known = {text.partition(": ")[0] for text in imported.warnings}
    prefixes += [f"{name} {text} " for name in known for text in ("gave no verdict", "failed on")]
    texts = [text for text in metadata.warnings if not text.startswith(tuple(prefixes))]
    report = EvalReport(results, metadata, table, by_configuration)
    texts += _describe_differences(imported.format, run, report)
    metadata = msgspec.structs.replace(metadata, warnings=tuple(texts))
    return metadata, dataclasses.replace(report, metadata=metadata)


def _list_partial_names(results: Sequence[EvalResult]) -> set[str]:
    """Return the names of the scores that some results with an output do not have."""
    scored = [set(result.scores) for result in results if result.success]
    names: set[str] = set().union(*scored)
    return {name for name in names if not all(name in scores for scores in scored)}


def _sort_results(run: ImportedRun, warnings: list[str]) -> list[EvalResult]:
    """Return the results by sample, configuration and epoch; a trial that occurs twice becomes a further epoch."""
    samples: dict[str, int] = {}
    configurations = {configuration.name: index for index, configuration in enumerate(run.configurations)}
    results: dict[tuple[int, int, int], EvalResult] = {}
    repeats = 0
    for result in run.results:
        sample = samples.setdefault(result.sample_id, len(samples))
        epoch = result.trial.epoch
        group = (sample, configurations[result.trial.configuration])
        while (*group, epoch) in results:
            epoch += 1
        if epoch != result.trial.epoch:
            repeats += 1
            result = msgspec.structs.replace(result, trial=msgspec.structs.replace(result.trial, epoch=epoch))
        results[*group, epoch] = result
    if repeats:
        warnings.append(f"trials that the file contains twice, stored as further epochs: {repeats:,}")
    return [results[key] for key in sorted(results)]


def _rename(name: str) -> str:
    return f"{name} score".lstrip() if name in METRIC_NAMES else name


def _rename_scores(result: EvalResult) -> EvalResult:
    if METRIC_NAMES.isdisjoint(result.scores):
        return result
    scores = {_rename(name): score for name, score in result.scores.items()}
    return msgspec.structs.replace(result, scores=scores)


def _describe_dataset(
    imported: ImportedFile, run: ImportedRun, path: Path, results: Sequence[EvalResult]
) -> DatasetInfo:
    samples: dict[str, Sample[Any, Any]] = {}
    fingerprint = Fingerprint()
    for result in results:
        if result.sample_id not in samples:
            samples[result.sample_id] = result.trial.sample
            fingerprint.add(result.trial.sample)
    details = {"format": imported.format, "reported": run.reported}
    details |= {key: value for key, value in run.details.items() if key not in ("dataset", "target", "evaluators")}
    name = str(run.details.get("dataset") or path.name)
    return DatasetInfo(name, str(path), len(samples), fingerprint.hexdigest(), details)


def _list_evaluators(
    imported: ImportedFile, run: ImportedRun, results: Sequence[EvalResult]
) -> Iterator[EvaluatorSpec]:
    parameters = run.details.get("evaluators", {})
    for name in dict.fromkeys(name for result in results for name in result.scores):
        options = dict(parameters.get(name.removesuffix(" score"), {}) or parameters.get(name, {}))
        if name in run.graded:
            # The same score may decide in another run, which is then not comparable.
            options["passes"] = "with the other scores"
        yield EvaluatorSpec(name, f"{IMPORTED}:{imported.format}", options)


def compare_numbers(run: ImportedRun, report: EvalReport) -> Iterator[ReportedNumber]:
    """Yield the tool's numbers with Proctor's; they are not expected to agree if the file has only some results."""
    is_complete = run.total is None or run.total <= report.counts.total
    for name, reported in run.reported.items():
        metric = _find_number(name, report)
        if metric is None or metric.value is None:
            yield ReportedNumber(name, reported)
            continue
        tolerance = TOLERANCE * max(1.0, abs(reported))
        differs = is_complete and abs(metric.value - reported) > tolerance
        yield ReportedNumber(name, reported, metric.value, metric.n, metric.interval, differs)


def _describe_differences(tool: str, run: ImportedRun, report: EvalReport) -> Iterator[str]:
    """Yield a warning for each number that differs from the tool's, with the reason as far as it is known."""
    undecided = report.counts.unscored + report.counts.skipped
    for number in compare_numbers(run, report):
        if not number.differs:
            continue
        reason = "the reason is unknown: compare the results with the file"
        if number.name in ("passed", "failed") and undecided:
            count = format_count(undecided, "result")
            reason = f"{count} without a verdict here, because an evaluator failed or gave no value; {tool} counts it"
        elif _is_mean_of_samples(number, report):
            reason = (
                f"{tool} takes the mean of each sample first, and some epochs have no score; "
                "Proctor takes the mean of all scores"
            )
        elif errors := _count_errors_as_zero(number, report):
            reason = f"{tool} counts {format_count(errors, 'error')} as 0, and Proctor leaves out errors"
        yield f"{number.name} is {number.reported:.6g} in {tool} and {number.computed:.6g} here: {reason}"


def _group_values(name: str, report: EvalReport) -> dict[str, list[float]]:
    """Return the values of a score by sample; `name` is that of its mean."""
    values: dict[str, list[float]] = {}
    score_name = _rename(name.rpartition(".")[0])
    for result in report.results:
        if score_name in result.scores and (value := result.scores[score_name].value) is not None:
            values.setdefault(result.sample_id, []).append(value)
    return values


def _is_mean_of_samples(number: ReportedNumber, report: EvalReport) -> bool:
    groups = _group_values(number.name, report).values()
    means = [sum(group) / len(group) for group in groups]
    has_epochs = any(len(group) > 1 for group in groups)
    return has_epochs and abs(sum(means) / len(means) - number.reported) <= TOLERANCE


def _count_errors_as_zero(number: ReportedNumber, report: EvalReport) -> int:
    """Return the number of errors of an evaluator if they explain the difference, else 0."""
    name = _rename(number.name.rpartition(".")[0])
    values = [value for group in _group_values(number.name, report).values() for value in group]
    errors = sum(name in r.scores and r.scores[name].status == "error" for r in report.results)
    total = len(values) + errors
    return errors if total and abs(sum(values) / total - number.reported) <= TOLERANCE else 0


def _find_number(name: str, report: EvalReport) -> MetricValue | None:
    counts, metrics = report.counts, report.metrics
    totals: Mapping[str, int] = {"passed": counts.passed, "failed": counts.failed, "errors": counts.error}
    if name in totals:
        return MetricValue(totals[name], counts.total, kind="count")
    if name == "tokens":
        parts = [metrics[key] for key in ("tokens.total", "judges.tokens") if key in metrics]
        return MetricValue(sum(part.value or 0 for part in parts), counts.total, kind="count")
    base, _, last = name.rpartition(".")
    mean = metrics.get(f"{_rename(base)}.mean")
    if last == "sum" and mean is not None:
        return MetricValue((mean.value or 0) * mean.n, mean.n)
    if last in ("accuracy", "mean") and mean is not None:
        return mean
    return metrics.get(name)
