"""Warnings about judges that are constant, weak or silent, and about samples that repeat each other."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from proctor.core.stats.intervals import Interval, wilson_interval
from proctor.metrics.estimates import FIELD_PREFIX
from proctor.records import codec
from proctor.records.results import Results
from proctor.records.rubric import TOTAL_SCORE
from proctor.records.run import RunMetadata
from proctor.records.sample import CLUSTER, TAGS, Sample
from proctor.records.score import INCOMPLETE, SKIPPED_BY_DESIGN, UNCERTAIN, Score, find_failures, read_parts
from proctor.records.trial import OUTCOMES, EvalResult, Outcome

LOCAL = "local:"


class JudgeMeasurement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Verdicts of `llm_judge` on answers that people labelled right or wrong, half of each.

    A verdict that could not be read counts as a disagreement. A constant verdict agrees with people on half of the
    answers. `planned` is the planned number of answers if the run was stopped early.
    """

    data: str
    right: int
    right_passed: int
    right_unread: int
    wrong: int
    wrong_passed: int
    wrong_unread: int
    planned: int = 0

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
        """The 95% interval of the agreement."""
        return wilson_interval(self.agreed, self.n) or (0.0, 1.0)

    @property
    def beats_constant(self) -> bool:
        """True if the agreement is significantly higher than for a constant verdict."""
        return self.interval[0] > 0.5

    @property
    def summary(self) -> str:
        """One sentence with the numbers and a conclusion from the interval."""
        low, high = (100 * end for end in self.interval)
        conclusion = (
            "better than a constant verdict"
            if self.beats_constant
            else "not shown to be better than a constant verdict, so do not rely on its scores"
        )
        return (
            f"agrees with people on {self.agreed} of {self.n} answers of {self.data} "
            f"({100 * self.agreed / self.n:.0f}%, 95% interval {low:.0f}–{high:.0f}%; "
            f"a constant verdict: 50%): {conclusion}. "
            f"It passed {self.right_passed} of {self.right} right answers and {self.wrong_passed} "
            f"of {self.wrong} wrong ones; {self.unread} of {self.n} verdicts could not be read{self._caveat}"
        )

    @property
    def _caveat(self) -> str:
        """A note for a measurement that was stopped while its verdicts were visible, which biases the interval."""
        if self.planned <= self.n:
            return ""
        return (
            f". The measurement was stopped by hand after {self.n} of {self.planned} answers, so the "
            "interval is only a rough guide"
        )


MEASUREMENTS: Mapping[str, JudgeMeasurement] = {
    "smollm2": JudgeMeasurement("EVOUNA TQ", 7, 4, 2, 7, 2, 2, planned=60),
    "qwen-judge": JudgeMeasurement("EVOUNA TQ", 7, 7, 0, 7, 4, 0, planned=40),
}


def describe_judge(address: str) -> str:
    """Describe the measured quality of a local model as a judge; empty for any other model."""
    measurement = MEASUREMENTS.get(address.removeprefix(LOCAL))
    return "" if measurement is None or not address.startswith(LOCAL) else measurement.summary


# A judge that returns this many equal scores may ignore its input.
MIN_CONSTANT_SCORES = 10
MAX_CANARIES_READ = 100


def warn_constant_judges(results: Results, run: RunMetadata) -> Iterator[str]:
    """Warn about every judge that gave the same score to all results.

    Rules such as `exact_match` correctly return 1 for every right output; a constant score of a judge or
    a rubric is suspicious at any value.
    """
    for spec in run.evaluators:
        if not spec.judges:
            continue
        values = results.column(spec.name).values
        if len(values) >= MIN_CONSTANT_SCORES and min(values) == max(values):
            yield (
                f"{spec.name} gave the same score, {values[0]:.3g}, to all {len(values):,} results "
                f"it judged: it may ignore their content. {_advise(results, spec.name)}"
            )


