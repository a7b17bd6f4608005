"""Comparisons and rankings in the terminal and as Markdown."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from proctor.records.comparison import (
    BOOTSTRAP,
    ComparedSlices,
    Comparison,
    Flip,
    Interval,
    MetricDelta,
    RankedPlace,
    Ranking,
    select_flips,
)
from proctor.records.formatting import (
    DASH,
    Kind,
    change_unit,
    format_change,
    format_changes,
    format_confidence,
    format_count,
    format_estimate,
    format_probability,
    format_range,
    format_value,
    is_cost,
)
from proctor.reports.flips import flip_blocks, flip_lines, list_flips, more_flips, more_lines
from proctor.reports.format import (
    break_name,
    disable_links,
    escape_untrusted,
    markdown_table,
    new_table,
    print_rendered,
    render_parts,
    single_line,
    styled_text,
    table_cell,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

FLIPS_SHOWN = 5
IDS_SHOWN = 5
MAX_COMPACT_INTERVAL = 11
MIN_NAME_WIDTH, MAX_NAME_WIDTH, SIDE_WIDTH, MIN_VERDICT_WIDTH = 16, 32, 12, 10
# The usual and the smallest width of the other columns.
NUMBERS_WIDTH, MIN_NUMBERS_WIDTH = 70, 56
# In narrower terminals there is no gap between columns.
WIDE_TERMINAL = 88
LINE_LIMIT, NAME_LIMIT, ID_LIMIT = 1000, 100, 60
COLORS = {"better": "green", "worse": "red", "different": "yellow"}
TERMINAL_LEGEND = "95% intervals below the numbers; g: difference in standard deviations"
MARKDOWN_LEGEND = "95% intervals in parentheses; effect: difference in standard deviations (Hedges' g)"
RANKING_LEGEND = (
    "Ranks: all ranks that the pairwise comparisons allow (Holm-corrected); "
    "P(first): probability of being the best over all samples of this kind"
)


def show_comparisons(
    comparisons: Sequence[Comparison], file: TextIO | None = None, *, flips: int = FLIPS_SHOWN
) -> None:
    """Print comparisons in the terminal's width and colors."""
    print_rendered(
        lambda width, color: "\n".join(
            render_comparison(comparison, width, color, flips=flips) for comparison in comparisons
        ),
        file,
    )


def show_ranking(ranking: Ranking, file: TextIO | None = None) -> None:
    print_rendered(lambda width, color: render_ranking(ranking, width, color), file)


def render_comparison(comparison: Comparison, width: int = 80, color: bool = False, *, flips: int = FLIPS_SHOWN) -> str:
    """Return the conclusion, the table, the flipped samples, and the notes."""
    return render_parts(_comparison_parts(comparison, flips, width), width, color)


def render_ranking(ranking: Ranking, width: int = 80, color: bool = False) -> str:
    """Return the conclusion and one line for each configuration."""
    return render_parts(_ranking_parts(ranking), width, color)


def render_markdown(comparison: Comparison, *, flips: int = FLIPS_SHOWN) -> str:
    """Return the comparison as Markdown."""
    blocks = [
        f"## {escape_untrusted(single_line(f'{comparison.a} compared with {comparison.b}', NAME_LIMIT))}",
        escape_untrusted(single_line(comparison.answer, LINE_LIMIT)),
    ]
    if deltas := comparison.essential():
        sides = (single_line(name, NAME_LIMIT) for name in (comparison.a, comparison.b))
        titles = ("Metric", *sides, "Difference (95%)", "p", "Effect", "n", "Verdict")
        blocks.append(disable_links(markdown_table(titles, map(_markdown_row, deltas))))
    blocks += _markdown_slices(comparison)
    blocks += _markdown_flips(comparison, flips)
    notes = [*_unmatched_notes(comparison), *comparison.notes, *_table_notes(comparison, MARKDOWN_LEGEND)]
    if notes:
        blocks.append("\n".join(f"- {escape_untrusted(single_line(note, LINE_LIMIT))}" for note in notes))
    return "\n\n".join(blocks) + "\n"


