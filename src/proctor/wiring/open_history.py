"""Open a history, load a stored run with its current status, and select some of its results."""

from __future__ import annotations

import dataclasses
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import msgspec

from proctor.comparison.report import EvalReport
from proctor.engine.finish import aggregate
from proctor.errors import ConfigError, RunNotFound, UsageError, suggest_name
from proctor.history.sqlite import SQLiteHistory
from proctor.ports import History
from proctor.records.run import IMPORTED, RunMetadata
from proctor.records.trial import EvalResult, Outcome

HISTORY_VARIABLE = "PROCTOR_HISTORY"
DEFAULT_HISTORY = Path(".proctor") / "history.db"
POSTGRES_SCHEMES = ("postgresql://", "postgres://")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# The number of recent runs that are searched for an unfinished run.
MAX_RUNS = 1000


def open_history(where: History | str | Path | bool | None = None) -> History:
    """Open a history: a file, `postgresql://…`, False for a temporary history, None for the default.

    A `History` is returned unchanged.
    """
    if where is False:
        history = SQLiteHistory.temporary()
        history.is_reachable = False
        return history
    if where is None or where is True:
        where = os.environ.get(HISTORY_VARIABLE) or DEFAULT_HISTORY
    if isinstance(where, str) and where.startswith(POSTGRES_SCHEMES):
        from proctor.history.postgres import PostgresHistory

        return PostgresHistory(where)
    if isinstance(where, str) and (scheme := SCHEME.match(where)):
        # The rest may contain a password.
        raise ConfigError(
            f"unsupported URL {scheme[0]}…",
            where="history",
            fix="write a file, or postgresql://user:password@host/database",
        )
    if isinstance(where, str | Path):
        return SQLiteHistory(where)
    if not hasattr(where, "claim"):
        raise ConfigError(
            f"must be a file, a URL, True, False or a History, got {where!r}",
            where="history",
            fix='write history="runs.db"',
        )
    return where


def history_file(where: str | Path | None = None) -> Path | None:
    """Return the file of a history; None if it is on a server."""
    address = str(where or os.environ.get(HISTORY_VARIABLE) or DEFAULT_HISTORY)
    return None if SCHEME.match(address) else Path(address)


def find_run_to_resume(history: History, reference: str | bool, name: str, *, is_retry: bool = False) -> RunMetadata:
    """Return the named run, or the latest unfinished run; with `is_retry`, the latest run."""
    if isinstance(reference, str):
        return history.find(reference)
    for run in history.runs(limit=MAX_RUNS, name=name):
        if (is_retry or run.status != "completed") and run.rescored_from is None and run.target.kind != IMPORTED:
            return run
    raise RunNotFound(
        f"there is no {'' if is_retry else 'unfinished '}run of {name!r} to resume",
        fix="start a new run without resume (--resume), or name a run that `proctor runs` lists",
    )


def load_report(history: History, reference: str) -> EvalReport:
    """Load the report of a stored run; compute the metrics of an unfinished run."""
    report = history.report(reference)
    if report.metadata is None:
        return report
    run = current_status(history, report.metadata)
    if report.metrics:
        return dataclasses.replace(report, metadata=run)
    return EvalReport(report.results, run, *aggregate(report.results, run))


def current_status(history: History, run: RunMetadata) -> RunMetadata:
    """Mark a run as interrupted if its stored status is running but no process runs it."""
    if run.status == "running" and not history.is_claimed(run.run_id):
        return msgspec.structs.replace(run, status="interrupted")
    return run


def select_results(
    report: EvalReport,
    *,
    sample: str | None = None,
    outcome: Outcome | None = None,
    evaluator: str | None = None,
    configuration: str | None = None,
    offset: int = 0,
    limit: int = 20,
) -> Sequence[EvalResult]:
    """Return the results of a sample, a configuration or an outcome, worst first."""
    run = report.metadata
    results = report.results
    if run is not None and configuration is not None:
        _require_known(configuration, [candidate.name for candidate in run.configurations], "configuration")
        results = results.for_configuration(configuration)
    if run is not None and evaluator is not None:
        _require_known(evaluator, [spec.name for spec in run.evaluators], "evaluator")
    if sample is None:
        return results.page(outcome=outcome, evaluator=evaluator, offset=offset, limit=limit)
    selected = results.for_sample(sample)
    if not selected:
        hint = suggest_name(sample, results.figures().sample_ids)
        hint += "" if hint.endswith("?") else "."
        configuration = configuration or (run.configurations[0].name if run is not None else "default")
        listing = f"proctor show {report.run_id} --configuration {shlex.quote(configuration)}"
        raise UsageError(f"run {report.run_id} has no sample {sample!r}", fix=f"{hint} To list the samples: {listing}")
    return selected


def _require_known(name: str, known_names: Sequence[str], noun: str) -> None:
    if name not in known_names:
        raise UsageError(f"the run has no {noun} {name!r}", fix=suggest_name(name, known_names))