def _advise(results: Results, judge: str) -> str:
    """Describe how to test a constant judge, or what its canaries have shown."""
    canaries = (
        canary
        for result in results
        if (score := result.scores.get(judge)) is not None
        and isinstance(canary := score.details.get("canary"), Mapping)
    )
    outcomes = [canary for canary, _ in zip(canaries, range(MAX_CANARIES_READ), strict=False)]
    if any(canary.get("fell_for") or canary.get("passes_anyway") for canary in outcomes):
        return "It passed a bad answer of the canary too: use another model or a clearer criterion"
    if any(canary.get("fell_for") is False for canary in outcomes):
        return "It failed the bad answers of the canary, so it reads its input; check whether the samples differ enough"
    if outcomes:
        return "It gave no verdict on the canary: see the details of its scores"
    return "Test it with an answer that must fail: --canary 1"


def warn_local_judges(run: RunMetadata) -> Iterator[str]:
    """Describe the measured quality of every local model that judges."""
    for spec in run.evaluators:
        for model in spec.judges_inside:
            if text := describe_judge(model):
                yield f"{spec.name} is judged by {model}, which {text}"


# Metrics over all evaluators of a result.
COMBINED = ("pass_rate", "strict_pass_rate", "mean_score")
# An evaluator without a verdict on a larger fraction of the results gets a warning.
MAX_MISSING_SHARE = 0.1
MAX_REASONS_READ = 1_000
MAX_REASON_LENGTH = 300
_PASSED, _FAILED, _UNSCORED, _SKIPPED = map(OUTCOMES.index, ("passed", "failed", "unscored", "skipped"))


class MissingVerdicts(NamedTuple):
    """The number of results without a verdict, of all results, and the most frequent reason."""

    number: int
    total: int
    reason: str = ""

    @property
    def exceeds_limit(self) -> bool:
        """True if more than a tenth of the verdicts is missing."""
        return self.number > MAX_MISSING_SHARE * self.total + 1e-9


def count_skipped(results: Results, evaluator: str | None, run: RunMetadata | None) -> MissingVerdicts:
    """Count the results that an evaluator skipped; without an evaluator, the skipped results.

    Scores that are left out by design are not counted: an evaluator of all epochs scores only the last epoch, and an
    evaluator that compares with the baseline does not score the baseline.
    """
    column = results.column(evaluator)
    missing = MissingVerdicts(column.skipped, len(column.values) + column.errors + column.skipped)
    if not missing.exceeds_limit:
        return missing
    by_design = run is None or run.options.epochs > 1 or run.baseline is not None
    limit = len(results) if by_design else MAX_REASONS_READ
    reasons = _count_reasons(results, evaluator, "skipped", limit)
    skipped_by_design = sum(reasons.pop(reason, 0) for reason in SKIPPED_BY_DESIGN)
    return MissingVerdicts(
        missing.number - skipped_by_design, missing.total - skipped_by_design, _find_most_frequent(reasons)
    )


def count_failed(results: Results, evaluator: str) -> MissingVerdicts:
    """Count the results with an output on which an evaluator failed."""
    column = results.column(evaluator)
    number = column.errors - column.no_output
    missing = MissingVerdicts(number, len(column.values) + column.skipped + number)
    if not missing.exceeds_limit:
        return missing
    reasons = _count_reasons(results, evaluator, "unscored", MAX_REASONS_READ)
    return missing._replace(reason=_find_most_frequent(reasons))


def find_evaluator(metric: str, run: RunMetadata | None) -> tuple[bool, str | None]:
    """Return whether a metric is based on scores, and of which evaluator; None means all evaluators."""
    if metric in COMBINED:
        return True, None
    specs = run.evaluators if run is not None else ()
    labels = {f"{FIELD_PREFIX}.{s.name}" if s.uses == FIELD_PREFIX else s.name: s.name for s in specs}
    matching_labels = [label for label in labels if metric == label or metric.startswith(f"{label}.")]
    return (True, labels[max(matching_labels, key=len)]) if matching_labels else (False, None)


def warn_missing_verdicts(results: Results, run: RunMetadata) -> Iterator[str]:
    """Warn about every evaluator that skipped, or failed on, more than a tenth of the results."""
    for spec in run.evaluators:
        skipped = count_skipped(results, spec.name, run)
        failed = count_failed(results, spec.name)
        for missing, verb in ((skipped, "skipped"), (failed, "failed on")):
            # An evaluator without any verdict gets another warning.
            if missing.exceeds_limit and missing.number < missing.total:
                yield (
                    f"{spec.name} {verb} {missing.number:,} of {missing.total:,} results; "
                    f"most frequent reason: {missing.reason or 'none was given'}"
                )