def inspection_commands(comparison: Comparison, flip: Flip) -> list[str]:
    """Return the commands that show both outputs of a sample, one for each run."""
    runs = dict.fromkeys(run for run in (comparison.a_run, comparison.b_run) if run)
    sample = shlex.quote(flip.sample_id)
    return [f"proctor show {shlex.quote(run)} --sample {sample}" for run in runs]


def _comparison_parts(comparison: Comparison, flips: int, width: int) -> Iterator[RenderableType]:
    yield styled_text(comparison.answer, "bold")
    if runs := _name_runs(comparison):
        yield styled_text(runs, "dim")
    if comparison.essential():
        yield ""
        yield _comparison_table(comparison, width)
    yield from _slice_lines(comparison, compact=width < WIDE_TERMINAL)
    yield from _flip_lines(comparison, flips, width)
    notes = [*_unmatched_notes(comparison), *(f"Note: {note}" for note in comparison.notes)]
    table_notes = list(_table_notes(comparison))
    if notes or table_notes:
        yield ""
    yield from (styled_text(note, "yellow") for note in notes)
    yield from (styled_text(note, "dim") for note in table_notes)


def _name_runs(comparison: Comparison) -> str:
    if comparison.a_run == comparison.b_run:
        return f"Both configurations belong to run {comparison.a_run}" if comparison.a_run else ""
    sides = [(comparison.a, comparison.a_run), (comparison.b, comparison.b_run)]
    return "; ".join(f"{name} is run {run}" for name, run in sides if run and run != name)


def _comparison_table(comparison: Comparison, width: int) -> Table:
    grid = new_table(0 if width < WIDE_TERMINAL else 1, left=0)
    deltas = comparison.essential()
    longest = max(len(delta.name) for delta in deltas)
    name_width = max(MIN_NAME_WIDTH, min(MAX_NAME_WIDTH, width - NUMBERS_WIDTH))
    # Names are broken at their joints, so that the table breaks the verdicts if it is too wide.
    is_wide_enough = width >= MIN_NAME_WIDTH + MIN_NUMBERS_WIDTH
    grid.add_column("Metric", overflow="fold", min_width=min(MIN_NAME_WIDTH, longest), no_wrap=is_wide_enough)
    for side in (comparison.a, comparison.b):
        grid.add_column(table_cell(_break(side, SIDE_WIDTH)), justify="right", overflow="fold")
    for title in ("Difference", "p, g"):
        grid.add_column(title, justify="right", no_wrap=True)
    grid.add_column("Verdict", min_width=MIN_VERDICT_WIDTH, overflow="fold")
    for delta in deltas:
        effect = "" if delta.effect is None else f"\ng {_format_effect(delta.effect)}"
        certainty = f"{format_probability(delta.p_adjusted)}{effect}"
        cells = (_break(delta.name, name_width), *_format_sides(delta), _format_difference(delta), certainty)
        verdict = table_cell(_format_verdict(delta, "\n"), COLORS.get(delta.verdict, ""))
        grid.add_row(*map(table_cell, cells), verdict)
    return grid


def _slice_lines(comparison: Comparison, *, compact: bool) -> Iterator[RenderableType]:
    slices = comparison.slices
    if slices is None:
        return
    yield ""
    yield styled_text(f"By {slices.key}", "bold")
    yield ""
    if not any(part.deltas for part in slices):
        yield styled_text("No rate or score can be compared by slice.")
        return
    grid = new_table(0 if compact else 1, left=0)
    longest = max(len(name) for part in slices for name in part.deltas)
    grid.add_column(styled_text(slices.key, limit=NAME_LIMIT), overflow="fold", min_width=min(MIN_NAME_WIDTH, longest))
    for side in (comparison.a, comparison.b):
        grid.add_column(table_cell(_break(side, SIDE_WIDTH)), justify="right", overflow="fold")
    for title in ("Difference", "p, n"):
        grid.add_column(title, justify="right", no_wrap=True)
    grid.add_column("Verdict", min_width=MIN_VERDICT_WIDTH, overflow="fold")
    for label, delta, opposite in _list_slice_deltas(slices):
        certainty = f"{format_probability(delta.p_adjusted)}\nn {delta.n:,}"
        name = _break(delta.name, MIN_NAME_WIDTH)
        name = f"{label}\n{name}" if label else name
        cells = (name, *_format_sides(delta), _format_difference(delta), certainty)
        verdict = delta.verdict + opposite.replace(", ", "\n")
        grid.add_row(*map(table_cell, cells), table_cell(verdict, COLORS.get(delta.verdict, "")))
    yield grid
    yield from (styled_text(f"Note: {note}", "yellow") for note in slices.notes)
    yield styled_text(_describe_slices(slices), "dim")


