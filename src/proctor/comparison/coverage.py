"""Which evaluators judged fewer samples on one side than on the other.

A pass rate or a mean over all evaluators changes its meaning when one of them stops judging: what
is left looks as good as before, or better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from proctor.comparison.sides import Side
from proctor.records.results import Figures
from proctor.records.score import NOT_ASKED
from proctor.records.trial import OUTCOMES

# The same rule as for the warning of a run: more than a tenth is worth mentioning.
TENTH = 0.1
_ERRORS = OUTCOMES.index("error"), OUTCOMES.index("unscored")


class Coverage(NamedTuple):
    """How many trials of the common samples an evaluator judged on each side.

    `lost` of those that it judged on side b have no verdict on side a, `gained` the other way
    round. Trials that failed are not counted here: the metrics themselves account for them.
    """

    evaluator: str
    a: int
    b: int
    of: int
    lost: int
    gained: int
    unit: str = "samples"

    @property
    def is_uneven(self) -> bool:
        """True if more than a tenth of the verdicts of one side are missing on the other.

        >>> Coverage("toxicity", 0, 60, 60, 60, 0).is_uneven
        True
        >>> Coverage("toxicity", 54, 60, 60, 6, 0).is_uneven
        False
        """
        return _is_much(self.lost, self.b) or _is_much(self.gained, self.a)

    def describe(self, a: str, b: str) -> str:
        """Say how many each side has.

        >>> Coverage("toxicity", 0, 60, 60, 60, 0).describe("new", "main")
        'toxicity judged 0 of 60 samples in new, and 60 of 60 in main'
        """
        first = f"{self.a:,} of {self.of:,} {self.unit} in {a}"
        return f"{self.evaluator} judged {first}, and {self.b:,} of {self.of:,} in {b}"


class _Verdicts(NamedTuple):
    """How many trials of each sample an evaluator judged, and on how many it said nothing."""

    judged: Counter[str]
    silent: Counter[str]


def coverage_of(a: Side, b: Side) -> list[Coverage]:
    """The coverage of every evaluator that both sides have, in the order of side a.

    Nothing is known of sides without results. Two groups without common samples may concern an
    evaluator more or less often, so there only an evaluator without any verdict has lost its own.
    """
    if a.results is None or b.results is None:
        return []
    mine, theirs = a.results.figures(), b.results.figures()
    names = [name for name in _names(a, mine) if name in _names(b, theirs)]
    shared = set(a.samples) & set(b.samples) - (a.apart or frozenset())
    return [
        _in_pairs(name, shared, _verdicts(a, mine, name), _verdicts(b, theirs, name))
        if shared
        else _in_groups(name, _verdicts(a, mine, name), _verdicts(b, theirs, name))
        for name in names
    ]


def _names(side: Side, figures: Figures) -> Iterable[str]:
    specs = [spec.name for spec in side.run.evaluators] if side.run is not None else []
    return dict.fromkeys([*specs, *figures.scores])


def _verdicts(side: Side, figures: Figures, evaluator: str) -> _Verdicts:
    judged: Counter[str] = Counter()
    silent: Counter[str] = Counter()
    values = figures.scores.get(evaluator) or [float("nan")] * len(figures.sample_ids)
    for name, value, outcome in zip(figures.sample_ids, values, figures.outcomes, strict=True):
        if value == value:
            judged[name] += 1
        elif outcome not in _ERRORS:
            silent[name] += 1
    if _is_much(silent.total(), silent.total() + judged.total()):
        silent.subtract(_not_asked(side, evaluator))
    return _Verdicts(judged, silent)


def _not_asked(side: Side, evaluator: str) -> Iterator[str]:
    """The samples of the trials that an evaluator leaves out by design, one for each trial."""
    results = side.results
    if results is None or side.run is None:
        return
    if side.run.options.epochs == 1 and side.run.baseline is None:
        return
    for result in results.page(outcome="skipped", evaluator=evaluator, limit=len(results)):
        score = result.scores.get(evaluator)
        if score is not None and score.reason in NOT_ASKED:
            yield result.sample_id


def _in_pairs(name: str, shared: set[str], mine: _Verdicts, theirs: _Verdicts) -> Coverage:
    trials = [
        {sample: held.judged[sample] + held.silent[sample] for sample in shared} for held in (mine, theirs)
    ]
    # Trials of both sides can be matched only if the samples have as many on each.
    highest = [max(held.values(), default=0) for held in trials]
    if highest[0] != highest[1]:
        mine, theirs = _by_sample(mine), _by_sample(theirs)
        trials = [
            {sample: held.judged[sample] + held.silent[sample] for sample in shared}
            for held in (mine, theirs)
        ]
        highest = [1, 1]
    lost = sum(min(theirs.judged[s], max(0, mine.silent[s] - theirs.silent[s])) for s in shared)
    gained = sum(min(mine.judged[s], max(0, theirs.silent[s] - mine.silent[s])) for s in shared)
    return Coverage(
        name,
        sum(mine.judged[sample] for sample in shared),
        sum(theirs.judged[sample] for sample in shared),
        sum(max(trials[0][sample], trials[1][sample]) for sample in shared),
        lost,
        gained,
        "samples" if highest[0] <= 1 else "trials",
    )


def _by_sample(held: _Verdicts) -> _Verdicts:
    """One verdict a sample: judged if any of its trials was."""
    judged = Counter(name for name, count in held.judged.items() if count > 0)
    silent = (name for name, count in held.silent.items() if count > 0 and name not in judged)
    return _Verdicts(judged, Counter(silent))


def _in_groups(name: str, mine: _Verdicts, theirs: _Verdicts) -> Coverage:
    a, b = mine.judged.total(), theirs.judged.total()
    silent = mine.silent.total(), theirs.silent.total()
    lost = b if silent[0] > 0 and not a else 0
    gained = a if silent[1] > 0 and not b else 0
    return Coverage(name, a, b, max(a + silent[0], b + silent[1]), lost, gained)


def _is_much(number: int, of: int) -> bool:
    return number > TENTH * of + 1e-9
