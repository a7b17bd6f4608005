"""Turn a user's evaluation into a plan; one error reports all problems."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import msgspec

from proctor.comparison.gates.thresholds import convert_thresholds, require_known_metrics, require_reachable
from proctor.core import imports as importing
from proctor.core.identity import get_callable_name
from proctor.core.resources import quote_yaml
from proctor.datasets.dataset import IteratorDataset, make_source
from proctor.datasets.problems import IN_MEMORY
from proctor.datasets.record import ID_FIX
from proctor.datasets.rerun import RerunDataset, recorded_configurations
from proctor.datasets.sessions import SessionDataset
from proctor.engine.ledger import NO_SAMPLES
from proctor.engine.plan import Plan, Setup
from proctor.errors import ConfigError, DatasetError, Problem, TargetError, UsageError, join_choices, suggest_name
from proctor.evaluators.bound_evaluator import BoundEvaluator
from proctor.evaluators.rubric_files import STARTER, load_rubrics
from proctor.metrics.builtin import RubricTotalMetric
from proctor.metrics.estimates import FIELD_PREFIX
from proctor.metrics.registry import MetricRegistry
from proctor.ports import EvaluatorsLike, Metric, SampleSource, Target, TargetLike
from proctor.records import codec
from proctor.records.fields.path import parse_path
from proctor.records.fields.view import RECORDED
from proctor.records.results import ResultList
from proctor.records.rubric import RUBRIC, RUBRICS_VERSION, read_columns
from proctor.records.run import Budget, DatasetInfo, EvaluatorSpec, Retention, RunOptions
from proctor.records.sample import Sample, check_tags
from proctor.records.score import Score
from proctor.records.selection import Selection
from proctor.records.session import Usage
from proctor.records.trial import Configuration, EvalResult, Trial
from proctor.records.validation import explain_parts
from proctor.targets.recorded import RecordedTarget, add_configuration_option
from proctor.targets.resolve import as_target
from proctor.wiring.registry import Registry, find_parameters
from proctor.wiring.sample_checks import CheckedDataset, SampleChecks

Configurations = Mapping[str, Mapping[str, Any]] | Sequence[Configuration | str]
Metrics = Sequence[Metric | Callable[..., Any] | str]
# The samples that are checked against the placeholders of a target.
SAMPLES_CHECKED = 20
# Options of the command line, with the keys of `dataset` in an eval file.
_DATASET_KEYS = {
    "dataset-format": "format",
    "delimiter": "delimiter",
    "format": "format",
    "generate-ids": "generate_ids",
    "map": "mapping",
    "pattern": "pattern",
}
_DATASET_OPTION = re.compile(rf"--({'|'.join(_DATASET_KEYS)})\b(?: (NAME|auto|'[^']*'|[^\s=]+=[^\s=;]+))?")
UNKNOWN_FIELD = re.compile(r"unknown field `([^`]*)`")
# Values of run options whose default is None.
EXAMPLES: dict[str, Any] = {
    "budget": {"cost": 5},
    "limit": 10,
    "max_errors": 10,
    "select": {"where": ["topic=x"]},
    "shuffle": 7,
}


@dataclass(frozen=True)
class Evaluation:
    """An evaluation as the user defines it: names, paths and plain objects.

    `fields` maps names to paths; with fields and no target, the samples hold recorded results.
    With `canary`, judges see a planted bad answer on about one of N samples. `places` has the file and line of each key
    of an eval file, for error messages; the key "" is the file, "dataset.path" the path of the dataset in it.
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
    places: Mapping[str, str] = field(default_factory=dict)


def add_place(error: UsageError, places: Mapping[str, str], key: str) -> UsageError:
    """Add the place of a key of an eval file to an error; the error may name a more specific key."""
    name = re.match(r"\w*", error.where)
    place = places.get(name[0] if name and name[0] else key) or places.get(key)
    if place and not error.where.startswith(places[""]):
        error.fix = _write_fix_for_file(error, Path(places[""]), places.get("dataset.path"))
        error.where = f"{error.where} ({place})" if error.where else place
    return error


