"""Rubric scores of sessions as files: one per session as soon as it is scored, and a summary at the end."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.core.names import UniqueNames
from proctor.core.stats.descriptive import mean, mean_and_variance, quantile
from proctor.core.stats.intervals import clustered_mean_interval, find_cluster_problem, mean_interval
from proctor.ports import RunView
from proctor.records import codec
from proctor.records.formatting import format_count
from proctor.records.results import find_cluster, list_shared_clusters
from proctor.records.rubric import Column, Columns, Scale, compute_total, has_failed, is_partial
from proctor.records.score import Score
from proctor.records.trial import EvalResult
from proctor.reports import files, rubrics

MAX_STEPS, RANGES = 20, 10
MAX_FAILURE_TYPES, FAILURE_TYPE_LENGTH, OTHER = 20, 60, "other"
# Without a budget, a run counts only the calls of its results.
NOT_COUNTED = "calls of earlier sessions whose results were not finished"
MAX_NAME_LENGTH = 100
RESULT_SUFFIX, SUMMARY_FILE = "_result.json", "summary.json"
# The key in `details` for the absolute path of a session log.
SOURCE_PATH = "source_path"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class _Scores:
    def __init__(self) -> None:
        self.values = array("d")
        self._clusters: list[str] = []

    def add(self, value: float, cluster: str) -> None:
        self.values.append(value)
        self._clusters.append(cluster)

    def average(self) -> float | None:
        return _round(mean(self.values))

    def median(self) -> float | None:
        return _round(quantile(sorted(self.values), 0.5))

    def interval(self, scale: Scale) -> list[float] | None:
        """Return the 95% interval of the mean; None for fewer than two different values."""
        if len(set(self.values)) < 2:
            return None
        clusters = list_shared_clusters(self._clusters)
        bounds = mean_interval(self.values) if clusters is None else clustered_mean_interval(self.values, clusters)
        if bounds is None:
            return None
        return [rubrics.round_half_up(max(scale[0], bounds[0])), rubrics.round_half_up(min(scale[1], bounds[1]))]

    def cluster_details(self) -> dict[str, Any]:
        if list_shared_clusters(self._clusters) is None:
            return {}
        problem = find_cluster_problem(self._clusters)
        return {"clusters": len(set(self._clusters)), **({"no_interval": problem} if problem else {})}


class BatchSummary:
    """Summarizes a batch session by session; only numbers stay in memory."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._totals = _Scores()
        self._sessions = self._partial = self._skipped = 0
        self._scores = {column.name: _Scores() for column in columns.columns}
        self._failures: dict[str, dict[str, Any]] = {}
        self._judging = rubrics.JudgeUsage()

    def add(self, result: EvalResult) -> None:
        self._sessions += 1
        cluster = find_cluster(result)
        total = compute_total(result.scores, self._columns)
        if total is not None:
            self._totals.add(total.score, cluster)
            self._partial += is_partial(result.scores, self._columns)
        elif result.success and not has_failed(result.scores, self._columns):
            self._skipped += 1
        for column in self._columns.columns:
            score = rubrics.rubric_score(result, column)
            if score.value is None:
                self._add_failure(score, column, result.sample_id)
            else:
                low, high = column.scale
                self._scores[column.name].add(low + score.value * (high - low), cluster)
        self._judging += rubrics.judge_usage_of_result(result)

    def _add_failure(self, score: Score, column: Column, session_id: str) -> None:
        failure_type = _failure_type(score)
        if failure_type not in self._failures and len(self._failures) >= MAX_FAILURE_TYPES:
            failure_type = OTHER
        example = {"session_id": session_id, "rubric_id": column.rubric.id, "reason": score.reason}
        failure = self._failures.setdefault(failure_type, {"kind": failure_type, "count": 0, "example": example})
        failure["count"] += 1

    def summary(self) -> dict[str, Any]:
        """Return the content of the summary file."""
        variance = mean_and_variance(self._totals.values)
        return {
            "batch_summary": {
                "total_sessions": self._sessions,
                "average_score": self._totals.average(),
                "median_score": self._totals.median(),
                "std_deviation": None if variance is None else rubrics.round_half_up(math.sqrt(variance[1])),
                "score_distribution": self._distribution(),
            },
            "per_rubric_summary": {
                column.rubric.id: {
                    "name": column.rubric.name,
                    "average": self._scores[column.name].average(),
                    "median": self._scores[column.name].median(),
                }
                for column in self._columns.columns
            },
            "details": self._details(),
        }

    def _details(self) -> dict[str, Any]:
        low, high = self._columns.scale
        average = mean(self._totals.values)
        normalized = None if average is None else rubrics.round_half_up((average - low) / (high - low), 4)
        scored = len(self._totals.values)
        return {
            "rubrics_version": self._columns.version,
            "scale": [float(low), float(high)],
            "sessions_scored": scored,
            "sessions_not_scored": self._sessions - scored,
            **({"sessions_partly_scored": self._partial} if self._partial else {}),
            "average_interval": self._totals.interval(self._columns.scale),
            **self._totals.cluster_details(),
            "average_percentage": None if average is None else rubrics.percentage(average, high),
            "average_normalized": normalized,
            "confidence": 0.95,
            "per_rubric": {column.rubric.id: self._rubric_details(column) for column in self._columns.columns},
            "failures": sorted(self._failures.values(), key=lambda failure: -failure["count"]),
            "judging": self._judging.content(),
        }

    def _rubric_details(self, column: Column) -> dict[str, Any]:
        scores = self._scores[column.name]
        return {
            "scored": len(scores.values),
            "not_scored": self._sessions - len(scores.values),
            "interval": scores.interval(column.scale),
            "weight": column.rubric.weight,
            "scale": [float(end) for end in column.scale],
        }

    def _distribution(self) -> dict[str, int]:
        """Count sessions by score, including sessions without a total."""
        low, high = self._columns.scale
        if float(low).is_integer() and float(high).is_integer() and high - low <= MAX_STEPS:
            counts = {str(step): 0 for step in range(int(low), int(high) + 1)}
            for total in self._totals.values:
                counts[str(int(rubrics.round_half_up(total, 0)))] += 1
        else:
            counts = _count_in_ranges(self._totals.values, low, high)
        failed = self._sessions - len(self._totals.values) - self._skipped
        unscored = {rubrics.FAILED: failed, rubrics.SKIPPED: self._skipped}
        return counts | {status: number for status, number in unscored.items() if number}


