"""Load eval files: evaluations written as YAML, JSON or a Python module."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from proctor.comparison.gates.thresholds import read_thresholds
from proctor.core import imports as importing
from proctor.core.resources import describe_conversion, describe_decode_error, quote_yaml, suggest_file
from proctor.core.yaml_text import InvalidYAML, read_yaml
from proctor.datasets.dataset import make_source
from proctor.datasets.formats import JSON_ENDINGS, JSONL_ENDINGS, TABLE_ENDINGS, format_suffix
from proctor.datasets.mapping import EVALUATORS
from proctor.datasets.sessions import SessionDataset
from proctor.errors import ConfigError, Problem, UsageError, suggest_name
from proctor.records.run import Retention
from proctor.records.validation import explain
from proctor.wiring.eval_file import (
    DatasetEntry,
    EvalFile,
    HistoryEntry,
    field_evaluators,
    field_paths,
    find_field_problems,
    has_evaluators,
)
from proctor.wiring.open_dataset import holds_sessions, open_dataset
from proctor.wiring.prepare import UNKNOWN_FIELD, Evaluation, add_place, find_option_problems

EVAL_FILE_FIX = "correct the lines above; docs/eval-files.md lists every key"
ENTRY_TYPES: dict[str, type[msgspec.Struct]] = {"dataset": DatasetEntry, "history": HistoryEntry}
# Parameters that may be file names, and the extensions of these files.
FILE_PARAMETERS = {
    "schema": (".json", ".yaml", ".yml"),
    "prompt": (".md",),
    "rubrics": (".json", ".yaml", ".yml"),
    "template": (".txt", ".md"),
}


class LoadedEvalFile(msgspec.Struct, frozen=True):
    """The content of an eval file: the evaluation, and the plugins it needs."""

    evaluation: Evaluation
    plugins: tuple[str, ...] = ()


def load_eval_file(
    path: Path, overridden: Collection[str] = (), dataset_settings: Mapping[str, Any] = {}
) -> LoadedEvalFile:
    """Read an eval file: .yaml, .yml, .json, or a .py module with the same names.

    The file may lack the keys that are `overridden`: dataset, target or evaluators. `dataset_settings` override those
    of its dataset, if that is a file.
    """
    if "dataset" in overridden:
        dataset_settings = {}
    if not path.is_file():
        raise _make_path_error(path)
    if path.suffix == ".py":
        return _load_module(path, overridden, dataset_settings)
    if path.suffix not in (".yaml", ".yml", ".json"):
        is_dataset = format_suffix(path) in (*JSONL_ENDINGS, *TABLE_ENDINGS, *JSON_ENDINGS)
        raise ConfigError(
            f"an eval file ends in .yaml, .yml, .json or .py, not {path.suffix!r}",
            where=str(path),
            fix=_advise_dataset(path) if is_dataset else "rename the file, or create an eval file: proctor init",
        )
    data, lines = _parse(path)
    if dataset_settings and "dataset" in data:
        data["dataset"] = _add_settings(data["dataset"], dataset_settings, path)
    if "prompts" in data and ("providers" in data or "targets" in data):
        raise ConfigError(
            "this is a configuration of promptfoo, not an eval file",
            where=str(path),
            fix=f"translate it: proctor import {shlex.quote(str(path))} --eval-file eval.yaml",
        )
    file = _Checker(data, lines, path, overridden).check()
    importing.add_folder(path.parent)
    places = {"": str(path), **{key: f"{path}:{line}" for key, line in lines.items()}}
    if not isinstance(file.dataset, list):
        places["dataset.path"] = file.dataset if isinstance(file.dataset, str) else file.dataset.path
    try:
        return _build(file, path, places)
    except UsageError as error:
        raise add_place(error, places, "dataset") from None


def _make_path_error(path: Path) -> ConfigError:
    if path.is_dir():
        names = sorted(file.name for ending in (".yaml", ".yml") for file in path.glob(f"*{ending}"))
        name = "eval.yaml" if "eval.yaml" in names or not names else names[0]
        fix = f"name the eval file: {path / name}" if names else "name an eval file, which `proctor init` creates"
        fix += f"; a folder of logs or traces is a dataset: --dataset {shlex.quote(str(path))}"
        return ConfigError("this is a folder, not an eval file", where=str(path), fix=fix)
    suffixes = (".yaml", ".yml") if path.suffix not in (".py", ".json") else (path.suffix,)
    hint = suggest_file(path, suffixes)
    fix = hint if hint.endswith("?") else f"{hint}, or create an eval file: proctor init"
    return ConfigError("file not found", where=str(path), fix=fix)


def _advise_dataset(path: Path) -> str:
    return f"to run a dataset, write --dataset {shlex.quote(str(path))} --target app.py:answer -e exact_match"


def _add_settings(dataset: Any, settings: Mapping[str, Any], path: Path) -> Any:
    """Return the entry of a dataset with settings from the command line."""
    if isinstance(dataset, str):
        return {"path": dataset, **settings}
    if isinstance(dataset, dict):
        return {**dataset, **settings}
    raise ConfigError(
        f"{' and '.join(settings)} cannot change samples that the eval file contains",
        where=str(path),
        fix="leave it out, or move the samples to a file",
    )


def _parse(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the mapping in a file, and the line of each top-level key."""
    try:
        data, lines = read_yaml(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        fix = describe_conversion(file=str(path))
        raise ConfigError(describe_decode_error(error), where=str(path), fix=fix) from None
    except InvalidYAML as error:
        what = f"not valid YAML: {error.what}"
        raise ConfigError(what, where=error.where(path), fix=error.fix) from None
    if not isinstance(data, dict):
        what = "the file is empty; " if data is None else ""
        raise ConfigError(
            f"{what}an eval file is a mapping with dataset, target and evaluators",
            where=str(path),
            fix=_advise_dataset(path)
            if isinstance(data, list) and path.suffix == ".json"
            else "`proctor init` writes one to start from",
        )
    # YAML would silently use the last of several equal keys.
    repeated = [Problem(f"{path}:{line}", f"the key {entry[-1]!r} is repeated") for entry, line in lines.repeated]
    if repeated:
        raise ConfigError("the eval file has problems", where=str(path), problems=repeated, fix=EVAL_FILE_FIX)
    return data, {key: lines.find_line((str(key),)) or 1 for key in data}


class _Checker:
    """Converts the entries of an eval file, and collects every problem with its line."""

    def __init__(
        self, data: dict[str, Any], lines: Mapping[str, int], path: Path, overridden: Collection[str] = ()
    ) -> None:
        self._data = data
        self._overridden = overridden
        self._lines = lines
        self._path = path
        self._fields = {field.name: field for field in msgspec.structs.fields(EvalFile)}
        self._values: dict[str, Any] = {}
        self._problems: list[Problem] = []

    def check(self) -> EvalFile:
        for key, value in self._data.items():
            problems = list(self._convert(key, value))
            self._problems += [Problem(self._line_of(str(key)), problem) for problem in problems]
        try:
            read_thresholds(self._values.get("fail_under", {}), "fail_under")
        except ConfigError as error:
            where = self._line_of("fail_under")
            self._problems += [Problem(where, str(problem)) for problem in error.problems]
        self._problems += [
            Problem(str(self._path), f"{name} is missing")
            for name, field in self._fields.items()
            if field.required and name not in self._data and name not in self._overridden
        ]
        if "target" not in {*self._data, *self._overridden} and not self._data.get("fields"):
            self._problems += self._check_without_target()
        is_readable = {"dataset", "evaluators", "fields"}.isdisjoint(self._data.keys() - self._values.keys())
        if is_readable and not self._has_evaluators():
            where = self._line_of("evaluators") if "evaluators" in self._lines else str(self._path)
            problem = "evaluators is missing or empty, and neither an entry of `fields` nor a sample has evaluators"
            self._problems.append(Problem(where, problem))
        if self._problems:
            raise ConfigError(
                "the eval file has problems", where=str(self._path), problems=self._problems, fix=EVAL_FILE_FIX
            )
        return EvalFile(**{"dataset": [], **self._values})

    def _has_evaluators(self) -> bool:
        # The command line may bring the evaluators, or a dataset whose samples bring them.
        is_overridden = {"dataset", "evaluators"} & {*self._overridden}
        if is_overridden or has_evaluators(self._values):
            return True
        return "dataset" in self._values and has_checks(self._values, self._path.parent)

    def _line_of(self, key: str) -> str:
        return f"{self._path}:{self._lines.get(key, 1)}"

    def _convert(self, key: Any, value: Any) -> Iterator[str]:
        if key not in self._fields:
            yield f"unknown key {key!r}; {suggest_name(str(key), self._fields)}"
            return
        problems: list[str] = []
        if key == "run" and isinstance(value, dict):
            problems = [
                f"run.{problem}" if problem.where else f"run: {problem}; {problem.fix}"
                for problem in find_option_problems(value)
            ]
        elif key == "fields" and isinstance(value, dict):
            problems = find_field_problems(value)
        if problems:
            yield from problems
            return
        try:
            self._values[key] = msgspec.convert(value, self._fields[key].type)
        except msgspec.ValidationError as error:
            problem, unknown_field = explain(error, key), UNKNOWN_FIELD.search(str(error))
            if isinstance(value, str) and "must be a list" in problem:
                problem += f"; write {key}: [{quote_yaml(value)}]"
            if unknown_field is not None and key in ENTRY_TYPES:
                problem += f"; {suggest_name(unknown_field[1], ENTRY_TYPES[key].__struct_fields__)}"
            yield problem

    def _check_without_target(self) -> Iterator[Problem]:
        """Find problems in a file without a target, which is valid only for recorded sessions."""
        hint = ""
        entry = self._values.get("dataset")
        if isinstance(entry, str):
            entry = DatasetEntry(entry)
        if isinstance(entry, DatasetEntry):
            path = self._path.parent / entry.path
            is_sample_file = entry.format is None and path.suffix.lower() in (*JSONL_ENDINGS, *TABLE_ENDINGS)
            if not is_sample_file and not path.exists():
                hint = suggest_file(path).replace(f"{self._path.parent}/", "")
                problem = f"dataset: file not found: {entry.path}; {hint}"
                yield Problem(self._line_of("dataset"), problem)
                return
            if holds_sessions(entry, path):
                return
            if not self._problems:
                hint = "; only recorded sessions need none: dataset: {path: …, format: auto}"
        elif entry is None and isinstance(self._data.get("dataset"), dict):
            return  # An invalid entry may be an entry for sessions.
        yield Problem(str(self._path), f"target is missing{hint}")


def has_checks(values: Mapping[str, Any], folder: Path) -> bool:
    """True if samples have their own evaluators, or cannot be read, which the run reports."""
    dataset: Any = values.get("dataset")
    try:
        if isinstance(dataset, str | DatasetEntry):
            dataset = open_dataset(dataset, folder)
        return not isinstance(dataset, SessionDataset | Iterator) and make_source(dataset).inspect().checked_samples > 0
    except UsageError:
        return True


def name_by_path(path: Path) -> str:
    """Return the name of an eval file without `name`: that of the file, or of the folder of `eval.yaml`."""
    return path.stem if path.stem != "eval" else path.resolve().parent.name


def _build(file: EvalFile, path: Path, places: Mapping[str, str]) -> LoadedEvalFile:
    folder = path.parent
    evaluators = (*file.evaluators, *field_evaluators(file.fields))
    evaluation = Evaluation(
        target=resolve_target(file.target, folder),
        dataset=_resolve_samples(open_dataset(file.dataset, folder), folder),
        evaluators=[_resolve_evaluator(entry, folder) for entry in evaluators],
        configurations=file.configurations,
        metrics=[_resolve_address(metric, folder) for metric in file.metrics],
        name=file.name or name_by_path(path),
        tags=file.tags,
        options=msgspec.to_builtins(file.run),
        fail_under=read_thresholds(file.fail_under, "fail_under"),
        baseline=file.baseline,
        fields=field_paths(file.fields),
        retention=file.history.retention,
        canary=file.canary,
        places=places,
    )
    return LoadedEvalFile(evaluation, tuple(_resolve_address(plugin, folder) for plugin in file.plugins))


def resolve_target(target: str | dict[str, Any] | None, folder: Path) -> Any:
    """Return a target whose paths are joined to the folder that they are relative to, such as that of an eval file."""
    if target is None or isinstance(target, str):
        return _resolve_address(target, folder)
    resolved = dict(target)
    if "uses" in resolved:
        resolved["uses"] = _resolve_address(resolved["uses"], folder)
    if isinstance(resolved.get("recorded"), str):
        resolved["recorded"] = str(folder / resolved["recorded"])
    if str(resolved.get("prompt", "")).endswith(".md"):
        resolved["prompt"] = str(folder / resolved["prompt"])
    if "command" in resolved:
        resolved["cwd"] = str(folder / resolved.get("cwd", "."))
    return resolved


def _resolve_address(address: Any, folder: Path) -> Any:
    """Resolve `file.py:attribute`; return anything else unchanged."""
    if not isinstance(address, str):
        return address
    name, colon, attribute = address.rpartition(":")
    return f"{folder / name}:{attribute}" if colon and name.endswith(".py") else address


def _resolve_samples(dataset: Any, folder: Path) -> Any:
    """Resolve the addresses in the evaluators of inline samples."""
    if not isinstance(dataset, list):
        return dataset
    return [
        {**sample, EVALUATORS: [_resolve_evaluator(entry, folder) for entry in sample[EVALUATORS]]}
        if isinstance(sample.get(EVALUATORS), list)
        else sample
        for sample in dataset
    ]


def _resolve_evaluator(entry: Any, folder: Path) -> Any:
    if not isinstance(entry, dict):
        return _resolve_address(entry, folder)
    if "uses" in entry:
        return {**_resolve_parameters(entry, folder), "uses": _resolve_address(entry["uses"], folder)}
    return {
        _resolve_address(name, folder): _resolve_parameters(parameters, folder) for name, parameters in entry.items()
    }


def _resolve_parameters(parameters: Any, folder: Path) -> Any:
    if isinstance(parameters, list):
        return [_resolve_evaluator(entry, folder) for entry in parameters]
    if not isinstance(parameters, dict):
        return parameters
    resolved = dict(parameters)
    for name, value in parameters.items():
        if name == "evaluators" and isinstance(value, list):
            resolved[name] = _resolve_parameters(value, folder)
        elif name == "combine":
            resolved[name] = _resolve_address(value, folder)
        elif isinstance(value, str) and value.endswith(FILE_PARAMETERS.get(name, ())):
            resolved[name] = str(folder / value)
    return resolved


def _load_module(path: Path, overridden: Collection[str], dataset_settings: Mapping[str, Any]) -> LoadedEvalFile:
    module = importing.import_module(str(path))
    names = [field.name for field in msgspec.structs.fields(EvalFile)]
    values = {name: getattr(module, name) for name in names if hasattr(module, name)}
    if dataset_settings and "dataset" in values:
        entry = _add_settings(values["dataset"], dataset_settings, path)
        values["dataset"] = open_dataset(msgspec.convert(entry, DatasetEntry), path.parent)
    missing = [] if "dataset" in values else ["dataset"]
    if "target" not in values and not values.get("fields"):
        missing.append("target")
    missing = [name for name in missing if name not in overridden]
    is_complete = {"dataset", "evaluators"} & {*overridden} or has_evaluators(values)
    if not is_complete and not ("dataset" in values and has_checks(values, path.parent)):
        missing.append("evaluators")
    if missing:
        raise ConfigError(
            f"the module does not define {', '.join(missing)}",
            where=str(path),
            fix="define dataset, target and evaluators in the module",
        )
    dataset, fields = values.get("dataset", ()), values.get("fields", {})
    evaluators = values.get("evaluators", [])
    if more := field_evaluators(fields):
        evaluators = [*(evaluators if isinstance(evaluators, list | tuple) else [evaluators]), *more]
    shared = ("configurations", "metrics", "tags", "baseline", "canary")
    evaluation = Evaluation(
        values.get("target"),
        path.parent / dataset if isinstance(dataset, str) else dataset,
        evaluators,
        name=values.get("name") or path.stem,
        options=msgspec.to_builtins(values.get("run", {})),
        fail_under=read_thresholds(values.get("fail_under", {}), "fail_under"),
        fields=field_paths(fields),
        retention=_read_retention(values.get("history"), path),
        places=dict.fromkeys(("", *values), str(path)),
        **{name: values[name] for name in shared if name in values},
    )
    return LoadedEvalFile(evaluation, tuple(values.get("plugins", ())))


def _read_retention(history: Any, path: Path) -> Retention:
    # A module may use the name `history` for something else.
    if not isinstance(history, Mapping):
        return Retention()
    try:
        return msgspec.convert(history, HistoryEntry).retention
    except msgspec.ValidationError as error:
        fix = "write history = {'retention_days': 30}"
        raise ConfigError(explain(error, "history"), where=str(path), fix=fix) from None
