"""Public names of a package that are loaded on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def lazy_names(
    package: str, exports: Mapping[str, Iterable[str]], listed: Iterable[str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package whose names are defined in modules of `proctor`.

    `exports` maps a module, without the leading `proctor.`, to its names. `listed` are the names that `dir` shows; by
    default all names.
    """
    modules = {name: module for module, names in exports.items() for name in names}
    dir_names = sorted(modules if listed is None else listed)

    def load(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"proctor.{module}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: dir_names