def _failure_type(score: Score) -> str:
    """Return the judge's error type, or the beginning of the reason."""
    judge = score.details.get("judge")
    error = judge.get("error") if isinstance(judge, dict) else None
    if isinstance(error, str):
        return error
    return score.status if score.status == "skipped" else score.reason[:FAILURE_TYPE_LENGTH]


def _count_in_ranges(totals: Iterable[float], low: float, high: float) -> dict[str, int]:
    """Count totals in ranges of equal width; each range but the last excludes its end."""
    labels = _format_distinctly([low + (high - low) * step / RANGES for step in range(RANGES + 1)])
    names = [f"{labels[step]}-{labels[step + 1]}" for step in range(RANGES)]
    counts = dict.fromkeys(names, 0)
    for total in totals:
        # The mean of three values of 70 is slightly below 70.
        step = int(rubrics.round_half_up((total - low) / (high - low) * RANGES, 9))
        counts[names[min(max(step, 0), RANGES - 1)]] += 1
    return counts


def _format_distinctly(numbers: Sequence[float]) -> list[str]:
    """Format numbers with enough digits to make them different."""
    texts: list[str] = []
    for digits in range(6, 18):
        texts = [f"{number:.{digits}g}" for number in numbers]
        if len(set(texts)) == len(numbers):
            break
    return texts


def _round(number: float | None) -> float | None:
    return None if number is None else rubrics.round_half_up(number)


def resumed_details(details: dict[str, Any], resumed: int) -> dict[str, Any]:
    """Return the additional details of a batch that earlier executions scored in part."""
    has_uncounted_calls = "spent" not in details and details["judging"].get("from_history")
    return {"sessions_from_before": resumed, **({"not_in_judging": NOT_COUNTED} if has_uncounted_calls else {})}


def add_run_details(content: dict[str, Any], report: EvalReport) -> dict[str, Any]:
    """Add the run's id, spending and warnings to the details of a result or summary."""
    run = report.metadata
    if run is None:
        return content
    details: dict[str, Any] = {"run_id": run.run_id}
    if run.spent is not None:
        details["spent"] = codec.to_plain(run.spent)
    if run.warnings:
        details["warnings"] = list(run.warnings)
    return {**content, "details": {**details, **content["details"]}}


