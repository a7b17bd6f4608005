"""Names become objects: what a person wrote is turned into a plan, with all its faults at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import msgspec

from proctor.comparison.gates.thresholds import in_own_unit, refuse_unknown, refuse_unreachable
from proctor.core import imports as importing
from proctor.core.identity import name_of
from proctor.core.imports import load
from proctor.datasets.iterator import IteratorDataset
from proctor.datasets.run_anew import RunAnew, recorded_configurations
from proctor.datasets.sessions import SessionDataset
from proctor.datasets.source import as_source
from proctor.engine.plan import Plan, Setup
from proctor.errors import ConfigError, Problem, UsageError, nearest
from proctor.evaluators.attached import Attached
from proctor.evaluators.opinions import with_canaries
from proctor.evaluators.rubric_files import STARTER, load_rubrics
from proctor.metrics.builtin import RubricTotalMetric
from proctor.metrics.estimates import FIELD
from proctor.metrics.registry import MetricRegistry, make_metric
from proctor.ports import AttachedEvaluator, Metric, SampleSource, Target
from proctor.records import codec
from proctor.records.fields.path import compiled
from proctor.records.fields.view import RECORDED
from proctor.records.results import ResultList
from proctor.records.rubric import RUBRIC, RUBRICS_VERSION, columns_of
from proctor.records.run import EvaluatorSpec, OnError, Redact, Retention, RunOptions
from proctor.records.sample import Sample, check_tags
from proctor.records.score import Score, Skipped
from proctor.records.session import Usage
from proctor.records.trial import Configuration, EvalResult, Trial
from proctor.targets.recorded import RecordedTarget, chosen_by_name
from proctor.targets.resolve import as_target
from proctor.wiring.evaluator_entries import parameters_of
from proctor.wiring.registry import Registry

Configurations = Mapping[str, Mapping[str, Any]] | Sequence[Configuration | str]
Metrics = Sequence[Metric | Callable[..., Any] | str]
# The options of a run that are one of a few words.
_CHOICES = {"on_error": OnError, "redact": Redact, "skipped": Skipped}


@dataclass(frozen=True)
class Evaluation:
    """What is to be evaluated, as a person writes it: names, paths and plain objects.

    `fields` are paths by name; with them and no target, the samples hold what was recorded. With
    `canary`, judges are shown a planted bad answer on about one of so many samples.
    """

    target: Any
    dataset: Any
    evaluators: Any
    configurations: Configurations | None = None
    metrics: Metrics = ()
    name: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    fail_under: Mapping[str, float] = field(default_factory=dict)
    baseline: str | None = None
    fields: Mapping[str, str] = field(default_factory=dict)
    retention: Retention = field(default_factory=Retention)
    canary: int | None = None


def prepare(evaluation: Evaluation, registry: Registry) -> Plan:
    """Turn names into objects; everything that is wrong is said at once, before anything runs."""
    faults: list[UsageError] = []

    def made(make: Callable[[], Any]) -> Any:
        try:
            return make()
        except UsageError as error:
            faults.append(error)
            return None

    # Whoever looks at fields, or brings sessions, may look at what was recorded; else a target
    # was forgotten.
    of_sessions = isinstance(evaluation.dataset, SessionDataset)
    recorded = evaluation.target is None and (bool(evaluation.fields) or of_sessions)
    dataset = made(lambda: as_source(evaluation.dataset))
    named = evaluation.configurations
    if recorded and not named and dataset is not None:
        named = recorded_configurations(dataset)
    several = len(named or ()) > 1
    target = made(lambda: RecordedTarget(each_apart=several) if recorded else as_target(evaluation.target))
    if dataset is not None and (evaluation.fields or of_sessions) and not recorded:
        dataset = RunAnew(dataset)
    elif dataset is not None and recorded and several:
        made(lambda: _refuse_unrecorded(dataset))
    evaluators = made(lambda: _built_evaluators(evaluation, registry))
    options = made(lambda: run_options(evaluation.options))
    configurations = made(lambda: _configurations(named, target, recorded))
    fields = made(lambda: _fields(evaluation.fields))
    if configurations is not None:
        made(lambda: _check_baseline(evaluation.baseline, configurations))
    own_metrics = (*evaluation.metrics, *registry.metrics)
    metrics = made(lambda: load_metrics(own_metrics, evaluators or (), fields))
    if evaluators is not None and metrics is not None:
        made(lambda: check_thresholds(evaluation.fail_under, evaluators, metrics, fields))
    if len(faults) == 1:
        raise faults[0]
    if faults:
        raise ConfigError(
            f"the evaluation has {len(faults)} faults",
            problems=[Problem("", str(fault).replace("\n", "\n    ")) for fault in faults],
        )
    return Plan(
        name=evaluation.name or target.spec.name,
        dataset=dataset,
        target=target,
        evaluators=evaluators,
        configurations=configurations,
        metrics=metrics,
        options=options,
        tags=_tags(evaluation),
        baseline=evaluation.baseline,
        fields=fields,
    )


def _built_evaluators(evaluation: Evaluation, registry: Registry) -> tuple[Attached, ...]:
    evaluators, every = registry.build_all(evaluation.evaluators), evaluation.canary
    if every is None:
        return evaluators
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ConfigError(f"canary is a whole number from 1, got {every!r}", where="canary")
    if not any(one.spec.judges for one in evaluators):
        raise ConfigError(
            "there is no judge among the evaluators to show a canary to",
            where="canary",
            fix="leave canary out, or add a judge such as llm_judge",
        )
    return with_canaries(evaluators, every)


def prepare_setup(target: Any, evaluators: Any, options: Mapping[str, Any], registry: Registry) -> Setup:
    """The part of an evaluation that runs and scores samples; all faults at once."""
    plan = prepare(Evaluation(target, (), evaluators, options=options), registry)
    return Setup(target=plan.target, evaluators=plan.evaluators, options=plan.options)


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A target and evaluators by name, so that another process can make them ready.

    Paths are seen from `folder`; modules are looked for there and in `modules`.
    """

    target: str | dict[str, Any]
    evaluators: list[str | dict[str, Any]]
    plugins: list[str] = []
    options: dict[str, Any] = {}
    folder: str = "."
    modules: list[str] = []


