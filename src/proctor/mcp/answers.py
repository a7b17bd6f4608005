"""The answers of the tools; the docstring of a tool is its description for agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.comparison.flips import add_flip_texts
from proctor.comparison.report import EvalReport
from proctor.comparison.sides import Side
from proctor.errors import EvaluatorError, UsageError, suggest_name
from proctor.evaluators.cards import load_cards
from proctor.ports import History
from proctor.records import formatting
from proctor.records.comparison import Comparison, Flip, FlipResult, MetricDelta
from proctor.records.metric import MetricValue
from proctor.records.score import Score
from proctor.records.session import Message, ModelCall, Session, ToolCall
from proctor.records.trial import EvalResult
from proctor.reports import summary
from proctor.reports.format import excerpt, format_interval, format_metric, single_line
from proctor.reports.transcript import render_transcripts
from proctor.wiring.compare_runs import build_sides, compare_sides, open_pair, open_report, pair_configurations
from proctor.wiring.open_history import current_status, load_report, select_results
from proctor.wiring.registry import Registry

ID_LIMIT, NAME_LIMIT, REASON_LIMIT = 80, 60, 160
# A page of regressed cases ends here, so that the whole answer has fewer than 2,000 tokens.
MAX_CASE_CHARACTERS = 4_500
METRICS_SHOWN = 20
EVALUATORS_SHOWN = 8
# The largest number of lost samples whose causes are counted.
MAX_EXAMINED = 300


class Answer(NamedTuple):
    """Lines of metadata, contents by label, and hints at the end."""

    lines: list[str]
    contents: Mapping[str, str] = {}
    hints: Sequence[str] = ()


def list_runs(history: History, name: str | None = None, limit: int = 10, offset: int = 0) -> Answer:
    """List runs, newest first: id, name, status, pass rate with 95% interval and n, tags. `name` filters."""
    runs = history.runs(limit=limit + 1, offset=offset, name=name)
    baselines: dict[str, list[str]] = {}
    for baseline, run in history.baselines().items():
        baselines.setdefault(run.run_id, []).append(f"baseline:{baseline}")
    lines = []
    for stored in runs[:limit]:
        run = current_status(history, stored)
        tags = [*baselines.get(run.run_id, ()), *(f"{key}={value}" for key, value in run.tags.items())]
        facts = [f"{run.run_id} {_cut_name(run.name)}", run.status]
        facts += [f"rescored from {run.rescored_from}"] if run.rescored_from else []
        facts += [*summary.headlines(load_report(history, run.run_id))]
        lines.append("; ".join([*facts, *([_cut_name(", ".join(tags))] if tags else [])]))
    if not lines and not offset:
        where = f" named {name!r}" if name else ""
        raise UsageError(f"the history {history.describe().where} has no run{where}", fix="proctor run eval.yaml")
    return Answer(lines or ["no more runs"], hints=_hint_next_page(len(runs) > limit, offset + limit))


def show_run(history: History, run: str = "latest") -> Answer:
    """Show a run: status, counts, metrics with 95% interval and n, evaluators, kinds of errors."""
    opened = open_report(run, history)
    report, metadata = opened.report, opened.report.metadata
    assert metadata is not None
    status = summary.describe_status(report, metadata) or "completed"
    lines = [f"run {metadata.run_id} {_cut_name(metadata.name)}: {status}"]
    lines += [f"target {_cut_name(metadata.target.name)}; dataset {_cut_name(metadata.dataset.name)}"]
    lines += [f"code {metadata.provenance.code}"] if metadata.provenance.code else []
    lines += summary.headlines(report)
    lines += [f"evaluators: {', '.join(_cut_name(spec.name) for spec in metadata.evaluators)}"]
    if kinds := report.results.error_kinds():
        lines.append("target errors: " + ", ".join(f"{_cut_name(kind)} {count}" for kind, count in kinds.items()))
    tables = summary.drop_redundant_metrics(summary.metrics_by_configuration(report))
    for configuration, metrics in tables.items():
        if opened.configuration in (None, configuration) or not configuration:
            lines += [f"[{_cut_name(configuration)}]"] if configuration else []
            lines += [_format_metric_line(name, metric) for name, metric in list(metrics.items())[:METRICS_SHOWN]]
    lines += [formatting.format_count(len(metadata.warnings), "warning")] if metadata.warnings else []
    return Answer(lines)


def list_samples(
    history: History,
    run: str = "latest",
    outcome: str | None = None,
    evaluator: str | None = None,
    include_content: bool = False,
    limit: int = 20,
    offset: int = 0,
) -> Answer:
    """List the samples of a run, worst first: id, outcome, scores; with content also why each did not pass."""
    opened = open_report(run, history)
    selection: dict[str, Any] = {"outcome": outcome, "evaluator": evaluator, "configuration": opened.configuration}
    has_several = len(opened.report.configurations) > 1
    results = _select_samples(opened.report, selection, offset, limit + 1)
    lines = [
        _format_result(result, has_several, epochs=summary.describe_epochs(opened.report, result))
        for result in results[:limit]
    ]
    reasons = [
        f"{_cut_id(result.sample_id)}: {reason}" for result in results[:limit] if (reason := _describe_reasons(result))
    ]
    contents = {"reasons": "\n".join(reasons)} if include_content else {}
    hints = ["no reasons are recorded for these samples"] if include_content and lines and not reasons else []
    hints += _hint_next_page(len(results) > limit, offset + limit)
    return Answer(lines or ["no sample matches"], contents, hints)


def show_sample(
    history: History, run: str, sample: str, include_content: bool = False, max_characters: int = 2000
) -> Answer:
    """Show one sample: scores and a summary of its session; with content also input, output, expected, reasons."""
    opened = open_report(run, history)
    has_epochs = summary.count_epochs(opened.report) > 1
    if not opened.report.results.for_sample(sample):
        raise UsageError(f"run {opened.report.run_id} has no sample {sample!r}", fix=f"call list_samples(run={run!r})")
    results = select_results(opened.report, sample=sample, configuration=opened.configuration)
    lines, contents = [], {}
    if include_content:
        first = results[0].trial.sample
        contents = {"input": excerpt(first.input, max_characters)}
        contents |= {} if first.expected is None else {"expected": excerpt(first.expected, max_characters)}
    for number, result in enumerate(results, 1):
        lines += [_format_result(result, True, has_epochs=has_epochs), *_describe_session(result.trial.session)]
        if include_content:
            suffix = f" {number}" if len(results) > 1 else ""
            contents |= {f"{name}{suffix}": text for name, text in _list_texts(result, max_characters)}
    return Answer(lines, contents, () if include_content else ("texts: include_content=true",))


def compare_runs(history: History, new: str, reference: str) -> Answer:
    """Compare two runs: verdict, differences with 95% intervals and n, how many samples were lost and won."""
    lines = []
    for comparison, _ in _compare(history, new, reference):
        lines.append(
            f"{_cut_name(comparison.a)} (new) against {_cut_name(comparison.b)} (reference): {comparison.answer}"
        )
        lines += [_format_delta(delta) for delta in comparison.essential()[:METRICS_SHOWN]]
        lost = len(comparison.lost)
        lines.append(
            f"{formatting.format_count(comparison.samples, 'common sample')}: {lost} lost, "
            f"{len(comparison.flips) - lost} won, {len(comparison.only_a)} only new, {len(comparison.only_b)} only "
            f"reference"
        )
        lines += [f"note: {single_line(note, 300)}" for note in (*comparison.evaluator_differences, *comparison.notes)]
    return Answer(lines, hints=("which and why: regressed_cases",))


def regressed_cases(
    history: History, new: str, reference: str, include_content: bool = False, limit: int = 20, offset: int = 0
) -> Answer:
    """List the samples that passed in the reference and do not pass in the new run, with the evaluator or error.

    Worst first, with the verdict on the whole. With content also the reasons.
    """
    lines: list[str] = []
    cases: list[tuple[str, Flip]] = []
    compared = list(_compare(history, new, reference))
    for comparison, sides in compared:
        lost, won = comparison.lost, len(comparison.won)
        lines.append(f"{_cut_name(comparison.a)} against {_cut_name(comparison.b)}: {comparison.answer}")
        lines.append(f"{len(lost)} of {formatting.format_count(comparison.samples, 'sample')} lost, {won} won")
        examined = add_flip_texts(
            msgspec.structs.replace(comparison, flips=lost[:MAX_EXAMINED]), *sides, MAX_EXAMINED
        ).flips
        lines += [f"causes: {_count_causes(examined)}"] if lost else []
        prefix = f"{_cut_name(comparison.a)} " if len(compared) > 1 else ""
        cases += [(prefix, flip) for flip in (*examined, *lost[MAX_EXAMINED:])]
    shown, reasons = _list_cases(cases[offset : offset + limit], include_content)
    hints = [] if include_content or not shown else ["reasons: include_content=true"]
    hints += _hint_next_page(len(cases) > offset + len(shown), offset + len(shown))
    return Answer([*lines, *shown], {"reasons": "\n".join(reasons)}, hints)


def list_evaluators(history: History, category: str | None = None) -> Answer:  # noqa: ARG001 - every tool gets one
    """List the categories of evaluators, or the evaluators of a category, each with what it checks."""
    evaluators = Registry.standard().evaluators()
    categories = Counter(info.category for info in evaluators)
    if category is None:
        names = {name: [info.name for info in evaluators if info.category == name] for name in sorted(categories)}
        return Answer([f"{name}: {', '.join(members)}" for name, members in names.items()])
    if category not in categories:
        raise EvaluatorError(f"unknown category {category!r}", fix=suggest_name(category, list(categories)))
    return Answer([f"{info.name}: {info.summary}" for info in evaluators if info.category == category])


def show_evaluator(history: History, name: str) -> Answer:  # noqa: ARG001 - every tool gets one
    """Show one evaluator: parameters, method, limits, measured figures."""
    infos = {info.name: info for info in Registry.standard().evaluators()}
    if name not in infos:
        raise EvaluatorError(f"unknown evaluator {name!r}", fix=suggest_name(name, list(infos)))
    info = infos[name]
    lines = [f"{info.name} ({info.category}): {info.summary}"]
    lines += [f"needs: {', '.join(info.needs)}"] if info.needs else []
    for parameter in info.parameters:
        default = "required" if parameter.required else f"default {parameter.default!r}"
        lines.append(f"- {parameter.name}: {parameter.type}, {default}")
    card = load_cards().get(name)
    lines += [f"{label}: {text}" for label, text in card.list_entries()] if card else []
    return Answer(lines)


def _compare(history: History, new: str, reference: str) -> Iterator[tuple[Comparison, tuple[Side, Side]]]:
    """Compare all common configurations."""
    pairs, _ = pair_configurations(*open_pair(new, reference, history=history))
    sides = [build_sides(*pair) for pair in pairs]
    return zip(compare_sides(sides), sides, strict=True)


def _list_cases(cases: Sequence[tuple[str, Flip]], include_content: bool) -> tuple[list[str], list[str]]:
    """Return a line for each case, and its reasons, until the page is full."""
    lines: list[str] = []
    reasons: list[str] = []
    size = 0
    for prefix, flip in cases:
        name = prefix + _cut_id(flip.sample_id)
        scores = " → ".join(formatting.DASH if score is None else f"{score:.2f}" for score in (flip.b, flip.a))
        line = f"- {name} {scores} {', '.join(_list_causes(flip.a_result))}".rstrip()
        reason = f"{name}: {text}" if include_content and (text := _describe_reasons(flip.a_result)) else ""
        size += len(line) + len(reason)
        if lines and size > MAX_CASE_CHARACTERS:
            break
        lines.append(line)
        reasons += [reason] if reason else []
    return lines, reasons


def _count_causes(lost: Iterable[Flip]) -> str:
    counts = Counter(cause.partition(" ")[0] for flip in lost for cause in _list_causes(flip.a_result))
    return ", ".join(f"{cause} {count}" for cause, count in counts.most_common(EVALUATORS_SHOWN)) or "unknown"


def _list_causes(result: FlipResult | None) -> list[str]:
    """Return why a side did not pass: the kind of its error, or each evaluator with its value."""
    if result is None:
        return []
    if result.error:
        return [f"error:{_cut_name(result.error.partition(':')[0])}"]
    return [
        f"{_cut_name(name)} {_format_score(score)}" for name, score in result.scores.items() if _did_not_pass(score)
    ]


def _describe_reasons(result: EvalResult | FlipResult | None) -> str:
    if result is None:
        return ""
    if result.error:
        return single_line(result.error, REASON_LIMIT)
    failing = [(name, score) for name, score in result.scores.items() if _did_not_pass(score) and score.reason]
    return "; ".join(f"{_cut_name(name)}: {single_line(score.reason, REASON_LIMIT)}" for name, score in failing[:3])


def _did_not_pass(score: Score) -> bool:
    return score.passed is not True and score.status != "skipped"


def _format_score(score: Score) -> str:
    return score.status if score.value is None else f"{score.value:.2f}"


def _select_samples(report: EvalReport, selection: Mapping[str, Any], offset: int, limit: int) -> list[EvalResult]:
    """Return the worst epoch of each sample in each configuration, worst first."""
    if summary.count_epochs(report) < 2:
        return [*select_results(report, **selection, offset=offset, limit=limit)]
    worst: dict[tuple[str, str], EvalResult] = {}
    for result in select_results(report, **selection, limit=report.total):
        worst.setdefault((result.sample_id, result.trial.configuration), result)
    return [*worst.values()][offset : offset + limit]


def _format_result(result: EvalResult, with_configuration: bool, *, has_epochs: bool = False, epochs: str = "") -> str:
    trial = result.trial
    place = [f"[{_cut_name(trial.configuration)}]"] if with_configuration else []
    place += [f"epoch {trial.epoch + 1}"] if has_epochs else [f"({epochs})"] if epochs else []
    facts = [_cut_name(trial.error.kind)] if trial.error else []
    for name, score in result.scores.items():
        mark = "passed" if score.passed else "failed" if score.passed is False else ""
        facts.append(" ".join(filter(None, (_cut_name(name), _format_score(score), mark))))
    return " ".join([_cut_id(result.sample_id), *place, f"{result.outcome}:", "; ".join(facts)]).strip()


def _describe_session(session: Session | None) -> Iterator[str]:
    if session is None or not len(session):
        return
    tools = Counter(_cut_name(call.name) for call in session[ToolCall])
    failed = sum(not call.success for call in session[ToolCall])
    facts = [formatting.format_count(len(session[Message]), "message")]
    facts.append(formatting.format_count(len(session[ModelCall]), "model call"))
    if tools:
        called = ", ".join(f"{name} ×{count}" for name, count in tools.most_common(EVALUATORS_SHOWN))
        facts.append(f"tool calls {called}{f' ({failed} failed)' if failed else ''}")
    if (tokens := session.usage.total_tokens) is not None:
        facts.append(f"{tokens:,} tokens")
    yield f"  session: {', '.join(facts)}"


def _list_texts(result: EvalResult, limit: int) -> Iterator[tuple[str, str]]:
    if result.error:
        yield "error", excerpt(result.error, limit)
    else:
        yield "output", excerpt(result.output, limit)
    reasons = [f"{_cut_name(name)}: {score.reason}" for name, score in result.scores.items() if score.reason]
    yield "reasons", excerpt("\n".join(reasons), limit)
    if result.trial.session is not None and len(result.trial.session):
        yield "session", excerpt(render_transcripts(result), limit)


def _format_metric_line(name: str, metric: MetricValue) -> str:
    interval = f" (95% {format_interval(metric)})" if metric.interval else f" ({metric.note})" if metric.note else ""
    return f"{_cut_name(name)}: {format_metric(metric)}{interval}, {summary.describe_size(metric)}"


def _format_delta(delta: MetricDelta) -> str:
    kind, name = delta.kind, delta.name
    values = " vs ".join(formatting.format_value(value, kind, name) for value in (delta.a, delta.b))
    change = formatting.format_change(delta.absolute, kind, metric=name) + formatting.change_unit(kind)
    interval = formatting.format_changes(delta.interval, kind, name)
    p = f", p {formatting.format_probability(delta.p_adjusted)}" if delta.p_adjusted is not None else ""
    return f"{_cut_name(name)}: {values}, {change} (95% {interval}), n = {delta.n}{p}: {delta.verdict_text}"


def _hint_next_page(has_more: bool, offset: int) -> tuple[str, ...]:
    return (f"more: offset={offset}",) if has_more else ()


def _cut_id(sample_id: str) -> str:
    return single_line(sample_id, ID_LIMIT)


def _cut_name(text: str) -> str:
    return single_line(text, NAME_LIMIT)
