"""One measured figure of the quality benchmark."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """What was measured on which data, what it is held against, and whether it holds."""

    what: str
    data: str
    value: float
    reference: str = ""
    asked: str = ""
    holds: bool | None = None
    note: str = ""
