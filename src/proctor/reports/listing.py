"""Lists for the terminal: runs in a history, results of a run, evaluators in a catalogue."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from proctor.records.numbers import is_number
from proctor.records.report import EvalReport
from proctor.records.run import RunMetadata
from proctor.records.score import Score
from proctor.records.trial import EvalResult
from proctor.reports.format import excerpt, line, percent
from proctor.reports.transcript import transcripts

GAP, LEAST, CUT = 2, 8, "…"


def in_columns(
    rows: Sequence[Sequence[str]], width: int, *, right: Collection[int] = (), yielding: Collection[int] = ()
) -> list[str]:
    """Rows of cells as lines of one width, the first row being the headings.

    Where there is no room the widest of the `yielding` columns are cut, to no less than eight
    places; the others never are, though a line may then be longer than the terminal is wide.

    >>> for line in in_columns([("id", "name"), ("20260101", "a long name")], 20, yielding=[1]):
    ...     print(line)
    id        name
    20260101  a long na…
    """
    from rich.cells import cell_len, set_cell_size

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    least = {place: min(widths[place], LEAST) for place in yielding}
    while sum(widths) + GAP * (len(widths) - 1) > width:
        wide = [place for place in yielding if widths[place] > least[place]]
        if not wide:
            break
        widths[max(wide, key=widths.__getitem__)] -= 1

    def cell(text: str, place: int) -> str:
        room = widths[place]
        if cell_len(text) > room:
            return set_cell_size(text, room - 1).rstrip() + CUT
        gap = " " * (room - cell_len(text))
        return gap + text if place in right else text + gap

    lines = ((cell(text, place) for place, text in enumerate(row)) for row in rows)
    return [(" " * GAP).join(line).rstrip() for line in lines]


RESULT_WIDTH = 300


def show_runs(
    runs: Sequence[tuple[RunMetadata, EvalReport]], baselines: Mapping[str, str] | None = None
) -> None:
    """One line for each run: id, name, how it stands and came out, which baselines it is, tags.

    Where tags have no room beside the rest, they stand below.
    """
    rows: list[tuple[str, ...]] = [("run", "name", "status", "results", "pass rate", "errors")]
    tags = ["tags"]
    for run, report in runs:
        total = f"{report.total:,}" + (
            f" of {run.total:,}" if run.total and (run.status != "completed" or run.stopped_early) else ""
        )
        named = [f"baseline:{n}" for n, its in (baselines or {}).items() if its == run.run_id]
        own = [*named, *(f"{key}={value}" for key, value in run.tags.items())]
        tags.append(line(", ".join(own), RESULT_WIDTH))
        cells = (run.run_id, run.name, run.status, total, _rate(run, report), f"{report.errors:,}")
        rows.append(tuple(line(cell, RESULT_WIDTH) for cell in cells))
    _show(rows, right=(3, 4, 5), yielding=(1,), beside=tags)


def show_baselines(found: Sequence[tuple[str, RunMetadata, EvalReport]]) -> None:
    """One line for each baseline: its name, its run, and how that came out."""
    rows: list[tuple[str, ...]] = [("baseline", "run", "name", "status", "results", "pass rate")]
    for name, run, report in found:
        cells = (name, run.run_id, run.name, run.status, f"{report.total:,}", _rate(run, report))
        rows.append(tuple(line(cell, RESULT_WIDTH) for cell in cells))
    # A baseline is called by its name, so that is not cut either.
    _show(rows, right=(4, 5), yielding=(2,))


def _show(
    rows: Sequence[tuple[str, ...]],
    *,
    right: Collection[int],
    yielding: Collection[int],
    beside: Sequence[str] = (),
) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    last = beside if any(beside[1:]) else [""] * len(rows)
    whole = in_columns([(*row, text) for row, text in zip(rows, last, strict=True)], 0, right=right)
    if max(map(cell_len, whole)) <= console.width:
        told = whole
    else:
        lines = in_columns(rows, console.width, right=right, yielding=yielding)
        below = [f"\n  {text}" if text else "" for text in ("", *last[1:])]
        told = [one + more for one, more in zip(lines, below, strict=True)]
    # Written by ourselves: where the reader has gone, rich would end the program.
    with console.capture() as captured:
        for place, text in enumerate(told):
            console.print(Text(text, style="" if place else "bold"), soft_wrap=True)
    print(captured.get(), end="")


def _rate(run: RunMetadata, report: EvalReport) -> str:
    """A run's pass rate; of several configurations the lowest and the highest."""
    if len(run.configurations) == 1:
        return "—" if report.pass_rate is None else percent(report.pass_rate)
    rates = [table.get("pass_rate") for table in report.by_configuration.values()]
    known = [rate.value for rate in rates if rate is not None and rate.value is not None]
    if not known:
        return "—"
    low, high = percent(min(known)), percent(max(known))
    return high if low == high else f"{low.removesuffix(' %')}–{high}"


def show_results(results: Iterable[EvalResult], *, sessions: bool = False) -> None:
    """Each result in full, long values cut; with what was said to models, if that is wanted."""
    told = [
        f"{describe(result)}\n\n{transcripts(result)}" if sessions else describe(result) for result in results
    ]
    print("\n\n".join(told) or "no such results")


def describe(result: EvalResult) -> str:
    """One result in words."""
    trial = result.trial
    configuration = line(trial.configuration, RESULT_WIDTH)
    heading = f"{line(result.sample_id, RESULT_WIDTH)}  {result.outcome}  ({configuration}"
    heading += f", epoch {trial.epoch}" if trial.epoch else ""
    heading += "" if trial.latency_ms is None else f", {trial.latency_ms:,.1f} ms"
    heading += f", {trial.attempts} attempts" if trial.attempts > 1 else ""
    heading += ", cached)" if trial.cached else ")"
    facts = [
        ("input", excerpt(trial.sample.input, RESULT_WIDTH)),
        ("output", excerpt(trial.output, RESULT_WIDTH) if result.success else None),
        ("expected", _known(trial.sample.expected)),
        ("error", _known(result.error)),
        ("where", excerpt(trial.error.traceback.rstrip(), 4 * RESULT_WIDTH) if trial.error else None),
    ]
    opinions = [(line(name, RESULT_WIDTH), _opinion(score)) for name, score in result.scores.items()]
    told = [(name, text) for name, text in [*facts, *opinions] if text]
    width = max(len(name) for name, _ in told)
    indent = "\n" + " " * (width + 4)
    lines = [f"  {name:<{width}}  {text.replace(chr(10), indent)}" for name, text in told]
    return "\n".join([heading, *lines])


def _opinion(score: Score) -> str:
    verdict: str = score.status
    if score.value is not None:
        verdict = f"{_value(score.value, score)} {'passed' if score.passed else 'failed'}"
    return f"{verdict}  {line(score.reason, RESULT_WIDTH)}".rstrip()


def _value(value: float, score: Score) -> str:
    """A score from 0 to 1, or as the one who gave it said it: 4 of 5."""
    said, most = score.details.get("score"), score.details.get("max")
    if is_number(said) and is_number(most):
        return f"{said:g} of {most:g} ({value:.3g})"
    return f"{value:.3g}"


def _known(value: object) -> str | None:
    return None if value is None else excerpt(value, RESULT_WIDTH)
