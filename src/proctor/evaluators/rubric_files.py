"""Load and validate rubric files, and describe them as a JSON Schema."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from proctor.core import resources
from proctor.core.resources import describe_error, how_to_convert
from proctor.core.yaml_text import describe_yaml_error, load_yaml, parse_yaml
from proctor.errors import ConfigError, Problem, suggest_name
from proctor.records.rubric import (
    Rubric,
    RubricProblem,
    RubricSet,
    find_rubric_problems,
    find_set_problems,
    make_rubric,
    make_rubric_set,
)

STARTER = "starter"
SCHEMA_FILE = "rubrics.schema.json"
ENDINGS = (".json", ".yaml", ".yml")
_MAX_BYTES = 10_000_000

# Keys and indexes that lead to an entry of a file.
Place = tuple[str | int, ...]


def load_rubrics(source: Any) -> RubricSet:
    """Return the rubrics of a file, of plain data, or the built-in set "starter".

    >>> [rubric.id for rubric in load_rubrics("starter")][:2]
    ['task_completion', 'instruction_following']
    """
    if isinstance(source, RubricSet):
        return source
    if isinstance(source, str | Path):
        return _load_file(_resolve_path(source))
    if isinstance(source, list | tuple):
        source = {"version": "1.0", "rubrics": [_as_data(rubric) for rubric in source]}
    _raise_faults(find_set_problems(source), "rubrics", SourceLines())
    return make_rubric_set(source)


def read_rubric_text(source: str | Path) -> str:
    """Return the text of a rubric file, as a starting point for your own."""
    return _resolve_path(source).read_text(encoding="utf-8")


def _resolve_path(source: str | Path) -> Path:
    if str(source) == STARTER:
        return resources.path("evaluators", f"{STARTER}_rubrics.yaml")
    return Path(source)


def load_rubric(source: Any, rubric_set: Any = None) -> Rubric:
    """Return one rubric from a `Rubric`, from plain data, or by its id in a rubric file."""
    if isinstance(source, str):
        file = STARTER if rubric_set is None else rubric_set
        rubrics = load_rubrics(file)
        ids = [rubric.id for rubric in rubrics]
        if source not in ids:
            raise ConfigError(
                f"there is no rubric {source!r}", where=str(file), fix=suggest_name(source, ids)
            )
        rubric = rubrics[source]
        return msgspec.structs.replace(rubric, scale=rubric.scale or rubrics.scale)
    data = _as_data(source)
    _raise_faults(find_rubric_problems(data), "rubric", SourceLines())
    return make_rubric(data)


def _as_data(rubric: Any) -> Any:
    return msgspec.structs.asdict(rubric) if isinstance(rubric, Rubric) else rubric


def _load_file(path: Path) -> RubricSet:
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(
            f"rubric files end in {', '.join(ENDINGS)}, not {path.suffix!r}",
            where=str(path),
            fix=f"write {STARTER!r} for the built-in rubrics",
        )
    text = _read_file(path)
    lines = SourceLines(text)
    data = _parse_json(text, path) if path.suffix.lower() == ".json" else _parse_yaml(text, path)
    _raise_faults([*lines.repeated, *find_set_problems(data)], str(path), lines)
    return make_rubric_set(data)


def _read_file(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigError("it is too large for a rubric file", where=str(path))
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        fix = how_to_convert(file=str(path))
        raise ConfigError(describe_error(error), where=str(path), fix=fix) from None
    except OSError as error:
        raise ConfigError(
            f"the rubrics cannot be read: {error.strerror or error}",
            where=str(path),
            fix=f"check the path, or write {STARTER!r} for the built-in rubrics",
        ) from None


def _parse_json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"it cannot be read as JSON: {error.msg}", where=f"{path}:{error.lineno}") from None
    except RecursionError:
        raise ConfigError("it is nested too deep", where=str(path)) from None


def _parse_yaml(text: str, path: Path) -> Any:
    import yaml

    try:
        return load_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        described = describe_yaml_error(error)
        raise ConfigError(
            f"it cannot be read as YAML: {described.what}",
            where=f"{path}:{mark.line + 1}" if mark else str(path),
            fix=described.fix,
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what = str(error).partition("\n")[0]
        raise ConfigError(f"it cannot be read as YAML: {what}", where=str(path)) from None


class SourceLines:
    """The line of each entry of a file, and the keys that are repeated."""

    def __init__(self, text: str = "") -> None:
        import yaml

        self._lines: dict[Place, int] = {}
        self.repeated: list[RubricProblem] = []
        try:
            _, node = parse_yaml(text.replace("\t", " "))
        except (yaml.YAMLError, ValueError, RecursionError):
            return  # the parser of the file reports this error
        if node is not None:
            self._visit(node, (), frozenset())

    def _visit(self, node: Any, at: Place, ancestors: frozenset[int]) -> None:
        self._lines.setdefault(at, node.start_mark.line + 1)
        if id(node) in ancestors or not isinstance(node.value, list):
            return
        for index, child in enumerate(node.value):
            if not isinstance(child, tuple):
                self._visit(child, (*at, index), ancestors | {id(node)})
                continue
            key, value = child
            entry = (*at, str(key.value))
            is_repeated = entry in self._lines
            self._lines[entry] = key.start_mark.line + 1
            if is_repeated:
                self.repeated.append((entry, "this key is repeated"))
            else:
                self._visit(value, entry, ancestors | {id(node)})

    def of(self, at: Place) -> int | None:
        """Return the line of an entry, or of the nearest entry that contains it."""
        containers = (at[:n] for n in range(len(at), -1, -1))
        return next((self._lines[place] for place in containers if place in self._lines), None)

    def place(self, at: Place, where: str) -> str:
        """Return the file, line and path of an entry, for an error message."""
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at)
        line = self.of(at)
        location = f"{where}:{line}" if line is not None else ""
        return ", ".join(text for text in (location, path.lstrip(".")) if text)


def _raise_faults(faults: Iterable[RubricProblem], where: str, lines: SourceLines) -> None:
    in_file_order = sorted(faults, key=lambda fault: lines.of(fault[0]) or 0)
    problems = [Problem(lines.place(at, where), what) for at, what in in_file_order]
    if problems:
        what = f"the rubrics have {len(problems)} fault{'s' if len(problems) > 1 else ''}"
        fix = "correct the places above; docs/rubrics.md describes rubric files"
        raise ConfigError(what, where=where, problems=problems, fix=fix)


def rubric_schema() -> dict[str, Any]:
    """Return the JSON Schema of rubric files, for editors."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Proctor rubric file"}
    return {**head, **_clean_schema(msgspec.json.schema(RubricSet))}


def _clean_schema(node: Any) -> Any:
    # Python 3.13 removes the indent of docstrings, older versions do not.
    if isinstance(node, dict):
        return {
            key: inspect.cleandoc(value)
            if key == "description" and isinstance(value, str)
            else _clean_schema(value)
            for key, value in node.items()
            # Additional keys are allowed: they are stored in the metadata.
            if (key, value) != ("additionalProperties", False)
        }
    return [_clean_schema(item) for item in node] if isinstance(node, list) else node