class FileNames:
    """File names made from session ids: safe on every system and unique."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        # Some file systems ignore case.
        self._unique_names = UniqueNames("_", key=str.casefold)

    def make_unique(self, session_id: str) -> str:
        """Return the name for an id; the same id always has the same name."""
        if session_id not in self._names:
            name = _UNSAFE.sub("_", session_id).strip("._-")
            if len(name) > MAX_NAME_LENGTH:
                name = f"{name[:MAX_NAME_LENGTH]}_{codec.digest(session_id)[:8]}"
            self._names[session_id] = self._unique_names.make_unique(name or "session")
        return self._names[session_id]


class ResultFiles:
    """The result files of a batch in a folder; the summary exists only when the batch is complete.

    Pass `names` filled in the order of the sessions, so that a resumed batch finds its files again.
    `sessions` is the path that the sessions were read from.
    """

    def __init__(
        self, folder: Path, columns: Columns, names: FileNames | None = None, sessions: Path | None = None
    ) -> None:
        self._folder = folder
        self._columns = columns
        self._sessions = sessions
        self._names = names or FileNames()
        self._written: set[str] = set()
        self._run_id, self._resumed = "", 0
        self._earlier_runs = {name: details.get("run_id") for name, details in _read_details(folder)}
        self.scored = self.failed = 0

    def set_run(self, view: RunView) -> None:
        """Remember the run that the results belong to."""
        self._run_id, self._resumed = view.run_id, view.resumed

    def name(self, session_id: str) -> str:
        return self._names.make_unique(session_id) + RESULT_SUFFIX

    def add_result(self, result: EvalResult) -> None:
        """Write the result of one session."""
        if not self._written:
            # An older summary describes other results.
            (self._folder / SUMMARY_FILE).unlink(missing_ok=True)
        content = self._write(result)["summary"]
        self.scored += content["total_score"] is not None
        self.failed += content.get("rubrics_failed", 0)

    def describe_progress(self, _outcomes: Any = None) -> list[str]:
        return [f"{self.scored} scored", f"{format_count(self.failed, 'rubric')} failed"]

    def finish(self, report: EvalReport) -> dict[str, Any]:
        """Write the remaining results and the summary; return the summary."""
        batch = BatchSummary(self._columns)
        changed_names: dict[str, str] = {}
        for result in report.results:
            batch.add(result)
            name = self.name(result.sample_id)
            if name not in self._written:
                self._write(result)
            if name != result.sample_id + RESULT_SUFFIX:
                changed_names[result.sample_id] = name
        summary = add_run_details(batch.summary(), report)
        details = summary["details"]
        if self._resumed:
            details |= resumed_details(details, self._resumed)
        if changed_names:
            details["file_names"] = changed_names
        write_json(self._folder / SUMMARY_FILE, summary)
        return summary

    def foreign_files(self) -> list[str]:
        """Return the result files in the folder that do not belong to this batch."""
        names = (path.name for path in self._folder.glob(f"*{RESULT_SUFFIX}"))
        return sorted(name for name in names if name not in self._written)

    def overwritten_runs(self) -> list[str]:
        """Return the other runs whose results in the folder were overwritten."""
        runs = {run_id for name, run_id in self._earlier_runs.items() if name in self._written}
        return sorted(str(run_id) for run_id in runs if run_id and run_id != self._run_id)

    def __len__(self) -> int:
        return len(self._written)

    def _write(self, result: EvalResult) -> dict[str, Any]:
        name, content = self.name(result.sample_id), rubrics.session_result(result, self._columns)
        if self._sessions is not None:
            content = add_source_path(content, self._sessions)
        if self._run_id:
            content["details"] = {"run_id": self._run_id, **content["details"]}
        write_json(self._folder / name, content)
        self._written.add(name)
        return content


def find_foreign_result(folder: Path, sessions: Path) -> str:
    """Return the name of a result in a folder that belongs to sessions from another path; empty if there is none."""
    for name, details in _read_details(folder):
        source = details.get("source")
        if isinstance(source, str):
            path = details.get(SOURCE_PATH)
            # Results of other programs may have no path.
            path = path if isinstance(path, str) else source
            if not is_from(path, sessions):
                return f"{name} of {source if os.path.realpath(source) == path else path}"
    return ""


def add_source_path(content: dict[str, Any], sessions: Path) -> dict[str, Any]:
    """Add the absolute path of the session log to the details of a result."""
    details = content["details"]
    source = details.get("source")
    if source is None:
        return content
    # A stored source is relative to the working directory of the earlier execution.
    path = os.path.realpath(source if is_from(source, sessions) else sessions)
    return {**content, "details": {"source": source, SOURCE_PATH: path, **details}}


def is_from(source: str, sessions: Path) -> bool:
    """Return whether a log, with or without a line number, is the file `sessions` or lies in that folder."""
    path, root = os.path.realpath(source), os.path.realpath(sessions)
    return path == root or path.startswith((root.rstrip(os.sep) + os.sep, f"{root}:"))


def _read_details(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(folder.glob(f"*{RESULT_SUFFIX}")):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            content = json.loads(path.read_bytes())
            details = content.get("details") if isinstance(content, dict) else None
            if isinstance(details, dict):
                yield path.name, details


def write_json(path: Path, content: Any) -> None:
    files.write_file(path, [codec.encode_pretty(content), b"\n"])
