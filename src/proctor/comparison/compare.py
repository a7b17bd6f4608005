"""Side by side: everything that is to be said of two runs or configurations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from proctor.comparison.contents import can_tell, partial_totals, told_apart
from proctor.comparison.coverage import coverage_of
from proctor.comparison.deltas import Compared, Pair, all_deltas
from proctor.comparison.sentences import answer
from proctor.comparison.sides import (
    MEAN_SCORE,
    PASS_RATE,
    STRICT_PASS_RATE,
    Side,
    are_times_apart,
    without_twins,
)
from proctor.comparison.totals import on_scale, scale_in, unlike_scales
from proctor.comparison.verdicts import TIMES_APART, WORTH
from proctor.core.identity import is_other_scheme
from proctor.errors import ConfigError, nearest
from proctor.records import codec
from proctor.records.comparison import NOT_COMPARABLE, Comparison, Flip, MetricDelta, also_known_as
from proctor.records.rubric import RUBRIC, TOTAL_SCORE
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.score import Skipped


def flips(a: Side, b: Side) -> tuple[Flip, ...]:
    """Samples that pass on one side and not on the other: the lost ones first, worst first.

    A trial without a verdict has not passed, as in a strict pass rate.
    """
    mine, theirs = (_verdicts(side) for side in (a, b))
    apart = a.apart or ()
    found = [
        Flip(name, lost=theirs[name], a=_score(a, name), b=_score(b, name))
        for name, passes in mine.items()
        if name in theirs and passes is not theirs[name] and name not in apart
    ]
    return tuple(sorted(found, key=lambda one: (not one.lost, one.change, one.sample_id)))


def _verdicts(side: Side) -> dict[str, bool]:
    shares = side.metrics.get(STRICT_PASS_RATE) or side.metrics.get(PASS_RATE) or {}
    return {name: share > 0.5 for name, share in shares.items()}


def _score(side: Side, sample_id: str) -> float | None:
    return side.metrics.get(MEAN_SCORE, {}).get(sample_id)


# What is longer is not told word for word.
LONGEST = 40
WEIGHT = f"{RUBRIC}.weight"
_NOTHING = object()
# How a model or an embedder is called that is a function of the user's.
_FUNCTION = "python:"


class Term(NamedTuple):
    """An option by its path, as one run has it and as the other; without one it is the usual."""

    path: str
    mine: str
    theirs: str

    def told(self, a: str, b: str) -> str:
        """In words, with the names of both runs.

        >>> Term("weight", "2", "3").told("new", "old")
        'weight is 2 in new and 3 in old'
        """
        if max(len(self.mine), len(self.theirs)) > LONGEST:
            return f"{self.path} reads otherwise"
        return f"{self.path} is {self.mine} in {a} and {self.theirs} in {b}"


def terms_apart(mine: EvaluatorSpec, theirs: EvaluatorSpec) -> tuple[Term, ...]:
    """What two evaluators have not in common; nothing where only their code may differ."""
    what = [Term("it", mine.uses, theirs.uses)] if mine.uses != theirs.uses else []
    options = [mine.parameters, theirs.parameters]
    if is_other_scheme(mine.identity, theirs.identity):
        options = [_without_identities(parameters) for parameters in options]
    return (*what, *_apart("", *options))


def _without_identities(value: Any) -> Any:
    """Options without the identities of the evaluators in them."""
    if isinstance(value, Mapping):
        is_evaluator = "uses" in value and "name" in value
        return {
            key: _without_identities(item)
            for key, item in value.items()
            if not (is_evaluator and key == "identity")
        }
    return [_without_identities(item) for item in value] if isinstance(value, list) else value


def code_of(evaluator: EvaluatorSpec) -> str:
    """What may differ in an evaluator whose options are the same: a function that it asks.

    >>> code_of(EvaluatorSpec("tone", "rubric", {"adapter": "python:judge"}, "1f"))
    'the code of python:judge, or what it uses'
    """
    given = (value for value in evaluator.parameters.values() if isinstance(value, str))
    asked = next((value for value in given if value.startswith(_FUNCTION)), "")
    return f"the code{f' of {asked}' if asked else ''}, or what it uses"


def only_weight(apart: Iterable[Term]) -> bool:
    """True if nothing differs but how much a rubric counts in the total."""
    return [term.path for term in apart] == [WEIGHT]


def _apart(path: str, mine: Any, theirs: Any) -> Iterator[Term]:
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        for name in dict.fromkeys([*mine, *theirs]):
            inner = f"{path}.{name}" if path else str(name)
            yield from _apart(inner, mine.get(name, _NOTHING), theirs.get(name, _NOTHING))
    elif mine != theirs:
        yield Term(path, _shown(mine), _shown(theirs))


def _shown(value: Any) -> str:
    if value is _NOTHING:
        return "the usual"
    return value if isinstance(value, str) else codec.in_text(value)


# What all evaluators of a run say together.
COMBINED = (STRICT_PASS_RATE, PASS_RATE, MEAN_SCORE, TOTAL_SCORE)


class Changes(NamedTuple):
    """Which evaluators two runs do not share, and which of the same name are not the same.

    `doubtful` are those whose code looks different under another Python or Proctor, which may be
    all the difference there is. `weighed` are rubrics that differ in their weight alone: each is
    the same measure, and the total is not. `apart` says of both how they differ, `code` what it may
    be where no option does.
    """

    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    weighed: tuple[str, ...] = ()
    apart: Mapping[str, tuple[Term, ...]] = MappingProxyType({})
    code: Mapping[str, str] = MappingProxyType({})
    # What a skipped check means in each run, where that differs.
    skipped: tuple[Skipped, Skipped] | None = None
    # Which evaluators judged far fewer samples in one run than in the other, a sentence each.
    uneven: tuple[str, ...] = ()

    @property
    def matter(self) -> bool:
        """True if a metric that combines all evaluators means something else in each run."""
        return bool(self.only_a or self.only_b or self.changed or self.skipped or self.uneven)

    def touch(self, metric: str) -> bool:
        """True if a metric, by the name a comparison has for it, is another measure in each."""
        if metric in COMBINED:
            return self.matter or (metric == TOTAL_SCORE and bool(self.weighed))
        return any(metric == name or metric.startswith(f"{name}.") for name in self.changed)

    def told(self, a: str, b: str) -> Iterator[str]:
        """What is not the same, a sentence each."""
        for name, ones in ((a, self.only_a), (b, self.only_b)):
            if ones:
                yield f"only {name} has the evaluator{'s' * (len(ones) > 1)} {', '.join(ones)}"
        alike: dict[str, list[str]] = {}
        for one in self.changed:
            how = "; ".join(term.told(a, b) for term in self.apart.get(one, ()))
            alike.setdefault(how or self.code[one], []).append(one)
        for how, same in alike.items():
            are = "s {} are" if len(same) > 1 else " {} is"
            yield f"the evaluator{are.format(', '.join(same))} not the same in both runs: {how}"
        if self.skipped is not None:
            mine, theirs = self.skipped
            yield f"a skipped check counts differently: skipped is {mine} in {a}, {theirs} in {b}"

    def doubts(self, a: str, b: str) -> Iterator[str]:
        """What cannot be told to be the same, and what differs and is the same measure still."""
        for one in self.weighed:
            (term,) = self.apart[one]
            yield f"the weight of {one} is {term.mine} in {a} and {term.theirs} in {b}"
        if self.doubtful:
            yield (
                "the runs have another Python or Proctor, so that nothing tells whether the code "
                f"of {', '.join(self.doubtful)} is the same"
            )


def changes_between(a: RunMetadata, b: RunMetadata) -> Changes:
    """How the evaluators of two runs differ."""
    mine, theirs = ({spec.name: spec for spec in run.evaluators} for run in (a, b))
    shared = [name for name in mine if name in theirs]
    alike = _surroundings(a) == _surroundings(b)
    apart = {name: terms_apart(mine[name], theirs[name]) for name in shared}
    # Options are part of an identity: where one differs, it tells nothing of the code.
    weighed = [name for name in shared if only_weight(apart[name])]
    suspect = [
        name for name in shared if mine[name].identity != theirs[name].identity and name not in weighed
    ]
    # Identities of two schemes cannot be compared, whatever the version of Proctor is called.
    telling = [
        name for name in suspect if alike and not is_other_scheme(mine[name].identity, theirs[name].identity)
    ]
    changed = [name for name in shared if name not in weighed and (apart[name] or name in telling)]
    return Changes(
        tuple(name for name in mine if name not in theirs),
        tuple(name for name in theirs if name not in mine),
        tuple(changed),
        tuple(name for name in suspect if name not in changed),
        tuple(weighed),
        apart,
        {name: code_of(mine[name]) for name in shared},
        _skipped_differs(a, b),
    )


def _skipped_differs(a: RunMetadata, b: RunMetadata) -> tuple[Skipped, Skipped] | None:
    """What a skipped check means in each run; None where it is the same, or there is one check."""
    rules = a.options.skipped, b.options.skipped
    several = max(len(a.evaluators), len(b.evaluators)) > 1
    return rules if several and rules[0] != rules[1] else None


def without_verdict(delta: MetricDelta, changes: Changes) -> MetricDelta:
    """A delta that says nothing of better and worse where each side was measured otherwise."""
    if not changes.touch(delta.name):
        return delta
    return msgspec.structs.replace(
        delta, verdict=NOT_COMPARABLE, p=None, p_adjusted=None, effect=None, more_samples=None
    )


def _surroundings(run: RunMetadata) -> tuple[object, ...]:
    """What an evaluator's identity depends on besides its code: bytecode is of one Python only."""
    python = run.environment.get("python", "").split(".")[:2]
    return python, run.environment.get("proctor")


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
    told = compare_all([(a, b)], metrics=metrics, better=better, worth=worth, accept_changes=accept_changes)
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
    raise ConfigError(f"there is no metric {name!r} to compare", where="metric", fix=nearest(name, known))


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
