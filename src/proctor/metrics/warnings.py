"""How often an evaluator skipped or failed, and its most frequent reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from proctor.core.stats.intervals import Interval, wilson_interval
from proctor.metrics.estimates import FIELD
from proctor.records.results import Results
from proctor.records.run import RunMetadata
from proctor.records.score import NOT_ASKED
from proctor.records.trial import Outcome

LOCAL = "local:"


class JudgeMeasurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Verdicts of `llm_judge` on answers that people called right or wrong, as many of each.

    A verdict that could not be read passes nothing and fails nothing: it counts as a disagreement.
    As half of the answers are right, a constant verdict agrees with people on half of them.
    """

    data: str
    right: int
    right_passed: int
    right_unread: int
    wrong: int
    wrong_passed: int
    wrong_unread: int

    @property
    def n(self) -> int:
        """The number of answers."""
        return self.right + self.wrong

    @property
    def unread(self) -> int:
        """The number of verdicts that could not be read."""
        return self.right_unread + self.wrong_unread

    @property
    def agreed(self) -> int:
        """The number of right answers that passed and of wrong answers that failed."""
        return self.right_passed + self.wrong - self.wrong_passed - self.wrong_unread

    @property
    def interval(self) -> Interval:
        """The 95 % interval of the agreement."""
        return wilson_interval(self.agreed, self.n) or (0.0, 1.0)

    @property
    def beats_constant(self) -> bool:
        """Whether the agreement is above that of a constant verdict by more than chance."""
        return self.interval[0] > 0.5

    @property
    def summary(self) -> str:
        """The figures in words, with a conclusion that follows from the interval."""
        low, high = (100 * end for end in self.interval)
        conclusion = (
            "better than a constant verdict"
            if self.beats_constant
            else "not shown to be better than a constant verdict, so do not rely on its scores"
        )
        return (
            f"agrees with people on {self.agreed} of {self.n} answers of {self.data} "
            f"({100 * self.agreed / self.n:.0f} %, 95 % interval {low:.0f}–{high:.0f} %; "
            f"a constant verdict: 50 %): {conclusion}. "
            f"It passed {self.right_passed} of {self.right} right answers and {self.wrong_passed} "
            f"of {self.wrong} wrong ones; {self.unread} of {self.n} verdicts could not be read"
        )


MEASUREMENTS: Mapping[str, JudgeMeasurement] = {
    "smollm2": JudgeMeasurement("EVOUNA TQ", 7, 4, 2, 7, 2, 2),
    "qwen-judge": JudgeMeasurement("EVOUNA TQ", 7, 7, 0, 7, 4, 0),
}


def describe_judge(address: str) -> str:
    """What was measured of a local model as a judge; empty for every other model.

    >>> describe_judge("openai:gpt-4o-mini")
    ''
    """
    measurement = MEASUREMENTS.get(address.removeprefix(LOCAL))
    return "" if measurement is None or not address.startswith(LOCAL) else measurement.summary


# From so many equal verdicts on, a judge may not be looking at what it judges.
CONSTANT_FROM = 10
# How many canaries are read to find out what a constant judge made of them.
CANARIES_READ = 100


def constant_judges(results: Results, run: RunMetadata) -> Iterator[str]:
    """A sentence about every judge that gave the same score to everything.

    Rules such as `exact_match` rightly give 1 to every right output; of a judge or a rubric a
    score that never moves is suspicious at any value.
    """
    for spec in run.evaluators:
        if not spec.judges:
            continue
        values = results.column(spec.name).values
        if len(values) >= CONSTANT_FROM and min(values) == max(values):
            yield (
                f"{spec.name} gave the same score, {values[0]:.3g}, to all {len(values):,} results "
                f"it judged: it may not look at them. {_advice(results, spec.name)}"
            )


def _advice(results: Results, judge: str) -> str:
    """How to find out more about a constant judge, or what to do where a canary has told."""
    canaries = (
        canary
        for result in results
        if (score := result.scores.get(judge)) is not None
        and isinstance(canary := score.details.get("canary"), Mapping)
    )
    outcomes = [canary for canary, _ in zip(canaries, range(CANARIES_READ), strict=False)]
    if any(canary.get("fell_for") or canary.get("passes_anyway") for canary in outcomes):
        return "It passed a bad answer of the canary too: use another model or a clearer criterion"
    if any(canary.get("fell_for") is False for canary in outcomes):
        return (
            "It failed the bad answers of the canary, so it does look; check whether the samples "
            "differ enough"
        )
    if outcomes:
        return "It gave no verdict on the canary: see the details of its scores"
    return "Test it with an answer that must fail: --canary 1"


