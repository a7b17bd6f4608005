"""Cards: what each built-in evaluator measures, how well, at what cost, and what it cannot do."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

import msgspec

from proctor.core import resources
from proctor.evaluators.data_files import load_data

FIGURES = "figures.json"


class MeasuredFigure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure from `make quality`: what was measured on which data, the number of rows and a 95% interval."""

    what: str
    data: str
    value: float
    n: int = 0
    low: float | None = None
    high: float | None = None

    def describe(self) -> str:
        """Describe the figure in one line.

        >>> MeasuredFigure("AUROC", "WiCE", 0.98, 349, 0.97, 0.99).describe()
        'AUROC 0.98 (0.97–0.99) on WiCE, n = 349'
        """
        interval = "" if self.low is None or self.high is None else f" ({self.low:.2f}–{self.high:.2f})"
        rows = f", n = {self.n:,}" if self.n else ""
        return f"{self.what} {self.value:.2f}{interval} on {self.data}{rows}"


class EvaluatorCard(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an evaluator does, and what it cannot do."""

    method: str
    languages: str
    cost: str
    cannot: str
    instead: str = ""
    figures: tuple[MeasuredFigure, ...] = ()

    def list_entries(self) -> Iterator[tuple[str, str]]:
        """Yield the label and the text of each part; each figure is one part."""
        yield "method", self.method
        yield "languages", self.languages
        yield "cost", self.cost
        yield "cannot", self.cannot
        if self.instead:
            yield "instead", self.instead
        for figure in self.figures:
            yield "measured", figure.describe()


@functools.cache
def load_cards() -> Mapping[str, EvaluatorCard]:
    """Return the card of each built-in evaluator, by name."""
    figures = msgspec.json.decode(resources.text("evaluators", FIGURES), type=dict[str, tuple[MeasuredFigure, ...]])
    cards = msgspec.convert(load_data("cards.yaml"), dict[str, EvaluatorCard])
    return {name: msgspec.structs.replace(card, figures=figures.get(name, ())) for name, card in cards.items()}
