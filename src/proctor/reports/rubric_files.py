"""Results of sessions as files: each as soon as its session is scored, and a summary at the end."""

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

from proctor.core.names import NamesApart
from proctor.core.stats.descriptive import mean, mean_and_variance, quantile
from proctor.core.stats.intervals import clustered_mean_interval, mean_interval, too_few_clusters
from proctor.ports import RunView
from proctor.records import codec
from proctor.records.report import EvalReport
from proctor.records.results import cluster_of, shared_clusters
from proctor.records.rubric import Column, Columns, Ends, columns_in, has_failed, is_partial, total_of
from proctor.records.score import Score
from proctor.records.trial import EvalResult
from proctor.reports import files
from proctor.reports.format import count
from proctor.reports.rubrics import (
    FAILED,
    SKIPPED,
    Judging,
    half_up,
    judging_of,
    percentage,
    score_in,
    session_result,
)

MOST_STEPS, RANGES = 20, 10
# Kinds of failures told apart, and how much of a reason makes a kind where nothing else does.
MOST_KINDS, KIND_WIDTH, OTHER = 20, 60, "other"
# Without a budget nobody adds up the calls of a run, only those of its results.
NOT_COUNTED = "what an earlier sitting paid for sessions that it did not finish"


class _Scores:
    """Scores of many sessions, and what each belongs to."""

    def __init__(self) -> None:
        self.values = array("d")
        self.clusters: list[str] = []

    def add(self, value: float, cluster: str) -> None:
        self.values.append(value)
        self.clusters.append(cluster)

    def interval(self, scale: Ends) -> list[float] | None:
        """Where the mean truly lies; fewer than two values, or equal ones, show no spread."""
        if len(set(self.values)) < 2:
            return None
        shared = shared_clusters(self.clusters)
        found = mean_interval(self.values) if shared is None else clustered_mean_interval(self.values, shared)
        if found is None:
            return None
        return [half_up(max(scale[0], found[0])), half_up(min(scale[1], found[1]))]

    def together(self) -> dict[str, Any]:
        """What is to be said of sessions that belong together; nothing if none do."""
        if shared_clusters(self.clusters) is None:
            return {}
        few = too_few_clusters(self.clusters)
        told: dict[str, Any] = {"clusters": len(set(self.clusters))}
        return {**told, "no_interval": few} if few else told


class _Failures:
    """Why rubrics were not scored: how often for each kind of reason, with its first example."""

    def __init__(self) -> None:
        self._kinds: dict[str, dict[str, Any]] = {}

    def add(self, score: Score, column: Column, session_id: str) -> None:
        kind = _kind(score)
        if kind not in self._kinds and len(self._kinds) >= MOST_KINDS:
            kind = OTHER
        example = {"session_id": session_id, "rubric_id": column.rubric.id, "reason": score.reason}
        self._kinds.setdefault(kind, {"kind": kind, "count": 0, "example": example})["count"] += 1

    def content(self) -> list[dict[str, Any]]:
        """The commonest first."""
        return sorted(self._kinds.values(), key=lambda kind: -kind["count"])


def _kind(score: Score) -> str:
    """What failures are counted by: the kind of error, else how the reason begins."""
    judge = score.details.get("judge")
    error = judge.get("error") if isinstance(judge, dict) else None
    if isinstance(error, str):
        return error
    return score.status if score.status == "skipped" else score.reason[:KIND_WIDTH]


