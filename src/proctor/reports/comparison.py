"""A comparison, and a ranking, for people: in the terminal and as Markdown."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from proctor.records.comparison import Comparison, Flip, Interval, MetricDelta, RankedPlace, Ranking
from proctor.records.wording import DASH, Kind, about, change, changes, probability, span, unit, value
from proctor.reports.format import count, inert, line, printed, quiet, rendered, table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

FLIPS_SHOWN = 10
IDS_SHOWN = 5
ROOM = 11
NAME_ROOM, VERDICT_ROOM = 15, 10
# With less than this the columns stand close.
WIDE = 88
# Stands for a space at which a line must not end; a terminal would break it at any other.
GLUE = "\ue000"
LINE_LIMIT, NAME_LIMIT, ID_LIMIT = 1000, 100, 60
COLOURS = {"better": "green", "worse": "red", "different": "yellow"}
TITLES = ("Metric", "Difference", "p, g", "Verdict")
ON_SCREEN = "below each number its 95 % interval; g: the difference in standard deviations"
IN_MARKDOWN = "in brackets the 95 % intervals; effect: the difference in standard deviations (Hedges' g)"


def show(found: Sequence[Comparison], file: TextIO | None = None, **how: int) -> None:
    """Print comparisons; colours and width are those of the terminal, if it is one."""
    printed(lambda width, color: "\n".join(render(f, width, color, **how) for f in found), file)


def show_ranking(ranking: Ranking, file: TextIO | None = None) -> None:
    """Print a ranking in the same way."""
    printed(lambda width, color: render_ranking(ranking, width, color), file)


def render(found: Comparison, width: int = 80, color: bool = False, *, flips: int = FLIPS_SHOWN) -> str:
    """The answer, the table, the samples that turned, and what else is to be known.

    >>> print(render(Comparison("new", "old", "They have nothing in common.")), end="")
    They have nothing in common.
    """
    return _rendered(_parts(found, flips, close=width < WIDE), width, color)


def render_ranking(ranking: Ranking, width: int = 80, color: bool = False) -> str:
    """The answer, and a line for each place."""
    return _rendered(_ranking_parts(ranking), width, color)


def markdown(found: Comparison, *, flips: int = FLIPS_SHOWN) -> str:
    """The same as Markdown."""
    blocks = [
        f"## {inert(line(f'{found.a} beside {found.b}', NAME_LIMIT))}",
        inert(line(found.answer, LINE_LIMIT)),
    ]
    shown = found.essential()
    if shown:
        head = ("Metric", *(line(name, NAME_LIMIT) for name in (found.a, found.b)))
        titles = (*head, "Difference (95 %)", "p", "Effect", "n", "Verdict")
        blocks.append(quiet(table(titles, [_markdown_row(one) for one in shown])))
    blocks += _markdown_flips(found, flips)
    told = [*_unmatched(found), *found.notes, *_remarks(found, IN_MARKDOWN)]
    if told:
        blocks.append("\n".join(f"- {inert(line(one, LINE_LIMIT))}" for one in told))
    return "\n\n".join(blocks) + "\n"


def look_at(found: Comparison, flip: Flip) -> list[str]:
    """The commands that show both of a sample's answers: one for each run."""
    runs = dict.fromkeys(run for run in (found.a_run, found.b_run) if run)
    sample = shlex.quote(flip.sample_id)
    return [f"proctor show {shlex.quote(run)} --sample {sample}" for run in runs]


def _rendered(parts: Iterator[RenderableType], width: int, color: bool) -> str:
    # A number and its sign stay together until the lines are made.
    return rendered(parts, width, color).replace(GLUE, " ")


def _parts(found: Comparison, flips: int, *, close: bool) -> Iterator[RenderableType]:
    yield _text(found.answer, "bold")
    if which := _which(found):
        yield _text(which, "dim")
    if found.essential():
        yield ""
        yield _table(found, close=close)
    yield from _flip_lines(found, flips)
    told = [*_unmatched(found), *(f"Note: {note}" for note in found.notes)]
    remarks = list(_remarks(found))
    if told or remarks:
        yield ""
    for one in told:
        yield _text(one, "yellow")
    for remark in remarks:
        yield _text(remark, "dim")


def _which(found: Comparison) -> str:
    """Which runs these are, where their names do not say."""
    if found.a_run == found.b_run:
        return f"Both are of run {found.a_run}" if found.a_run else ""
    told = [(found.a, found.a_run), (found.b, found.b_run)]
    return "; ".join(f"{name} is run {run}" for name, run in told if run and run != name)


