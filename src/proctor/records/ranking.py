"""Several in a row, as data: which is best by one number, and which places are decided."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Order = Literal["asc", "desc"]


class RankedPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One configuration's place: its mean, on how many samples it rests, how many are missing.

    The epochs of a sample are averaged first; `interval` holds the true mean with 95 %. `ranks` are
    the best and the worst place that the evidence allows: every pair is compared on the samples
    that both have, corrected for the number of pairs. `chance_of_best` is how often it would come
    first if other samples of the same kind were drawn; None where not all have the same samples.
    """

    configuration: str
    rank: int
    value: float | None = None
    n: int = 0
    missing: int = 0
    interval: tuple[float, float] | None = None
    ranks: tuple[int, int] | None = None
    chance_of_best: float | None = None

    @property
    def decided(self) -> bool:
        """True if the evidence allows no other place."""
        return self.ranks == (self.rank, self.rank)


class Ranking(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All configurations by one number, the best first and those without a number last.

    `decided` is True if the first differs from every other that has a number by more than chance
    would give. `note` says what else is to be known, such as that not all samples were used.
    """

    field: str
    order: Order
    places: tuple[RankedPlace, ...] = ()
    note: str = ""

    @property
    def decided(self) -> bool:
        """True if it is sure which is first."""
        return bool(self.places) and len(self._held) > 1 and self.places[0].decided

    @property
    def best(self) -> str | None:
        """The first that has a number."""
        return self._held[0] if self._held else None

    @property
    def worst(self) -> str | None:
        """The last that has a number."""
        return self._held[-1] if self._held else None

    @property
    def _held(self) -> list[str]:
        return [one.configuration for one in self.places if one.value is not None]

    @property
    def answer(self) -> str:
        """Which places are decided and which are not, in a sentence."""
        if len(self._held) < 2:
            return f"There are not two with a number for {self.field}."
        if self.decided:
            first = f"{self.best} is first by {self.field}, beyond chance"
        else:
            rivals = [
                one.configuration for one in self.places[1:] if one.ranks and one.ranks[0] == 1
            ]
            first = f"Which is first by {self.field} is not decided: {self.best}"
            first += f", or {' or '.join(rivals)}" if rivals else ""
        return f"{first}{self._of_the_rest()}.{f' {self.note}' if self.note else ''}"

    def _of_the_rest(self) -> str:
        """What is to be said of the places after the first; of two, the first says it all."""
        rest = [one for one in self.places if one.value is not None][1:]
        sure = [one.configuration for one in rest if one.decided]
        if len(rest) < 2:
            return ""
        if len(sure) in (0, len(rest)):
            return f"; {'all' if sure else 'none'} of the other {len(rest)} places are decided"
        return f"; of the other {len(rest)} places decided: {', '.join(sure)}"

    @property
    def data(self) -> list[dict[str, Any]]:
        """One plain mapping for each place, for a table or a plot."""
        return [
            {
                **msgspec.structs.asdict(one),
                "interval": one.interval and list(one.interval),
                "ranks": one.ranks and list(one.ranks),
            }
            for one in self.places
        ]
