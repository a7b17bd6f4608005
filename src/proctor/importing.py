"""`module:attr` addresses: find the object, or say which part of the address is wrong."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from proctor.errors import UsageError, nearest


def load(address: str) -> Any:
    """The object at `module:attr` (or `file.py:attr`), looked for in the current folder too.

    >>> load("math:sqrt")(16.0)
    4.0
    """
    module_name, colon, attributes = address.rpartition(":")
    if not (module_name and colon and attributes):
        raise UsageError(f"{address!r} is not an address", fix="write it as module:attribute")
    found: Any = module(module_name)
    for attribute in attributes.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            public = [name for name in dir(found) if not name.startswith("_")]
            raise UsageError(
                f"{module_name!r} has no attribute {attribute!r}",
                where=address,
                fix=nearest(attribute, public),
            ) from None
    return found


def module(name: str) -> ModuleType:
    """A module by its dotted name or by the path of its file.

    >>> module("json").__name__
    'json'
    """
    if name.endswith(".py"):
        return _from_file(Path(name))
    here = add_folder(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name + ".").startswith(error.name + "."):
            raise
        raise UsageError(
            f"there is no module {error.name!r}",
            where=name,
            fix=f"check the spelling, install it, or run from the folder that holds it ({here})",
        ) from None


def add_folder(folder: Path) -> str:
    """Let modules be found in a folder too; gives the folder's full path."""
    full = str(folder.resolve())
    if full not in sys.path:
        sys.path.insert(0, full)
    return full


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {str(path)!r}", fix="check the path")
    add_folder(path.parent)
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{str(path)!r} cannot be loaded as Python")
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made
