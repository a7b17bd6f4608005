"""Which code belongs to the user's project: not the standard library, not installed packages."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from types import FunctionType, ModuleType
from typing import Any

from proctor.core.identity.code import COMPUTED, CodeFacts

_INSTALLED = ("site-packages", "dist-packages")
_ROOT_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
_OWN_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OWN_PACKAGE = __name__.partition(".")[0]


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths.get(name, "") for name in ("stdlib", "platstdlib")} | {os.path.dirname(os.__file__)}
    every = {real for folder in folders if folder for real in (folder, os.path.realpath(folder))}
    return tuple(f"{folder}{os.sep}" for folder in sorted(every))


@functools.lru_cache(maxsize=10_000)
def is_project_file(filename: str) -> bool:
    """True for a file of the user's; code typed into a notebook or a prompt counts as well.

    >>> is_project_file(os.__file__), is_project_file("<ipython-input-1>")
    (False, True)
    """
    if filename.startswith("<"):
        return not filename.startswith("<frozen")
    parts = filename.replace("\\", "/").split("/")
    if any(part in _INSTALLED for part in parts):
        return False
    return not filename.startswith((f"{_OWN_FOLDER}{os.sep}", *_library_folders()))


def is_own(thing: Any) -> bool:
    """True for code of Proctor itself."""
    module = getattr(thing, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == _OWN_PACKAGE


def is_project_function(function: FunctionType) -> bool:
    """True if a function was written in the user's project."""
    return is_project_file(function.__code__.co_filename) and not is_own(function)


def is_project_class(kind: type) -> bool:
    """True if a class was written in the user's project."""
    name = kind.__dict__.get("__module__")
    if not isinstance(name, str) or name == "builtins" or is_own(kind):
        return False
    if name.partition(".")[0] in sys.stdlib_module_names:
        return False
    module = sys.modules.get(name)
    if module is not None and (file := file_of(module)) is not None:
        return is_project_file(file)
    functions = (part for part in vars(kind).values() if isinstance(part, FunctionType))
    return all(is_project_file(function.__code__.co_filename) for function in functions)


def is_project_module(module: ModuleType) -> bool:
    """True if a module was written in the user's project."""
    name = module.__name__
    if name.partition(".")[0] in (_OWN_PACKAGE, *sys.builtin_module_names):
        return False
    if name == "__main__":
        file = file_of(module)
        return file is None or is_project_file(file)
    file = file_of(module)
    # A folder without `__init__.py` has no file, but a path.
    folders = list(getattr(module, "__path__", ())) if file is None else []
    return is_project_file(file or f"{folders[0]}{os.sep}" if file or folders else "<frozen>")


def file_of(module: ModuleType) -> str | None:
    """The file that a module was read from."""
    file = vars(module).get("__file__")
    return file if isinstance(file, str) else None


def folder_of(filename: str | None) -> str | None:
    """The folder of a source file; None for code that is in no file."""
    if not filename or filename.startswith("<"):
        return None
    return os.path.dirname(os.path.abspath(filename))


@functools.lru_cache(maxsize=1_000)
def root_of(folder: str) -> str:
    """The root of the project that a folder is in: where its metadata is, else its top package."""
    top = folder
    while os.path.isfile(os.path.join(top, "__init__.py")) and os.path.dirname(top) != top:
        top = os.path.dirname(top)
    place = top
    while True:
        if any(os.path.exists(os.path.join(place, mark)) for mark in _ROOT_MARKS):
            return place
        above = os.path.dirname(place)
        if above == place:
            return top
        place = above


class Uncovered:
    """Phrases by what they are about, each with the functions that it was seen in."""

    def __init__(self) -> None:
        self._seen: dict[str, set[str]] = {}

    def add(self, what: str, where: str) -> None:
        """Note one thing that is not covered, and the function that uses it."""
        self._seen.setdefault(what, set()).add(where)

    def add_facts(self, facts: CodeFacts, where: str) -> None:
        """Note what the code of a function tells."""
        for name in facts.environment:
            what = "environment variables whose names are computed"
            self.add(what if name == COMPUTED else f"the environment variable {name}", where)
        for what in facts.dynamic:
            self.add(what, where)

    def phrases(self) -> tuple[str, ...]:
        """One phrase for each, in order.

        >>> uncovered = Uncovered()
        >>> uncovered.add("the environment variable STYLE", "answer")
        >>> uncovered.phrases()
        ('the environment variable STYLE (in answer)',)
        """
        return tuple(
            f"{what} (in {', '.join(sorted(places))})" if (places := seen - {""}) else what
            for what, seen in sorted(self._seen.items())
        )
