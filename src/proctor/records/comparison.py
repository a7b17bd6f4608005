"""Comparisons of runs or configurations, and rankings of configurations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from proctor.records import formatting as wording
from proctor.records.formatting import Kind
from proctor.records.score import Score
from proctor.records.trial import Outcome

Verdict = Literal["better", "worse", "different", "no relevant difference", "not enough evidence", "not comparable"]
Interval = tuple[float, float]

DECIDED = ("better", "worse", "different")
NOT_COMPARABLE: Verdict = "not comparable"
# The prefix of the method for metrics without a number per sample.
BOOTSTRAP = "bootstrap over"
# The smallest relevant difference of rates and scores: one point.
MIN_DIFFERENCE = 0.01


class MetricDelta(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One number on side a compared with side b.

    `a` and `b` are means over the `n` samples that have a number on both sides, with epochs averaged first;
    each has its own 95% interval. `absolute` is a - b, `percentage` is relative to b, None if b is 0.
    `interval` is the 95% interval of the difference; None if it cannot be estimated. `percentage_interval` is
    that of `percentage`, for numbers that are never negative: it allows for the error of b and is at least -100;
    None if b may be 0.
    `p` is the p-value of the test `method`; `p_adjusted` is corrected (Holm) for all tests of the comparison.
    `effect` is the difference in standard deviations (Hedges' g). `error` is the standard error.

    `min_difference` is the smallest relevant difference. If the evidence is not enough, `more_samples` is the estimated
    number of additional samples that lead to a verdict in four of five cases, provided that the difference stays near
    `absolute`. `only_a` and `only_b` count the samples without a partner. `clusters` is the number of clusters, `units`
    the number of clusters of equal size with the same weight. Without pairs, the sides are compared as two independent
    groups (`paired` is False). `scale` is the scale of a total of rubrics and of all its numbers; other rates and
    scores are from 0 to 1.
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
    min_difference: float = msgspec.field(default=0.0, name="worth")
    only_a: int = 0
    only_b: int = 0
    paired: bool = True
    higher_is_better: bool | None = None
    kind: Kind = "number"
    clusters: int | None = None
    units: float | None = None
    scale: Interval | None = None
    percentage_interval: Interval | None = None

    @property
    def decided(self) -> bool:
        """True if there is a significant and relevant difference."""
        return self.verdict in DECIDED

    @property
    def a_is_better(self) -> bool | None:
        """True if a is better than b; None if undecided, or if it is unknown which direction is better."""
        return {"better": True, "worse": False}.get(self.verdict)

    @property
    def verdict_text(self) -> str:
        """The verdict, with the number of additional samples that would decide it."""
        more = f" (about {wording.format_estimate(self.more_samples)} more)" if self.more_samples else ""
        return f"{self.verdict}{more}"

    def has_same_numbers(self, other: MetricDelta) -> bool:
        """True if both deltas have the same numbers under different names."""
        return all(
            getattr(self, name) == getattr(other, name)
            for name in ("a", "b", "n", "interval", "a_interval", "b_interval", "p")
        )


class FlipResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The result of a flipped sample on one side: the output or the error, and the scores without their details.

    If a sample has several epochs, it is the first epoch that agrees with the side: the first that passed on the side
    that passes, otherwise the first that did not pass.
    """

    outcome: Outcome
    output: Any = None
    error: str = ""
    scores: dict[str, Score] = {}
    epoch: int = 0