def _table(found: Comparison, *, close: bool) -> Table:
    grid = _grid(0 if close else 1)
    metric, difference, p, verdict = TITLES
    longest = max(len(one.name) for one in found.essential())
    grid.add_column(metric, overflow="fold", min_width=min(NAME_ROOM, longest))
    for side in (found.a, found.b):
        grid.add_column(_text(side, limit=NAME_LIMIT), justify="right", overflow="fold")
    for title in (difference, p):
        grid.add_column(title, justify="right", no_wrap=True)
    grid.add_column(verdict, min_width=VERDICT_ROOM, overflow="fold")
    for one in found.essential():
        cells = (one.name, *_sides(one), _difference(one), _sure(one))
        style = COLOURS.get(one.verdict, "")
        grid.add_row(*map(_cell, cells), _cell(_verdict(one, "\n"), style))
    return grid


def _sides(one: MetricDelta) -> Iterator[str]:
    for number, ends in ((one.a, one.a_interval), (one.b, one.b_interval)):
        yield _short(number, one.kind) + (f"\n{_short_span(ends, one.kind)}" if ends else "")


def _short(number: float | None, kind: Kind) -> str:
    """A number in as few digits as a table has room for."""
    if number is None or kind != "number":
        return value(number, kind)
    return f"{number:,.0f}" if 100 <= abs(number) < 1e9 else f"{number:.3g}"


def _short_span(ends: Interval, kind: Kind) -> str:
    if kind != "number":
        return span(ends, kind)
    low, high = (_short(end, kind) for end in ends)
    # Where there is no room, a line ends at a space.
    close = ends[0] >= 0 and len(low) + len(high) < ROOM
    return f"{low}–{high}" if close else f"{low} to {high}"


def _difference(one: MetricDelta, between: str = "\n") -> str:
    """A difference and its interval: in points of a share, in percent of b of other numbers."""
    if one.kind == "number" and one.percentage is not None and one.b:
        ends = None if one.interval is None else [100 * end / abs(one.b) for end in one.interval]
        told = "" if ends is None else f"{between}{' to '.join(f'{end:+.1f}' for end in ends)}"
        return f"{one.percentage:+.1f} %{told}"
    if one.absolute is None:
        return DASH
    ends_told = f"{between}{changes(one.interval, one.kind)}" if one.interval else ""
    return f"{change(one.absolute, one.kind)}{unit(one.kind)}{ends_told}"


def _sure(one: MetricDelta) -> str:
    effect = "" if one.effect is None else f"\ng {_effect(one.effect)}"
    return f"{probability(one.p_adjusted)}{effect}"


def _effect(g: float | None) -> str:
    if g is None:
        return DASH
    text = f"{g:+.2f}"
    return text if text.strip("+-0.") else "0"


def _verdict(one: MetricDelta, between: str = ", ") -> str:
    more = f"{between}≈ {about(one.more_samples)} more" if one.more_samples else ""
    return f"{one.verdict}{more}"


def _flip_lines(found: Comparison, limit: int) -> Iterator[RenderableType]:
    if not found.flips or limit < 1:
        return
    shown = found.flips[:limit]
    yield ""
    yield _text(_flips_in_words(found, len(shown)), "bold")
    width = min(ID_LIMIT, max(len(line(flip.sample_id, ID_LIMIT)) for flip in shown))
    for flip in shown:
        name = line(flip.sample_id, ID_LIMIT)
        turned = "lost" if flip.lost else "won"
        yield _text(f"  {turned:<4}  {name:<{width}}  {_score(flip.b)} → {_score(flip.a)}")
    commands = look_at(found, shown[0])
    if commands:
        yield _text("Look at one:", "dim")
    for command in commands:
        yield _text(f"  {command}", "dim")


def _flips_in_words(found: Comparison, shown: int) -> str:
    first = f"the worst {shown:,}" if found.lost else f"the first {shown:,}"
    rest = "" if shown == len(found.flips) else f"; {first}"
    return (
        f"{count(len(found.lost), 'sample')} lost and {len(found.won):,} won "
        f"(score of {found.b} → {found.a}{rest}):"
    )


def _score(number: float | None) -> str:
    return DASH if number is None else f"{number:.2f}"


