"""What sessions came to by rubrics, for people: scores, what failed and why, what it cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from proctor.records.report import EvalReport
from proctor.records.rubric_scores import columns_in
from proctor.records.session import Usage
from proctor.reports.excerpts import line
from proctor.reports.figures import count
from proctor.reports.rubrics import Judging

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
    lack = (
        f"; {partly:,} of {scored['scored']:,} totals lack a rubric that failed" if partly else ""
    )
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
