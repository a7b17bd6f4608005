"""Select samples: of a dataset to run, and of stored runs to show or compare."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.comparison.report import EvalReport
from proctor.datasets.dataset import IteratorDataset
from proctor.engine.finish import aggregate
from proctor.engine.plan import Plan
from proctor.errors import ConfigError, UsageError
from proctor.ports import History
from proctor.records.sample import Sample
from proctor.records.selection import SelectedSamples, Selection, contains_words, find_samples, split_words
from proctor.records.trial import OUTCOMES
from proctor.wiring.prepare import combine_errors

if TYPE_CHECKING:
    from proctor.records.comparison import Comparison
    from proctor.wiring.compare_runs import OpenedRun

PASSED = OUTCOMES.index("passed")
CHOSEN_BY_TEXT = "samples chosen by words in outputs or reasons can favor one side"


def select_plan_samples(plan: Plan, history: History) -> Plan:
    """Add the ids of the selected samples to a plan; the run `failed_of` becomes a run id."""
    selection = plan.options.select
    if selection is None:
        return plan
    if selection == Selection():
        return dataclasses.replace(plan, options=msgspec.structs.replace(plan.options, select=None))
    if isinstance(plan.dataset, IteratorDataset):
        raise ConfigError(
            "samples of an iterator cannot be selected, because it can be read only once",
            where="select",
            fix="load the samples into memory: Dataset.of(items)",
        )
    errors: list[UsageError] = []
    candidates: frozenset[str] | None = None
    sources: tuple[str, ...] = ()
    ids: frozenset[str] = frozenset()
    try:
        if selection.failed_of is not None:
            run = history.find(selection.failed_of)
            sources = tuple(filter(None, (run.run_id, run.rescored_from)))
            candidates = find_failed_samples(history, run.run_id)
            selection = msgspec.structs.replace(selection, failed_of=run.run_id)
    except UsageError as error:
        errors.append(error)
    try:
        ids = find_samples(lambda: plan.dataset, selection, candidates)
    except UsageError as error:
        errors.append(error)
    if errors:
        raise combine_errors(errors, "the selection of samples")
    digest = blake2b("\n".join(sorted(ids)).encode(), digest_size=16).hexdigest()
    return dataclasses.replace(
        plan,
        options=msgspec.structs.replace(plan.options, select=selection),
        selected_ids=ids,
        selected=SelectedSamples(len(ids), digest, sources),
    )


def find_failed_samples(history: History, run_id: str) -> frozenset[str]:
    """Return the samples that did not pass in some configuration or epoch of a run: failed, errors and skips."""
    figures = history.results(run_id).figures()
    pairs = zip(figures.sample_ids, figures.outcomes, strict=True)
    ids = frozenset(sample_id for sample_id, outcome in pairs if outcome != PASSED)
    if not ids:
        what = f"every sample passed in run {run_id}" if figures.sample_ids else f"run {run_id} has no results"
        raise UsageError(f"{what}, so none is selected", fix="name another run, or select all samples")
    return ids


def filter_report(report: EvalReport, selection: Selection) -> EvalReport:
    """Return a report of some samples of a run, with their metrics and a warning that names the choice."""
    if selection == Selection():
        return report
    ids = find_samples(lambda: _unique_samples(report), selection)
    return _restrict(report, ids, selection.describe())


def find_text(report: EvalReport, text: str) -> EvalReport:
    """Return a report with only the results that contain all words, without metrics."""
    words = split_words(text)
    return EvalReport([result for result in report.results if contains_words(result, words)], report.metadata)


def filter_pair(
    first: OpenedRun, second: OpenedRun, selection: Selection, text: str | None = None
) -> tuple[OpenedRun, OpenedRun, tuple[str, ...]]:
    """Restrict two runs to the same samples; also return notes about the choice.

    The metadata of the first run decides. With `text`, a sample is chosen if one of its results in either run
    contains all words.
    """
    if selection == Selection() and text is None:
        return first, second, ()
    reports = first.report, second.report
    ids = find_samples(lambda: _unique_samples(*reports), selection)
    description = selection.describe()
    if text is not None:
        words = split_words(text)
        ids &= {r.sample_id for report in reports for r in report.results if contains_words(r, words)}
        description = ", ".join(filter(None, (description, f"text {text!r}")))
        if not ids:
            raise UsageError(f"no sample is selected by: {description}", fix="search for fewer or other words")
    total = len({sample_id for report in reports for sample_id in report.results.figures().sample_ids})
    notes = [f"only {len(ids):,} of {total:,} samples are compared: {description}"]
    notes += [CHOSEN_BY_TEXT] if text is not None else []
    restricted = [run._replace(report=_restrict(run.report, ids, description)) for run in (first, second)]
    for run in restricted:
        if not run.report.total:
            raise UsageError(f"{run.label} has none of the selected samples: {description}", fix="select other samples")
    return restricted[0], restricted[1], tuple(notes)


def add_notes(comparisons: Iterable[Comparison], notes: tuple[str, ...]) -> list[Comparison]:
    """Add notes to comparisons."""
    return [
        msgspec.structs.replace(comparison, notes=(*notes, *comparison.notes)) if notes else comparison
        for comparison in comparisons
    ]


def _unique_samples(*reports: EvalReport) -> Iterator[Sample[Any, Any]]:
    """Yield the samples of runs once; the first of several with the same id counts."""
    seen = set()
    for report in reports:
        for sample in report.results.samples():
            if sample.id not in seen:
                seen.add(sample.id)
                yield sample


def _restrict(report: EvalReport, ids: frozenset[str], description: str) -> EvalReport:
    from proctor.records.subset import ResultSubset

    results = ResultSubset(report.results, ids)
    run = report.metadata
    if run is None:
        return EvalReport(results)
    samples = set(report.results.figures().sample_ids)
    note = f"only {len(ids & samples):,} of {len(samples):,} samples are shown: {description}"
    run = msgspec.structs.replace(run, warnings=(note, *run.warnings))
    return EvalReport(results, run, *aggregate(results, run))