def _write_fix_for_file(error: UsageError, file: Path, path: str | None) -> str:
    """Write the fix of an error with the keys and paths of an eval file instead of options and paths of the shell."""
    fix = error.fix.replace(f"did you mean '{file.parent}{os.sep}", "did you mean '")
    if not isinstance(error, DatasetError) or file.suffix == ".py":
        return fix
    if path is None:
        # Settings apply to files only.
        return fix.replace(ID_FIX, "give every sample an id: {id: a, input: …}")
    quoted_path = quote_yaml(path)

    def write_key(option: re.Match[str]) -> str:
        key = _DATASET_KEYS[option[1]]
        value = option[2] or ("true" if key == "generate_ids" else "NAME")
        if key == "mapping":
            column, _, name = value.strip("'").rpartition("=")
            value = f"{{{quote_yaml(column)}: {name}}}"
        return f"dataset: {{path: {quoted_path}, {key}: {value}}}"

    fix = re.sub(r" \(in Python: .*?\)(?=;|$)", "", fix.replace(ID_FIX, f"{ID_FIX.partition(':')[0]}: --generate-ids"))
    return _DATASET_OPTION.sub(write_key, fix)


def prepare(evaluation: Evaluation, registry: Registry, *, needs_evaluators: bool = True) -> Plan:
    """Build a plan, or report all problems at once; without `needs_evaluators`, samples may bring the evaluators."""
    errors: list[UsageError] = []

    def attempt(key: str, build: Callable[[], Any]) -> Any:
        try:
            return build()
        except UsageError as error:
            errors.append(add_place(error, evaluation.places, key))
            return None

    has_sessions = isinstance(evaluation.dataset, SessionDataset)
    # Without fields and sessions, a missing target is a mistake.
    is_recorded = evaluation.target is None and (bool(evaluation.fields) or has_sessions)
    dataset = attempt("dataset", lambda: make_source(evaluation.dataset))
    configurations = evaluation.configurations
    if is_recorded and not configurations and dataset is not None:
        configurations = recorded_configurations(dataset)
    has_several = isinstance(configurations, Sized) and len(configurations) > 1
    target = attempt(
        "target", lambda: RecordedTarget(per_configuration=has_several) if is_recorded else as_target(evaluation.target)
    )
    if dataset is not None and (evaluation.fields or has_sessions) and not is_recorded:
        dataset = RerunDataset(dataset)
    elif dataset is not None and is_recorded and has_several:
        attempt("target", lambda: _require_recorded_results(dataset))
    checks, info = SampleChecks(registry), attempt("dataset", lambda: _describe_checks(dataset, evaluation))
    needs_evaluators = needs_evaluators and info is not None and not info.checked_samples
    evaluators = attempt("evaluators", lambda: _build_evaluators(evaluation, registry, needs_evaluators))
    if dataset is not None and info is not None and info.checked_samples:
        attempt("dataset", lambda: checks.collect(dataset, info, evaluators))
        dataset = CheckedDataset(dataset, checks)
    options = attempt("run", lambda: check_run_options(evaluation.options))
    configurations = attempt(
        "configurations",
        lambda: _check_configurations(configurations, target, dataset, evaluation.baseline, is_recorded=is_recorded),
    )
    fields = attempt("fields", lambda: _check_fields(evaluation.fields))
    specs = [*(evaluator.spec for evaluator in evaluators or ()), *checks.specs]
    metrics = attempt("metrics", lambda: load_metrics((*evaluation.metrics, *registry.metrics), specs, fields))
    if evaluators is not None and metrics is not None:
        epochs = 1 if options is None else options.epochs
        attempt("fail_under", lambda: check_thresholds(evaluation.fail_under, specs, metrics, fields, epochs))
    if errors:
        raise combine_errors(errors, "the evaluation", evaluation.places.get("", ""))
    return Plan(
        name=evaluation.name or target.spec.name,
        dataset=dataset,
        target=target,
        evaluators=evaluators,
        checks=checks,
        configurations=configurations,
        metrics=metrics,
        options=options,
        tags=_build_tags(evaluation),
        baseline=evaluation.baseline,
        fields=fields,
    )


def combine_errors(errors: Sequence[UsageError], subject: str, where: str = "") -> UsageError:
    """Return a single error itself, or one error that lists several."""
    if len(errors) == 1:
        return errors[0]
    problems = [Problem("", str(error).replace("\n", "\n    ")) for error in errors]
    return ConfigError(f"{subject} has {len(errors)} problems", where=where, problems=problems)


