"""Show the result of a mutation test in the terminal and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from proctor.records.formatting import format_count
from proctor.records.metric import MetricValue
from proctor.reports.format import escape_untrusted, fold_text, markdown_table, single_line
from proctor.validity.mutation_test import EvaluatorMutations, MutantVerdict, MutationReport, MutationRow

HEADINGS = {
    "fault": ("planted fault", "noticed"),
    "harmless": ("harmless change", "false alarms"),
    "control": ("control", "failed when asked again"),
}
VERDICTS_SHOWN = 5
LEGEND = "Changed words: [-removed-] {+added+}. n counts verdicts; mutants of one sample are not independent."
EXCERPT, LINES = 600, 4
NAME_WIDTH, RATE_WIDTH, RANGE_WIDTH = 30, 14, 16


def render_text(report: MutationReport, width: int = 80, verdicts: int = VERDICTS_SHOWN) -> str:
    """Render a mutation test as text of at most `width` columns."""
    lines = [*fold_text(report.answer, width, 8), ""]
    for tested in report.evaluators:
        lines += [*fold_text(_title(tested), width, 4), *_table_lines(tested)]
        for heading, selected in _lists(tested):
            lines += ["", f"  {_count(heading, selected, verdicts)}"]
            for verdict in _spread(selected, verdicts):
                start = f"  {verdict.mutation}, sample {single_line(verdict.sample_id, 40)}: "
                text = single_line(start + verdict.marked, EXCERPT)
                folded = fold_text(text.strip(), width - 4, LINES)
                lines += [f"  {folded[0]}", *(f"    {line}" for line in folded[1:])]
        lines.append("")
    return "\n".join(line.rstrip() for line in [*lines, LEGEND, ""])


def _table_lines(tested: EvaluatorMutations) -> Iterator[str]:
    for kind, (name, rate) in HEADINGS.items():
        rows = _list_rows(tested, kind)
        if rows:
            yield f"  {name:<{NAME_WIDTH}}{rate:>{RATE_WIDTH}}{'95% interval':>{RANGE_WIDTH}}  not scored"
        for label, value in rows:
            share, interval, missing = _cells(value)
            yield f"  {label:<{NAME_WIDTH}}{share:>{RATE_WIDTH}}{interval:>{RANGE_WIDTH}}  {missing}"


def _list_rows(tested: EvaluatorMutations, kind: str) -> list[tuple[str, MetricValue]]:
    """Return the rows of one kind of mutation and their totals."""
    rows: list[MutationRow] = [row for row in tested.rows if row.kind == kind]
    listed = [(row.mutation, row.rate) for row in rows]
    if kind == "fault":
        for part, total in tested.kills.items():
            if sum(row.part == part for row in rows) > 1:
                listed.append((f"all faults in the {part}", total))
    elif kind == "harmless" and len(rows) > 1:
        listed.append(("all harmless changes", tested.false_alarms))
    return listed


def _cells(rate: MetricValue) -> tuple[str, str, str]:
    missing = [format_count(rate.errors, "error")] * bool(rate.errors) + [f"{rate.skipped} skipped"] * bool(
        rate.skipped
    )
    if rate.value is None:
        return "n = 0", "–", ", ".join(missing)
    interval = "–" if rate.interval is None else f"{rate.interval[0]:.0%} to {rate.interval[1]:.0%}"
    notes = missing if rate.interval is not None else [*missing, rate.note or "no interval"]
    return f"{round(rate.value * rate.n)}/{rate.n} {rate.value:.0%}", interval, ", ".join(notes)


def _title(tested: EvaluatorMutations) -> str:
    name = single_line(tested.evaluator, 60)
    judges = f" (asks {', '.join(tested.judges)})" if tested.judges else ""
    drawn = f"{format_count(tested.trials, 'output')} that it passes"
    if tested.passed is not None and tested.passed > tested.trials:
        drawn = f"{tested.trials} of {tested.passed:,} outputs that it passes, drawn at random"
    rest = f"; {format_count(tested.left_out, 'mutant')} left out (--max-calls)" if tested.left_out else ""
    return f"{name}{judges}: {drawn}{rest}"


def _lists(tested: EvaluatorMutations) -> Iterator[tuple[str, Sequence[MutantVerdict]]]:
    if tested.survivors:
        yield "Faults that it still passes", tested.survivors
    if tested.alarms:
        yield "Harmless changes that it fails", tested.alarms


def _count(heading: str, selected: Sequence[MutantVerdict], shown: int) -> str:
    count = f"{shown} of {len(selected)}; --survivors N shows more" if len(selected) > shown else f"{len(selected)}"
    return f"{heading} ({count}):"


def _spread(verdicts: Sequence[MutantVerdict], count: int) -> list[MutantVerdict]:
    """Select verdicts of as many mutations as possible, in turn."""
    turns: dict[str, int] = {}
    order = []
    for place, verdict in enumerate(verdicts):
        turns[verdict.mutation] = turns.get(verdict.mutation, 0) + 1
        order.append((turns[verdict.mutation], place))
    return [verdicts[place] for _, place in sorted(order)[:count]]


def render_markdown(report: MutationReport, verdicts: int = VERDICTS_SHOWN) -> str:
    """Render a mutation test as Markdown."""
    parts = [f"## Mutation test of run {escape_untrusted(report.run_id)}", escape_untrusted(report.answer)]
    for tested in report.evaluators:
        parts.append(f"### {escape_untrusted(_title(tested))}")
        for kind, (name, rate) in HEADINGS.items():
            if rows := _list_rows(tested, kind):
                cells = [(label, *_cells(value)) for label, value in rows]
                parts.append(markdown_table((name, rate, "95% interval", "not scored"), cells))
        for heading, selected in _lists(tested):
            items = [
                f"- {verdict.mutation}, sample {escape_untrusted(single_line(verdict.sample_id, 60))}: "
                f"{escape_untrusted(single_line(verdict.marked, EXCERPT))}"
                for verdict in _spread(selected, verdicts)
            ]
            parts.append("\n".join([escape_untrusted(_count(heading, selected, verdicts)), "", *items]))
    return "\n\n".join([*parts, escape_untrusted(LEGEND)]) + "\n"