class Tally:
    """What a batch comes to, one session after the other; only numbers are held."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._totals = _Scores()
        self._sessions = self._partial = self._skipped = 0
        self._scores = {column.name: _Scores() for column in columns.columns}
        self._failures = _Failures()
        self._judging = Judging()

    def add(self, result: EvalResult) -> None:
        """Count one session."""
        self._sessions += 1
        cluster = cluster_of(result)
        total = total_of(result.scores, self._columns)
        failed = has_failed(result.scores, self._columns)
        if total is not None:
            self._totals.add(total.score, cluster)
            self._partial += is_partial(result.scores, self._columns)
        elif result.success and not failed:
            self._skipped += 1
        for column in self._columns.columns:
            score = score_in(result, column)
            if score.value is None:
                self._failures.add(score, column, result.sample_id)
            else:
                low, high = column.scale
                self._scores[column.name].add(low + score.value * (high - low), cluster)
        self._judging += judging_of(result)

    def summary(self) -> dict[str, Any]:
        """The content of the summary file."""
        totals, spread = self._totals.values, mean_and_variance(self._totals.values)
        return {
            "batch_summary": {
                "total_sessions": self._sessions,
                "average_score": _half_up(mean(totals)),
                "median_score": _half_up(quantile(sorted(totals), 0.5)),
                "std_deviation": None if spread is None else half_up(math.sqrt(spread[1])),
                "score_distribution": self._distribution(),
            },
            "per_rubric_summary": {
                column.rubric.id: {
                    "name": column.rubric.name,
                    "average": _half_up(mean(values)),
                    "median": _half_up(quantile(sorted(values), 0.5)),
                }
                for column, values in self._columns_with_values()
            },
            "details": self._details(),
        }

    def _columns_with_values(self) -> Iterable[tuple[Column, Sequence[float]]]:
        return ((column, self._scores[column.name].values) for column in self._columns.columns)

    def _details(self) -> dict[str, Any]:
        low, high = self._columns.scale
        average = mean(self._totals.values)
        normalized = None if average is None else half_up((average - low) / (high - low), 4)
        scored = len(self._totals.values)
        return {
            "rubrics_version": self._columns.version,
            "scale": [float(low), float(high)],
            "sessions_scored": scored,
            "sessions_not_scored": self._sessions - scored,
            **({"sessions_partly_scored": self._partial} if self._partial else {}),
            "average_interval": self._totals.interval(self._columns.scale),
            **self._totals.together(),
            "average_percentage": None if average is None else percentage(average, high),
            "average_normalized": normalized,
            "confidence": 0.95,
            "per_rubric": {
                column.rubric.id: self._rubric_details(column) for column in self._columns.columns
            },
            "failures": self._failures.content(),
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
        """How many sessions came to which score; all of them, those without a total too."""
        low, high = self._columns.scale
        whole = float(low).is_integer() and float(high).is_integer()
        if whole and high - low <= MOST_STEPS:
            found = {str(step): 0 for step in range(int(low), int(high) + 1)}
            for total in self._totals.values:
                found[str(int(half_up(total, 0)))] += 1
        else:
            found = _in_ranges(self._totals.values, low, high)
        failed = self._sessions - len(self._totals.values) - self._skipped
        without = {FAILED: failed, SKIPPED: self._skipped}
        return found | {why: number for why, number in without.items() if number}


def _in_ranges(totals: Iterable[float], low: float, high: float) -> dict[str, int]:
    """Counted in ranges of equal width; the end of one belongs to the next, but the last."""
    ends = [low + (high - low) * step / RANGES for step in range(RANGES + 1)]
    told = _told_apart(ends)
    names = [f"{told[step]}-{told[step + 1]}" for step in range(RANGES)]
    found = dict.fromkeys(names, 0)
    for total in totals:
        # A mean of three times 70 is a hair below 70.
        step = int(half_up((total - low) / (high - low) * RANGES, 9))
        found[names[min(max(step, 0), RANGES - 1)]] += 1
    return found


def _told_apart(ends: Sequence[float]) -> list[str]:
    """Numbers with as many digits as it takes to tell them apart.

    >>> _told_apart([0.0, 12.5]), _told_apart([1000000.0, 1000000.5])
    (['0', '12.5'], ['1000000', '1000000.5'])
    """
    told: list[str] = []
    for digits in range(6, 18):
        told = [f"{end:.{digits}g}" for end in ends]
        if len(set(told)) == len(ends):
            break
    return told


def _half_up(number: float | None) -> float | None:
    return None if number is None else half_up(number)


def batch_summary(report: EvalReport) -> dict[str, Any]:
    """The content of the summary file of a run."""
    tally = Tally(columns_in(report.metadata))
    for result in report.results:
        tally.add(result)
    return with_run(tally.summary(), report)


def from_before(details: dict[str, Any], resumed: int) -> dict[str, Any]:
    """What is to be said of a batch of which so many sessions were scored in earlier sittings."""
    told: dict[str, Any] = {"sessions_from_before": resumed}
    if "spent" not in details and details["judging"].get("from_history"):
        told["not_in_judging"] = NOT_COUNTED
    return told


def with_run(content: dict[str, Any], report: EvalReport) -> dict[str, Any]:
    """A result or summary that names its run, and what that run warns of."""
    run = report.metadata
    if run is None:
        return content
    told: dict[str, Any] = {"run_id": run.run_id}
    if run.spent is not None:
        told["spent"] = codec.plain(run.spent)
    if run.warnings:
        told["warnings"] = list(run.warnings)
    return {**content, "details": {**told, **content["details"]}}


LONGEST_NAME = 100
ENDING, SUMMARY = "_result.json", "summary.json"
# Under which name of `details` a result tells the whole path of its log.
PLACE = "source_path"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Names:
    """File names made from session ids: safe everywhere, and no two alike.

    >>> names = Names()
    >>> names.of("../etc/passwd"), names.of("a b"), names.of("A_b"), names.of("")
    ('etc_passwd', 'a_b', 'A_b_2', 'session')
    >>> names.of("a b")
    'a_b'
    """

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        # To some disks capitals make no difference.
        self._apart = NamesApart("_", key=str.casefold)

    def of(self, session_id: str) -> str:
        """The name for an id, the same one every time."""
        if session_id not in self._given:
            plain = _UNSAFE.sub("_", session_id).strip("._-")
            if len(plain) > LONGEST_NAME:
                plain = f"{plain[:LONGEST_NAME]}_{codec.digest(session_id)[:8]}"
            self._given[session_id] = self._apart.of(plain or "session")
        return self._given[session_id]


class ResultFiles:
    """The files of a batch in a folder. A summary is there only when the batch is complete.

    Whoever knows the ids beforehand makes `names` of them in order: a resumed batch, which does
    the same, then finds its own files again. `begun` hears which run it is. `sessions` is where
    the sessions are from.
    """

    def __init__(
        self, folder: Path, columns: Columns, names: Names | None = None, sessions: Path | None = None
    ) -> None:
        self._folder = folder
        self._columns = columns
        self._sessions = sessions
        self._names = names or Names()
        self._written: set[str] = set()
        self._run_id, self._resumed = "", 0
        self._before = {name: told.get("run_id") for name, told in _details_in(folder)}
        self.scored = self.failed = 0

    def begun(self, view: RunView) -> None:
        """Take note of the run whose results these are."""
        self._run_id, self._resumed = view.run_id, view.resumed

    def name(self, session_id: str) -> str:
        """The name of a session's file."""
        return self._names.of(session_id) + ENDING

    def heard(self, result: EvalResult) -> None:
        """Write what one session came to."""
        if not self._written:
            # It would be that of other results.
            (self._folder / SUMMARY).unlink(missing_ok=True)
        content = self._write(result)["summary"]
        self.scored += content["total_score"] is not None
        self.failed += content.get("rubrics_failed", 0)

    def words(self, _outcomes: Any = None) -> list[str]:
        """How the batch goes."""
        return [f"{self.scored} scored", f"{count(self.failed, 'rubric')} failed"]

    def finish(self, report: EvalReport) -> dict[str, Any]:
        """Write what is not written yet, and the summary, which is given back."""
        tally = Tally(self._columns)
        others: dict[str, str] = {}
        for result in report.results:
            tally.add(result)
            name = self.name(result.sample_id)
            if name not in self._written:
                self._write(result)
            if name != result.sample_id + ENDING:
                others[result.sample_id] = name
        summary = with_run(tally.summary(), report)
        if self._resumed:
            summary["details"] |= from_before(summary["details"], self._resumed)
        if others:
            # Whoever looks for a session finds its file.
            summary["details"]["file_names"] = others
        write_json(self._folder / SUMMARY, summary)
        return summary

    def strangers(self) -> list[str]:
        """Result files in the folder that are not of this batch."""
        found = (path.name for path in self._folder.glob(f"*{ENDING}"))
        return sorted(name for name in found if name not in self._written)

    def replaced(self) -> list[str]:
        """The other runs whose results in the folder were written over."""
        runs = {run_id for name, run_id in self._before.items() if name in self._written}
        return sorted(str(run_id) for run_id in runs if run_id and run_id != self._run_id)

    def __len__(self) -> int:
        return len(self._written)

    def _write(self, result: EvalResult) -> dict[str, Any]:
        name, content = self.name(result.sample_id), session_result(result, self._columns)
        if self._sessions is not None:
            content = placed(content, self._sessions)
        if self._run_id:
            content["details"] = {"run_id": self._run_id, **content["details"]}
        write_json(self._folder / name, content)
        self._written.add(name)
        return content


