"""The view of a trial for its evaluators: a field, with options, baseline and epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.records.fields.context import Delta, FieldContext
from proctor.records.fields.path import OUTPUT, RAW_OUTPUT, parse_path
from proctor.records.session import Usage
from proctor.records.trial import DEFAULT_CONFIGURATION, Trial

RECORDED = "recorded"
# Metadata with these names does not describe a trial that was run.
_CALL_KEYS = ("usage", "latency_ms", "session", "configuration")


class Field(NamedTuple):
    """The name and the path of a field."""

    name: str = OUTPUT
    path: str = OUTPUT


class TrialView(Trial, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A trial with the data that evaluators of fields need; never stored.

    `options` are the options of its configuration, `baseline` is the same sample's trial in the baseline configuration
    (`is_compared` is True if there is one, `is_baseline` if this trial belongs to it). In the last epoch, `epochs` are
    the trials of all epochs of the sample (None for an unknown trial); in other epochs it is None. For a field's
    evaluators `output` is the field's value, and `full_trial` the complete trial.
    """

    options: Mapping[str, Any] = {}
    is_compared: bool = False
    baseline: Trial | None = None
    epochs: tuple[Trial | None, ...] | None = ()
    baseline_epochs: tuple[Trial | None, ...] = ()
    field: Field | None = None
    full_trial: Trial | None = None
    is_baseline: bool = False


def make_trial_view(trial: Trial, **context: Any) -> TrialView:
    """Add context to a trial."""
    fields = {name: getattr(trial, name) for name in trial.__struct_fields__}
    return TrialView(**(fields | context))


def focus_on_field(trial: Trial, field: Field) -> TrialView:
    """Return a trial for the evaluators of one field: its output is the field's value.

    Raises `FieldMissing` if the trial has no such field.
    """
    value = parse_path(field.path).find(view_as_mapping(trial))
    full_trial = getattr(trial, "full_trial", None) or trial
    return make_trial_view(trial, output=value, field=field, full_trial=full_trial)


def make_context(trial: Trial, default: Field) -> FieldContext:
    """Make the context of a field for an evaluator.

    `default` is the evaluator's default field, used if no field was selected.
    """
    if not isinstance(trial, TrialView):
        return FieldContext(default.name, view_as_mapping(trial), path=default.path)
    name, path = trial.field or default
    baseline = None
    if trial.is_compared:
        # A failed baseline has no values; recorded values do not replace it.
        has_failed = trial.baseline is None or trial.baseline.error is not None
        baseline = {} if has_failed or trial.baseline is None else view_as_mapping(trial.baseline)
    return FieldContext(
        name,
        view_as_mapping(trial),
        path=path,
        baseline=baseline,
        epochs=_read_values(trial.epochs or (), path),
        baseline_epochs=_read_values(trial.baseline_epochs, path),
        is_baseline=trial.is_baseline,
    )


def view_as_mapping(trial: Trial) -> dict[str, Any]:
    """Return all data of a trial as one mapping, with the metadata of its sample."""
    trial = getattr(trial, "full_trial", None) or trial
    sample, metadata = trial.sample, trial.sample.metadata
    result = _read_record(trial)
    configuration = _merge_configuration(trial, result.get("configuration"))
    result |= {
        "id": sample.id,
        "input": sample.input,
        "expected": sample.expected,
        "output": trial.output,
        "configuration": configuration,
        "epoch": trial.epoch,
        "metadata": metadata,
    }
    if trial.latency_ms is not None:
        result["latency_ms"] = trial.latency_ms
    if trial.usage is not None:
        recorded = result.get("usage")
        # Recorded values have priority, even a total that is not the sum.
        result["usage"] = {**_list_usage(trial.usage), **(recorded if isinstance(recorded, Mapping) else {})}
    if trial.session is not None:
        result["session"] = trial.session
    if trial.raw_output is not None:
        result[RAW_OUTPUT] = trial.raw_output
    return result


def _read_record(trial: Trial) -> dict[str, Any]:
    """Return the recorded data of a trial; only the sample's metadata if the trial was run."""
    metadata = trial.sample.metadata
    by_configuration = metadata.get(RECORDED)
    if isinstance(by_configuration, Mapping):
        record = by_configuration.get(trial.configuration)
        record = record if isinstance(record, Mapping) else {}
    else:
        record = metadata
    if not _was_run(trial, record):
        return {**metadata, **record}
    result = dict(metadata)
    for name in _CALL_KEYS:
        result.pop(name, None)
    return result


def _was_run(trial: Trial, record: Mapping[str, Any]) -> bool:
    """True if a target was called: its latency is measured, not recorded."""
    if not trial.latency_ms:
        return False
    return OUTPUT not in record or record.get("latency_ms") != trial.latency_ms


def _merge_configuration(trial: Trial, recorded: Any) -> dict[str, Any]:
    """Return the name and options of a trial's configuration, including recorded options."""
    configuration = {"name": trial.configuration, **getattr(trial, "options", {})}
    if recorded is None:
        return configuration
    if isinstance(recorded, str):
        recorded = {"name": recorded}
    elif not isinstance(recorded, Mapping):
        return configuration
    if trial.configuration == DEFAULT_CONFIGURATION:
        configuration["name"] = recorded.get("name", configuration["name"])
    return {**recorded, **configuration}


def field_values(trial: Trial, fields: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Delta]]:
    """Return the values of some fields of a trial, and the differences of numbers from their baselines.

    Missing and unreadable fields are left out.
    """
    values: dict[str, Any] = {}
    deltas: dict[str, Delta] = {}
    for name, path in fields.items():
        try:
            context = make_context(trial, Field(name, path))
            values[name], delta = context.value, context.delta
        except Exception:  # A custom property may raise anything.
            continue
        if delta is not None:
            deltas[name] = delta
    return values, deltas


def _read_values(trials: tuple[Trial | None, ...], path: str) -> list[Any]:
    """Return a field's value in each trial; None for a failed trial or a missing field."""
    field = parse_path(path)
    values: list[Any] = []
    for trial in trials:
        try:
            has_output = trial is not None and trial.error is None
            values.append(field.find(view_as_mapping(trial)) if has_output and trial is not None else None)
        except Exception:  # A custom property may raise anything.
            values.append(None)
    return values


def _list_usage(usage: Usage) -> dict[str, Any]:
    """Return the known numbers of a usage; reading an unknown number fails."""
    numbers = {**msgspec.structs.asdict(usage), "total_tokens": usage.total_tokens}
    return {name: number for name, number in numbers.items() if number is not None}
