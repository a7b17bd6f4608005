"""Collect the samples, results and warnings of an imported run, and make its records from untrusted values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from math import isnan
from typing import Any

import msgspec

from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.records import codec
from proctor.records.formatting import format_count
from proctor.records.numbers import as_number, is_number, token_count
from proctor.records.sample import Sample, find_metadata_problems
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import EvalResult, Failure, Trial

# A number without a verdict passes from here, like a number that an evaluator returns.
THRESHOLD = 0.5
# NaN in a JSON file, which `read_json` returns as text.
NOT_A_NUMBER = "nan"
NAN_REASON = "the value is NaN: the evaluator gave no number"
FOLLOWS = "a graded score without a verdict; the other scores decide"
# The key of a letter grade in the details of a score.
GRADE = "grade"
CHOOSE_PASS_MARK = "choose with --pass-at NAME=NUMBER"
SCORES_OF_ERRORS, METRICS = "scores_of_failed_trials", "metrics"


class Notes:
    """Counts of what was left out or changed, as warnings.

    >>> notes = Notes()
    >>> notes.add("left out", "score", "of failed trials", 2)
    >>> notes.texts
    ('left out: 2 scores of failed trials',)
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, what: str, noun: str, rest: str, count: int = 1) -> None:
        """Add to the count of a note: "what: count nouns rest"."""
        if count:
            self._counts[what, noun, rest] += count

    @property
    def texts(self) -> tuple[str, ...]:
        """The counts as sentences."""
        return tuple(
            f"{what}: {format_count(count, noun)} {rest}" for (what, noun, rest), count in self._counts.items()
        )


def count_warnings(reasons: Iterable[str]) -> tuple[str, ...]:
    """Return each warning once, with the number of times it occurred if that is more than once."""
    counts: dict[str, int] = {}
    for reason in reasons:
        counts[reason] = counts.get(reason, 0) + 1
    return tuple(reason if count == 1 else f"{reason} ({count:,} times)" for reason, count in counts.items())


