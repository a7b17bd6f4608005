"""Rubric scores of a session as the content of its result file, and as text.

The keys and their order come from the rubric spec; everything else is under `details`. Numbers are rounded
half up to two decimals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import ROUND_HALF_DOWN, ROUND_HALF_UP, Decimal
from typing import Any

import msgspec

from proctor.comparison.report import EvalReport
from proctor.records import codec
from proctor.records.formatting import format_cost, format_count
from proctor.records.rubric import Column, Columns, compute_total, read_run_columns
from proctor.records.score import Score
from proctor.records.session import ModelCall, Session, Usage
from proctor.records.trial import EvalResult
from proctor.reports.format import single_line

FORMAT_VERSION = "1.0"
FAILED, SKIPPED = "evaluation_failed", "skipped"
# Larger floats have no decimals.
_LARGEST_FRACTION = 1e15
_REASON_LIMIT = 300
FAILURE_TYPES_SHOWN = 3


class JudgeUsage(msgspec.Struct, frozen=True):
    """The judges' token usage and cost, and the number of answers, of answers from the history, and of failed calls.

    Answers from the history cost nothing.
    """

    usage: Usage = Usage()
    answers: int = 0
    from_history: int = 0
    failed: int = 0

    def __add__(self, other: JudgeUsage) -> JudgeUsage:
        return JudgeUsage(
            self.usage + other.usage,
            self.answers + other.answers,
            self.from_history + other.from_history,
            self.failed + other.failed,
        )

    def content(self) -> dict[str, Any]:
        content: dict[str, Any] = dict(codec.to_plain(self.usage))
        if self.answers:
            content |= {"answers": self.answers, "from_history": self.from_history}
        if self.failed:
            content["failed"] = self.failed
        return content


def judge_usage_of_result(result: EvalResult) -> JudgeUsage:
    return sum((judge_usage_of_session(session) for session in result.sessions.values()), JudgeUsage())


def judge_usage_of_session(session: Session) -> JudgeUsage:
    calls = session[ModelCall]
    answered = [call for call in calls if "error" not in call.details]
    cached = sum(bool(call.details.get("cached")) for call in answered)
    return JudgeUsage(session.usage, len(answered), cached, len(calls) - len(answered))


def session_result(result: EvalResult, columns: Columns) -> dict[str, Any]:
    """Return the content of a session's result file."""
    total = compute_total(result.scores, columns)
    entries = [_rubric_entry(column, result) for column in columns.columns]
    unscored = Counter(entry["status"] for entry in entries if "status" in entry)
    high = float(columns.scale[1])
    summary: dict[str, Any] = {
        "total_score": None if total is None else round_half_up(total.score),
        "max_score": high,
        "percentage": None if total is None else percentage(total.score, high),
        "rubrics_evaluated": len(entries) - unscored.total(),
    }
    for status, key in ((FAILED, "rubrics_failed"), (SKIPPED, "rubrics_skipped")):
        if unscored[status]:
            summary[key] = unscored[status]
    source = result.trial.sample.metadata.get("source")
    started = result.trial.started_at
    return {
        "version": FORMAT_VERSION,
        "session_id": result.sample_id,
        "evaluated_at": None if started is None else _format_time(started),
        "rubrics_version": columns.version,
        "rubric_scores": entries,
        "summary": summary,
        "details": {
            **({"source": source} if isinstance(source, str) else {}),
            "normalized": None if total is None else round_half_up(total.normalized, 4),
            "min_score": float(columns.scale[0]),
            "weights": {column.rubric.id: column.rubric.weight for column in columns.columns},
            "judging": judge_usage_of_result(result).content(),
        },
    }


def rubric_score(result: EvalResult, column: Column) -> Score:
    """Return a session's score for one rubric, or an error if the judge was not called."""
    score = result.scores.get(column.name)
    return Score.error(result.error or "the judge was not asked") if score is None else score


def _rubric_entry(column: Column, result: EvalResult) -> dict[str, Any]:
    score = rubric_score(result, column)
    low, high = column.scale
    entry: dict[str, Any] = {
        "rubric_id": column.rubric.id,
        "rubric_name": column.rubric.name,
        "score": None if score.value is None else round_half_up(low + score.value * (high - low)),
        "max_score": float(high),
        "reasoning": score.reason,
    }
    if score.value is None:
        entry["status"] = FAILED if score.status == "error" else SKIPPED
    return entry


def round_half_up(number: float, places: int = 2) -> float:
    """Round a number; halves are rounded up."""
    if abs(number) >= _LARGEST_FRACTION:
        return float(number)
    # The first rounding removes floating-point noise.
    exact = Decimal(repr(round(float(number), 9)))
    rounding = ROUND_HALF_UP if exact >= 0 else ROUND_HALF_DOWN
    return float(exact.quantize(Decimal(1).scaleb(-places), rounding))


def percentage(score: float, maximum: float) -> float | None:
    """Return a score in percent of the maximum; None if the maximum is not positive."""
    return round_half_up(100.0 * score / maximum) if maximum > 0 else None


def _format_time(time: datetime) -> str:
    return time.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def describe_scores(report: EvalReport, content: Mapping[str, Any]) -> str:
    """Describe a session's result or the summary of a batch, with tokens and cost."""
    lines = _batch_lines(content) if "batch_summary" in content else _session_lines(content)
    return "\n".join([*lines, *_cost_lines(report, content)])


