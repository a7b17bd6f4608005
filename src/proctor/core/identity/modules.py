"""Modules that functions import: located and compiled, but never run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from types import CodeType
from typing import Any, NamedTuple

from proctor.core.identity.code import Import, read_facts
from proctor.core.identity.contents import is_cacheable, is_project_file

_compiled: dict[str, tuple[tuple[int, int], CodeType]] = {}
_MAX_BYTES = 2_000_000


class Source(NamedTuple):
    """The source of a project module; `code` is None if it cannot be compiled."""

    name: str
    file: str
    code: CodeType | None


def find_sources(imports: Iterable[Import], package: str, visited_files: set[str]) -> Iterator[Source]:
    """Yield the project modules that imports reach, directly and indirectly, each once."""
    for statement in imports:
        for name, file in find_module_files(statement, package):
            if file in visited_files:
                continue
            visited_files.add(file)
            code = compile_file(file)
            yield Source(name, file, code)
            if code is not None:
                is_package = os.path.basename(file) == "__init__.py"
                package_name = name if is_package else name.rpartition(".")[0]
                yield from find_sources(read_facts(code).imports, package_name, visited_files)


def find_module_files(statement: Import, package: str) -> Iterator[tuple[str, str]]:
    """Yield the project files that an import statement runs, including parent packages and submodules."""
    name = statement.name
    if statement.level:
        above = package.split(".")[: max(0, len(package.split(".")) - statement.level + 1)]
        name = ".".join([*above, *([name] if name else [])])
    top = name.partition(".")[0]
    if not top or top in sys.stdlib_module_names or top == "proctor":
        return
    folders: Any = None
    full = ""
    for part in name.split("."):
        full = f"{full}.{part}" if full else part
        file, folders = _locate(full, folders)
        if file is not None and is_project_file(file):
            yield full, file
        if folders is None:
            return
    for attribute in statement.attributes:
        full = f"{name}.{attribute}"
        file, _ = _locate(full, folders)
        if file is not None and is_project_file(file):
            yield full, file


def find_package_folder(name: str) -> str | None:
    """Return the folder of a package, or the folder that contains a module."""
    folders: Any = None
    file = full = None
    for part in name.split("."):
        full = f"{full}.{part}" if full else part
        file, folders = _locate(full, folders)
        if file is None and folders is None:
            return None
    return folders[0] if folders else os.path.dirname(file) if file else None


def is_third_party(name: str) -> bool:
    """Return whether a module belongs to the standard library or an installed package."""
    top = name.partition(".")[0]
    if top in sys.stdlib_module_names or top == "proctor":
        return True
    file, folders = _locate(top, None)
    path = file or (f"{folders[0]}{os.sep}" if folders else "")
    return bool(path) and not is_project_file(path)


def _locate(name: str, folders: Any) -> tuple[str | None, Any]:
    """Return the source file of a module and the folders of a package, without importing it."""
    spec = None
    if folders is not None:
        spec = PathFinder.find_spec(name, folders)
    else:
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            spec = None if find_spec is None else find_spec(name, None)
            if spec is not None:
                break
    if spec is None:
        return None, None
    file = spec.origin if spec.origin and spec.origin.endswith(".py") else None
    locations = spec.submodule_search_locations
    return file, None if locations is None else list(locations)


def compile_file(file: str) -> CodeType | None:
    """Return the code of a source file; None if it cannot be read or compiled."""
    try:
        info = os.stat(file)
        if info.st_size > _MAX_BYTES:
            return None
        version = info.st_mtime_ns, info.st_size
        cached = _compiled.get(file)
        if cached is not None and cached[0] == version:
            return cached[1]
        with open(file, "rb") as source:
            code = compile(source.read(), file, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    if is_cacheable(info.st_mtime_ns):
        _compiled[file] = version, code
    return code
