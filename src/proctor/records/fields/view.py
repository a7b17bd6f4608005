"""A trial as its evaluators see it: one field of it, and what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.records.fields.context import Delta, FieldContext
from proctor.records.fields.path import OUTPUT, RAW_OUTPUT, compiled
from proctor.records.session import Usage
from proctor.records.trial import DEFAULT_CONFIGURATION, Trial

RECORDED = "recorded"
# What belongs to a call; metadata of these names says nothing about a trial that was run.
_OF_A_CALL = ("usage", "latency_ms", "session", "configuration")


class Field(NamedTuple):
    """A field by the name it is known under, and where it is."""

    name: str = OUTPUT
    path: str = OUTPUT


class SeenTrial(Trial, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A trial with what evaluators of fields look at beside it; never stored.

    `options` are those of its configuration, `baseline` the same sample's trial in the baseline
    configuration (`is_compared` if there is such a configuration, `is_baseline` if this trial is
    of it). `epochs` are all repeats of
    the sample (None for one that is not known), in its last one; None in the others. In the eyes
    of a field's evaluators `output` is the field's value, and `whole` the trial it is a part of.
    """

    options: Mapping[str, Any] = {}
    is_compared: bool = False
    baseline: Trial | None = None
    epochs: tuple[Trial | None, ...] | None = ()
    baseline_epochs: tuple[Trial | None, ...] = ()
    field: Field | None = None
    whole: Trial | None = None
    is_baseline: bool = False


def seen(trial: Trial, **beside: Any) -> SeenTrial:
    """A trial together with what stands beside it."""
    held = {name: getattr(trial, name) for name in trial.__struct_fields__}
    return SeenTrial(**(held | beside))


def looking_at(trial: Trial, field: Field) -> SeenTrial:
    """A trial as the evaluators of one field see it: the output is the field's value.

    Raises `FieldMissing` if the trial has no such field.
    """
    value = compiled(field.path).find(result_of(trial))
    whole = getattr(trial, "whole", None) or trial
    return seen(trial, output=value, field=field, whole=whole)


def context_of(trial: Trial, otherwise: Field) -> FieldContext:
    """What a trial's evaluator is given that asks for a field's context.

    `otherwise` is the field it looks at by itself, where nobody chose one for it.
    """
    if not isinstance(trial, SeenTrial):
        return FieldContext(otherwise.name, result_of(trial), path=otherwise.path)
    name, path = trial.field or otherwise
    baseline = None
    if trial.is_compared:
        # A baseline that failed has no values; what was recorded is not a stand-in for it.
        failed = trial.baseline is None or trial.baseline.error is not None
        baseline = {} if failed or trial.baseline is None else result_of(trial.baseline)
    return FieldContext(
        name,
        result_of(trial),
        path=path,
        baseline=baseline,
        epochs=_values(trial.epochs or (), path),
        baseline_epochs=_values(trial.baseline_epochs, path),
        is_baseline=trial.is_baseline,
    )


def result_of(trial: Trial) -> dict[str, Any]:
    """Everything a trial left behind as one mapping, the sample's own metadata included.

    >>> from proctor.records.sample import Sample
    >>> trial = Trial(Sample("1", "2 + 2?", metadata={"baseline_output": "5"}), "4")
    >>> result_of(trial)["output"], result_of(trial)["baseline_output"]
    ('4', '5')
    """
    trial = getattr(trial, "whole", None) or trial
    sample, metadata = trial.sample, trial.sample.metadata
    result = _record_of(trial)
    configuration = _configuration(trial, result.get("configuration"))
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
        told = result.get("usage")
        # What was recorded is told as it was, a total that is no sum included.
        result["usage"] = {**_usage(trial.usage), **(told if isinstance(told, Mapping) else {})}
    if trial.session is not None:
        result["session"] = trial.session
    if trial.raw_output is not None:
        result[RAW_OUTPUT] = trial.raw_output
    return result


def _record_of(trial: Trial) -> dict[str, Any]:
    """What the sample records of this trial, or just describes the sample if the trial was run."""
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
    for name in _OF_A_CALL:
        result.pop(name, None)
    return result


def _was_run(trial: Trial, record: Mapping[str, Any]) -> bool:
    """True if a target was called: its latency is measured and is not the recorded one."""
    if not trial.latency_ms:
        return False
    return OUTPUT not in record or record.get("latency_ms") != trial.latency_ms


def _configuration(trial: Trial, recorded: Any) -> dict[str, Any]:
    """The name and options of a trial's configuration, with what was recorded of them."""
    own = {"name": trial.configuration, **getattr(trial, "options", {})}
    if recorded is None:
        return own
    if isinstance(recorded, str):
        recorded = {"name": recorded}
    elif not isinstance(recorded, Mapping):
        return own
    if trial.configuration == DEFAULT_CONFIGURATION:
        own["name"] = recorded.get("name", own["name"])
    return {**recorded, **own}


def field_values(trial: Trial, fields: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Delta]]:
    """The values of some fields of a trial, and how far the numbers are from their baselines.

    Fields that the trial does not have, or that cannot be read, are left out.
    """
    values: dict[str, Any] = {}
    deltas: dict[str, Delta] = {}
    for name, path in fields.items():
        try:
            context = context_of(trial, Field(name, path))
            values[name], delta = context.value, context.delta
        except Exception:  # a property of the user's may raise anything
            continue
        if delta is not None:
            deltas[name] = delta
    return values, deltas


def _values(trials: tuple[Trial | None, ...], path: str) -> list[Any]:
    """A field's value in each of some trials; None where one failed or has no such field.

    So every value keeps its place, and one repeat does not spoil another.
    """
    way = compiled(path)
    found: list[Any] = []
    for trial in trials:
        try:
            known = trial is not None and trial.error is None
            found.append(way.find(result_of(trial)) if known and trial is not None else None)
        except Exception:  # a property of the user's may raise anything
            found.append(None)
    return found


def _usage(usage: Usage) -> dict[str, Any]:
    """What is known of the usage; what is not known is left out, so that asking for it fails."""
    known = {**msgspec.structs.asdict(usage), "total_tokens": usage.total_tokens}
    return {name: number for name, number in known.items() if number is not None}