def other_sessions_in(folder: Path, sessions: Path) -> str:
    """A result in a folder that is of sessions from elsewhere; nothing if there is none."""
    for name, told in _details_in(folder):
        source = told.get("source")
        if isinstance(source, str):
            whole = told.get(PLACE)
            # Another program's result may have none.
            whole = whole if isinstance(whole, str) else source
            if not is_of(whole, sessions):
                return f"{name} of {source if os.path.realpath(source) == whole else whole}"
    return ""


def placed(content: dict[str, Any], sessions: Path) -> dict[str, Any]:
    """A result that tells its log's whole path, by which it is known from wherever it is seen."""
    details = content["details"]
    source = details.get("source")
    if source is None:
        return content
    # What an earlier sitting stored is told as it was seen from where that was started.
    whole = os.path.realpath(source if is_of(source, sessions) else sessions)
    return {**content, "details": {"source": source, PLACE: whole, **details}}


def is_of(source: str, sessions: Path) -> bool:
    """True if a log is a file of sessions, or one in their folder, with or without its line."""
    whole, own = os.path.realpath(source), os.path.realpath(sessions)
    return whole == own or whole.startswith((own.rstrip(os.sep) + os.sep, f"{own}:"))


def _details_in(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the results in a folder say of where they are from, as far as they can be read."""
    for path in sorted(folder.glob(f"*{ENDING}")):
        with contextlib.suppress(OSError, ValueError, RecursionError):
            content = json.loads(path.read_bytes())
            told = content.get("details") if isinstance(content, dict) else None
            if isinstance(told, dict):
                yield path.name, told


def write_json(path: Path, content: Any) -> None:
    """Write JSON for people; whole or not at all."""
    files.write(path, [codec.encode_pretty(content), b"\n"])