def general_warnings(report: EvalReport) -> list[str]:
    """Return the run's warnings, except warnings about single rubrics, which are reported separately."""
    if report.metadata is None:
        return []
    rubrics = tuple(f"{c.name} gave no verdict" for c in read_run_columns(report.metadata).columns)
    return [single_line(text, 1000) for text in report.metadata.warnings if not text.startswith(rubrics)]


def _session_lines(content: Mapping[str, Any]) -> Iterator[str]:
    summary = content["summary"]
    for entry in content["rubric_scores"]:
        score = entry.get("status") or f"{entry['score']:g} of {entry['max_score']:g}"
        reason = single_line(entry["reasoning"], _REASON_LIMIT)
        yield f"{entry['rubric_name']}: {score}" + (f" - {reason}" if reason else "")
    if summary["total_score"] is None:
        yield "total: none, because no rubric has a score"
        return
    missing = summary.get("rubrics_failed", 0) + summary.get("rubrics_skipped", 0)
    unscored = f", {format_count(missing, 'rubric')} without a score" if missing else ""
    percent = "" if summary["percentage"] is None else f" ({summary['percentage']:g}%)"
    yield f"total: {summary['total_score']:g} of {summary['max_score']:g}{percent}{unscored}"


def _batch_lines(content: Mapping[str, Any]) -> Iterator[str]:
    batch, details = content["batch_summary"], content["details"]
    for rubric_id, rubric in content["per_rubric_summary"].items():
        numbers = details["per_rubric"][rubric_id]
        average = _describe_average(rubric["average"], numbers["scored"], numbers["not_scored"], numbers["interval"])
        yield f"{rubric['name']}: {average}"
    scored, interval = details["sessions_scored"], details["average_interval"]
    total = _describe_average(batch["average_score"], scored, details["sessions_not_scored"], interval)
    partial = details.get("sessions_partly_scored")
    yield f"total: {total}" + (f"; {partial:,} of {scored:,} totals leave out a failed rubric" if partial else "")
    if clusters := details.get("clusters"):
        reason = details.get("no_interval")
        intervals = f"there are no intervals ({reason})" if reason else "the intervals account for that"
        yield f"related sessions form {format_count(clusters, 'cluster')}; {intervals}"
    distribution = batch["score_distribution"].items()
    yield "sessions by score: " + ", ".join(f"{score}: {number}" for score, number in distribution)
    if resumed := details.get("sessions_from_before"):
        sessions = f"{resumed:,} of {format_count(batch['total_sessions'], 'session')}"
        yield f"{sessions} were scored before the run was resumed; the numbers cover all sessions"
    yield from _failure_lines(details["failures"])


def _failure_lines(failures: list[dict[str, Any]]) -> Iterator[str]:
    for failure in failures[:FAILURE_TYPES_SHOWN]:
        example = failure["example"]
        where = f"{single_line(example['session_id'], 80)}, {example['rubric_id']}"
        reason = single_line(example["reason"], _REASON_LIMIT)
        times = format_count(failure["count"], "time")
        yield f"not scored: {failure['kind']}, {times}, such as {where}: {reason}"
    if rest := sum(failure["count"] for failure in failures[FAILURE_TYPES_SHOWN:]):
        yield f"not scored: other reasons, {format_count(rest, 'time')}; summary.json lists them"


def _describe_average(average: float | None, scored: int, unscored: int, interval: tuple[float, float] | None) -> str:
    missing = f", {unscored} without a score" if unscored else ""
    if average is None:
        return f"none scored{missing}"
    span = "" if interval is None else f", 95% interval {interval[0]:.2f} to {interval[1]:.2f}"
    return f"{average:g} on average over {scored}{span}{missing}"


def _cost_lines(report: EvalReport, content: Mapping[str, Any]) -> Iterator[str]:
    details = content["details"]
    judging = dict(details["judging"])
    answers, cached, failed = (judging.pop(name, 0) for name in ("answers", "from_history", "failed"))
    cost = report.metrics.get("judges.cost")
    unknown_count = 0 if cost is None else cost.skipped
    if usage := describe_judge_usage(JudgeUsage(Usage(**judging), answers, cached, failed), unknown_count):
        yield f"judge: {usage}"
    # Spending is counted only if the run has a budget; it includes calls without a result.
    spent = details.get("spent", {})
    if spent.get("calls", 0) > answers - cached:
        facts = [format_count(spent["calls"], "call")]
        facts += [f"{spent['tokens']:,} tokens"] if spent.get("tokens") else []
        facts += [format_cost(spent["cost"])] if spent.get("cost") else []
        yield f"the whole run, including calls without a result: {', '.join(facts)}"
    if not_counted := details.get("not_in_judging"):
        yield f"not included: {not_counted}"
    if report.metadata is not None:
        yield f"run {report.metadata.run_id}"


def describe_judge_usage(judging: JudgeUsage, unknown_count: int = 0) -> str:
    """Describe judge usage: tokens, cost, and reused answers.

    `unknown_count` is the number of sessions with calls of unknown price.
    """
    tokens, cost = judging.usage.total_tokens, judging.usage.cost
    facts = [] if tokens is None else [f"{tokens:,} tokens"]
    if cost is not None:
        unpriced = f" (plus {format_count(unknown_count, 'session')} of unknown price)" if unknown_count else ""
        facts.append(format_cost(cost) + unpriced)
    reused, answers = judging.from_history, judging.answers
    if reused and reused == answers and not judging.failed:
        facts.append(f"{format_count(answers, 'answer')}, all reused")
    elif reused:
        facts.append(f"{reused:,} of {format_count(answers, 'answer')} reused")
    if judging.failed:
        facts.append(f"{format_count(judging.failed, 'call')} failed")
    return ", ".join(facts)
