"""Prompts in their own files: Markdown under a head that names the prompt and its parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from proctor.errors import ModelError, Problem, nearest
from proctor.prompts.parameters import TYPES
from proctor.utf8 import describe_error, how_to_convert
from proctor.yaml_text import describe_yaml_error, load_yaml

ROLES = ("system", "user")
_MARK = re.compile(
    r"^<!--[ \t]*(\w+)(?:[ \t]+if[ \t]+(\w+))?[ \t]*-->[ \t]*(?:\n|\Z)", re.MULTILINE
)
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_WORDS = ("ns", "key", "name")
_HEAD = (*_WORDS, "version", "parameters")


class Part(NamedTuple):
    """What stands under one mark of the file."""

    role: str
    only_if: str | None
    text: str


class PromptFile(NamedTuple):
    """A prompt file as data."""

    ns: str
    key: str
    name: str | None
    version: str | None
    parameters: dict[str, Any] | None
    parts: tuple[Part, ...]


def read(path: Path) -> str:
    """The text of a prompt file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"the prompt cannot be read: {describe_error(error)}",
            where=str(path),
            fix=how_to_convert(file=str(path)),
        ) from None
    except OSError as error:
        raise ModelError(
            f"the prompt cannot be read: {error.strerror or error}", where=str(path)
        ) from None


def parse(text: str, where: str) -> PromptFile:
    """The text of a prompt file as data; what is wrong in its head is told together.

    >>> parse("---\\nkey: greet\\n---\\n<!-- system -->\\nBe kind.\\n", "a file").parts
    (Part(role='system', only_if=None, text='Be kind.'),)
    """
    text = text.replace("\r\n", "\n")
    front = _FRONT.match(text)
    if front is None:
        raise ModelError(
            "the file has no head", where=where, fix="begin it with ---, key: name, ---"
        )
    head = _head(front[1], where)
    problems = [*_faults(head), *_type_faults(head.get("parameters"))]
    parts = _parts(text[front.end() :])
    problems += [
        Problem(f"<!-- {part.role} -->", f"there is no such role; {nearest(part.role, ROLES)}")
        for part in parts
        if part.role not in ROLES
    ]
    if problems:
        raise ModelError("the prompt file does not hold together", where=where, problems=problems)
    declared, version = head.get("parameters"), head.get("version")
    return PromptFile(
        head.get("ns", "prompts"),
        head["key"],
        head.get("name"),
        None if version is None else str(version),
        None if declared is None else {str(n): TYPES[kind] for n, kind in declared.items()},
        parts,
    )


def _head(text: str, where: str) -> Mapping[str, Any]:
    # Whoever builds prompts in Python does not wait for it.
    import yaml

    try:
        head = load_yaml(text)
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, yaml.MarkedYAMLError):
            what, fix = describe_yaml_error(error)
        else:
            what, fix = str(error).partition("\n")[0], ""
        raise ModelError(f"its head cannot be read as YAML: {what}", where=where, fix=fix) from None
    if not isinstance(head, dict) or "key" not in head:
        raise ModelError("its head does not name a key", where=where, fix="write key: name")
    return head


def _faults(head: Mapping[str, Any]) -> list[Problem]:
    unknown = [str(key) for key in head if key not in _HEAD]
    faults = [Problem(key, f"this means nothing; {nearest(key, _HEAD)}") for key in unknown]
    faults += [
        Problem(key, f"expected a word, got {head[key]!r}")
        for key in _WORDS
        if key in head and not (isinstance(head[key], str) and head[key].strip())
    ]
    version = head.get("version")
    if isinstance(version, bool) or not isinstance(version, str | int | float | None):
        faults.append(Problem("version", f"expected a word or a number, got {version!r}"))
    return faults


def _type_faults(parameters: Any) -> list[Problem]:
    if parameters is None:
        return []
    if not isinstance(parameters, dict):
        return [Problem("parameters", f"expected names with types, got {parameters!r}")]
    return [
        Problem(f"parameters.{name}", f"{kind!r} is no type here; {nearest(str(kind), TYPES)}")
        for name, kind in parameters.items()
        if not (isinstance(kind, str) and kind in TYPES)
    ]


def _parts(body: str) -> tuple[Part, ...]:
    first, *pieces = _MARK.split(body)
    found = [Part("user", None, first.strip())] if first.strip() else []
    marked = zip(pieces[0::3], pieces[1::3], pieces[2::3], strict=True)
    return (*found, *(Part(role, only_if, text.strip()) for role, only_if, text in marked))
