"""Import optional packages, or raise an error that names the extra to install."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from proctor.errors import MissingExtra


def require(module: str, *, extra: str, why: str) -> ModuleType:
    """Import an optional module, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise
        raise MissingExtra(
            f"{why} needs the package {module.partition('.')[0]!r}, which is not installed",
            fix=f'pip install "proctor[{extra}]"',
        ) from None


def loaded_module(module: str) -> ModuleType | None:
    """Return the module if the program has already imported it, else None.

    A module that another thread is still importing lacks most of its names, and no value can be of its types yet.
    """
    loaded = sys.modules.get(module)
    return None if getattr(getattr(loaded, "__spec__", None), "_initializing", False) else loaded


def is_pydantic_model(value: object) -> bool:
    """True if the value is a pydantic model class; this does not import pydantic."""
    pydantic = loaded_module("pydantic")
    return pydantic is not None and isinstance(value, type) and issubclass(value, pydantic.BaseModel)
