"""One measured figure of the quality benchmark."""

from __future__ import annotations

from typing import NamedTuple


class Figure(NamedTuple):
    """A measured figure: its data, a reference value, and whether the requirement is met."""

    what: str
    data: str
    value: float
    reference: str = ""
    asked: str = ""
    holds: bool | None = None
    note: str = ""
