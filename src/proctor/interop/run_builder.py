"""Collect the samples, results and warnings of an imported run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import isnan
from typing import Any

from proctor.interop.imported import ImportedRun
from proctor.records import codec
from proctor.records.formatting import format_count
from proctor.records.numbers import is_number, token_count
from proctor.records.sample import Sample, find_metadata_problems
from proctor.records.score import Score
from proctor.records.session import Usage
from proctor.records.trial import DEFAULT_CONFIGURATION, EvalResult, Failure, Trial

# A number without a verdict passes from here, like a number that an evaluator returns.
THRESHOLD = 0.5
SCORES_OF_ERRORS, METRICS = "scores_of_failed_trials", "metrics"


class Notes:
    """Count what was left out or changed.

    >>> notes = Notes()
    >>> notes.add("left out", "score", "of failed trials", 2)
    >>> notes.texts
    ('left out: 2 scores of failed trials',)
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def add(self, what: str, noun: str, rest: str, count: int = 1) -> None:
        """Count one or more of the same."""
        if count:
            self._counts[what, noun, rest] += count

    @property
    def texts(self) -> tuple[str, ...]:
        """The counts as sentences."""
        return tuple(
            f"{what}: {format_count(count, noun)} {rest}" for (what, noun, rest), count in self._counts.items()
        )


class RunBuilder:
    """Collect results; repeated samples become epochs, and errors keep no scores."""

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.samples: dict[str, Sample[Any, Any]] = {}
        self._results: list[EvalResult] = []
        self._epochs: Counter[tuple[str, str]] = Counter()
        self._details: dict[str, dict[str, Any]] = {SCORES_OF_ERRORS: {}, METRICS: {}}

    def add(
        self,
        sample: Sample[Any, Any],
        scores: Mapping[str, Score | None],
        *,
        error: Failure | None = None,
        metrics: Mapping[str, Any] | None = None,
        configuration: str = DEFAULT_CONFIGURATION,
        **trial: Any,
    ) -> None:
        """Add one trial; `scores` of None are missing, and scores of a failed trial go to the details of the run."""
        sample = self.samples.setdefault(sample.id, sample)
        epoch = self._epochs[configuration, sample.id]
        self._epochs[configuration, sample.id] += 1
        present = {name: score for name, score in scores.items() if score is not None}
        if error is not None:
            values = {name: score.value for name, score in present.items() if score.ok}
            self.notes.add("left out", "score", "of failed trials; the run's details have them", len(values))
            if values:
                self._details[SCORES_OF_ERRORS].setdefault(sample.id, []).append(values)
            present, trial["output"] = {}, None
        for name, value in (metrics or {}).items():
            self._details[METRICS].setdefault(name, {}).setdefault(sample.id, []).append(value)
        made = Trial(sample, error=error, configuration=configuration, epoch=epoch, **{"latency_ms": None, **trial})
        self._results.append(EvalResult(made, present, skipped="ignore"))

    def build(self, name: str, details: Mapping[str, Any] | None = None, **fields: Any) -> ImportedRun:
        """Return the run; `details` are added to the metrics and scores that no result can hold."""
        collected = {key: value for key, value in self._details.items() if value}
        return ImportedRun(name, tuple(self._results), details={**(details or {}), **collected}, **fields)

    def score(
        self,
        value: Any,
        *,
        passed: bool | None = None,
        reason: Any = None,
        error: Any = None,
        details: Mapping[str, Any] | None = None,
    ) -> Score | None:
        """Return the score of another tool's value; None if there is no value.

        Strings are labels and become skipped scores, as do numbers outside 0 to 1; NaN is no score.
        """
        text, extra = "" if reason is None else str(reason), dict(details or {})
        if error:
            return Score.error(str(error), extra)
        if value is None or value == "":
            return None
        if isinstance(value, bool):
            return Score(float(value), value, text, extra)
        if not is_number(value):
            if isinstance(value, float) and isnan(value):
                self.notes.add("left out", "score", "with the value NaN")
                return None
            self.notes.add("without a value", "score", "with a label instead of a number")
            return Score.skipped(text or f"label: {value}", {"label": value, **extra})
        if not 0 <= value <= 1:
            self.notes.add("without a value", "score", "outside 0 to 1; the details have the number")
            return Score.skipped(f"{value} is not from 0 to 1", {"value": value, **extra})
        if passed is None and 0 < value < 1:
            self.notes.add("assumed", "score", f"without a verdict, passed from {THRESHOLD}")
        return Score(float(value), value >= THRESHOLD if passed is None else passed, text, extra)


def make_sample(
    name: Any, value: Any, expected: Any, metadata: Any, evaluators: tuple[Any, ...] = ()
) -> Sample[Any, Any]:
    """Make a sample; metadata that does not fit a key with a fixed meaning gets another key, and no input is "".

    >>> make_sample(1, "x", None, {"tags": "news", "level": 2}).metadata
    {'tags_value': 'news', 'level': 2}
    """
    if not isinstance(metadata, Mapping):
        metadata = {} if metadata is None else {"metadata": metadata}
    wrong = {key.removeprefix("metadata.") for key, _ in find_metadata_problems(metadata)}
    renamed = {f"{key}_value" if key in wrong else str(key): item for key, item in metadata.items()}
    return Sample(str(name), "" if value is None else value, expected, renamed, evaluators)


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


def make_usage(input_tokens: Any, output_tokens: Any, cost: Any = None) -> Usage | None:
    """Return the usage of a trial from reported numbers, or None if all are unknown."""
    price = float(cost) if is_number(cost) and cost >= 0 else None
    usage = Usage(token_count(input_tokens), token_count(output_tokens), cost=price)
    return None if usage == Usage() else usage


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
    taken: set[str] = set()
    unique = []
    for name in ids:
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name}-{number}"
        taken.add(candidate)
        unique.append(candidate)
    return unique