class RunBuilder:
    """Collect results; repeated samples become epochs, and errors keep no scores."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.samples: dict[str, Sample[Any, Any]] = {}
        self._results: list[EvalResult] = []
        self._epochs: Counter[str] = Counter()
        self._details: dict[str, dict[str, Any]] = {SCORES_OF_ERRORS: {}, METRICS: {}}
        # The scores whose verdict is assumed, by their identity, and the names that they are stored under.
        self._assumed: dict[int, Score] = {}
        self._without_verdicts: dict[str, None] = {}

    def add(
        self,
        sample: Sample[Any, Any],
        scores: Mapping[str, Score | None],
        *,
        error: Failure | None = None,
        metrics: Mapping[str, Any] | None = None,
        **trial: Any,
    ) -> None:
        """Add one trial; `scores` of None are missing, and scores of a failed trial go to the details of the run."""
        sample = self.samples.setdefault(sample.id, sample)
        epoch = self._epochs[sample.id]
        self._epochs[sample.id] += 1
        present = {name: score for name, score in scores.items() if score is not None}
        self._without_verdicts |= {name: None for name, score in present.items() if id(score) in self._assumed}
        if error is not None:
            values = {name: score.value for name, score in present.items() if score.ok}
            self.notes.add("left out", "score", "of failed trials; the run's details have them", len(values))
            if values:
                self._details[SCORES_OF_ERRORS].setdefault(sample.id, []).append(values)
            present, trial["output"] = {}, None
        if trial.get("usage") == Usage():
            del trial["usage"]
        for name, value in (metrics or {}).items():
            self._details[METRICS].setdefault(name, {}).setdefault(sample.id, []).append(value)
        fields = {"latency_ms": None, **trial}
        self._results.append(EvalResult(Trial(sample, error=error, epoch=epoch, **fields), present, skipped="ignore"))

    def build(self, name: str, details: Mapping[str, Any] | None = None, **fields: Any) -> ImportedRun:
        """Return the run; `details` are added to the metrics and scores that no result can hold."""
        collected = {key: value for key, value in self._details.items() if value}
        fields = {
            "details": {**(details or {}), **collected},
            "without_verdicts": tuple(self._without_verdicts),
            **fields,
        }
        return ImportedRun(name, tuple(self._results), **fields)

    def build_file(
        self, format_name: str, name: str, details: Mapping[str, Any] | None = None, **fields: Any
    ) -> ImportedFile:
        """Return a file with this run only."""
        runs = (self.build(name, details, **fields),)
        return ImportedFile(format_name, samples=tuple(self.samples.values()), runs=runs, warnings=self.notes.texts)

    def score(
        self, value: Any, *, reason: Any = None, error: Any = None, details: Mapping[str, Any] | None = None
    ) -> Score:
        """Return the score of another tool's value.

        NaN is an error, because the evaluator ran and gave no number. Strings are labels and become skipped scores, as
        do numbers outside 0 to 1 and missing values.
        """
        if error:
            return Score.error(str(error), dict(details or {}))
        if value is None or value == "":
            self.notes.add("skipped", "score", "without a value")
            return Score.skipped(str(reason or "the file has no value"), dict(details or {}))
        if is_nan(value):
            self.notes.add("errors", "score", "with the value NaN")
            return Score.error(str(reason or NAN_REASON), dict(details or {}))
        if not isinstance(value, bool) and not is_number(value):
            self.notes.add("without a value", "score", "with a label instead of a number")
            return Score.skipped(str(reason or f"label: {value}"), {"label": value, **(details or {})})
        if not 0 <= value <= 1:
            self.notes.add("without a value", "score", "outside 0 to 1; the details have the number")
        elif 0 < value < 1:
            self.notes.add("assumed", "score", f"without a verdict, passed from {THRESHOLD}; {CHOOSE_PASS_MARK}")
        score = make_score(value, None, reason, details, threshold=THRESHOLD)
        assert score is not None  # It is a number.
        if score.ok:
            self._assumed[id(score)] = score
        return score


def make_score(
    value: Any,
    passed: Any = None,
    reason: Any = "",
    details: Mapping[str, Any] | None = None,
    *,
    threshold: float = 1.0,
) -> Score | None:
    """Return the score for a number or boolean of another tool; None if it is neither, such as NaN.

    Without a verdict of the tool, a value passes from `threshold`. A number outside 0 to 1 is no score: it is skipped,
    with the number in its details.
    """
    text, extra = "" if reason is None else str(reason), dict(details or {})
    if isinstance(value, bool):
        value = float(value)
    if not is_number(value):
        return None
    if not 0 <= value <= 1:
        return Score.skipped(f"{value:g} is not between 0 and 1", {**extra, "value": value})
    return Score(float(value), passed if isinstance(passed, bool) else value >= threshold, text, extra)


def is_nan(value: Any) -> bool:
    """Return True for NaN, also as the text that a JSON file has for it."""
    return value == NOT_A_NUMBER or (isinstance(value, float) and isnan(value))


def find_graded(results: Iterable[EvalResult], without_verdicts: Container[str]) -> tuple[str, ...]:
    """Return the scores without verdicts that are graded: some of their numbers are neither 0 nor 1.

    A grade, such as P of Inspect for partly correct, belongs to a scorer that says correct or not.
    """
    numbers = (
        name
        for result in results
        for name, score in result.scores.items()
        if name in without_verdicts and score.ok and score.value not in (0.0, 1.0) and GRADE not in score.details
    )
    return tuple(dict.fromkeys(numbers))


def describe_graded(results: Sequence[EvalResult], graded: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each graded score: how many there are, what decides, and how to choose a pass mark."""
    names = dict.fromkeys(name for result in results for name, score in result.scores.items() if score.ok)
    others = [name for name in names if name not in graded]
    decides = f"{', '.join(others)} {'decides' if len(others) == 1 else 'decide'}"
    rule = decides if others else f"they pass from {THRESHOLD:g}"
    for name in graded:
        count = sum(name in result.scores and result.scores[name].ok for result in results)
        yield (
            f"{name}: {format_count(count, 'graded score')} without a verdict; {rule}. "
            f"Set --pass-at {name}=0.7, or compare --metric {name}.mean"
        )


def follow_verdicts(results: Iterable[EvalResult], graded: Container[str]) -> tuple[EvalResult, ...]:
    """Give graded scores, numbers without a verdict, the verdict of the other scores of their result.

    A number such as 0.4 says neither passed nor failed, so it does not decide if another score does. Without another
    verdict it passes from `THRESHOLD`.
    """
    return tuple(msgspec.structs.replace(result, scores=_follow_verdict(result.scores, graded)) for result in results)


def _follow_verdict(scores: Mapping[str, Score], graded: Container[str]) -> dict[str, Score]:
    others = [score for name, score in scores.items() if name not in graded]
    verdict = None
    if any(score.ok or score.status == "error" for score in others):
        verdict = not any(score.passed is False for score in others)
    followed = {}
    for name, score in scores.items():
        if name in graded and score.ok:
            passed = (score.value or 0) >= THRESHOLD if verdict is None else verdict
            reason = score.reason or ("" if verdict is None else FOLLOWS)
            score = msgspec.structs.replace(score, passed=passed, reason=reason)
        followed[name] = score
    return followed


