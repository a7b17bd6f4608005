"""A session scored by rubrics, as the content of its result file.

The keys and their order are those of the rubric spec. What it does not have (what it cost, what
failed) stands beside under `details`, so that readers of the spec's shape find exactly that.
Numbers are rounded half up, to two places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

import msgspec

from proctor.records import codec
from proctor.records.report import EvalReport
from proctor.records.rubric import Column, Columns, columns_in, total_of
from proctor.records.score import Score
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import EvalResult
from proctor.reports.format import count, line

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


_REASON_WIDTH = 300
KINDS_SHOWN = 3


def in_words(report: EvalReport, content: Mapping[str, Any]) -> str:
    """A session's result, or the summary of a batch; with tokens and cost."""
    batch = content.get("batch_summary")
    lines = _session_lines(content) if batch is None else _batch_lines(content)
    return "\n".join([*lines, *_cost_lines(report, content)])


def asked_in(content: Mapping[str, Any]) -> Judging:
    """What judges were asked, as the content of a file tells it."""
    told = dict(content["details"]["judging"])
    counts = (told.pop(name, 0) for name in ("answers", "from_history", "failed"))
    answers, known, failed = counts
    return Judging(Usage(**told), answers, known, failed)


def warnings_of(report: EvalReport) -> list[str]:
    """What a run warns of, but for rubrics without a verdict: those have lines of their own."""
    if report.metadata is None:
        return []
    rubrics = tuple(f"{c.name} gave no verdict" for c in columns_in(report.metadata).columns)
    return [line(one, 1000) for one in report.metadata.warnings if not one.startswith(rubrics)]


def _session_lines(content: Mapping[str, Any]) -> Iterator[str]:
    summary = content["summary"]
    most = summary["max_score"]
    for entry in content["rubric_scores"]:
        found = entry.get("status") or f"{entry['score']:g} of {entry['max_score']:g}"
        said = line(entry["reasoning"], _REASON_WIDTH)
        yield f"{entry['rubric_name']}: {found}" + (f" - {said}" if said else "")
    if summary["total_score"] is None:
        yield "total: none, no rubric was scored"
        return
    missing = summary.get("rubrics_failed", 0) + summary.get("rubrics_skipped", 0)
    told = f", {count(missing, 'rubric')} without a score" if missing else ""
    share = "" if summary["percentage"] is None else f" ({summary['percentage']:g} %)"
    yield f"total: {summary['total_score']:g} of {most:g}{share}{told}"


def _batch_lines(content: Mapping[str, Any]) -> Iterator[str]:
    batch, details = content["batch_summary"], content["details"]
    for rubric_id, told in content["per_rubric_summary"].items():
        beside = details["per_rubric"][rubric_id]
        yield f"{told['name']}: {_averaged(told['average'], beside)}"
    scored = {"interval": details["average_interval"], "scored": details["sessions_scored"]}
    scored["not_scored"] = details["sessions_not_scored"]
    partly = details.get("sessions_partly_scored")
    lack = f"; {partly:,} of {scored['scored']:,} totals lack a rubric that failed" if partly else ""
    yield f"total: {_averaged(batch['average_score'], scored)}{lack}"
    if clusters := details.get("clusters"):
        why = details.get("no_interval")
        told = f"there are no intervals ({why})" if why else "the intervals allow for that"
        yield f"sessions that belong together make {count(clusters, 'cluster')}: {told}"
    found = batch["score_distribution"].items()
    yield "sessions by score: " + ", ".join(f"{score}: {n}" for score, n in found)
    if before := details.get("sessions_from_before"):
        told = f"{before:,} of {count(batch['total_sessions'], 'session')}"
        yield f"{told} were scored before the run was resumed; the numbers are of all of them"
    yield from _failure_lines(details["failures"])


def _failure_lines(kinds: list[dict[str, Any]]) -> Iterator[str]:
    """Why rubrics were not scored, the commonest reason first."""
    for kind in kinds[:KINDS_SHOWN]:
        example = kind["example"]
        said = line(example["reason"], _REASON_WIDTH)
        where = f"{line(example['session_id'], 80)}, {example['rubric_id']}"
        many = count(kind["count"], "time")
        yield f"not scored, {many} {kind['kind']}, such as {where}: {said}"
    left = sum(kind["count"] for kind in kinds[KINDS_SHOWN:])
    if left:
        yield f"not scored, {count(left, 'time')} for other reasons; summary.json lists them"


def _averaged(average: float | None, beside: Mapping[str, Any]) -> str:
    if average is None:
        return f"none scored, {beside['not_scored']} without a score"
    span = beside["interval"]
    told = "" if span is None else f", 95 % interval {span[0]:.2f} to {span[1]:.2f}"
    missing = f", {beside['not_scored']} without a score" if beside["not_scored"] else ""
    return f"{average:g} on average over {beside['scored']}{told}{missing}"


def _cost_lines(report: EvalReport, content: Mapping[str, Any]) -> Iterator[str]:
    cost, judging = report.metrics.get("judges.cost"), asked_in(content)
    unknown = 0 if cost is None else cost.skipped
    if told := asked_in_words(judging, unknown):
        yield f"judge: {told}"
    yield from _spent_lines(content["details"], judging)
    if report.metadata is not None:
        yield f"run {report.metadata.run_id}"


def _spent_lines(details: Mapping[str, Any], judging: Judging) -> Iterator[str]:
    """What a run took that its results do not tell; it is only counted where there is a budget."""
    spent = details.get("spent", {})
    calls, tokens, cost = (spent.get(name, 0) for name in ("calls", "tokens", "cost"))
    if calls > judging.answers - judging.from_history:
        used = [count(calls, "call")] + ([f"{tokens:,} tokens"] if tokens else [])
        used += [f"{cost:.4f} USD"] if cost else []
        yield f"all sittings, with calls that left no result: {', '.join(used)}"
    if unknown := details.get("not_in_judging"):
        yield f"not in that: {unknown}"


def asked_in_words(asked: Judging, unknown: int = 0) -> str:
    """What models were asked: tokens, cost, and what needed not be asked again.

    `unknown` is how many sessions have calls whose price is not known.

    >>> from proctor.records.session import Usage
    >>> asked_in_words(Judging(Usage(1000, 200, cost=0.5), 12, 2))
    '1,200 tokens, 0.5000 USD, 2 of 12 answers known already'
    """
    tokens, cost = asked.usage.total_tokens, asked.usage.cost
    used = "" if tokens is None else f"{tokens:,} tokens"
    paid = "" if cost is None else f"{cost:.4f} USD"
    if unknown and paid:
        paid += f" (the price of {unknown} is not known)"
    known, answers = asked.from_history, asked.answers
    found = f"{known:,} of {count(answers, 'answer')} known already" if known else ""
    failed = f"{count(asked.failed, 'call')} failed" if asked.failed else ""
    if known and known == answers and not failed:
        found = f"{count(answers, 'answer')}, all known already: nothing was asked"
    return ", ".join(part for part in (used, paid, found, failed) if part)
