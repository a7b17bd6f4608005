"""Load and validate rubric files, and describe them as a JSON Schema."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from proctor.core import resources
from proctor.core.resources import describe_conversion, describe_decode_error, describe_json_error, describe_os_error
from proctor.core.yaml_text import InvalidYAML, SourceLines, read_lines, read_yaml
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
FILE_EXTENSIONS = (".json", ".yaml", ".yml")
_MAX_BYTES = 10_000_000


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
    _raise_problems(find_set_problems(source), "rubrics", SourceLines())
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
            raise ConfigError(f"unknown rubric {source!r}", where=str(file), fix=suggest_name(source, ids))
        rubric = rubrics[source]
        return msgspec.structs.replace(rubric, scale=rubric.scale or rubrics.scale)
    data = _as_data(source)
    _raise_problems(find_rubric_problems(data), "rubric", SourceLines())
    return make_rubric(data)


def _as_data(rubric: Any) -> Any:
    return msgspec.structs.asdict(rubric) if isinstance(rubric, Rubric) else rubric


def _load_file(path: Path) -> RubricSet:
    if path.suffix.lower() not in FILE_EXTENSIONS:
        raise ConfigError(
            f"a rubric file must end in {', '.join(FILE_EXTENSIONS[:-1])} or {FILE_EXTENSIONS[-1]}",
            where=str(path),
            fix=f"rename the file, or write {STARTER!r} for the built-in rubrics",
        )
    text = _read_file(path)
    data, lines = _parse_json(text, path) if path.suffix.lower() == ".json" else _parse_yaml(text, path)
    repeated = [(entry, "this key is repeated") for entry, _ in lines.repeated]
    _raise_problems([*repeated, *find_set_problems(data)], str(path), lines)
    return make_rubric_set(data)


def _read_file(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ConfigError(f"the rubric file is larger than {_MAX_BYTES:,} bytes", where=str(path))
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        fix = describe_conversion(file=str(path))
        raise ConfigError(describe_decode_error(error), where=str(path), fix=fix) from None
    except OSError as error:
        raise ConfigError(
            describe_os_error(error, "the rubrics cannot be read"),
            where=str(path),
            fix=f"check the path, or write {STARTER!r} for the built-in rubrics",
        ) from None


def _parse_json(text: str, path: Path) -> tuple[Any, SourceLines]:
    try:
        return json.loads(text), read_lines(text)
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(text.rstrip())
        reason = "unexpected end of file" if is_cut else describe_json_error(error)
        what = f"not valid JSON: {reason} at column {error.colno}"
        fix = "complete the file, or write it as YAML" if is_cut else "correct this line"
        raise ConfigError(what, where=f"{path}:{error.lineno}", fix=fix) from None
    except RecursionError:
        raise ConfigError("the JSON is too deeply nestedly", where=str(path)) from None


def _parse_yaml(text: str, path: Path) -> tuple[Any, SourceLines]:
    try:
        return read_yaml(text)
    except InvalidYAML as error:
        what = f"not valid YAML: {error.what}"
        raise ConfigError(what, where=error.where(path), fix=error.fix) from None


def _raise_problems(rubric_problems: Iterable[RubricProblem], where: str, lines: SourceLines) -> None:
    in_file_order = sorted(rubric_problems, key=lambda problem: lines.find_line(problem[0]) or 0)
    problems = [Problem(lines.describe(path, where), what) for path, what in in_file_order]
    if problems:
        what = f"the rubrics have {len(problems)} problem{'s' * (len(problems) > 1)}"
        fix = "correct the lines above; docs/rubrics.md describes rubric files"
        raise ConfigError(what, where=where, problems=problems, fix=fix)


def rubric_schema() -> dict[str, Any]:
    """Return the JSON Schema of rubric files, for editors."""
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Proctor rubric file"}
    return {**head, **_clean_schema(msgspec.json.schema(RubricSet))}


def _clean_schema(node: Any) -> Any:
    # Python 3.13 removes the indent of docstrings, older versions do not.
    if isinstance(node, dict):
        return {
            key: inspect.cleandoc(value) if key == "description" and isinstance(value, str) else _clean_schema(value)
            for key, value in node.items()
            # Additional keys are allowed: they are stored in the metadata.
            if (key, value) != ("additionalProperties", False)
        }
    return [_clean_schema(item) for item in node] if isinstance(node, list) else node