def _list_slice_deltas(slices: ComparedSlices) -> Iterator[tuple[str, MetricDelta, str]]:
    """Yield the label of each slice, its deltas without duplicates, and a mark if one contradicts the total."""
    for part in slices:
        shown: list[MetricDelta] = []
        for name, delta in part.deltas.items():
            if not any(delta.has_same_numbers(other) for other in shown):
                label = f"{part.label} ({part.samples:,})" if not shown else ""
                shown.append(delta)
                yield label, delta, ", opposite of the total" if name in part.reversed else ""


def _contradicts_interval(delta: MetricDelta) -> bool:
    is_decided = delta.verdict in ("better", "worse", "different")
    return is_decided and delta.interval is not None and delta.interval[0] <= 0 <= delta.interval[1]


def _describe_slices(slices: ComparedSlices) -> str:
    shown = Counter(delta.name for _, delta, _ in _list_slice_deltas(slices))
    counts = Counter(name for part in slices for name in part.deltas)
    hidden = ", ".join(single_line(name, NAME_LIMIT) for name in counts if counts[name] > shown[name])
    facts = [
        f"hidden because they equal another row of the slice: {hidden}" if hidden else "",
        "number of common samples in parentheses",
        f"intervals of the differences at {format_confidence(slices.confidence)}, so that all hold together with 95%",
        f"p corrected for {format_count(slices.tests, 'test')} of all slices (Holm)" if slices.tests > 1 else "",
        "if an interval includes 0 but the verdict is better or worse, the corrected p-value decided: the intervals "
        "use a stricter correction"
        if any(_contradicts_interval(delta) for _, delta, _ in _list_slice_deltas(slices))
        else "",
        "numbers in ranges of similar size" if slices.binned else "",
        "a sample with several values is in several slices" if slices.overlapping else "",
    ]
    return "; ".join(filter(None, facts))


def _markdown_slices(comparison: Comparison) -> list[str]:
    slices = comparison.slices
    if slices is None or not any(part.deltas for part in slices):
        return []
    sides = (single_line(name, NAME_LIMIT) for name in (comparison.a, comparison.b))
    difference = f"Difference ({format_confidence(slices.confidence)})"
    titles = (single_line(slices.key, NAME_LIMIT), "Metric", *sides, difference, "p", "Effect", "n", "Verdict")
    rows = []
    for label, delta, opposite in _list_slice_deltas(slices):
        *cells, verdict = _markdown_row(delta)
        rows.append([single_line(label, NAME_LIMIT), *cells, f"{verdict}{opposite}"])
    notes = "\n".join(
        f"- {escape_untrusted(single_line(note, LINE_LIMIT))}" for note in (*slices.notes, _describe_slices(slices))
    )
    return [
        f"### By {escape_untrusted(single_line(slices.key, NAME_LIMIT))}",
        disable_links(markdown_table(titles, rows)),
        notes,
    ]


def _format_sides(delta: MetricDelta) -> Iterator[str]:
    for number, interval in ((delta.a, delta.a_interval), (delta.b, delta.b_interval)):
        interval_line = f"\n{_format_interval(interval, delta.kind, delta.name)}" if interval else ""
        yield _format_value(number, delta.kind, delta.name) + interval_line