def inspect_dataset(plan: Plan, places: Mapping[str, str] = {}) -> DatasetInfo:
    """Inspect the dataset of a plan; reject an empty dataset. `places` are those of the evaluation."""
    try:
        info = plan.dataset.inspect()
        if info.length == 0:
            where, fix = "" if info.name == IN_MEMORY else info.name, 'add at least one: {"id": "1", "input": "2 + 2"}'
            raise DatasetError(NO_SAMPLES, where=where, fix=fix)
    except UsageError as error:
        raise add_place(error, places, "dataset") from None
    return info


def _describe_checks(dataset: SampleSource | None, evaluation: Evaluation) -> DatasetInfo:
    """Return the description of a dataset, which counts the samples with their own evaluators."""
    if dataset is None or isinstance(evaluation.dataset, SessionDataset):
        return DatasetInfo("")
    return dataset.inspect()


def _build_evaluators(evaluation: Evaluation, registry: Registry, required: bool) -> tuple[BoundEvaluator, ...]:
    if not required and not evaluation.evaluators:
        return ()
    evaluators, canary = registry.build_all(evaluation.evaluators), evaluation.canary
    if canary is None:
        return evaluators
    if isinstance(canary, bool) or not isinstance(canary, int) or canary < 1:
        raise ConfigError(f"must be an integer, 1 or more, got {canary!r}", where="canary", fix="write canary: 10")
    if not any(evaluator.spec.judges for evaluator in evaluators):
        raise ConfigError(
            "a canary needs a judge, and no evaluator is one",
            where="canary",
            fix="leave canary out, or add a judge such as llm_judge",
        )
    from proctor.evaluators.opinions import with_canaries

    return with_canaries(evaluators, canary)


