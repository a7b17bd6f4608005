"""Which format a log is in: told by its content, or by the user."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from proctor.errors import ConfigError, nearest
from proctor.importers.imported import Imported

# Every format by the name that people use, and the module that reads it. The first that takes a
# log for its own has it, so those that can be mistaken for another stand before that one.
FORMATS = {
    "otlp": "otlp",
    "langfuse": "langfuse",
    "codex": "codex",
    "qwen": "qwen",
    "gemini": "gemini",
    "claude-code": "claude_code",
    "langchain": "langchain_messages",
    "proctor": "proctor_sessions",
    "openai": "openai_messages",
}
AUTO = "auto"
# How many values of a file are looked at: a log may begin with much that nobody said.
LOOKED_AT = 50


class Format(Protocol):
    """What a module that reads a format offers."""

    NAME: str

    def looks_like(self, values: Sequence[Any], /) -> bool:
        """True if the first values of a file are of this format."""
        ...

    def read(self, values: Iterable[tuple[int, Any]], source: str, /) -> Iterator[Imported]:
        """The sessions in the values of a file, each with the number of its line."""
        ...


def named_format(name: str) -> Format:
    """The format of a name, or an error that says which there are.

    >>> named_format("claude-code").NAME
    'claude-code'
    """
    if name not in FORMATS:
        raise ConfigError(
            f"there is no format {name!r}", where="format", fix=nearest(name, [AUTO, *FORMATS])
        )
    found: Format = importlib.import_module(f"proctor.importers.{FORMATS[name]}")
    return found


def detect(values: Sequence[Any]) -> Format | None:
    """The format of the values that a file begins with, or None if it is none that is known.

    >>> detect([{"role": "user", "content": "Hello"}]).NAME
    'openai'
    >>> detect([{"id": "1", "input": "2 + 2"}]) is None
    True
    """
    for name in FORMATS:
        if (found := named_format(name)).looks_like(values):
            return found
    return None
