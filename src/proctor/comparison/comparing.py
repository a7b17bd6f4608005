"""Side by side: everything that is to be said of two runs or configurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from proctor.comparison.contents import can_tell, told_apart
from proctor.comparison.coverage import coverage_of
from proctor.comparison.deltas import Compared, Pair, all_deltas
from proctor.comparison.failures import partial_totals
from proctor.comparison.flips import flips
from proctor.comparison.measures import Changes, changes_between, without_verdict
from proctor.comparison.sentences import answer
from proctor.comparison.sides import Side, are_times_apart, without_twins
from proctor.comparison.totals import on_scale, scale_in, unlike_scales
from proctor.comparison.verdicts import TIMES_APART, WORTH
from proctor.errors import ConfigError, nearest
from proctor.records.comparison import Comparison, also_known_as
from proctor.records.rubric_scores import TOTAL_SCORE
from proctor.records.run import RunMetadata

# As many ids as one can take in.
NAMED = 3


def compare(
    a: Side,
    b: Side,
    *,
    metrics: Sequence[str] | None = None,
    better: Mapping[str, bool | None] | None = None,
    worth: float = WORTH,
    accept_changes: bool = False,
) -> Comparison:
    """Say what side `a` is beside side `b`: deltas are a minus b, percentages of b.

    `metrics` narrows it to some, and so the number of metrics that it is corrected for. `better`
    says of a field whether higher is better, where its name does not tell; of scores it always is.
    Where the runs have not the same evaluators, what all of them say together is not comparable,
    unless `accept_changes`.

    >>> low, high = (Side(n, fields={"tokens": {"1": v}}) for n, v in [("low", 450), ("high", 500)])
    >>> compare(low, high).deltas
    {'tokens': {'absolute': -50.0, 'percentage': -10.0}}
    """
    told = compare_all(
        [(a, b)], metrics=metrics, better=better, worth=worth, accept_changes=accept_changes
    )
    return told[0]


def compare_all(
    pairs: Sequence[Pair],
    *,
    metrics: Sequence[str] | None = None,
    better: Mapping[str, bool | None] | None = None,
    worth: float = WORTH,
    accept_changes: bool = False,
) -> list[Comparison]:
    """The same of several pairs that are looked at together, and corrected for all of them.

    Who looks at ten configurations for one that is better has ten chances to be wrong.
    """
    if not 0 <= worth < 1:
        raise ConfigError(
            f"a difference worth the name is a share from 0 to below 1, got {worth!r}",
            where="worth",
            fix="one point is 0.01",
        )
    pairs = [without_twins(*told_apart(a, b)) for a, b in pairs]
    chosen = pairs if metrics is None else _chosen(pairs, metrics)
    found = all_deltas(chosen, better=better, worth=worth)
    return [
        _told(whole, narrowed, compared, accept_changes=accept_changes)
        for whole, narrowed, compared in zip(pairs, chosen, found, strict=True)
    ]


def _told(whole: Pair, narrowed: Pair, compared: Compared, *, accept_changes: bool) -> Comparison:
    (a, b), (some_a, some_b) = whole, narrowed
    changes = Changes() if accept_changes else _changes(a, b)
    coverage = coverage_of(a, b)
    uneven = tuple(one.describe(a.name, b.name) for one in coverage if one.is_uneven)
    # Where one evaluator is all there is, samples that it skipped are in no pair.
    if len(coverage) > 1 and not accept_changes:
        changes = changes._replace(uneven=uneven)
    theirs, mine, apart = set(b.samples), set(a.samples), a.apart or frozenset()
    scales = scale_in(a.run), scale_in(b.run)
    metrics = {name: on_scale(one, *scales) for name, one in compared.metrics.items()}
    found = Comparison(
        a.name,
        b.name,
        samples=len((mine & theirs) - apart),
        tests=compared.tests,
        a_run=a.run.run_id if a.run else "",
        b_run=b.run.run_id if b.run else "",
        metrics={n: without_verdict(one, changes) for n, one in metrics.items()},
        scores={n: without_verdict(one, changes) for n, one in compared.scores.items()},
        fields=compared.fields,
        flips=flips(a, b),
        only_a=tuple(name for name in a.samples if name not in theirs),
        only_b=tuple(name for name in b.samples if name not in mine),
        missing_a=_lacking(some_a, some_b),
        missing_b=_lacking(some_b, some_a),
        notes=(*_notes(a, b), *uneven),
        unlike=tuple(changes.told(a.name, b.name)),
        uneven=changes.uneven,
        other_content=() if a.unpaired else tuple(name for name in a.samples if name in apart),
        unpaired=a.unpaired,
    )
    return msgspec.structs.replace(found, answer=answer(found))


def _lacking(side: Side, other: Side) -> tuple[str, ...]:
    """The metrics that the other has and this one has not."""
    return tuple(
        name
        for mine, theirs in zip(_tables(side), _tables(other), strict=True)
        for name in theirs
        if name not in mine
    )


def _tables(side: Side) -> tuple[Mapping[str, object], ...]:
    return side.metrics, side.scores, side.fields


def _chosen(pairs: Sequence[Pair], wanted: Sequence[str]) -> list[Pair]:
    sides = [side for pair in pairs for side in pair]
    known = list(dict.fromkeys(n for side in sides for table in _tables(side) for n in table))
    names = {_as_known(name, known) for name in wanted}
    return [(_narrowed(a, names), _narrowed(b, names)) for a, b in pairs]


def _narrowed(side: Side, names: set[str]) -> Side:
    return msgspec.structs.replace(
        side,
        metrics={n: v for n, v in side.metrics.items() if n in names},
        scores={n: v for n, v in side.scores.items() if n in names},
        fields={n: v for n, v in side.fields.items() if n in names},
    )


def _as_known(name: str, known: Sequence[str]) -> str:
    """A metric's name as the comparison has it; the names of the report's metrics are known too."""
    for one in also_known_as(name):
        if one in known:
            return one
    raise ConfigError(
        f"there is no metric {name!r} to compare", where="metric", fix=nearest(name, known)
    )


def _notes(a: Side, b: Side) -> Iterator[str]:
    for side in (a, b):
        if side.without_verdict:
            trials = "trial" if side.without_verdict == 1 else "trials"
            yield f"{side.name} has {side.without_verdict:,} {trials} without a verdict"
        if partial := partial_totals(side):
            known = f"{partial:,} of {len(side.metrics[TOTAL_SCORE]):,} totals"
            yield f"{known} of {side.name} lack a rubric that failed"
        if side.run is not None:
            yield from standing(side.name, side.run)
            if side.run.cached_outputs is not None:
                yield f"{side.name}: {side.run.cached_outputs}"
    if a.run is not None and b.run is not None and a.run.run_id != b.run.run_id:
        yield from _unlike(a, b, a.run, b.run)
        if any(are_times_apart(name, a, b) for name in a.names if b.find(name)):
            yield TIMES_APART
    if unlike := unlike_scales({side.name: scale_in(side.run) for side in (a, b)}):
        yield unlike
    changes = _changes(a, b)
    yield from (*changes.told(a.name, b.name), *changes.doubts(a.name, b.name))


def _changes(a: Side, b: Side) -> Changes:
    """How the evaluators differ; not at all within one run, and where nothing is known of them."""
    if a.run is None or b.run is None or a.run.run_id == b.run.run_id:
        return Changes()
    return changes_between(a.run, b.run)


def standing(name: str, run: RunMetadata) -> Iterator[str]:
    """What must be said of a run that has not all its results."""
    if run.status != "completed":
        yield f"{name} is not complete ({run.status}): what ran first need not be like the rest"
    if run.stopped_early is not None:
        yield (
            f"{name} was stopped as soon as it was settled: intervals and p are of a run whose "
            "length was fixed before, and claim more than they hold"
        )


def _unlike(a: Side, b: Side, mine: RunMetadata, theirs: RunMetadata) -> Iterator[str]:
    """What makes two runs hard to compare: other data, other epochs."""
    prints = mine.dataset.fingerprint, theirs.dataset.fingerprint
    if all(prints) and prints[0] != prints[1]:
        doubt = "" if can_tell(a, b) else ": samples of one id may have other contents"
        yield f"the datasets are not the same{doubt}"
    if a.apart and not a.unpaired:
        some = ", ".join(sorted(a.apart)[:NAMED]) + (", …" if len(a.apart) > NAMED else "")
        have = "sample has" if len(a.apart) == 1 else "samples have"
        yield f"{len(a.apart):,} {have} other contents under the same id, no pairs: {some}"
    epochs = mine.options.epochs, theirs.options.epochs
    if epochs[0] != epochs[1]:
        yield f"{epochs[0]} and {epochs[1]} epochs: each sample's are averaged"