class Flip(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A sample that passes on one side only, with its scores; more than half of its epochs must pass.

    The first flips of a comparison also have the `input`, the `expected` value, and the result of each side; both
    results are None in the others.
    """

    sample_id: str
    lost: bool
    a: float | None = None
    b: float | None = None
    input: Any = None
    expected: Any = None
    a_result: FlipResult | None = None
    b_result: FlipResult | None = None

    @property
    def change(self) -> float:
        """The score of a minus the score of b."""
        return (self.a or 0.0) - (self.b or 0.0)


# Of the flips that are shown, this share are lost samples, if there are enough of both.
LOST_SHARE = 0.6


def select_flips(flips: Sequence[Flip], limit: int) -> list[Flip]:
    """Return up to `limit` flips in their order: more than half of them lost samples, but also some that were won.

    >>> lost, won = [Flip("a", True), Flip("b", True), Flip("c", True)], [Flip("d", False), Flip("e", False)]
    >>> [flip.sample_id for flip in select_flips([*lost, *won], 3)]
    ['a', 'b', 'd']
    """
    lost, won = ([flip for flip in flips if flip.lost is is_lost] for is_lost in (True, False))
    lost_count, won_count = share_limit(len(lost), len(won), limit)
    return [*lost[:lost_count], *won[:won_count]]


def share_limit(lost: int, won: int, limit: int) -> tuple[int, int]:
    """Return how many of the lost and of the won samples to show, at most `limit` together.

    >>> share_limit(20, 20, 5), share_limit(20, 1, 5), share_limit(1, 20, 5)
    ((3, 2), (4, 1), (1, 4))
    """
    limit = max(0, limit)
    lost_count = min(lost, max(math.ceil(LOST_SHARE * limit), limit - won))
    return lost_count, min(won, limit - lost_count)


class ComparedSlice(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One slice of a comparison: its common samples, and its deltas by metric.

    The `interval` of each delta has the confidence of the table, its `p_adjusted` is corrected for all slices.
    `reversed` are the metrics whose difference is opposite to the total.
    """

    label: str
    samples: int
    deltas: dict[str, MetricDelta] = {}
    reversed: tuple[str, ...] = ()


class ComparedSlices(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A comparison by the values of a metadata key, or by tag.

    p-values are corrected (Holm) for the `tests` of all slices and metrics. The intervals have such a `confidence`
    that all of them hold together with 95% (Bonferroni). A slice contradicts the total if its difference has the
    other sign, its corrected p-value is at most 5%, and its interval excludes 0; `notes` describe those.
    """

    key: str
    slices: tuple[ComparedSlice, ...] = ()
    tests: int = 0
    confidence: float = 0.95
    overlapping: bool = False
    binned: bool = False
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[ComparedSlice]:
        return iter(self.slices)

    def __len__(self) -> int:
        return len(self.slices)

    def __getitem__(self, label: str) -> ComparedSlice:
        for part in self.slices:
            if part.label == label:
                return part
        raise KeyError(label)


class Comparison(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Side `a` compared with side `b`: two runs, or two configurations of one run.

    `answer` is the result in one sentence. `metrics` are pass rates, times, tokens and costs, `scores` the
    evaluators' scores, `fields` the selected fields. `flips` are the samples that pass on one side only,
    worst first; `flips_of` is the evaluator that they pass or not, empty for all evaluators together. With `epochs`,
    more than half of a sample's epochs must pass. `only_a` and
    `only_b` are the ids of samples that the other side lacks, `missing_a` and `missing_b` the metrics that a side
    lacks; `notes` describe other differences. `samples` counts the common samples, `tests` the tests that p-values are
    corrected for. `a_run` and `b_run` are run ids. `evaluator_differences` describes evaluators that differ, and
    `uneven` evaluators that judged far fewer samples on one side: metrics over all evaluators are then "not
    comparable". `other_content` are ids with different samples on each side, which are not paired. `unpaired` means
    that all samples are compared as two groups. `slices` is the comparison by a metadata key, if one was named.
    `biased` says why nothing can be compared: the samples of one run were chosen because they did not pass in the
    other, or the runs are two groups of other selections.
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
    evaluator_differences: tuple[str, ...] = msgspec.field(default=(), name="unlike")
    uneven: tuple[str, ...] = ()
    other_content: tuple[str, ...] = ()
    unpaired: bool = False
    flips_of: str = ""
    epochs: int = 1
    slices: ComparedSlices | None = None
    biased: str = ""

    @property
    def groups(self) -> tuple[tuple[str, Mapping[str, MetricDelta]], ...]:
        """The deltas by group."""
        return ("metric", self.metrics), ("score", self.scores), ("field", self.fields)

    def all_deltas(self) -> Iterator[MetricDelta]:
        """Yield all deltas."""
        for _, deltas in self.groups:
            yield from deltas.values()

    def find(self, name: str) -> MetricDelta | None:
        """Find a delta by its name, or by the name of the metric in a report; None if there is none.

        `exact_match.mean` is the score of exact_match, `field.tokens` the field tokens.
        """
        for _, deltas in self.groups:
            for alias in list_aliases(name):
                if alias in deltas:
                    return deltas[alias]
        return None

    def essential(self) -> list[MetricDelta]:
        """Return the deltas to show: pass rates first, costs last, without duplicates.

        Duplicates are the strict pass rate if there are no errors, the mean of binary scores or of a single evaluator,
        and the score of a field with one evaluator.
        """
        metrics = sorted(self.metrics.values(), key=lambda delta: delta.kind == "number")
        quality = [delta for delta in metrics if delta.kind != "number"]
        ordered = [*quality, *self.scores.values(), *self.fields.values(), *metrics[len(quality) :]]
        by_name = {**self.fields, **self.scores, **self.metrics}
        only_score = next(iter(self.scores)) if len(self.scores) == 1 else ""
        return [delta for delta in ordered if not _is_duplicate(delta, by_name, only_score)]

    @property
    def lost(self) -> tuple[Flip, ...]:
        """The samples that pass on side b only, worst first."""
        return tuple(flip for flip in self.flips if flip.lost)

    @property
    def won(self) -> tuple[Flip, ...]:
        """The samples that pass on side a only."""
        return tuple(flip for flip in self.flips if not flip.lost)

    @property
    def deltas(self) -> dict[str, dict[str, float | None]]:
        """The difference for each numeric field, absolute and in percent of b."""
        return _plain(self.fields.values())

    @property
    def score_deltas(self) -> dict[str, dict[str, float | None]]:
        """The difference for each evaluator's score, absolute and in percent of b."""
        return _plain(self.scores.values())

    def rows(self) -> list[dict[str, Any]]:
        """Return one mapping for each delta, for a table or a plot."""
        return [_make_row(group, delta) for group, deltas in self.groups for delta in deltas.values()]

    def _table(self) -> list[tuple[str, ...]]:
        head = ("", self.a, self.b, "difference", "%", "95% interval", "p", "n", "verdict")
        return [head, *map(_cells, self.essential())]

    def _repr_html_(self) -> str:
        """Return the answer, a table and the notes for notebooks; all texts are escaped."""
        from html import escape

        rows = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self._table())
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f"<div><p><strong>{escape(self.answer)}</strong></p><table>{rows}</table>{notes}</div>"

    def __str__(self) -> str:
        """Render the answer, and a table with a line for each delta."""
        lines = self._table()
        head = lines[0]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = [
            "  ".join(
                cell.rjust(width) if 0 < index < len(head) - 1 else cell.ljust(width)
                for index, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([self.answer, "", *rows] if self.answer else rows)


def list_aliases(name: str) -> tuple[str, ...]:
    """Return the names that a comparison may use for a metric of a report.

    If every score is 0 or 1, the pass rate of an evaluator is its score.
    """
    bare = name.removeprefix("field.")
    # A field's name refers to its numbers, not to its pass rate.
    stem = bare.removesuffix(".mean").removesuffix(".pass_rate" if bare == name else "")
    aliases = [name, bare, stem, *([] if "." in bare else [f"{bare}.mean"])]
    return tuple(dict.fromkeys(aliases))


def _is_duplicate(delta: MetricDelta, others: Mapping[str, MetricDelta], only_score: str) -> bool:
    """True if a delta has the same numbers as the delta that it is derived from."""
    stem, _, last = delta.name.rpartition(".")
    if delta.name in ("strict_pass_rate", "mean_score", only_score):
        original = "pass_rate"
    elif last == "pass_rate":
        original = stem
    else:
        original = f"{stem}.score" if last != "score" else ""
    other = others.get(original)
    return other is not None and other is not delta and delta.has_same_numbers(other)


def _cells(delta: MetricDelta) -> tuple[str, ...]:
    kind = delta.kind
    return (
        delta.name,
        wording.format_value(delta.a, kind, delta.name),
        wording.format_value(delta.b, kind, delta.name),
        wording.format_change(delta.absolute, kind, metric=delta.name),
        wording.DASH if delta.percentage is None else f"{delta.percentage:+.1f}",
        wording.format_changes(delta.interval, kind, delta.name),
        wording.format_probability(delta.p_adjusted),
        f"{delta.n:,}",
        delta.verdict_text,
    )


def _plain(deltas: Iterable[MetricDelta]) -> dict[str, dict[str, float | None]]:
    return {
        delta.name: {"absolute": delta.absolute, "percentage": delta.percentage}
        for delta in deltas
        if delta.a is not None or delta.b is not None
    }


def _make_row(group: str, delta: MetricDelta) -> dict[str, Any]:
    low, high = delta.interval or (None, None)
    skipped = ("interval", "a_interval", "b_interval", "percentage_interval", "kind", "scale")
    fields = {name: getattr(delta, name) for name in delta.__struct_fields__ if name not in skipped}
    return {"of": group, **fields, "low": low, "high": high, "a_is_better": delta.a_is_better}


Order = Literal["asc", "desc"]


class RankedPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The rank of one configuration: its mean over `n` samples, and how many samples are missing.

    Epochs are averaged first; `interval` is the 95% interval of the mean. `ranks` are the best and the worst
    place that the evidence allows: every pair is compared on its common samples, corrected for the number of
    pairs. `chance_of_best` is the probability of being the best over all samples of this kind; None if the
    configurations do not have the same samples.
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
        """True if the evidence allows no other rank."""
        return self.ranks == (self.rank, self.rank)


class Ranking(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """All configurations ranked by one number; configurations without a number come last.

    `decided` is True if the first differs significantly from every other. `note` is a remark, for example that only the
    common samples were used.
    """

    field: str
    order: Order
    places: tuple[RankedPlace, ...] = ()
    note: str = ""

    @property
    def decided(self) -> bool:
        """True if the first rank is decided."""
        return bool(self.places) and len(self._ranked) > 1 and self.places[0].decided

    @property
    def best(self) -> str | None:
        """The first configuration with a number."""
        return self._ranked[0] if self._ranked else None

    @property
    def worst(self) -> str | None:
        """The last configuration with a number."""
        return self._ranked[-1] if self._ranked else None

    @property
    def _ranked(self) -> list[str]:
        return [place.configuration for place in self.places if place.value is not None]

    @property
    def answer(self) -> str:
        """The result in one sentence."""
        if len(self._ranked) < 2:
            return f"Fewer than two configurations have a value for {self.field}."
        if self.decided:
            first = f"{self.best} is first by {self.field}, beyond chance"
        else:
            rivals = [place.configuration for place in self.places[1:] if place.ranks and place.ranks[0] == 1]
            first = f"Which is first by {self.field} is not decided: {self.best}"
            first += f", or {' or '.join(rivals)}" if rivals else ""
        return f"{first}{self._describe_rest()}.{f' {self.note}' if self.note else ''}"

    def _describe_rest(self) -> str:
        other_places = [place for place in self.places if place.value is not None][1:]
        decided = [place.configuration for place in other_places if place.decided]
        if len(other_places) < 2:
            return ""
        if len(decided) in (0, len(other_places)):
            return f"; {'all' if decided else 'none'} of the other {len(other_places)} places are decided"
        return f"; of the other {len(other_places)} places decided: {', '.join(decided)}"

    @property
    def data(self) -> list[dict[str, Any]]:
        """One mapping for each rank, for a table or a plot."""
        return [
            {
                **msgspec.structs.asdict(place),
                "interval": place.interval and list(place.interval),
                "ranks": place.ranks and list(place.ranks),
            }
            for place in self.places
        ]
