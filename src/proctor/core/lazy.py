"""Public names of a package that are loaded on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def lazy_names(
    package: str, exports: Mapping[str, Iterable[str]], listed: Iterable[str] | None = None
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package whose names live in modules of `proctor`.

    `exports` maps a module, without the leading `proctor.`, to its names. `listed` is what `dir`
    shows; by default all of them.
    """
    home_of = {name: home for home, listed_names in exports.items() for name in listed_names}
    shown = sorted(home_of if listed is None else listed)

    def load(name: str) -> object:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"proctor.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return shown

    return load, names
