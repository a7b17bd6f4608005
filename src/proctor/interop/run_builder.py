"""Collect the samples, results and warnings of an imported run, and make its records from untrusted values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from math import isnan
from typing import Any

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
        return ImportedRun(name, tuple(self._results), details={**(details or {}), **collected}, **fields)

    def build_file(
        self, format_name: str, name: str, details: Mapping[str, Any] | None = None, **fields: Any
    ) -> ImportedFile:
        """Return a file with this run only."""
        runs = (self.build(name, details, **fields),)
        return ImportedFile(format_name, samples=tuple(self.samples.values()), runs=runs, warnings=self.notes.texts)

    def score(
        self, value: Any, *, reason: Any = None, error: Any = None, details: Mapping[str, Any] | None = None
    ) -> Score | None:
        """Return the score of another tool's value; None if there is no value.

        Strings are labels and become skipped scores, as do numbers outside 0 to 1; NaN is no score.
        """
        if error:
            return Score.error(str(error), dict(details or {}))
        if value is None or value == "":
            return None
        if value == NOT_A_NUMBER or (isinstance(value, float) and isnan(value)):
            self.notes.add("left out", "score", "with the value NaN")
            return None
        if not isinstance(value, bool) and not is_number(value):
            self.notes.add("without a value", "score", "with a label instead of a number")
            return Score.skipped(str(reason or f"label: {value}"), {"label": value, **(details or {})})
        if not 0 <= value <= 1:
            self.notes.add("without a value", "score", "outside 0 to 1; the details have the number")
        elif 0 < value < 1:
            self.notes.add("assumed", "score", f"without a verdict, passed from {THRESHOLD}")
        return make_score(value, None, reason, details, threshold=THRESHOLD)


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
