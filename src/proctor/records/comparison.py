"""Two sides beside each other, as data: what differs, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from proctor.records import wording
from proctor.records.wording import Kind

Verdict = Literal[
    "better", "worse", "different", "no difference worth the name", "not enough evidence", "not comparable"
]
Interval = tuple[float, float]

DECIDED = ("better", "worse", "different")
NOT_COMPARABLE: Verdict = "not comparable"


class MetricDelta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one number is on side a, beside what it is on b.

    `a` and `b` are means over the `n` samples that both sides have a number for, the epochs of a
    sample averaged first; each has its own 95 % interval. `absolute` is a - b, `percentage` that of
    b, None where b is 0. `interval` holds the true difference with 95 %; None where the samples
    cannot tell it. `p` is how likely chance alone gives as much, by `method`; `p_adjusted` is the
    same corrected (Holm) for everything that was compared. `effect` is the difference in standard
    deviations of the samples' differences (Hedges' g). `error` is the standard error.

    `worth` is the smallest difference worth the name, and `more_samples` about how many more lead
    to a verdict in four of five cases, where the evidence is not enough. `only_a` and `only_b`
    count the samples without a partner. `clusters` are those that the samples lie in, and `units`
    as how many of one size they weigh. Where there are no pairs at all the sides are compared as
    two independent groups (`paired` is False). `scale` is that of a total of rubrics, which all of
    its numbers are told on; without it, rates and scores lie from 0 to 1.
    """

    name: str
    a: float | None = None
    b: float | None = None
    absolute: float | None = None
    percentage: float | None = None
    n: int = 0
    interval: Interval | None = None
    a_interval: Interval | None = None
    b_interval: Interval | None = None
    p: float | None = None
    p_adjusted: float | None = None
    effect: float | None = None
    error: float | None = None
    method: str = ""
    verdict: Verdict = "not enough evidence"
    more_samples: int | None = None
    worth: float = 0.0
    only_a: int = 0
    only_b: int = 0
    paired: bool = True
    higher_is_better: bool | None = None
    kind: Kind = "number"
    clusters: int | None = None
    units: float | None = None
    scale: Interval | None = None

    @property
    def decided(self) -> bool:
        """True if there is a difference: more than chance gives, and not surely a trifle."""
        return self.verdict in DECIDED

    @property
    def a_is_better(self) -> bool | None:
        """Whether a is better than b; None if it is not decided, or which way is better unknown."""
        return {"better": True, "worse": False}.get(self.verdict)

    @property
    def said(self) -> str:
        """The verdict in words, with how many more samples it would take."""
        more = f" (about {wording.about(self.more_samples)} more)" if self.more_samples else ""
        return f"{self.verdict}{more}"

    def says_the_same_as(self, other: MetricDelta) -> bool:
        """True if both are the same numbers under two names."""
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("a", "b", "n", "interval", "a_interval", "b_interval", "p")
        )