def _format_value(number: float | None, kind: Kind, metric: str) -> str:
    if number is None or kind != "number" or is_cost(metric):
        return format_value(number, kind, metric)
    return f"{number:,.0f}" if 100 <= abs(number) < 1e9 else f"{number:.3g}"


def _format_interval(interval: Interval, kind: Kind, metric: str) -> str:
    if kind != "number":
        return format_range(interval, kind)
    low, high = (_format_value(end, kind, metric) for end in interval)
    # Allow a long interval to break at a space.
    is_compact = interval[0] >= 0 and len(low) + len(high) < MAX_COMPACT_INTERVAL
    return f"{low}–{high}" if is_compact else f"{low} to {high}"


def _format_difference(delta: MetricDelta, separator: str = "\n") -> str:
    """Return the difference and its interval: in points for rates, in percent of b for other numbers.

    A dash says that the difference has an interval, but its percentage has none.
    """
    if delta.kind == "number" and delta.percentage is not None and delta.b:
        bounds = delta.percentage_interval
        interval = "" if delta.interval is None else DASH
        if bounds is not None:
            interval = " to ".join(f"{end:+.1f}" for end in bounds)
        return f"{delta.percentage:+.1f}%{separator if interval else ''}{interval}"
    if delta.absolute is None:
        return DASH
    interval = f"{separator}{format_changes(delta.interval, delta.kind, delta.name)}" if delta.interval else ""
    return f"{format_change(delta.absolute, delta.kind, metric=delta.name)}{change_unit(delta.kind)}{interval}"


def _format_effect(g: float | None) -> str:
    if g is None:
        return DASH
    text = f"{g:+.2f}"
    return text if text.strip("+-0.") else "0"


def _format_verdict(delta: MetricDelta, separator: str = ", ") -> str:
    more_samples_text = f"{separator}≈ {format_estimate(delta.more_samples)} more" if delta.more_samples else ""
    return f"{delta.verdict}{more_samples_text}"


def _flip_lines(comparison: Comparison, limit: int, width: int) -> Iterator[RenderableType]:
    flips = select_flips(comparison.flips, limit)
    if not flips:
        return
    yield ""
    yield styled_text(_count_flips(comparison, len(flips)), "bold")
    for text, style in flip_lines(list_flips(comparison, flips), width):
        yield styled_text(text, style)
    if hidden_count := len(comparison.flips) - len(flips):
        yield from map(styled_text, more_lines(more_flips(comparison, hidden_count), width))
    commands = inspection_commands(comparison, flips[0])
    if commands:
        yield styled_text("To inspect a sample:", "dim")
    for command in commands:
        yield styled_text(f"  {command}", "dim")


def _count_flips(comparison: Comparison, shown_count: int) -> str:
    limit = f"; the {'worst' if comparison.lost else 'first'} {shown_count:,}"
    evaluator = f" {comparison.flips_of}" if comparison.flips_of else ""
    evaluator += " in more than half of the epochs" if comparison.epochs > 1 else ""
    return (
        f"{format_count(len(comparison.lost), 'sample')} passed{evaluator} only in {comparison.b} (lost), "
        f"{len(comparison.won):,} only in {comparison.a} (won); "
        f"score of {comparison.b} → {comparison.a}{'' if shown_count == len(comparison.flips) else limit}:"
    )


def _unmatched_notes(comparison: Comparison) -> Iterator[str]:
    for side, ids in ((comparison.a, comparison.only_a), (comparison.b, comparison.only_b)):
        if ids:
            examples = ", ".join(single_line(sample_id, ID_LIMIT) for sample_id in ids[:IDS_SHOWN])
            more = ", …" if len(ids) > IDS_SHOWN else ""
            yield f"{format_count(len(ids), 'sample')} only in {side}: {examples}{more}"
    for side, names in ((comparison.a, comparison.missing_a), (comparison.b, comparison.missing_b)):
        if names:
            yield f"{side} has no {', '.join(names)}"


