"""Files that ship inside the package: SQL, schemas, templates, the demonstration."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def path(*parts: str) -> Path:
    """Where a shipped file lies on disk.

    >>> path("py.typed").name
    'py.typed'
    """
    return Path(str(files("proctor").joinpath(*parts)))


def text(*parts: str) -> str:
    """The content of a shipped text file."""
    return path(*parts).read_text(encoding="utf-8")
