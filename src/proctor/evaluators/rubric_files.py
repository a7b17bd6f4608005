"""The JSON Schema of rubric files, for editors."""

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
from proctor.errors import ConfigError, Problem, nearest
from proctor.records.rubric import (
    Fault,
    Rubric,
    RubricSet,
    faults_of_rubric,
    faults_of_set,
    rubric_from,
    set_from,
)

STARTER = "starter"
ENDINGS = (".json", ".yaml", ".yml")
_LONGEST = 10_000_000

Place = tuple[str | int, ...]


def load_rubrics(source: Any) -> RubricSet:
    """The rubrics of a file, of plain data, or those that ship under the name "starter".

    >>> [rubric.id for rubric in load_rubrics("starter")][:2]
    ['task_completion', 'instruction_following']
    """
    if isinstance(source, RubricSet):
        return source
    if isinstance(source, str | Path):
        return _from_file(_place_of(source))
    if isinstance(source, list | tuple):
        source = {"version": "1.0", "rubrics": [as_data(one) for one in source]}
    _refuse(faults_of_set(source), "rubrics", Lines())
    return set_from(source)


def text_of(source: str | Path) -> str:
    """A rubric file as it stands, to be made one's own."""
    return _place_of(source).read_text(encoding="utf-8")


def _place_of(source: str | Path) -> Path:
    if str(source) == STARTER:
        return resources.path("evaluators", f"{STARTER}_rubrics.yaml")
    return Path(source)


def one_rubric(given: Any, among: Any = None) -> Rubric:
    """One rubric: as it is, as plain data, or by its id among those of a file.

    >>> one_rubric("safety").name
    'Safety'
    """
    if isinstance(given, Rubric):
        given = as_data(given)
    if isinstance(given, str):
        rubrics = load_rubrics(STARTER if among is None else among)
        known = [rubric.id for rubric in rubrics]
        if given not in known:
            raise ConfigError(
                f"there is no rubric {given!r}",
                where=STARTER if among is None else str(among),
                fix=nearest(given, known),
            )
        found = rubrics[given]
        own = rubrics.scale if found.scale is None else found.scale
        return rubric_from({**as_data(found), "scale": own})
    _refuse(faults_of_rubric(given), "rubric", Lines())
    return rubric_from(given)


def as_data(rubric: Any) -> Any:
    """A rubric as plain data; whatever else it is, as it is."""
    if not isinstance(rubric, Rubric):
        return rubric
    return {name: getattr(rubric, name) for name in rubric.__struct_fields__}


def _from_file(path: Path) -> RubricSet:
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(
            f"rubric files end in {', '.join(ENDINGS)}, not {path.suffix!r}",
            where=str(path),
            fix=f"write {STARTER!r} for the rubrics that ship",
        )
    text = _text(path)
    lines = Lines(text)
    data = _json(text, path) if path.suffix.lower() == ".json" else _yaml(text, path)
    _refuse([*lines.repeated, *faults_of_set(data)], str(path), lines)
    return set_from(data)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LONGEST:
            raise ConfigError("it is too large for a rubric file", where=str(path))
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            describe_error(error), where=str(path), fix=how_to_convert(file=str(path))
        ) from None
    except OSError as error:
        raise ConfigError(
            f"the rubrics cannot be read: {error.strerror or error}",
            where=str(path),
            fix=f"check the path, or write {STARTER!r} for the rubrics that ship",
        ) from None


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"it cannot be read as JSON: {error.msg}", where=f"{path}:{error.lineno}") from None
    except RecursionError:
        raise ConfigError("it is nested too deep", where=str(path)) from None


def _yaml(text: str, path: Path) -> Any:
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


class Lines:
    """On which line of a file each place stands, and the keys that stand there twice."""

    def __init__(self, text: str = "") -> None:
        import yaml

        self._found: dict[Place, int] = {}
        self.repeated: list[Fault] = []
        try:
            _, node = parse_yaml(text.replace("\t", " "))
        except (yaml.YAMLError, ValueError, RecursionError):
            return  # what is wrong is said by whoever reads it
        if node is not None:
            self._visit(node, (), frozenset())

    def _visit(self, node: Any, at: Place, above: frozenset[int]) -> None:
        self._found.setdefault(at, node.start_mark.line + 1)
        if id(node) in above or not isinstance(node.value, list):
            return
        inside = above | {id(node)}
        for place, child in enumerate(node.value):
            key, value = child if isinstance(child, tuple) else (None, child)
            step = place if key is None else str(key.value)
            if key is not None and (*at, step) in self._found:
                self.repeated.append(((*at, step), "this key is repeated"))
                self._found[(*at, step)] = key.start_mark.line + 1
                continue
            if key is not None:
                self._found[(*at, step)] = key.start_mark.line + 1
            self._visit(value, (*at, step), inside)

    def of(self, at: Place) -> int | None:
        """The line of a place, or of the nearest around it that is there."""
        around = (at[:n] for n in range(len(at), -1, -1))
        return next((self._found[place] for place in around if place in self._found), None)

    def place(self, at: Place, where: str) -> str:
        """A place as its writer would look for it: the line, and the way through the keys."""
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at)
        line = self.of(at)
        told = f"{where}:{line}" if line is not None else ""
        return ", ".join(part for part in (told, path.lstrip(".")) if part)


def _refuse(faults: Iterable[Fault], where: str, lines: Lines) -> None:
    # In the order in which whoever mends them goes through the file.
    found = sorted(faults, key=lambda fault: lines.of(fault[0]) or 0)
    problems = [Problem(lines.place(at, where), what) for at, what in found]
    if problems:
        raise ConfigError(
            f"the rubrics have {len(problems)} fault{'s' if len(problems) > 1 else ''}",
            where=where,
            problems=problems,
            fix="mend the places above; docs/rubrics.md tells what a rubric file holds",
        )


SCHEMA_FILE = "rubrics.schema.json"


def schema() -> dict[str, Any]:
    """The JSON Schema of rubric files.

    >>> schema()["title"]
    'Proctor rubric file'
    """
    made: dict[str, Any] = _tidied(msgspec.json.schema(RubricSet))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {**head, "title": "Proctor rubric file", **made}


def _tidied(part: Any) -> Any:
    """Descriptions as docstrings are meant: Python 3.13 takes their indent away, older ones not."""
    if isinstance(part, dict):
        return {
            key: inspect.cleandoc(value)
            if key == "description" and isinstance(value, str)
            else _tidied(value)
            for key, value in part.items()
            # Further keys are kept in the metadata.
            if (key, value) != ("additionalProperties", False)
        }
    return [_tidied(one) for one in part] if isinstance(part, list) else part