def apply_pass_marks(imported: ImportedFile, pass_marks: Mapping[str, float]) -> ImportedFile:
    """Return a file whose scores without a verdict of the tool pass from the mark with their name."""
    if not pass_marks:
        return imported
    graded = {name for run in imported.runs for name in run.graded}
    warnings = [text for text in imported.warnings if text.partition(": ")[0] not in graded & pass_marks.keys()]
    warnings += [f"{name}: a score passes from {mark:g} (--pass-at)" for name, mark in pass_marks.items()]
    runs = tuple(_mark_run(run, pass_marks) for run in imported.runs)
    return msgspec.structs.replace(imported, runs=runs, warnings=tuple(warnings))


def _mark_run(run: ImportedRun, pass_marks: Mapping[str, float]) -> ImportedRun:
    marks = {name: mark for name, mark in pass_marks.items() if name in run.without_verdicts}
    results = []
    for result in run.results:
        scores = {
            name: msgspec.structs.replace(score, passed=(score.value or 0) >= marks[name])
            for name, score in result.scores.items()
            if name in marks and score.ok
        }
        results.append(msgspec.structs.replace(result, scores={**result.scores, **scores}))
    graded = tuple(name for name in run.graded if name not in marks)
    evaluators = dict(run.details.get("evaluators") or {})
    evaluators |= {name: {**(evaluators.get(name) or {}), "threshold": mark} for name, mark in marks.items()}
    details = {**run.details, "evaluators": evaluators}
    return msgspec.structs.replace(run, results=follow_verdicts(results, graded), graded=graded, details=details)


def make_sample(
    name: Any, value: Any, expected: Any, metadata: Any, evaluators: tuple[Any, ...] = ()
) -> Sample[Any, Any]:
    """Make a sample; metadata that does not fit a key with a fixed meaning gets another key, and no input is "".

    >>> make_sample(1, "x", None, {"tags": "news", "level": 2}).metadata
    {'tags_value': 'news', 'level': 2}
    """
    if not isinstance(metadata, Mapping):
        metadata = {} if metadata is None else {"metadata": metadata}
    return Sample(str(name), "" if value is None else value, expected, clean_metadata(metadata), evaluators)


def clean_metadata(metadata: Mapping[Any, Any], tool: str = "") -> dict[str, Any]:
    """Return metadata for a sample; a key with a fixed meaning but a value of another type is renamed."""
    suffix = f" ({tool})" if tool else "_value"
    cleaned = {str(key): value for key, value in metadata.items()}
    wrong = {key.removeprefix("metadata.") for key, _ in find_metadata_problems(cleaned)}
    return {f"{key}{suffix}" if key in wrong else key: value for key, value in cleaned.items()}


def make_failure(text: Any, kind: Any = None, traceback: Any = None) -> Failure:
    """Return the error of a trial from a message such as "ValueError: no" or "ValueError('no')".

    >>> make_failure("ValueError: no such city").kind, str(make_failure("ValueError('no')"))
    ('ValueError', 'ValueError: no')
    """
    message, _, rest = str(text).partition("\n\nTraceback ")
    trace = str(traceback or (f"Traceback {rest}" if rest else ""))
    if not kind:
        for start, end in (("(", ")"), (": ", "")):
            name, separator, inner = message.partition(start)
            if separator and name.isidentifier() and inner.endswith(end):
                return Failure(name, inner.removesuffix(end).strip("'\""), trace)
    return Failure(str(kind or "Error"), message.removeprefix(f"{kind}: ").strip(), trace)


def make_usage(input_tokens: Any = None, output_tokens: Any = None, *, cached: Any = None, cost: Any = None) -> Usage:
    """Return a usage from untrusted numbers; impossible ones are left out."""
    spent = as_number(cost)
    return Usage(
        token_count(input_tokens),
        token_count(output_tokens),
        token_count(cached),
        spent if spent is not None and spent >= 0 else None,
    )


def to_milliseconds(seconds: Any) -> float | None:
    """Return a number of seconds in milliseconds; None if it is no number."""
    return 1000 * float(seconds) if is_number(seconds) else None


def make_id(*content: Any) -> str:
    """Return an id for a sample without one: the start of the digest of its content."""
    return codec.digest(*content)[:12]


def number_duplicates(ids: Iterable[str]) -> list[str]:
    """Return unique ids: the second sample called "a" is "a-2".

    >>> number_duplicates(["a", "b", "a", "a"])
    ['a', 'b', 'a-2', 'a-3']
    """
    unique: dict[str, None] = {}
    for name in ids:
        unique[make_unique(name, unique, "-")] = None
    return list(unique)


def make_unique(name: str, taken: Container[str], separator: str = " ") -> str:
    """Return a name that is not taken: the second "a" is "a 2".

    >>> make_unique("a", ["a", "b"])
    'a 2'
    """
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name}{separator}{number}"
    return unique