class UndecidedResults(NamedTuple):
    """Results without a verdict, because some `evaluators` gave none and all others passed.

    The pass rate is biased downwards: a result that fails another evaluator has a verdict whether or not these judge
    it, and a result that passes has none. `failed_by_others` counts these failures among all that `failed`.
    """

    number: int
    passed: int
    failed: int
    failed_by_others: int
    evaluators: Mapping[str, int]

    @property
    def bounds(self) -> tuple[float, float]:
        """The pass rate if these results fail, and if they pass."""
        total = self.passed + self.failed + self.number
        return self.passed / total, (self.passed + self.number) / total

    @property
    def unbiased_rate(self) -> float:
        """The pass rate if these results pass as often as those that only `evaluators` could fail; at most the bound.

        An evaluator that never fails does not change the rate, because its verdicts decide nothing.
        """
        judged = self.passed + self.failed - self.failed_by_others
        share = self.passed / judged if judged else 1.0
        return (self.passed + share * self.number) / (self.passed + self.failed + self.number)

    def could_reach(self, limit: float) -> bool:
        """True if only the bias may keep the pass rate below a limit."""
        return self.unbiased_rate >= limit - 1e-9

    def describe(self) -> str:
        low, high = (f"{100 * end:.1f}%" for end in self.bounds)
        causes = ", ".join(f"{name} on {count:,}" for name, count in self.evaluators.items())
        results, condition = (
            ("result has", "it passes or fails") if self.number == 1 else ("results have", "they pass or fail")
        )
        return (
            f"{self.number:,} {results} no verdict although the other evaluators passed (no verdict: {causes}), while "
            f"{self.failed:,} of the {self.passed + self.failed:,} others failed: the pass rate is biased downwards "
            f"and lies between {low} and {high}, depending on whether {condition}"
        )


def find_undecided(results: Results, run: RunMetadata | None) -> UndecidedResults | None:
    """Find the results without a verdict that passed every evaluator that judged them, if they bias the pass rate.

    None if they are at most a tenth, or if no result failed another evaluator.
    """
    if run is None or len(run.evaluators) < 2:
        return None
    column = results.column(None)
    if not MissingVerdicts(column.errors + column.skipped, len(results)).exceeds_limit:
        return None
    figures, silent = results.figures(), (_UNSCORED, _SKIPPED)
    # A result that failed any evaluator has a verdict, so these passed all that judged them.
    undecided = [
        position
        for position, outcome in enumerate(figures.outcomes)
        if outcome in silent and any(marks[position] == _PASSED for marks in figures.marks.values())
    ]
    passed, failed = figures.outcomes.count(_PASSED), figures.outcomes.count(_FAILED)
    if not MissingVerdicts(len(undecided), passed + failed + len(undecided)).exceeds_limit:
        return None
    counts = {name: sum(marks[position] in silent for position in undecided) for name, marks in figures.marks.items()}
    others = [marks for name, marks in figures.marks.items() if not counts[name]]
    failed_by_others = sum(
        outcome == _FAILED and any(marks[position] == _FAILED for marks in others)
        for position, outcome in enumerate(figures.outcomes)
    )
    evaluators = {name: count for name, count in counts.items() if count}
    found = UndecidedResults(len(undecided), passed, failed, failed_by_others, evaluators)
    return found if failed_by_others else None


def warn_undecided(results: Results, run: RunMetadata) -> Iterator[str]:
    """Warn about a pass rate with a downward bias, because only failures are judged where an evaluator is silent."""
    if (undecided := find_undecided(results, run)) is not None:
        yield f"pass_rate: {undecided.describe()}"


# The parameters of evaluators with parts, criteria or several opinions.
_HAS_PARTS = frozenset({"evaluator", "evaluators", "judge", "judges", "model"})


