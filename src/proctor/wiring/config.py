"""Eval files: an evaluation written as YAML, JSON or a Python module, read with all its faults."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.comparison.gates.thresholds import read_thresholds
from proctor.core import imports as importing
from proctor.core.resources import describe_error, how_to_convert
from proctor.core.yaml_text import describe_yaml_error, parse_yaml
from proctor.datasets.formats import JSONL_ENDINGS, TABLE_ENDINGS
from proctor.errors import ConfigError, Problem, nearest
from proctor.records.run import Retention
from proctor.wiring.eval_file import (
    NOTHING_TO_EVALUATE,
    DatasetEntry,
    EvalFile,
    HistoryEntry,
    field_evaluators,
    field_faults,
    field_paths,
    says_what_to_evaluate,
)
from proctor.wiring.open_dataset import holds_sessions, open_dataset
from proctor.wiring.prepare import Evaluation, explain, option_faults


class Loaded(msgspec.Struct, frozen=True):
    """An eval file, read: what to evaluate, and which plugins it takes for that."""

    evaluation: Evaluation
    plugins: tuple[str, ...] = ()


def load(path: Path) -> Loaded:
    """Read an eval file: .yaml, .yml, .json, or a .py module with the same names in it."""
    if not path.is_file():
        raise ConfigError(f"there is no file {str(path)!r}", fix=_look_alike(path))
    if path.suffix == ".py":
        return _from_module(path)
    if path.suffix not in (".yaml", ".yml", ".json"):
        raise ConfigError(
            f"eval files end in .yaml, .yml, .json or .py, not {path.suffix!r}", where=str(path)
        )
    data, lines = _parse(path)
    file = _checked(data, lines, path)
    importing.add_folder(path.parent)
    return _loaded(file, path)


def _parse(path: Path) -> tuple[dict[str, Any], dict[str, int]]:
    """The mapping in a file, and on which line each of its top entries stands."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8-sig")
        data, node = parse_yaml(text)
    except UnicodeDecodeError as error:
        raise ConfigError(
            describe_error(error), where=str(path), fix=how_to_convert(file=str(path))
        ) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        described = describe_yaml_error(error)
        raise ConfigError(
            f"it cannot be read as YAML: {described.what}", where=where, fix=described.fix
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what = str(error).partition("\n")[0]
        raise ConfigError(f"it cannot be read as YAML: {what}", where=str(path)) from None
    if not isinstance(data, dict) or not isinstance(node, yaml.MappingNode):
        raise ConfigError(
            "an eval file is a mapping with dataset, target and evaluators",
            where=str(path),
            fix="`proctor init` writes one to start from",
        )
    _refuse_repeated_keys(node, path)
    return data, {key.value: key.start_mark.line + 1 for key, _ in node.value}


def _refuse_repeated_keys(node: Any, path: Path) -> None:
    """YAML takes the last of two equal keys in silence; here that is a fault."""
    problems: list[Problem] = []

    def visit(node: Any, above: tuple[int, ...] = ()) -> None:
        if id(node) in above:
            raise ConfigError("a part of the file contains itself", where=str(path))
        seen: set[str] = set()
        for child in node.value if isinstance(node.value, list) else ():
            key, value = child if isinstance(child, tuple) else (None, child)
            if key is not None and isinstance(key.value, str):
                if key.value in seen:
                    line = key.start_mark.line + 1
                    problems.append(Problem(f"{path}:{line}", f"the key {key.value!r} is repeated"))
                seen.add(key.value)
            visit(value, (*above, id(node)))

    visit(node)
    if problems:
        raise ConfigError("the eval file has faults", where=str(path), problems=problems)


def _checked(data: dict[str, Any], lines: Mapping[str, int], path: Path) -> EvalFile:
    """The file's entries in their types; every fault with its line."""
    problems = []
    fields = {field.name: field for field in msgspec.structs.fields(EvalFile)}
    good: dict[str, Any] = {}
    for key, value in data.items():
        where = f"{path}:{lines.get(str(key), 1)}"
        if key not in fields:
            problems.append(Problem(where, f"unknown key {key!r}; {nearest(str(key), fields)}"))
            continue
        if key == "run" and isinstance(value, dict):
            faults = list(option_faults(value))
            problems += [Problem(where, f"run.{name}: {what}") for name, what in faults]
            if faults:
                continue
        if key == "fields" and isinstance(value, dict) and (wrong := field_faults(value)):
            problems += [Problem(where, what) for what in wrong]
            continue
        try:
            good[key] = msgspec.convert(value, fields[key].type)
        except msgspec.ValidationError as error:
            problems.append(Problem(where, f"{key}: {_explained(error, key)}"))
    problems += _threshold_faults(good.get("fail_under", {}), lines, path)
    problems += [
        Problem(str(path), f"{name} is missing")
        for name, field in fields.items()
        if field.required and name not in data
    ]
    if "target" not in data and not data.get("fields"):
        problems += _without_target(data, good, problems, lines, path)
    if not problems and not says_what_to_evaluate(good):
        at = f"{path}:{lines['evaluators']}" if "evaluators" in lines else str(path)
        problems.append(Problem(at, NOTHING_TO_EVALUATE))
    if problems:
        raise ConfigError(
            "the eval file has faults",
            where=str(path),
            problems=problems,
            fix="correct the lines above; docs/eval-files.md lists every key",
        )
    return EvalFile(**good)


def _threshold_faults(given: Any, lines: Mapping[str, int], path: Path) -> list[Problem]:
    where = f"{path}:{lines.get('fail_under', 1)}"
    try:
        read_thresholds(given, "fail_under")
    except ConfigError as error:
        return [Problem(where, str(problem)) for problem in error.problems]
    return []


def _explained(error: msgspec.ValidationError, key: str) -> str:
    """What is wrong with an entry; a key in it that means nothing, with those that do."""
    what, named = explain(error), _UNKNOWN.search(str(error))
    known = _INSIDE.get(key)
    if named is None or known is None:
        return what
    return f"{what}; {nearest(named[1], known.__struct_fields__)}"


_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_INSIDE: dict[str, type[msgspec.Struct]] = {"dataset": DatasetEntry, "history": HistoryEntry}


def _without_target(
    data: Mapping[str, Any],
    good: Mapping[str, Any],
    problems: Sequence[Problem],
    lines: Mapping[str, int],
    path: Path,
) -> Iterator[Problem]:
    """What is wrong where no target is named, which only recorded sessions do not need."""
    entry = good.get("dataset")
    entry = DatasetEntry(entry) if isinstance(entry, str) else entry
    if isinstance(entry, DatasetEntry) and not _names_samples(entry):
        where = path.parent / entry.path
        if not where.exists():
            at, what = f"{path}:{lines.get('dataset', 1)}", "there is no such file or folder"
            yield Problem(at, f"dataset: {what} {entry.path!r}; {_look_alike(where)}")
            return
    # Whether a dataset is of sessions nobody knows as long as its entry is wrong.
    is_open = isinstance(data.get("dataset"), dict) and entry is None
    if not is_open and not _of_sessions(good, path):
        yield Problem(str(path), f"target is missing{_unless(good, problems)}")


def _names_samples(entry: DatasetEntry) -> bool:
    ending = Path(entry.path).suffix.lower()
    return entry.format is None and ending in (*JSONL_ENDINGS, *TABLE_ENDINGS)


def _unless(good: Mapping[str, Any], problems: Sequence[Problem]) -> str:
    """What a file may hold that names a dataset, no target, and has no other fault."""
    if problems or not isinstance(good.get("dataset"), str | DatasetEntry):
        return ""
    return "; only recorded sessions need none: dataset: {path: …, format: auto}"


def _of_sessions(good: Mapping[str, Any], path: Path) -> bool:
    """True if the dataset is recorded sessions, which need no target."""
    entry = good.get("dataset")
    entry = DatasetEntry(entry) if isinstance(entry, str) else entry
    return isinstance(entry, DatasetEntry) and holds_sessions(entry, path.parent / entry.path)


def _loaded(file: EvalFile, path: Path) -> Loaded:
    folder = path.parent
    evaluation = Evaluation(
        target=_relative(file.target, folder),
        dataset=open_dataset(file.dataset, folder),
        evaluators=[
            _evaluator(entry, folder) for entry in (*file.evaluators, *field_evaluators(file.fields))
        ],
        configurations=file.configurations,
        metrics=[_located(metric, folder) for metric in file.metrics],
        name=file.name or (path.stem if path.stem != "eval" else path.resolve().parent.name),
        tags=file.tags,
        options=msgspec.to_builtins(file.run),
        fail_under=read_thresholds(file.fail_under, "fail_under"),
        baseline=file.baseline,
        fields=field_paths(file.fields),
        retention=file.history.retention,
        canary=file.canary,
    )
    plugins = tuple(_located(plugin, folder) for plugin in file.plugins)
    return Loaded(evaluation, plugins)


def _relative(target: str | dict[str, Any] | None, folder: Path) -> Any:
    """Paths in an eval file are seen from the file's folder."""
    if target is None or isinstance(target, str):
        return _located(target, folder)
    moved = dict(target)
    if isinstance(moved.get("recorded"), str):
        moved["recorded"] = str(folder / moved["recorded"])
    if str(moved.get("prompt", "")).endswith(".md"):
        moved["prompt"] = str(folder / moved["prompt"])
    if "command" in moved:
        moved["cwd"] = str(folder / moved.get("cwd", "."))
    return moved


def _located(address: Any, folder: Path) -> Any:
    """`file.py:attribute` as seen from a folder; anything else as it is."""
    if not isinstance(address, str):
        return address
    name, colon, attribute = address.rpartition(":")
    return f"{folder / name}:{attribute}" if colon and name.endswith(".py") else address


def _evaluator(entry: Any, folder: Path) -> Any:
    """An evaluator's entry with its address, and its parameters, seen from the file's folder."""
    if not isinstance(entry, dict):
        return _located(entry, folder)
    if "uses" in entry:
        return {**_moved(entry, folder), "uses": _located(entry["uses"], folder)}
    return {_located(name, folder): _moved(given, folder) for name, given in entry.items()}


def _moved(parameters: Any, folder: Path) -> Any:
    """Parameters of an evaluator, files and evaluators in them seen from a folder."""
    if isinstance(parameters, list):
        return [_evaluator(part, folder) for part in parameters]
    if not isinstance(parameters, dict):
        return parameters
    moved = dict(parameters)
    for name, value in parameters.items():
        if name == "evaluators" and isinstance(value, list):
            moved[name] = _moved(value, folder)
        elif name == "combine":
            moved[name] = _located(value, folder)
        elif name in _FILES and isinstance(value, str) and value.endswith(_FILES[name]):
            moved[name] = str(folder / value)
    return moved


# Parameters that may name a file, and how such a name ends.
_FILES = {
    "schema": (".json", ".yaml", ".yml"),
    "prompt": (".md",),
    "rubrics": (".json", ".yaml", ".yml"),
    "template": (".txt", ".md"),
}


def _from_module(path: Path) -> Loaded:
    module = importing.module(str(path))
    names = {field.name for field in msgspec.structs.fields(EvalFile)}
    found = {name: getattr(module, name) for name in names if hasattr(module, name)}
    missing = [] if "dataset" in found else ["dataset"]
    if "target" not in found and not found.get("fields"):
        missing.append("target")
    if not says_what_to_evaluate(found):
        missing.append("evaluators")
    if missing:
        raise ConfigError(
            f"the module does not define {', '.join(missing)}",
            where=str(path),
            fix="give it the names dataset, target and evaluators",
        )
    options, dataset = found.get("run", {}), found["dataset"]
    evaluation = Evaluation(
        target=found.get("target"),
        dataset=path.parent / dataset if isinstance(dataset, str) else dataset,
        evaluators=_with_fields(found.get("evaluators", []), found.get("fields", {})),
        configurations=found.get("configurations"),
        metrics=found.get("metrics", ()),
        name=found.get("name") or path.stem,
        tags=found.get("tags", {}),
        options=msgspec.to_builtins(options),
        fail_under=read_thresholds(found.get("fail_under", {}), "fail_under"),
        baseline=found.get("baseline"),
        fields=field_paths(found.get("fields", {})),
        retention=_retention(found.get("history"), path),
    )
    return Loaded(evaluation, tuple(found.get("plugins", ())))


def _retention(given: Any, path: Path) -> Retention:
    """How long runs are kept; what else a module may call `history` is its own affair."""
    if not isinstance(given, Mapping):
        return Retention()
    try:
        return msgspec.convert(given, HistoryEntry).retention
    except msgspec.ValidationError as error:
        raise ConfigError(f"history: {explain(error)}", where=str(path)) from None


def _with_fields(evaluators: Any, fields: Mapping[str, Any]) -> Any:
    """What a module calls its evaluators, and those of its fields."""
    more = field_evaluators(fields)
    if not more:
        return evaluators
    several = isinstance(evaluators, list | tuple)
    return [*(evaluators if several else [evaluators]), *more]


def _look_alike(path: Path) -> str:
    folder = path.parent
    names = [file.name for file in folder.iterdir()] if folder.is_dir() else []
    return nearest(path.name, names) if names else "check the path"
