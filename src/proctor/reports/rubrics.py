"""A session scored by rubrics, as the content of its result file.

The keys and their order are those of the rubric spec. What it does not have (what it cost, what
failed) stands beside under `details`, so that readers of the spec's shape find exactly that.
Numbers are rounded half up, to two places.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

import msgspec

from proctor import codec
from proctor.records.rubric_scores import Column, Columns, total_of
from proctor.records.score import Score
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import EvalResult

FORMAT_VERSION = "1.0"
FAILED, SKIPPED = "evaluation_failed", "skipped"
# From here on floats have no places after the point.
_WHOLE = 1e15


class Judging(msgspec.Struct, frozen=True):
    """What judges were asked: tokens and cost, how many answers, and how many of them were known.

    Answers that were found in the history cost nothing this time. `failed` calls gave none.
    """

    usage: Usage = Usage()
    answers: int = 0
    from_history: int = 0
    failed: int = 0

    def __add__(self, other: Judging) -> Judging:
        return Judging(
            self.usage + other.usage,
            self.answers + other.answers,
            self.from_history + other.from_history,
            self.failed + other.failed,
        )

    def content(self) -> dict[str, Any]:
        """As a file tells it."""
        told: dict[str, Any] = dict(codec.plain(self.usage))
        if self.answers:
            told |= {"answers": self.answers, "from_history": self.from_history}
        if self.failed:
            told["failed"] = self.failed
        return told


def judging_of(result: EvalResult) -> Judging:
    """What the judges of one session were asked."""
    return sum((judging_in(session) for session in result.sessions.values()), Judging())


def judging_in(session: Session) -> Judging:
    """What was asked in one exchange with a model."""
    calls = session[ModelCall]
    answered = [call for call in calls if "error" not in call.details]
    known = sum(bool(call.details.get("cached")) for call in answered)
    return Judging(session.usage, len(answered), known, len(calls) - len(answered))


def session_result(result: EvalResult, columns: Columns) -> dict[str, Any]:
    """One session as the content of its result file."""
    total = total_of(result.scores, columns)
    entries = [_entry(column, result) for column in columns.columns]
    without = Counter(entry["status"] for entry in entries if "status" in entry)
    high = float(columns.scale[1])
    summary: dict[str, Any] = {
        "total_score": None if total is None else half_up(total.score),
        "max_score": high,
        "percentage": None if total is None else percentage(total.score, high),
        "rubrics_evaluated": len(entries) - without.total(),
    }
    for status, key in ((FAILED, "rubrics_failed"), (SKIPPED, "rubrics_skipped")):
        if without[status]:
            summary[key] = without[status]
    source = result.trial.sample.metadata.get("source")
    told: dict[str, Any] = {"source": source} if isinstance(source, str) else {}
    told |= {
        "normalized": None if total is None else half_up(total.normalized, 4),
        "min_score": float(columns.scale[0]),
        "weights": {column.rubric.id: column.rubric.weight for column in columns.columns},
    }
    return {
        "version": FORMAT_VERSION,
        "session_id": result.sample_id,
        "evaluated_at": _moment(result.trial.started_at),
        "rubrics_version": columns.version,
        "rubric_scores": entries,
        "summary": summary,
        "details": {**told, "judging": judging_of(result).content()},
    }


def score_in(result: EvalResult, column: Column) -> Score:
    """What a session came to by one rubric; an error where nobody was asked."""
    said = result.scores.get(column.name)
    return Score.error(result.error or "it was not asked") if said is None else said


def _entry(column: Column, result: EvalResult) -> dict[str, Any]:
    score = score_in(result, column)
    low, high = column.scale
    found = None if score.value is None else half_up(low + score.value * (high - low))
    entry: dict[str, Any] = {
        "rubric_id": column.rubric.id,
        "rubric_name": column.rubric.name,
        "score": found,
        "max_score": float(high),
        "reasoning": score.reason,
    }
    if score.value is None:
        entry["status"] = FAILED if score.status == "error" else SKIPPED
    return entry


def half_up(number: float, places: int = 2) -> float:
    """A number rounded as people do it: what lies in the middle goes up.

    >>> half_up(2.675), half_up(4.142857), half_up(2.5, 0), half_up(-0.125), half_up(1e27)
    (2.68, 4.14, 3.0, -0.12, 1e+27)
    """
    if abs(number) >= _WHOLE:
        return float(number)
    # What a sum of fractions adds in the last places is taken off first.
    exact = Decimal(repr(round(float(number), 9)))
    way = ROUND_HALF_UP if exact >= 0 else ROUND_HALF_DOWN
    return float(exact.quantize(Decimal(1).scaleb(-places), way))


def percentage(score: float, most: float) -> float | None:
    """A score as a share of the greatest one; none where that is not above 0.

    >>> percentage(4.142857142857143, 5)
    82.86
    """
    return half_up(100.0 * score / most) if most > 0 else None


def _moment(when: datetime | None) -> str | None:
    if when is None:
        return None
    return when.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")