def list_partial_results(results: Results, metric: str, run: RunMetadata | None) -> Iterator[EvalResult]:
    """Yield the results whose number of a metric leaves out a part that failed.

    A verdict that the failed part could not change is whole; a value lacks the part in any case. The number of one
    evaluator of a field leaves out the results on which that evaluator failed.
    """
    is_score, evaluator = find_evaluator(metric, run)
    specs = [spec for spec in run.evaluators if evaluator in (None, spec.name)] if run is not None else []
    has_parts = len(specs) > 1 or any(_HAS_PARTS.intersection(spec.parameters) for spec in specs)
    if not has_parts or not (is_score or metric == TOTAL_SCORE):
        return
    is_rate, part = metric.endswith("pass_rate"), find_field_part(metric, run)
    for result in results:
        scores = [result.scores[spec.name] for spec in specs if spec.name in result.scores]
        if part:
            scores = [score for whole in scores if (score := read_parts(whole).get(part)) is not None]
        elif not any(score.ok for score in scores) or (metric in COMBINED and result.verdict()[1] is None):
            continue
        if any(_lacks_part(score, is_rate=is_rate) for score in scores):
            yield result


def find_field_part(metric: str, run: RunMetadata | None) -> str:
    """Return the evaluator of a field whose score a metric is, as in `field.output.coherence`; empty for any other."""
    for spec in run.evaluators if run is not None else ():
        prefix = f"{FIELD_PREFIX}.{spec.name}."
        parts = spec.parameters.get("evaluators", ()) if spec.uses == FIELD_PREFIX and metric.startswith(prefix) else ()
        if any(part["name"] == metric.removeprefix(prefix) for part in parts):
            return metric.removeprefix(prefix)
    return ""


def _lacks_part(score: Score, *, is_rate: bool) -> bool:
    if not score.ok:
        return score.status == "error" and not is_rate
    is_certain = INCOMPLETE in score.details and not (UNCERTAIN in score.details and score.passed)
    return bool(find_failures(score)) and not (is_rate and is_certain)


def warn_failed_parts(results: Results, run: RunMetadata) -> Iterator[str]:
    """Warn about every part of a combination that failed on more than a tenth of the results, but left a verdict."""
    page: list[EvalResult] = []
    for spec in run.evaluators:
        if not _HAS_PARTS.intersection(spec.parameters):
            continue
        reasons: dict[str, Counter[str]] = {}
        page = page or list(islice(results, MAX_REASONS_READ))
        for result in page:
            score = result.scores.get(spec.name)
            for part, failure in find_failures(score).items() if score is not None and score.ok else ():
                reasons.setdefault(part, Counter())[_shorten_reason(failure.reason)] += 1
        for part, counts in reasons.items():
            missing = MissingVerdicts(counts.total(), len(page), _find_most_frequent(counts))
            if missing.exceeds_limit:
                first = "" if len(page) == len(results) else "the first "
                yield (
                    f"{spec.name} has verdicts without its part {part}, which failed on {missing.number:,} of "
                    f"{first}{missing.total:,} results; most frequent reason: {missing.reason or 'none was given'}"
                )


# The errors of evaluators that return a number above 1: bare, in a mapping, or in a Score.
_NUMBER_ABOVE_1 = re.compile(
    r"(?:the evaluator returned (?:the score )?|Score\.value must be a number from 0 to 1, got )(\d+(?:\.\d+)?)\b"
)
# Not far above 1 is a rounding error.
_LOWEST_RATING = 1.01


def find_highest_rating(results: Results, evaluator: str) -> float | None:
    """Return the highest number above 1 that an evaluator returned; None if it returned none.

    Such an evaluator rates on a scale. A rating of 1, the worst on most scales, was read as a full score.
    """
    column = results.column(evaluator)
    if column.errors <= column.no_output:
        return None
    page = results.page(outcome="unscored", evaluator=evaluator, limit=MAX_REASONS_READ)
    reasons = (result.scores[evaluator].reason for result in page if evaluator in result.scores)
    ratings = (float(match[1]) for reason in reasons if (match := _NUMBER_ABOVE_1.search(reason)))
    return max((rating for rating in ratings if rating > _LOWEST_RATING), default=None)


