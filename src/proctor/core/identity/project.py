"""Which code belongs to the user's project, and not to the standard library or installed packages."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
from types import FunctionType, ModuleType
from typing import Any

from proctor.core.identity.code import COMPUTED, CodeFacts

_INSTALLED = ("site-packages", "dist-packages")
_ROOT_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
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
    """Return whether a file belongs to the project; so does code typed into a notebook or prompt.

    >>> is_project_file(os.__file__), is_project_file("<ipython-input-1>")
    (False, True)
    """
    if filename.startswith("<"):
        return not filename.startswith("<frozen")
    parts = filename.replace("\\", "/").split("/")
    if any(part in _INSTALLED for part in parts):
        return False
    return not filename.startswith((f"{_OWN_FOLDER}{os.sep}", *_library_folders()))


def is_own(obj: Any) -> bool:
    """Return whether a function or class belongs to Proctor."""
    module = getattr(obj, "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == _OWN_PACKAGE


def is_project_function(function: FunctionType) -> bool:
    """Return whether a function belongs to the project."""
    return is_project_file(function.__code__.co_filename) and not is_own(function)


def is_project_class(cls: type) -> bool:
    """Return whether a class belongs to the project."""
    name = cls.__dict__.get("__module__")
    if not isinstance(name, str) or name == "builtins" or is_own(cls):
        return False
    if name.partition(".")[0] in sys.stdlib_module_names:
        return False
    module = sys.modules.get(name)
    if module is not None and (file := file_of(module)) is not None:
        return is_project_file(file)
    functions = (part for part in vars(cls).values() if isinstance(part, FunctionType))
    return all(is_project_file(function.__code__.co_filename) for function in functions)


def is_project_module(module: ModuleType) -> bool:
    """Return whether a module belongs to the project."""
    name = module.__name__
    if name.partition(".")[0] in (_OWN_PACKAGE, *sys.builtin_module_names):
        return False
    file = file_of(module)
    if name == "__main__":
        return file is None or is_project_file(file)
    # A namespace package has a path instead of a file.
    folders = list(getattr(module, "__path__", ())) if file is None else []
    return is_project_file(file or f"{folders[0]}{os.sep}" if file or folders else "<frozen>")


def file_of(module: ModuleType) -> str | None:
    """Return the source file of a module."""
    file = vars(module).get("__file__")
    return file if isinstance(file, str) else None


def folder_of(filename: str | None) -> str | None:
    """Return the folder of a source file; None for code without a file."""
    if not filename or filename.startswith("<"):
        return None
    return os.path.dirname(os.path.abspath(filename))


@functools.lru_cache(maxsize=1_000)
def root_of(folder: str) -> str:
    """Return the root of a folder's project: where its metadata is, or else its top-level package."""
    top = folder
    while os.path.isfile(os.path.join(top, "__init__.py")) and os.path.dirname(top) != top:
        top = os.path.dirname(top)
    root = top
    while not any(os.path.exists(os.path.join(root, marker)) for marker in _ROOT_MARKERS):
        parent = os.path.dirname(root)
        if parent == root:
            return top
        root = parent
    return root


class Uncovered:
    """Phrases for what an identity does not cover, each with the functions that use it."""

    def __init__(self) -> None:
        self._functions: dict[str, set[str]] = {}

    def add(self, phrase: str, function: str) -> None:
        """Record a phrase and the function that it applies to."""
        self._functions.setdefault(phrase, set()).add(function)

    def add_facts(self, facts: CodeFacts, function: str) -> None:
        """Record the environment variables and programs that a function uses."""
        for name in facts.environment:
            phrase = "environment variables whose names are computed"
            self.add(phrase if name == COMPUTED else f"the environment variable {name}", function)
        for phrase in facts.dynamic:
            self.add(phrase, function)

    def phrases(self) -> tuple[str, ...]:
        """Return the sorted phrases, each with its functions.

        >>> uncovered = Uncovered()
        >>> uncovered.add("the environment variable STYLE", "answer")
        >>> uncovered.phrases()
        ('the environment variable STYLE (in answer)',)
        """
        return tuple(
            f"{phrase} (in {', '.join(sorted(named))})" if (named := functions - {""}) else phrase
            for phrase, functions in sorted(self._functions.items())
        )
