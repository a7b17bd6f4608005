"""What the formats are told besides the text: the options of `format_compliance`."""

from __future__ import annotations

from typing import NamedTuple


class Terms(NamedTuple):
    """The options of a format; each format takes those that the catalogue names for it."""

    pattern: str | None = None
    columns: int | tuple[str, ...] | None = None
    header: bool = True
    delimiter: str = ","
    schemes: tuple[str, ...] | None = None
