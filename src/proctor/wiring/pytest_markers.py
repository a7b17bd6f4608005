"""Check the arguments of `@pytest.mark.proctor` when tests are collected, before anything runs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pytest

from proctor.core.aliases import common_name
from proctor.datasets.dataset import make_source
from proctor.engine.plan import Plan, ordered_samples
from proctor.errors import ConfigError, UsageError, suggest_name
from proctor.evaluators.bound_evaluator import BoundEvaluator
from proctor.records.run import EvaluatorSpec, RunOptions
from proctor.records.score import Score
from proctor.testing.assertions import read_pass_rate, rename_thresholds
from proctor.wiring.evaluate import aevaluate
from proctor.wiring.open_history import open_history
from proctor.wiring.prepare import Evaluation, combine_errors, inspect_dataset, prepare
from proctor.wiring.registry import Registry
from proctor.wiring.select_samples import select_plan_samples

# The name of the score of a test's own assertions.
ASSERTIONS = "assertions"
# Arguments of the marker; all others are arguments of `evaluate`.
OWN_ARGUMENTS = ("target", "dataset", "evaluators", "samples_as", "min_passes", "min_pass_rate", "thresholds", "name")
SAMPLES_AS = ("items", "run")
_PARAMETERS = [name for name, each in inspect.signature(aevaluate).parameters.items() if each.kind != each.VAR_KEYWORD]
ARGUMENTS = frozenset((*OWN_ARGUMENTS, *_PARAMETERS, *RunOptions.__struct_fields__))
# Arguments of `evaluate` with the same name and meaning in `Evaluation`.
_SHARED = ("configurations", "metrics", "tags", "baseline", "fields")


def check_marker(item: Any, marker: pytest.Mark, fixture_names: Collection[str], history: Any) -> list[Any]:
    """Check the marker of a test, and return the samples to run; raise one error that has all mistakes.

    The samples of a test with a target, or without a dataset, are not listed.
    """
    arguments = marker.kwargs
    errors = [
        *_find_name_errors(marker),
        *_find_value_errors(arguments),
        *_find_signature_errors(arguments, fixture_names),
    ]
    wrong = {error.where for error in errors}
    known = {
        name: value
        for name, value in arguments.items()
        if name not in wrong and common_name(name, ARGUMENTS) in ARGUMENTS
    }
    samples: list[Any] = []
    try:
        samples = _check_evaluation(item, known, history)
    except UsageError as error:
        errors.append(rename_thresholds(error))
    if errors:
        raise combine_errors(errors, "the marker")
    return samples


def _find_name_errors(marker: pytest.Mark) -> Iterator[UsageError]:
    if marker.args:
        yield ConfigError(
            f"the marker has positional arguments: {', '.join(map(repr, marker.args))}",
            fix="name them: @pytest.mark.proctor(target=…, dataset=…)",
        )
    for name in marker.kwargs:
        if common_name(name, ARGUMENTS) not in ARGUMENTS:
            hint = suggest_name(name, ARGUMENTS)
            hint = f"{hint} " if hint.startswith("did you mean") else ""
            yield ConfigError(f"unknown argument {name!r}", fix=f"{hint}choose one of: {', '.join(sorted(ARGUMENTS))}")


def _find_value_errors(arguments: Mapping[str, Any]) -> Iterator[UsageError]:
    samples_as = arguments.get("samples_as", "items")
    if samples_as not in SAMPLES_AS:
        yield ConfigError(f"must be 'items' or 'run', got {samples_as!r}", where="samples_as", fix='write "run"')
    needed = arguments.get("min_passes", 1)
    if isinstance(needed, bool) or not isinstance(needed, int) or needed < 1:
        fix = _suggest_passes(needed, arguments.get("epochs", 1))
        yield ConfigError(f"must be an integer, 1 or more, got {needed!r}", where="min_passes", fix=fix)
    try:
        read_pass_rate(arguments.get("min_pass_rate", 1))
    except UsageError as error:
        yield error
    thresholds = arguments.get("thresholds", {})
    if not isinstance(thresholds, Mapping):
        fix = 'write thresholds={"exact_match.mean": 0.8}, or min_pass_rate=0.8'
        yield ConfigError(f"must be a mapping of metrics, got {thresholds!r}", where="thresholds", fix=fix)


def _suggest_passes(needed: Any, epochs: Any) -> str:
    """Suggest a number of passes that the epochs can reach, and the same as a share."""
    try:
        rate = read_pass_rate(needed) or 0.8
    except ConfigError:
        rate = 0.8
    count = math.ceil(rate * epochs - 1e-9) if isinstance(epochs, int) else 1
    return f"write min_passes={max(1, count)}, or min_pass_rate={rate:g} for a share"


def _find_signature_errors(arguments: Mapping[str, Any], fixture_names: Collection[str]) -> Iterator[UsageError]:
    has_sample = "sample" in fixture_names
    if "target" in arguments:
        if "dataset" not in arguments:
            yield ConfigError("has a target, but no dataset", fix="add dataset=…, a path or a list of records")
        if has_sample:
            fix = "leave out target= and call it in the test, or use the argument `report`"
            yield ConfigError("has a target, so it cannot have the argument `sample`", fix=fix)
    elif "dataset" in arguments and not has_sample:
        yield ConfigError("has a dataset, but no argument `sample`", fix="write def test_…(sample):, or add target=…")


def _check_evaluation(item: Any, arguments: Mapping[str, Any], history: Any) -> list[Any]:
    """Prepare the evaluation without running it, and compare `min_passes` with the number of results."""
    dataset = resolve_path(arguments["dataset"], item) if "dataset" in arguments else [{"id": "1", "input": ""}]
    if isinstance(dataset, Iterator):
        # The preparation must not use up the samples of an iterator, which a run reads.
        is_listed = "target" not in arguments and is_one_item_per_sample(arguments)
        samples: list[Any] = list(make_source(dataset)) if is_listed else []
        dataset = samples or [{"id": "1", "input": ""}]
        is_counted = is_listed
    else:
        is_counted, samples = True, []
    plan = prepare(_make_evaluation(arguments, dataset), Registry.standard())
    if is_counted and not samples and "dataset" in arguments and "target" not in arguments:
        samples = list(make_source(dataset))
    length = inspect_dataset(plan).length
    if plan.options.select is not None:
        plan = select_plan_samples(plan, open_history(history))
    if samples:
        by_id = {sample.id: sample for sample in samples}
        samples = [by_id[sample.id] for _, sample in ordered_samples(plan)]
    _check_reachable(arguments, plan, length if is_counted else None)
    return samples


def _make_evaluation(arguments: Mapping[str, Any], dataset: Any) -> Evaluation:
    evaluators, target = arguments.get("evaluators"), arguments.get("target", _return_input)
    if "target" not in arguments:
        evaluators = add_assertions(evaluators, _pass_all)
    options = {name: value for name, value in arguments.items() if name in RunOptions.__struct_fields__}
    shared = {name: arguments[name] for name in _SHARED if arguments.get(name) is not None}
    return Evaluation(
        target, dataset, evaluators, options=options, fail_under=_read_thresholds(arguments), **shared
    )  # fmt: skip


def _read_thresholds(arguments: Mapping[str, Any]) -> dict[str, float]:
    from proctor.comparison.gates.thresholds import read_thresholds

    return read_thresholds(arguments.get("thresholds", {}), "thresholds")


def _check_reachable(arguments: Mapping[str, Any], plan: Plan, length: int | None) -> None:
    needed, options = arguments.get("min_passes"), plan.options
    if needed is None or length is None:
        return
    if "target" not in arguments and is_one_item_per_sample(arguments):
        length = 1
    count = min(length, options.limit or length) * options.epochs * len(plan.configurations)
    if needed > count:
        what = f"is {needed}, but the test has only {count} result{'s' * (count > 1)}"
        raise ConfigError(f"min_passes {what}", fix=f"write min_passes={count} or less, or more epochs")


def is_one_item_per_sample(arguments: Mapping[str, Any]) -> bool:
    """True if every sample is a test item of its own."""
    return bool(arguments.get("samples_as", "items") == "items")


def add_assertions(evaluators: Any, score: Any) -> Any:
    """Add the evaluator of a test's own assertions to one evaluator, a list, a mapping of names, or none."""
    assertions = BoundEvaluator(EvaluatorSpec(ASSERTIONS, ASSERTIONS), "inline", score)
    if not isinstance(evaluators, Mapping):
        is_list = isinstance(evaluators, list | tuple)
        return [assertions, *(evaluators if is_list else [] if evaluators is None else [evaluators])]
    if ASSERTIONS in evaluators:
        what = f"the name {ASSERTIONS!r} is taken by the assertions of the test's body"
        raise ConfigError(what, where="evaluators", fix="choose another name for this evaluator")
    return {ASSERTIONS: assertions, **evaluators}


def resolve_path(dataset: Any, item: Any) -> Any:
    """Resolve a path relative to the test file, or else to the current folder."""
    if isinstance(dataset, str):
        path = item.path.parent / dataset
        return path if path.exists() else dataset
    return dataset


def _return_input(value: Any) -> Any:
    return value


def _pass_all(_trial: Any) -> Score:
    return Score(1.0, True)
