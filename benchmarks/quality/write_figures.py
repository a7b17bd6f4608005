"""Write measured figures to the file that evaluator cards are made from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

import proctor.evaluators
from benchmarks.quality.figure import Figure
from proctor.evaluators.cards import FIGURES, MeasuredFigure

FILE = Path(proctor.evaluators.__file__).with_name(FIGURES)
DECIMALS = 4

Figures = dict[str, list[MeasuredFigure]]


def write_figures(figures: Iterable[Figure], file: Path = FILE, *, replace_all: bool = False) -> int:
    """Write the figures that have an evaluator and an interval; return how many were written.

    A figure replaces the one of the same evaluator, name and data. Other figures stay, unless `replace_all`.
    """
    cards: Figures = {} if replace_all else msgspec.json.decode(file.read_bytes(), type=Figures)
    written = 0
    for figure in figures:
        if not figure.evaluator or figure.interval is None:
            continue
        value, low, high = (round(number, DECIMALS) for number in (figure.value, *figure.interval[:2]))
        measured = MeasuredFigure(figure.what, figure.data, value, figure.interval.n, low, high)
        card = cards.setdefault(figure.evaluator, [])
        places = [place for place, old in enumerate(card) if (old.what, old.data) == (measured.what, measured.data)]
        if places:
            card[places[0]] = measured
        else:
            card.append(measured)
        written += 1
    file.write_bytes(msgspec.json.format(msgspec.json.encode(dict(sorted(cards.items()))), indent=2) + b"\n")
    return written
