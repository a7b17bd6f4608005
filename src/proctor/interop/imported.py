"""The content of another tool's file: samples, and runs with their results.

Each module of `interop/readers/` reads one format. It has two functions: `recognize(path, head)` tells from the name
and the first bytes whether a file has the format, and `read(path)` returns an `ImportedFile`. A reader never guesses:
what it cannot represent is counted in `warnings`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from proctor.records.run import RunStatus
from proctor.records.sample import Sample
from proctor.records.trial import DEFAULT_CONFIGURATION, Configuration, EvalResult


class ImportedRun(msgspec.Struct, frozen=True):
    """One run of another tool.

    An error of the target is the `error` of its trial and has no scores; an error of an evaluator, also NaN, is
    `Score.error`, and a score without a value is skipped. `without_verdicts` names the scores whose verdict is assumed,
    because the tool gives none; the `graded` of them have numbers between 0 and 1, and the verdict of the others.
    `reported` holds the tool's own headline numbers by name, to show and to check
    against; they are never used as results. `total` is the number of results that the tool planned or reports, if the
    file names it.
    """

    name: str
    results: tuple[EvalResult, ...] = ()
    status: RunStatus = "completed"
    started_at: datetime | None = None
    finished_at: datetime | None = None
    configurations: tuple[Configuration, ...] = (Configuration(DEFAULT_CONFIGURATION),)
    reported: dict[str, float] = {}
    total: int | None = None
    tags: dict[str, str] = {}
    details: dict[str, Any] = {}
    without_verdicts: tuple[str, ...] = ()
    graded: tuple[str, ...] = ()


class ImportedFile(msgspec.Struct, frozen=True):
    """The samples, runs and checks of a file.

    `samples` is the dataset; for a file with runs, the distinct samples of their results. `evaluators` are the checks
    for all samples in the notation of eval files, as far as Proctor has them; the checks of one sample are in
    `Sample.evaluators`. `warnings` say what was left out or changed, with counts; `untranslated` says which checks have
    no equal evaluator, and what to use instead. `target` and `configurations` are the program that the file names, in
    the notation of eval files, if Proctor can run it; `name` is the name of its evaluation.
    """

    format: str
    version: str = ""
    samples: tuple[Sample[Any, Any], ...] = ()
    runs: tuple[ImportedRun, ...] = ()
    evaluators: tuple[Any, ...] = ()
    warnings: tuple[str, ...] = ()
    untranslated: tuple[str, ...] = ()
    target: dict[str, Any] | str | None = None
    configurations: dict[str, dict[str, Any]] = {}
    name: str = ""
