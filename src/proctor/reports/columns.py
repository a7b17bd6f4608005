"""Columns for the terminal, of which only some give way: an id that is cut is none."""

from __future__ import annotations

from collections.abc import Collection, Sequence

GAP, LEAST, CUT = 2, 8, "…"


def in_columns(
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    right: Collection[int] = (),
    yielding: Collection[int] = (),
) -> list[str]:
    """Rows of cells as lines of one width, the first row being the headings.

    Where there is no room the widest of the `yielding` columns are cut, to no less than eight
    places; the others never are, though a line may then be longer than the terminal is wide.

    >>> for line in in_columns([("id", "name"), ("20260101", "a long name")], 20, yielding=[1]):
    ...     print(line)
    id        name
    20260101  a long na…
    """
    from rich.cells import cell_len, set_cell_size

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    least = {place: min(widths[place], LEAST) for place in yielding}
    while sum(widths) + GAP * (len(widths) - 1) > width:
        wide = [place for place in yielding if widths[place] > least[place]]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1

    def cell(text: str, place: int) -> str:
        room = widths[place]
        if cell_len(text) > room:
            return set_cell_size(text, room - 1).rstrip() + CUT
        gap = " " * (room - cell_len(text))
        return gap + text if place in right else text + gap

    lines = ((cell(text, place) for place, text in enumerate(row)) for row in rows)
    return [(" " * GAP).join(line).rstrip() for line in lines]