def recipe_of(evaluation: Evaluation, plugins: Sequence[str] = (), modules: Sequence[Path] = ()) -> bytes:
    """An evaluation's target and evaluators as JSON: names only, never code."""
    problems = [
        Problem(where, f"{name_of(thing)} is an object of this process")
        for where, thing in _written(evaluation)
        if not isinstance(thing, str | Mapping)
    ]
    if problems:
        raise ConfigError(
            "what runs in other processes must be given by name",
            problems=problems,
            fix="write module:attribute, file.py:attribute, or a name as in an eval file",
        )
    evaluators = evaluation.evaluators
    return codec.encode(
        Recipe(
            evaluation.target,
            [*([evaluators] if isinstance(evaluators, str | Mapping) else evaluators)],
            list(plugins),
            dict(evaluation.options),
            str(Path.cwd()),
            [str(folder.resolve()) for folder in modules],
        )
    )


def _written(evaluation: Evaluation) -> Iterator[tuple[str, Any]]:
    yield "target", evaluation.target
    several = isinstance(evaluation.evaluators, Sequence) and not isinstance(evaluation.evaluators, str)
    for one in evaluation.evaluators if several else [evaluation.evaluators]:
        yield "evaluators", one


def setup_from(recipe: bytes) -> Setup:
    """Make ready what a recipe names, in a process of its own: its current folder is changed."""
    written = codec.decode(recipe, Recipe)
    os.chdir(written.folder)
    for folder in written.modules:
        importing.add_folder(Path(folder))
    registry = Registry.standard()
    registry.load_plugins(written.plugins)
    return prepare_setup(written.target, written.evaluators, written.options, registry)


def run_options(given: Mapping[str, Any]) -> RunOptions:
    """How a run is carried out, checked; every fault at once."""
    problems = [Problem(name, what) for name, what in option_faults(given)]
    if problems:
        raise ConfigError("the run's options are wrong", problems=problems)
    return msgspec.convert(dict(given), RunOptions)