def prepare_setup(
    target: TargetLike,
    evaluators: EvaluatorsLike,
    options: Mapping[str, Any],
    registry: Registry,
    *,
    needs_evaluators: bool = True,
) -> Setup:
    """Prepare a target and evaluators without a dataset; one error reports all problems."""
    evaluation = Evaluation(target, (), evaluators, options=options)
    plan = prepare(evaluation, registry, needs_evaluators=needs_evaluators)
    return Setup(target=plan.target, evaluators=plan.evaluators, checks=plan.checks, options=plan.options)


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A target and evaluators by name, for another process to build.

    Paths are relative to `folder`; modules are imported from there and from `modules`.
    """

    target: str | dict[str, Any]
    evaluators: list[str | dict[str, Any]]
    plugins: list[str] = []
    options: dict[str, Any] = {}
    folder: str = "."
    modules: list[str] = []


def build_recipe(evaluation: Evaluation, plugins: Sequence[str] = (), modules: Sequence[Path] = ()) -> bytes:
    """Encode the target and evaluators as JSON: names only, never code."""
    evaluators = evaluation.evaluators
    if isinstance(evaluators, str) or not isinstance(evaluators, Sequence):
        evaluators = [evaluators]
    entries = [("target", evaluation.target), *(("evaluators", evaluator) for evaluator in evaluators)]
    problems = [
        Problem(where, f"{get_callable_name(value)} is an object of this process")
        for where, value in entries
        if not isinstance(value, str | Mapping)
    ]
    if problems:
        raise ConfigError(
            "other processes need a target and evaluators given by name",
            problems=problems,
            fix="write module:attribute, file.py:attribute, or a name as in an eval file",
        )
    return codec.encode(
        Recipe(
            evaluation.target,
            list(evaluators),
            list(plugins),
            dict(evaluation.options),
            str(Path.cwd()),
            [str(folder.resolve()) for folder in modules],
        )
    )


def build_setup(recipe: bytes) -> Setup:
    """Build the setup of a recipe; call it in a separate process, because it changes the working directory."""
    decoded = codec.decode(recipe, Recipe)
    os.chdir(decoded.folder)
    for folder in decoded.modules:
        importing.add_folder(Path(folder))
    registry = Registry.standard()
    registry.load_plugins(decoded.plugins)
    return prepare_setup(decoded.target, decoded.evaluators, decoded.options, registry, needs_evaluators=False)


def check_run_options(options: Mapping[str, Any]) -> RunOptions:
    """Check the options of a run and convert them; one error reports all problems."""
    problems = list(find_option_problems(options))
    if len(problems) == 1:
        raise ConfigError(problems[0].what, where=problems[0].where, fix=problems[0].fix)
    if problems:
        fix = "; ".join(dict.fromkeys(problem.fix for problem in problems))
        raise ConfigError("some options of the run are invalid", problems=problems, fix=fix)
    return msgspec.convert(dict(options), RunOptions)


def find_option_problems(options: Mapping[str, Any]) -> Iterator[Problem]:
    """Find the problems with the options of a run."""
    option_names = RunOptions.__struct_fields__
    for name, value in options.items():
        if name not in option_names:
            yield Problem("", f"unknown option {str(name)!r}", suggest_name(str(name), option_names))
            continue
        try:
            msgspec.convert({name: value}, RunOptions)
        except msgspec.ValidationError as error:
            location, what = explain_parts(error)
            field_type = next(field.type for field in msgspec.structs.fields(RunOptions) if field.name == name)
            if what.startswith("invalid enum value"):
                what = f"must be {join_choices(map(repr, get_args(field_type)))}"
            if location == name and what.startswith("must "):
                what = f"{what.partition(', got ')[0]}, got {value!r}"
            default = getattr(RunOptions(), name)
            fix = f"write {name}={EXAMPLES.get(name, default)!r}"
            if unknown_field := UNKNOWN_FIELD.search(str(error)):
                structs = {"budget": Budget, "select": Selection}
                fix = suggest_name(unknown_field[1], structs.get(name, Budget).__struct_fields__)
            yield Problem(location, what, fix)


def _require_recorded_results(dataset: SampleSource) -> None:
    """Reject several configurations without a target if the samples hold no results for them."""
    if isinstance(dataset, IteratorDataset):
        return  # An iterator can be read only once.
    first = next(iter(dataset), None)
    if first is not None and not isinstance(first.metadata.get(RECORDED), Mapping):
        raise ConfigError(
            f"sample {first.id!r} has no recorded results by configuration, and no target is set to run",
            where="target",
            fix="give a target, or add results to every sample: {recorded: {configuration: result}}",
        )


def _check_samples(target: Target, dataset: SampleSource, configurations: Sequence[Configuration]) -> None:
    """Reject a target that cannot send any of the first samples, for example because of a misspelled placeholder."""
    check_sample = getattr(target, "check_sample", None)
    if check_sample is None or isinstance(dataset, IteratorDataset):
        return
    try:
        samples = list(islice(dataset, SAMPLES_CHECKED))
    except DatasetError:
        return  # The inspection of the dataset reports it.
    for configuration in configurations:
        errors = [check_sample(sample, configuration.options) for sample in samples]
        if errors and all(errors):
            raise TargetError(errors[0].what, where="target", fix=errors[0].fix)


def _check_fields(fields: Mapping[str, str]) -> dict[str, str]:
    problems = []
    for name, path in fields.items():
        try:
            parse_path(path)
        except UsageError as error:
            problems.append(Problem(f"fields.{name}", error.what, error.fix))
    if problems:
        raise ConfigError("some paths of fields are invalid", problems=problems, fix=problems[0].fix)
    return dict(fields)


def _build_tags(evaluation: Evaluation) -> dict[str, str]:
    """Return the tags of the run, with the version of its rubric file or set."""
    entries = find_parameters(RUBRIC, evaluation.evaluators)
    files = [entry.get("rubrics") or STARTER for entry in entries if isinstance(entry.get("rubric", ""), str)]
    versions = dict.fromkeys(load_rubrics(file).version for file in files)
    tags = {RUBRICS_VERSION: ", ".join(versions)} if versions else {}
    return {**tags, **check_tags(evaluation.tags)}


def _check_configurations(
    configurations: Configurations | None,
    target: Target | None,
    dataset: SampleSource | None,
    baseline: str | None,
    *,
    is_recorded: bool,
) -> tuple[Configuration, ...]:
    is_unnamed = not configurations
    configurations = build_configurations(configurations)
    if is_recorded and not is_unnamed:
        configurations = tuple(map(add_configuration_option, configurations))
    names = [configuration.name for configuration in configurations]
    problems = [
        Problem("", f"two configurations are named {name!r}; rename one of them")
        for name in sorted(set(names))
        if names.count(name) > 1
    ]
    if target is not None:
        problems += [
            Problem(f"configurations.{configuration.name}", problem)
            for configuration in configurations
            for problem in target.check_options(configuration.options)
        ]
    if problems and is_unnamed:
        raise TargetError(
            "the target cannot be called with the input alone: " + "; ".join(problem.what for problem in problems),
            where=target.spec.name if target else "",
            fix="give the parameter a default, or set it in a configuration: {'main': {'NAME': …}}",
        )
    if problems:
        raise ConfigError(
            "some configurations are invalid",
            problems=problems,
            fix="correct the configurations above, or the parameters of the target",
        )
    if baseline is not None and baseline not in names:
        unnamed_fix = f"add the configuration {baseline!r} to the evaluation, and one to compare with it"
        raise ConfigError(
            f"no configuration is named {baseline!r}",
            where="baseline",
            fix=unnamed_fix if is_unnamed else suggest_name(baseline, names),
        )
    if dataset is not None and target is not None:
        _check_samples(target, dataset, configurations)
    return configurations


def build_configurations(configurations: Configurations | None) -> tuple[Configuration, ...]:
    """Convert to configurations; if there are none, return one configuration without options."""
    is_text = isinstance(configurations, str)
    if is_text or not isinstance(configurations, Mapping | Iterable | None):
        raise ConfigError(
            f"must be a list or a mapping, got {configurations!r}",
            where="configurations",
            fix=f"write [{configurations!r}]" if is_text else "write configurations={'main': {'temperature': 0}}",
        )
    if not configurations:
        return (Configuration(),)
    if isinstance(configurations, Mapping):
        for name, options in configurations.items():
            if not isinstance(options, Mapping):
                raise ConfigError(
                    f"must be a mapping of options, got {options!r}",
                    where=f"configurations.{name}",
                    fix=f"write {{{name!r}: {{option: value}}}}",
                )
        return tuple(Configuration(str(name), dict(options)) for name, options in configurations.items())
    configurations = tuple(configurations)
    for number, configuration in enumerate(configurations, start=1):
        if not isinstance(configuration, str | Configuration):
            raise ConfigError(
                f"must be a configuration, got {configuration!r}",
                where=f"configurations, {number}",
                fix="write {name: {option: value}}, or configuration(name, option=value)",
            )
    return tuple(
        Configuration(configuration) if isinstance(configuration, str) else configuration
        for configuration in configurations
    )


def load_metrics(
    metrics: Metrics, specs: Sequence[EvaluatorSpec], fields: Mapping[str, str] | None = None
) -> tuple[Any, ...]:
    """Load metrics by address, and reject clashing names before anything runs.

    If rubrics are among the evaluators, their weighted total is added.
    """
    loaded = tuple(Registry().load_metric(metric) for metric in metrics)
    if (rubrics := read_columns(specs, "")).columns:
        loaded = (RubricTotalMetric(rubrics), *loaded)
    if not loaded and not fields:
        _check_metric_names(tuple((spec.name, spec.uses) for spec in specs))
        return ()
    registry = MetricRegistry.of_run(specs, fields or {})
    numbers = _compute_names(registry, specs)
    for metric in loaded:
        registry.register(metric)
    registry.compute_all(ResultList(()))
    names = {get_callable_name(metric) for metric in loaded}
    if names & numbers or any(number.startswith(f"{name}.") for name in names for number in names | numbers):
        _compute_names(registry, specs)
    return loaded


@functools.lru_cache
def _check_metric_names(evaluators: tuple[tuple[str, str], ...]) -> None:
    """Reject evaluators, by name and kind, whose metrics clash; cached, because programs evaluate repeatedly."""
    specs = [EvaluatorSpec(*evaluator) for evaluator in evaluators]
    _compute_names(MetricRegistry.of_run(specs, {}), specs)


def _compute_names(registry: MetricRegistry, specs: Sequence[EvaluatorSpec]) -> set[str]:
    """Compute all metrics on an example result and return their names; clashing names raise an error."""
    scores = {spec.name: Score(1.0, True) for spec in specs}
    trial = Trial(Sample("example", ""), "", latency_ms=1.0, usage=Usage(1, 1))
    return set(registry.compute_all(ResultList([EvalResult(trial, scores)])))


def check_thresholds(
    thresholds: Mapping[str, float],
    specs: Sequence[EvaluatorSpec],
    metrics: Sequence[Any],
    fields: Mapping[str, str] | None = None,
    epochs: int = 1,
) -> None:
    """Reject unknown metrics and unreachable values before the run."""
    if not thresholds:
        return
    require_reachable(thresholds)
    convert_thresholds(thresholds, read_columns(specs, ""))
    standard = MetricRegistry.of_run(specs, {}, epochs)
    # The names of a field's metrics are known before the run.
    custom = [*map(get_callable_name, metrics), *(f"{FIELD_PREFIX}.{name}" for name in fields or ())]
    require_known_metrics(thresholds, standard.compute_all(ResultList(())), custom)