def _unmatched(found: Comparison) -> Iterator[str]:
    for side, ids in ((found.a, found.only_a), (found.b, found.only_b)):
        if ids:
            some = ", ".join(line(one, ID_LIMIT) for one in ids[:IDS_SHOWN])
            more = ", …" if len(ids) > IDS_SHOWN else ""
            yield f"{count(len(ids), 'sample')} only in {side}: {some}{more}"
    for side, names in ((found.a, found.missing_a), (found.b, found.missing_b)):
        if names:
            yield f"{side} has no {', '.join(names)}"


def _remarks(found: Comparison, where: str = ON_SCREEN) -> Iterator[str]:
    """How the numbers are to be read."""
    shown = found.essential()
    if not shown:
        return
    sizes = sorted({one.n for one in shown if one.n})
    ns = f"{sizes[0]:,}" + (f" to {sizes[-1]:,}" if len(sizes) > 1 else "") if sizes else "0"
    pairs = "paired by sample" if any(one.paired and one.n for one in shown) else "not paired"
    tests = f", p corrected for {count(found.tests, 'test')} (Holm)" if found.tests > 1 else ""
    clusters = [one.clusters for one in shown if one.clusters]
    grouped = f", in {max(clusters):,} clusters" if clusters else ""
    yield f"n = {ns}, {pairs}{grouped}{tests}; {where}"
    few = [one for one in shown if one.clusters and one.method and one.interval is None is one.p]
    for why in dict.fromkeys(one.method for one in few):
        names = ", ".join(one.name for one in few if one.method == why)
        yield f"{names}: {why}, so that nothing can be told from chance"


def _markdown_row(one: MetricDelta) -> list[str]:
    sides = [text.replace("\n", " (") + (")" if "\n" in text else "") for text in _sides(one)]
    difference = _difference(one, " (")
    return [
        line(one.name, NAME_LIMIT),
        *sides,
        difference + (")" if "(" in difference else ""),
        probability(one.p_adjusted),
        _effect(one.effect),
        f"{one.n:,}",
        _verdict(one),
    ]


def _markdown_flips(found: Comparison, limit: int) -> list[str]:
    shown = found.flips[: max(0, limit)]
    if not shown:
        return []
    rows = [
        [line(f.sample_id, ID_LIMIT), "lost" if f.lost else "won", _score(f.b), _score(f.a)] for f in shown
    ]
    titles = ("Sample", "Turned", *(f"Score of {line(n, NAME_LIMIT)}" for n in (found.b, found.a)))
    return [inert(_flips_in_words(found, len(shown))), quiet(table(titles, rows))]


def _ranking_parts(ranking: Ranking) -> Iterator[RenderableType]:
    yield _text(ranking.answer, "bold")
    if not ranking.places:
        return
    yield ""
    kind: Kind = "rate" if ranking.field.endswith("pass_rate") else "number"
    grid = _grid()
    grid.add_column("Place", justify="right")
    grid.add_column("", overflow="fold")
    for title in (ranking.field, "95 % interval", "n", "may be", "first in"):
        grid.add_column(_text(title, limit=NAME_LIMIT), justify="right", overflow="fold")
    for place in ranking.places:
        grid.add_row(*map(_cell, _place_cells(place, kind)))
    yield grid
    yield _text(
        "may be: the places that the evidence allows, every pair compared and corrected (Holm); "
        "first in: how often it would be, if other samples of the same kind were drawn",
        "dim",
    )


def _place_cells(place: RankedPlace, kind: Kind) -> tuple[str, ...]:
    missing = f" ({place.missing:,} missing)" if place.missing else ""
    low, high = place.ranks or (None, None)
    ranks = DASH if low is None else f"{low}" if low == high else f"{low} to {high}"
    chance = DASH if place.chance_of_best is None else f"{100 * place.chance_of_best:.0f} %"
    return (
        str(place.rank) if place.value is not None else DASH,
        place.configuration,
        value(place.value, kind),
        span(place.interval, kind),
        f"{place.n:,}{missing}",
        ranks,
        chance,
    )


def _grid(gap: int = 1) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, gap, 0, 0))


def _cell(content: str, style: str = "") -> Text:
    """Lines of a cell, each shown as it is."""
    from rich.text import Text

    shown = "\n".join(line(part, NAME_LIMIT) for part in content.split("\n"))
    return Text(shown, style=style, overflow="fold")


def _text(content: str, style: str = "", *, limit: int = LINE_LIMIT) -> Text:
    """A line that is shown as it is: no markup in it counts, and no control character."""
    from rich.text import Text

    indent = " " * (len(content) - len(content.lstrip(" ")))
    shown = line(content, limit).replace(" %", f"{GLUE}%")
    return Text(indent + shown, style=style, overflow="fold")
