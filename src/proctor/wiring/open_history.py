"""Looking back: the history that is meant, how a run stands, and which of its results."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from proctor.comparison.report import FieldReport
from proctor.engine.finish import aggregate
from proctor.errors import ConfigError, RunNotFound, UsageError, nearest
from proctor.history.postgres import SCHEMES, PostgresHistory
from proctor.history.sqlite import SQLiteHistory
from proctor.ports import History
from proctor.records.report import EvalReport
from proctor.records.run import RunMetadata
from proctor.records.trial import EvalResult, Outcome

HISTORY_VARIABLE = "PROCTOR_HISTORY"
DEFAULT_HISTORY = Path(".proctor") / "history.db"
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def open_history(where: History | str | Path | bool | None = None) -> History:
    """The history that is meant: a given one, a file, a server, none that lasts, or the usual one.

    A text that begins with `postgresql://` is the address of a server; other addresses are refused,
    and what is none is a file.
    """
    if where is False:
        history = SQLiteHistory.temporary()
        history.is_reachable = False
        return history
    if where is None or where is True:
        where = os.environ.get(HISTORY_VARIABLE) or DEFAULT_HISTORY
    if isinstance(where, str) and where.startswith(SCHEMES):
        return PostgresHistory(where)
    if isinstance(where, str) and (address := ADDRESS.match(where)):
        # The rest is not shown: there may be a password in it.
        raise ConfigError(
            f"a history cannot lie at {address[0]}…",
            where="history",
            fix="give a file, or postgresql://user:password@host/database",
        )
    return SQLiteHistory(where) if isinstance(where, str | Path) else where


def history_file(where: str | Path | None = None) -> Path | None:
    """The file that a history is in; None for one on a server."""
    found = str(where or os.environ.get(HISTORY_VARIABLE) or DEFAULT_HISTORY)
    return None if ADDRESS.match(found) else Path(found)


def run_to_resume(
    history: History, reference: str | bool, name: str, *, retrying: bool = False
) -> RunMetadata:
    """The run that is named, else the latest unfinished one; for `retrying` errors the latest."""
    if isinstance(reference, str):
        return history.find(reference)
    for run in history.runs(limit=1000, name=name):
        if (retrying or run.status != "completed") and run.rescored_from is None:
            return run
    raise RunNotFound(
        f"there is no {'' if retrying else 'unfinished '}run of {name!r} to resume",
        fix="leave out resume to start a new run, or name a run that `proctor runs` lists",
    )


def look_up(history: History, reference: str) -> FieldReport:
    """A stored run as it stands; one that did not come to its end gets its metrics now."""
    report = history.report(reference)
    if report.metadata is None:
        return FieldReport.of(report)
    run = standing(history, report.metadata)
    metrics, by_configuration = report.metrics, report.by_configuration
    if not metrics:
        metrics, by_configuration = aggregate(report.results, run)
    return FieldReport(report.results, run, metrics, by_configuration)


def standing(history: History, run: RunMetadata) -> RunMetadata:
    """How a run stands: one that no living process works on was interrupted, whatever it says."""
    if run.status == "running" and not history.is_held(run.run_id):
        return msgspec.structs.replace(run, status="interrupted")
    return run


def select(
    report: EvalReport,
    *,
    sample: str | None = None,
    outcome: Outcome | None = None,
    evaluator: str | None = None,
    configuration: str | None = None,
    offset: int = 0,
    limit: int = 20,
) -> Sequence[EvalResult]:
    """Some of a report's results: of one sample, of one configuration, by outcome; worst first."""
    run = report.metadata
    results = report.results
    if run is not None and configuration is not None:
        names = [known.name for known in run.configurations]
        _refuse_unknown(configuration, names, "configuration")
        results = results.only(configuration)
    if run is not None and evaluator is not None:
        _refuse_unknown(evaluator, [spec.name for spec in run.evaluators], "evaluator")
    if sample is None:
        return results.page(outcome=outcome, evaluator=evaluator, offset=offset, limit=limit)
    found = results.of_sample(sample)
    if not found:
        raise UsageError(f"run {report.run_id} has no sample {sample!r}")
    return found


def _refuse_unknown(name: str, known: Sequence[str], kind: str) -> None:
    if name not in known:
        raise UsageError(f"the run has no {kind} {name!r}", fix=nearest(name, known))