def describe_rating(rating: float) -> str:
    return f"it returned {rating:g}, so it seems to rate on a scale and a 1 is not a full score"


def warn_ratings(results: Results, run: RunMetadata) -> Iterator[str]:
    """Warn about every evaluator that rates on a scale."""
    for spec in run.evaluators:
        if (rating := find_highest_rating(results, spec.name)) is not None:
            yield (
                f"the scores of {spec.name} are not reliable: {describe_rating(rating)}. "
                "Fix: convert its ratings to numbers from 0 to 1: (rating - lowest) / (highest - lowest), "
                "with the ends of its scale"
            )


# Fewer samples have wide intervals in any case.
MIN_REPEATED_SAMPLES = 10
# Enough to notice repeats, at a cost that does not grow with the run.
MAX_CHECKED_SAMPLES = 2_000
# If repeats leave fewer effective samples than this share, intervals are more than 5% too narrow.
MIN_EFFECTIVE_SHARE = 0.9
_REPETITION = "distinct contents (input, expected value and metadata other than row numbers)"


def warn_repeated_samples(results: Results, run: RunMetadata) -> Iterator[str]:
    """Warn if many of the first samples without a cluster have the same content, because they are not independent.

    Recorded sessions may begin with the same words by chance. After a redaction, different contents may look the same.
    """
    if run.redacted:
        return
    trials_per_sample = run.options.epochs * max(1, len(run.configurations))
    found = islice(results.samples(), MAX_CHECKED_SAMPLES * trials_per_sample)
    samples = {sample.id: sample for sample in found if sample.cluster is None and "session" not in sample.metadata}
    inputs = {sample.input for sample in samples.values() if type(sample.input) is str}
    if len(inputs) == len(samples):
        return
    counts = Counter(_list_content_keys(samples.values()))
    n = counts.total()
    if n < MIN_REPEATED_SAMPLES:
        return
    effective = n**2 / sum(count * count for count in counts.values())
    if effective < MIN_EFFECTIVE_SHARE * n:
        first = "the first " if len(results) > MAX_CHECKED_SAMPLES * trials_per_sample else ""
        yield (
            f"{first}{n:,} samples have only {len(counts):,} {_REPETITION}. Repeats are not independent: intervals "
            "are too narrow, and verdicts of comparisons and gates too certain. Fix: give the repeats of a sample the "
            "same `metadata: {cluster: NAME}`, or keep one of them and repeat it with `--epochs N`"
        )


def is_repetition_warning(text: str) -> bool:
    """True for a warning about samples that repeat each other."""
    return _REPETITION in text


def _list_content_keys(samples: Collection[Sample[Any, Any]]) -> Iterator[bytes]:
    """Yield the content of each sample without its id, tags and numbers of rows; none if it has no stable form."""
    numbers: dict[str, set[int | None]] = {}
    for sample in samples:
        for key, value in sample.metadata.items():
            numbers.setdefault(key, set()).add(value if type(value) is int else None)
    ignored = {TAGS, CLUSTER, *(key for key, values in numbers.items() if len(values) == len(samples) > 1)}
    for sample in samples:
        metadata = {key: value for key, value in sample.metadata.items() if key not in ignored}
        try:
            encoded = codec.encode_canonical([sample.input, sample.expected, sample.evaluators, metadata])
        except codec.ENCODE_ERRORS:
            continue
        if b'"$repr"' not in encoded:
            yield blake2b(encoded, digest_size=8).digest()


def _count_reasons(results: Results, evaluator: str | None, outcome: Outcome, limit: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for result in results.page(outcome=outcome, evaluator=evaluator, limit=limit):
        score = result.score if evaluator is None else result.scores.get(evaluator)
        counts["" if score is None else _shorten_reason(score.reason)] += 1
    return counts


def _shorten_reason(reason: str) -> str:
    """Cut a long reason after a word."""
    if len(reason) <= MAX_REASON_LENGTH:
        return reason
    start = reason[:MAX_REASON_LENGTH]
    return f"{start.rpartition(' ')[0] or start} …"


def _find_most_frequent(reasons: Counter[str]) -> str:
    return reasons.most_common(1)[0][0] if reasons else ""