class Flip(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A sample that passes on one side and not on the other, with its score on either.

    Of several epochs more than half must pass.
    """

    sample_id: str
    lost: bool
    a: float | None = None
    b: float | None = None

    @property
    def change(self) -> float:
        """How far the score of a lies above that of b."""
        return (self.a or 0.0) - (self.b or 0.0)


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Side `a` beside side `b`, two runs or two configurations of one.

    `answer` says it in a sentence. `metrics` are pass rates, times, tokens and costs, `scores` the
    evaluators' scores, `fields` the selected fields. `flips` are the samples whose verdict turned,
    worst first. `only_a` and `only_b` are the ids of samples that the other side lacks, `missing_a`
    and `missing_b` the metrics that one side lacks; `notes` say what else makes the sides unlike.
    `samples` counts those that both have, `tests` for how many tests the probabilities are
    corrected. `a_run` and `b_run` are the runs' ids. `unlike` says which evaluators are not the
    same: what all of them say together is then "not comparable". The same holds where
    `uneven` says which of several evaluators judged far fewer samples on one side. `other_content`
    are the ids under which either side has another sample: these are no pairs. `unpaired` says that
    the sides were to be compared as two groups, all samples of both.
    """

    a: str
    b: str
    answer: str = ""
    samples: int = 0
    tests: int = 0
    a_run: str = ""
    b_run: str = ""
    metrics: dict[str, MetricDelta] = {}
    scores: dict[str, MetricDelta] = {}
    fields: dict[str, MetricDelta] = {}
    flips: tuple[Flip, ...] = ()
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    missing_a: tuple[str, ...] = ()
    missing_b: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    uneven: tuple[str, ...] = ()
    other_content: tuple[str, ...] = ()
    unpaired: bool = False

    @property
    def groups(self) -> tuple[tuple[str, Mapping[str, MetricDelta]], ...]:
        """The deltas by what they are of."""
        return ("metric", self.metrics), ("score", self.scores), ("field", self.fields)

    def all_deltas(self) -> Iterator[MetricDelta]:
        """Every delta, whatever it is of."""
        for _, held in self.groups:
            yield from held.values()

    def find(self, name: str) -> MetricDelta | None:
        """A delta by the name that the report's metrics have, or by its own; None if there is none.

        `exact_match.mean` is the score of exact_match, `field.tokens` the field tokens.
        """
        for held in (self.metrics, self.scores, self.fields):
            for one in also_known_as(name):
                if one in held:
                    return held[one]
        return None

    def essential(self) -> list[MetricDelta]:
        """The deltas to show: what passed first, what it cost last, and nothing twice.

        The strict pass rate is the pass rate where nothing failed to run, the mean of yes-or-no
        scores is theirs, and so is that of a single evaluator; a field with one evaluator has its
        score.
        """
        cost = [one for one in self.metrics.values() if one.kind == "number"]
        quality = [one for one in self.metrics.values() if one.kind != "number"]
        shown = [*quality, *self.scores.values(), *self.fields.values(), *cost]
        by_name = {**self.fields, **self.scores, **self.metrics}
        alone = next(iter(self.scores)) if len(self.scores) == 1 else ""
        return [one for one in shown if not _repeats(one, by_name, alone)]

    @property
    def lost(self) -> tuple[Flip, ...]:
        """The samples that pass on side b and not on a, worst first."""
        return tuple(flip for flip in self.flips if flip.lost)

    @property
    def won(self) -> tuple[Flip, ...]:
        """The samples that pass on side a and not on b."""
        return tuple(flip for flip in self.flips if not flip.lost)

    @property
    def deltas(self) -> dict[str, dict[str, float | None]]:
        """The difference of each field that has numbers, absolute and in percent of b."""
        return _plain(self.fields.values())

    @property
    def score_deltas(self) -> dict[str, dict[str, float | None]]:
        """The same of the evaluators' scores."""
        return _plain(self.scores.values())

    def rows(self) -> list[dict[str, Any]]:
        """One plain mapping for each number, for a table or a plot."""
        return [_row(kind, delta) for kind, held in self.groups for delta in held.values()]

    def __str__(self) -> str:
        """The answer, and a table with a line for each number."""
        head = ("", self.a, self.b, "difference", "%", "95 % interval", "p", "n", "verdict")
        lines = [head, *map(_cells, self.essential())]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = [
            "  ".join(
                cell.rjust(width) if 0 < place < len(head) - 1 else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.answer, "", *rows] if self.answer else rows)


def also_known_as(name: str) -> tuple[str, ...]:
    """The names under which a comparison may have what a report's metrics call so.

    Where every score is yes or no, the pass rate of an evaluator is its score.

    >>> also_known_as("field.output.mean")
    ('field.output.mean', 'output.mean', 'output')
    """
    bare = name.removeprefix("field.")
    stem = bare.removesuffix(".mean").removesuffix(".pass_rate")
    found = [name, bare, stem, *([] if "." in bare else [f"{bare}.mean"])]
    return tuple(dict.fromkeys(found))


def _repeats(delta: MetricDelta, others: Mapping[str, MetricDelta], alone: str) -> bool:
    """True if it says only what another says that it comes from."""
    stem, _, last = delta.name.rpartition(".")
    if delta.name in ("strict_pass_rate", "mean_score", alone):
        twin = "pass_rate"
    elif last == "pass_rate":
        twin = stem
    else:
        twin = f"{stem}.score" if last != "score" else ""
    other = others.get(twin)
    return other is not None and other is not delta and delta.says_the_same_as(other)


def _cells(delta: MetricDelta) -> tuple[str, ...]:
    kind = delta.kind
    return (
        delta.name,
        wording.value(delta.a, kind),
        wording.value(delta.b, kind),
        wording.change(delta.absolute, kind),
        wording.DASH if delta.percentage is None else f"{delta.percentage:+.1f}",
        wording.changes(delta.interval, kind),
        wording.probability(delta.p_adjusted),
        f"{delta.n:,}",
        delta.said,
    )


def _plain(deltas: Iterable[MetricDelta]) -> dict[str, dict[str, float | None]]:
    return {
        one.name: {"absolute": one.absolute, "percentage": one.percentage}
        for one in deltas
        if one.a is not None or one.b is not None
    }


def _row(of: str, delta: MetricDelta) -> dict[str, Any]:
    low, high = delta.interval or (None, None)
    skipped = ("interval", "a_interval", "b_interval", "kind", "scale")
    held = {name: getattr(delta, name) for name in delta.__struct_fields__ if name not in skipped}
    return {"of": of, **held, "low": low, "high": high, "a_is_better": delta.a_is_better}


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
            rivals = [one.configuration for one in self.places[1:] if one.ranks and one.ranks[0] == 1]
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
