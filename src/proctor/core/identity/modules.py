"""Modules that are imported inside functions: found and compiled, but never run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from types import CodeType
from typing import Any, NamedTuple

from proctor.core.identity.code import Import, facts_of
from proctor.core.identity.files import is_settled
from proctor.core.identity.project import is_project_file

_compiled: dict[str, tuple[tuple[int, int], CodeType]] = {}
_MOST_BYTES = 2_000_000


class Source(NamedTuple):
    """A module of the project as its file has it; `code` is None if it cannot be read."""

    name: str
    file: str
    code: CodeType | None


def script_of(file: str) -> Source:
    """A Python file that is run by its path."""
    return Source(os.path.basename(file), file, compiled(file))


def sources_of(imports: Iterable[Import], package: str, seen: set[str]) -> Iterator[Source]:
    """The project modules that imports lead to, and those that these import, each once."""
    for wanted in imports:
        for name, file in files_of(wanted, package):
            if file in seen:
                continue
            seen.add(file)
            code = compiled(file)
            yield Source(name, file, code)
            if code is not None:
                is_package = os.path.basename(file) == "__init__.py"
                inside = name if is_package else name.rpartition(".")[0]
                yield from sources_of(facts_of(code).imports, inside, seen)


def files_of(wanted: Import, package: str) -> Iterator[tuple[str, str]]:
    """The project files that an import statement runs: packages on the way and submodules too."""
    name = wanted.name
    if wanted.level:
        above = package.split(".")[: max(0, len(package.split(".")) - wanted.level + 1)]
        name = ".".join([*above, *([name] if name else [])])
    top = name.partition(".")[0]
    if not top or top in sys.stdlib_module_names or top == "proctor":
        return
    folders: Any = None
    full = ""
    for part in name.split("."):
        full = f"{full}.{part}" if full else part
        file, folders = _located(full, folders)
        if file is not None and is_project_file(file):
            yield full, file
        if folders is None:
            return
    for attribute in wanted.attributes:
        full = f"{name}.{attribute}"
        file, _ = _located(full, folders)
        if file is not None and is_project_file(file):
            yield full, file


def folder_of_package(name: str) -> str | None:
    """The folder of a package, or of a module the folder that it lies in."""
    folders: Any = None
    file = full = None
    for part in name.split("."):
        full = f"{full}.{part}" if full else part
        file, folders = _located(full, folders)
        if file is None and folders is None:
            return None
    return folders[0] if folders else os.path.dirname(file) if file else None


def is_outside(name: str) -> bool:
    """True for a module of the standard library or of an installed package."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top == "proctor":
        return True
    file, folders = _located(top, None)
    place = file or (f"{folders[0]}{os.sep}" if folders else "")
    return bool(place) and not is_project_file(place)


def _located(name: str, folders: Any) -> tuple[str | None, Any]:
    """The source file of a module and, of a package, its folders; nothing is imported."""
    spec = None
    if folders is not None:
        spec = PathFinder.find_spec(name, folders)
    else:
        for finder in sys.meta_path:
            look = getattr(finder, "find_spec", None)
            spec = None if look is None else look(name, None)
            if spec is not None:
                break
    if spec is None:
        return None, None
    file = spec.origin if spec.origin and spec.origin.endswith(".py") else None
    inside = spec.submodule_search_locations
    return file, None if inside is None else list(inside)


def compiled(file: str) -> CodeType | None:
    """A source file as code; None if it cannot be read or is no Python."""
    try:
        told = os.stat(file)
        if told.st_size > _MOST_BYTES:
            return None
        version = told.st_mtime_ns, told.st_size
        known = _compiled.get(file)
        if known is not None and known[0] == version:
            return known[1]
        with open(file, "rb") as source:
            code = compile(source.read(), file, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    if is_settled(told.st_mtime_ns):
        _compiled[file] = version, code
    return code
