"""Find evaluators that judged fewer samples on one side than on the other.

A metric over all evaluators changes its meaning if one of them stops judging: the remaining scores
look as good as before, or better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import chain, compress, repeat
from math import isnan
from operator import add, eq, lt
from typing import NamedTuple

from proctor.comparison.sides import Side
from proctor.records.results import NAN, Figures
from proctor.records.score import SKIPPED_BY_DESIGN
from proctor.records.trial import OUTCOMES

# The limit that a run's own warning uses.
MAX_UNEVEN_SHARE = 0.1
# 1 for each outcome that is no error, else 0.
_IS_NO_ERROR = bytes(outcome not in ("error", "unscored") for outcome in OUTCOMES).ljust(256)


class Coverage(NamedTuple):
    """How many trials of the common samples an evaluator judged on each side.

    `lost` counts the trials that it judged on side b and not on side a, `gained` the reverse. Failed
    trials are not counted: the metrics themselves account for them.
    """

    evaluator: str
    a: int
    b: int
    total: int
    lost: int
    gained: int
    unit: str = "samples"

    @property
    def is_uneven(self) -> bool:
        """True if more than a tenth of the verdicts of one side are missing on the other."""
        return _exceeds_limit(self.lost, self.b) or _exceeds_limit(self.gained, self.a)

    def describe(self, a: str, b: str) -> str:
        first = f"{self.a:,} of {self.total:,} {self.unit} in {a}"
        return f"{self.evaluator} judged {first}, and {self.b:,} of {self.total:,} in {b}"


class _Verdicts(NamedTuple):
    """How many trials of each sample an evaluator judged, and how many got no verdict."""

    judged: Counter[str]
    unjudged: Counter[str]

    def count_trials(self, samples: Collection[str]) -> list[int]:
        counts = (map(counter.get, samples, repeat(0)) for counter in self)
        return list(map(add, *counts))

    def merge_trials(self) -> _Verdicts:
        """Count one verdict per sample: judged if any of its trials was."""
        judged = Counter(name for name, count in self.judged.items() if count > 0)
        unjudged = (name for name, count in self.unjudged.items() if count > 0 and name not in judged)
        return _Verdicts(judged, Counter(unjudged))


def compute_coverage(a: Side, b: Side) -> list[Coverage]:
    """Compute the coverage of every evaluator that both sides have, in the order of side a.

    Sides without results have no coverage. Between two independent groups of samples, an evaluator may apply more or
    less often, so only an evaluator without any verdict counts as lost.
    """
    a_figures, b_figures = a.read_figures(), b.read_figures()
    if a_figures is None or b_figures is None:
        return []
    b_names = _list_evaluators(b, b_figures)
    shared = a.share_samples(b) - (a.different_samples or frozenset())
    has_epochs = any(len(f.sample_ids) > len(side.samples) for f, side in ((a_figures, a), (b_figures, b)))
    coverage = []
    for name in _list_evaluators(a, a_figures):
        if name not in b_names:
            continue
        if shared and not has_epochs and _has_all_verdicts(a_figures, name) and _has_all_verdicts(b_figures, name):
            # The usual case, which needs no counts by sample.
            coverage.append(Coverage(name, len(shared), len(shared), len(shared), 0, 0))
            continue
        verdicts = _count_verdicts(a, a_figures, name), _count_verdicts(b, b_figures, name)
        coverage.append(_compare_pairs(name, shared, *verdicts) if shared else _compare_groups(name, *verdicts))
    return coverage


def _has_all_verdicts(figures: Figures, evaluator: str) -> bool:
    return evaluator in figures.scores and not isnan(sum(figures.scores[evaluator]))


def _list_evaluators(side: Side, figures: Figures) -> dict[str, None]:
    specs = [spec.name for spec in side.run.evaluators] if side.run is not None else []
    return dict.fromkeys([*specs, *figures.scores])


def _count_verdicts(side: Side, figures: Figures, evaluator: str) -> _Verdicts:
    ids, values = figures.sample_ids, figures.scores.get(evaluator) or [NAN] * len(figures.sample_ids)
    # NaN is not equal to itself.
    is_judged = bytes(map(eq, values, values))
    judged = Counter(compress(ids, is_judged))
    unjudged = Counter(compress(ids, map(lt, is_judged, figures.outcomes.translate(_IS_NO_ERROR))))
    if _exceeds_limit(unjudged.total(), unjudged.total() + judged.total()):
        unjudged.subtract(_find_skipped_by_design(side, evaluator))
    return _Verdicts(judged, unjudged)


def _find_skipped_by_design(side: Side, evaluator: str) -> Iterator[str]:
    results = side.results
    if results is None or side.run is None:
        return
    if side.run.options.epochs == 1 and side.run.baseline is None:
        return
    for result in results.page(outcome="skipped", evaluator=evaluator, limit=len(results)):
        score = result.scores.get(evaluator)
        if score is not None and score.reason in SKIPPED_BY_DESIGN:
            yield result.sample_id


def _compare_pairs(name: str, shared: set[str], a: _Verdicts, b: _Verdicts) -> Coverage:
    trials = a.count_trials(shared), b.count_trials(shared)
    max_trials = [max(counts, default=0) for counts in trials]
    # Trials can be matched only if the samples have the same number of them on each side.
    if max_trials[0] != max_trials[1]:
        a, b = a.merge_trials(), b.merge_trials()
        trials, max_trials = (a.count_trials(shared), b.count_trials(shared)), [1, 1]
    # Of other samples, no verdict is lost or gained.
    differing = shared.intersection(chain(a.unjudged, b.unjudged))
    return Coverage(
        name,
        sum(map(a.judged.get, shared, repeat(0))),
        sum(map(b.judged.get, shared, repeat(0))),
        sum(map(max, *trials)),
        sum(min(b.judged[s], max(0, a.unjudged[s] - b.unjudged[s])) for s in differing),
        sum(min(a.judged[s], max(0, b.unjudged[s] - a.unjudged[s])) for s in differing),
        "samples" if max_trials[0] <= 1 else "trials",
    )


def _compare_groups(name: str, a: _Verdicts, b: _Verdicts) -> Coverage:
    (a_judged, a_unjudged), (b_judged, b_unjudged) = ((v.judged.total(), v.unjudged.total()) for v in (a, b))
    lost = b_judged if a_unjudged > 0 and not a_judged else 0
    gained = a_judged if b_unjudged > 0 and not b_judged else 0
    return Coverage(name, a_judged, b_judged, max(a_judged + a_unjudged, b_judged + b_unjudged), lost, gained)


def _exceeds_limit(number: int, total: int) -> bool:
    return number > MAX_UNEVEN_SHARE * total + 1e-9