def _table_notes(comparison: Comparison, legend: str = TERMINAL_LEGEND) -> Iterator[str]:
    deltas = comparison.essential()
    if not deltas:
        return
    sizes = sorted({delta.n for delta in deltas if delta.n}) or [0]
    size = f"{sizes[0]:,}" + (f" to {sizes[-1]:,}" if len(sizes) > 1 else "")
    pairing = "paired by sample" if any(delta.paired and delta.n for delta in deltas) else "not paired"
    clusters = max((delta.clusters for delta in deltas if delta.clusters), default=0)
    clustering = f", in {format_count(clusters, 'cluster')}" if clusters else ""
    tests = f", p corrected for {format_count(comparison.tests, 'test')} (Holm)" if comparison.tests > 1 else ""
    yield f"Difference: {comparison.a} minus {comparison.b}; n = {size}, {pairing}{clustering}{tests}; {legend}"
    if any(delta.more_samples for delta in deltas):
        yield "≈ N more: samples that would decide if the difference stays near the one seen"
    for method in dict.fromkeys(d.method.partition(";")[0] for d in deltas if d.method.startswith(BOOTSTRAP)):
        yield f"{', '.join(delta.name for delta in deltas if delta.method.startswith(method))}: {method}"
    reasons = {d.name: d.method.partition("; ")[0] for d in deltas if d.method and d.interval is None is d.p}
    # A note already explains why latencies of two runs have no p-value.
    for reason in dict.fromkeys(note for note in reasons.values() if note not in comparison.notes):
        names = ", ".join(name for name, note in reasons.items() if note == reason)
        yield f"{names}: {reason}, so the difference may be chance"


def _markdown_row(delta: MetricDelta) -> list[str]:
    sides = [text.replace("\n", " (") + (")" if "\n" in text else "") for text in _format_sides(delta)]
    difference = _format_difference(delta, " (")
    return [
        single_line(delta.name, NAME_LIMIT),
        *sides,
        difference + (")" if "(" in difference else ""),
        format_probability(delta.p_adjusted),
        _format_effect(delta.effect),
        f"{delta.n:,}",
        _format_verdict(delta),
    ]


def _markdown_flips(comparison: Comparison, limit: int) -> list[str]:
    flips = select_flips(comparison.flips, limit)
    if not flips:
        return []
    hidden_count = len(comparison.flips) - len(flips)
    return [
        escape_untrusted(single_line(_count_flips(comparison, len(flips)), LINE_LIMIT)),
        *flip_blocks(list_flips(comparison, flips)),
        *([escape_untrusted(more_flips(comparison, hidden_count))] if hidden_count else []),
    ]


def _ranking_parts(ranking: Ranking) -> Iterator[RenderableType]:
    yield styled_text(ranking.answer, "bold")
    if not ranking.places:
        return
    yield ""
    kind: Kind = "rate" if ranking.field.endswith("pass_rate") else "number"
    grid = new_table(left=0)
    grid.add_column("Rank", justify="right")
    grid.add_column("Name", overflow="fold")
    for title in (ranking.field, "95% interval", "n", "Ranks", "P(first)"):
        grid.add_column(styled_text(title, limit=NAME_LIMIT), justify="right", overflow="fold")
    for place in ranking.places:
        grid.add_row(*map(table_cell, _ranking_cells(place, kind, ranking.field)))
    yield grid
    yield styled_text(RANKING_LEGEND, "dim")


def _ranking_cells(place: RankedPlace, kind: Kind, field: str) -> tuple[str, ...]:
    missing = f" ({place.missing:,} missing)" if place.missing else ""
    low, high = place.ranks or (None, None)
    ranks = DASH if low is None else f"{low}" if low == high else f"{low} to {high}"
    chance = DASH if place.chance_of_best is None else f"{100 * place.chance_of_best:.0f}%"
    return (
        str(place.rank) if place.value is not None else DASH,
        place.configuration,
        format_value(place.value, kind, field),
        format_range(place.interval, kind, field),
        f"{place.n:,}{missing}",
        ranks,
        chance,
    )


def _break(name: str, width: int) -> str:
    return "\n".join(break_name(single_line(name, NAME_LIMIT), width))