def local_judges(run: RunMetadata) -> Iterator[str]:
    """A sentence about every local model that judges, and what its verdicts are worth."""
    for spec in run.evaluators:
        for model in spec.judges_inside:
            if text := describe_judge(model):
                yield f"{spec.name} is judged by {model}, which {text}"


# Metrics of the result as a whole, over all its evaluators.
WHOLE = ("pass_rate", "strict_pass_rate", "mean_score")
# An evaluator that gives no verdict on a larger share of the results is worth a warning.
TENTH = 0.1
READ_AT_MOST = 1_000
REASON_LENGTH = 200


class Missing(NamedTuple):
    """How many of how many results have no verdict, and the most frequent reason."""

    number: int
    of: int
    reason: str = ""

    @property
    def is_much(self) -> bool:
        """True if it is more than a tenth.

        >>> Missing(1, 10).is_much, Missing(2, 10).is_much
        (False, True)
        """
        return self.number > TENTH * self.of + 1e-9


def count_skipped(results: Results, evaluator: str | None, run: RunMetadata | None) -> Missing:
    """The results that an evaluator skipped, or that were skipped as a whole.

    Scores that are left out by design are not counted: those of all epochs but the last for an
    evaluator of repeats, and those of the baseline for an evaluator that compares.
    """
    column = results.column(evaluator)
    found = Missing(column.skipped, len(column.values) + column.errors + column.skipped)
    if not found.is_much:
        return found
    by_design = run is None or run.options.epochs > 1 or run.baseline is not None
    limit = len(results) if by_design else READ_AT_MOST
    reasons = _reasons(results, evaluator, "skipped", limit)
    not_asked = sum(reasons.pop(reason, 0) for reason in NOT_ASKED)
    return Missing(found.number - not_asked, found.of - not_asked, _most_frequent(reasons))


def count_failed(results: Results, evaluator: str) -> Missing:
    """The results on which an evaluator failed, among those whose target gave an output."""
    counts = results.counts()
    of = counts.total - counts.error
    column = results.column(evaluator)
    found = Missing(column.errors - counts.error, of)
    if not found.is_much:
        return found
    reasons = _reasons(results, evaluator, "unscored", READ_AT_MOST)
    return found._replace(reason=_most_frequent(reasons))


def evaluator_of(metric: str, run: RunMetadata | None) -> tuple[bool, str | None]:
    """Whether a metric is made of scores, and of which evaluator's; None is the whole result.

    >>> evaluator_of("pass_rate", None), evaluator_of("latency_ms.p50", None)
    ((True, None), (False, None))
    """
    if metric in WHOLE:
        return True, None
    specs = run.evaluators if run is not None else ()
    labels = {f"{FIELD}.{s.name}" if s.uses == FIELD else s.name: s.name for s in specs}
    known = [label for label in labels if metric == label or metric.startswith(f"{label}.")]
    return (True, labels[max(known, key=len)]) if known else (False, None)


def evaluators_without_verdicts(results: Results, run: RunMetadata) -> Iterator[str]:
    """A sentence about every evaluator that skipped, or failed on, more than a tenth."""
    for spec in run.evaluators:
        skipped = count_skipped(results, spec.name, run)
        failed = count_failed(results, spec.name)
        for missing, how in ((skipped, "skipped"), (failed, "failed on")):
            # Without any verdict the run says so in another sentence.
            if missing.is_much and missing.number < missing.of:
                yield (
                    f"{spec.name} {how} {missing.number:,} of {missing.of:,} results; "
                    f"most frequent reason: {missing.reason or 'none was given'}"
                )


def _reasons(results: Results, evaluator: str | None, outcome: Outcome, limit: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for result in results.page(outcome=outcome, evaluator=evaluator, limit=limit):
        score = result.score if evaluator is None else result.scores.get(evaluator)
        found["" if score is None else score.reason[:REASON_LENGTH]] += 1
    return found


def _most_frequent(reasons: Counter[str]) -> str:
    return reasons.most_common(1)[0][0] if reasons else ""
