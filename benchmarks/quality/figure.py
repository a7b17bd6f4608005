"""One measured figure of the quality benchmark."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A measured figure: the data, the reference, and whether it is reached."""

    what: str
    data: str
    value: float
    reference: str = ""
    asked: str = ""
    holds: bool | None = None
    note: str = ""
