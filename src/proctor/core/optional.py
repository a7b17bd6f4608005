"""The one door for optional packages: import it, or say which extra to install."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from proctor.errors import MissingExtra


def require(module: str, *, extra: str, why: str) -> ModuleType:
    """Import an optional module, or raise an error that names the extra to install.

    >>> require("json", extra="none", why="an example").__name__
    'json'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise
        raise MissingExtra(
            f"{why} needs the package {module.partition('.')[0]!r}, which is not installed",
            fix=f'pip install "proctor[{extra}]"',
        ) from None


def loaded(module: str) -> ModuleType | None:
    """The module if the program has imported it already, else None: nothing is loaded for a look.

    >>> loaded("surely_not_imported") is None
    True
    """
    return sys.modules.get(module)


def is_pydantic_model(kind: object) -> bool:
    """True for a class that is a pydantic model; pydantic is not loaded for the look.

    >>> is_pydantic_model(int)
    False
    """
    pydantic = loaded("pydantic")
    return pydantic is not None and isinstance(kind, type) and issubclass(kind, pydantic.BaseModel)