def option_faults(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong with a run's options, one by one."""
    known = RunOptions.__struct_fields__
    for name, value in given.items():
        if name not in known:
            yield str(name), f"there is no such option; {nearest(str(name), known)}"
            continue
        try:
            msgspec.convert({name: value}, RunOptions)
        except msgspec.ValidationError as error:
            what = explain(error).partition(" (at")[0]
            if what.startswith("Invalid enum value"):
                what = f"expected one of {', '.join(get_args(_CHOICES[name]))}"
            yield name, f"{what}; it is {value!r}"


def explain(error: msgspec.ValidationError) -> str:
    """msgspec's message in plain words.

    >>> explain(msgspec.ValidationError("Expected `int`, got `str` - at `$.epochs`"))
    'expected int, got str (at epochs)'
    """
    what, _, where = str(error).partition(" - at ")
    place = where.replace("`", "").replace("$.", "").replace("$", "")
    said = what.replace("`", "").replace("Expected", "expected").replace("Object", "mapping")
    return f"{said} (at {place})" if place else said


def _refuse_unrecorded(dataset: SampleSource) -> None:
    """Several configurations without a target are those that were recorded, if any were."""
    if isinstance(dataset, IteratorDataset):
        return  # it can be read only once
    first = next(iter(dataset), None)
    if first is not None and not isinstance(first.metadata.get(RECORDED), Mapping):
        raise ConfigError(
            f"sample {first.id!r} has nothing recorded for the single configurations, and there "
            "is no target to run them",
            where="target",
            fix="give a target, or every sample its results: {recorded: {configuration: result}}",
        )


def _fields(given: Mapping[str, str]) -> dict[str, str]:
    problems = []
    for name, path in given.items():
        try:
            compiled(path)
        except UsageError as error:
            problems.append(Problem(f"fields.{name}", error.what))
    if problems:
        raise ConfigError("some fields cannot be found like this", problems=problems)
    return dict(given)


def _tags(evaluation: Evaluation) -> dict[str, str]:
    """What is known of the run, with the version of the rubrics that a file or a set names."""
    given = parameters_of(RUBRIC, evaluation.evaluators)
    named = [one for one in given if isinstance(one.get("rubric", ""), str)]
    versions = dict.fromkeys(load_rubrics(one.get("rubrics") or STARTER).version for one in named)
    told = {RUBRICS_VERSION: ", ".join(versions)} if versions else {}
    return {**told, **check_tags(evaluation.tags)}


def _check_baseline(baseline: str | None, configurations: Sequence[Configuration]) -> None:
    names = [configuration.name for configuration in configurations]
    if baseline is not None and baseline not in names:
        raise ConfigError(
            f"there is no configuration {baseline!r} to be the baseline",
            where="baseline",
            fix=nearest(baseline, names)
            if names != [Configuration().name]
            else f"the run has no named configurations: pass configurations=[{baseline!r}, …]",
        )


def _configurations(
    given: Configurations | None, target: Target | None, recorded: bool
) -> tuple[Configuration, ...]:
    configurations = configurations_from(given)
    if recorded and given:
        configurations = tuple(map(chosen_by_name, configurations))
    names = [configuration.name for configuration in configurations]
    problems = [
        Problem(f"configurations.{name}", "this name is used more than once")
        for name in sorted(set(names))
        if names.count(name) > 1
    ]
    if target is not None:
        problems += [
            Problem(f"configurations.{configuration.name}", problem)
            for configuration in configurations
            for problem in target.check_options(configuration.options)
        ]
    if problems:
        raise ConfigError("the configurations do not fit the target", problems=problems)
    return configurations


def configurations_from(given: Configurations | None) -> tuple[Configuration, ...]:
    """The configurations that are meant; one without options if none are."""
    return tuple(_each_configuration(given))


def _each_configuration(given: Configurations | None) -> Iterator[Configuration]:
    if isinstance(given, str):
        raise ConfigError(
            f"configurations are a list or a mapping, got the text {given!r}",
            where="configurations",
            fix=f"write [{given!r}]",
        )
    if not given:
        yield Configuration()
    elif isinstance(given, Mapping):
        for name, options in given.items():
            if not isinstance(options, Mapping):
                raise ConfigError(
                    f"expected a mapping of options, found {options!r}",
                    where=f"configurations.{name}",
                    fix=f"write {{{name!r}: {{option: value}}}}",
                )
            yield Configuration(str(name), dict(options))
    else:
        for number, one in enumerate(given, start=1):
            if not isinstance(one, str | Configuration):
                raise ConfigError(
                    f"expected a configuration, found {one!r}",
                    where=f"configurations, {number}",
                    fix="write {name: {option: value}}, or configuration(name, option=value)",
                )
            yield Configuration(one) if isinstance(one, str) else one


def load_metrics(
    given: Metrics, evaluators: Sequence[AttachedEvaluator], fields: Mapping[str, str] | None = None
) -> tuple[Any, ...]:
    """Metrics by address or as they are; names that clash are refused before anything runs.

    Where rubrics are among the evaluators, their weighted total is one of them.
    """
    loaded = tuple(
        make_metric(load(metric), metric) if isinstance(metric, str) else metric for metric in given
    )
    specs = [one.spec for one in evaluators]
    if (rubrics := columns_of(specs, "")).columns:
        loaded = (RubricTotalMetric(rubrics), *loaded)
    registry = MetricRegistry.of_run(specs, fields or {})
    numbers = _refuse_clashes(registry, specs)
    for metric in loaded:
        registry.register(metric)
    registry.compute_all(ResultList(()))
    own = {name_of(metric) for metric in loaded}
    if own & numbers or any(number.startswith(f"{name}.") for name in own for number in own | numbers):
        _refuse_clashes(registry, specs)
    return loaded


def _refuse_clashes(registry: MetricRegistry, specs: Sequence[EvaluatorSpec]) -> set[str]:
    """Refuse metrics whose numbers have the same name, before anything is called; else the names.

    Which numbers a metric gives is seen by computing it, here over a made-up result.
    """
    scores = {spec.name: Score(1.0, True) for spec in specs}
    trial = Trial(Sample("made-up", ""), "", latency_ms=1.0, usage=Usage(1, 1))
    return set(registry.compute_all(ResultList([EvalResult(trial, scores)])))


def check_thresholds(
    thresholds: Mapping[str, float],
    evaluators: Sequence[AttachedEvaluator],
    metrics: Sequence[Any],
    fields: Mapping[str, str] | None = None,
) -> None:
    """Refuse a misspelt metric before the run, not after it: the standard ones are known."""
    if not thresholds:
        return
    refuse_unreachable(thresholds)
    specs = [one.spec for one in evaluators]
    in_own_unit(thresholds, columns_of(specs, ""))
    standard = MetricRegistry.of_run(specs, {})
    # What a field's numbers will be called is known, whether there are any only afterwards.
    custom = [*map(name_of, metrics), *(f"{FIELD}.{name}" for name in fields or ())]
    refuse_unknown(thresholds, standard.compute_all(ResultList(())), custom)
