"""`proctor items`: find the samples of a dataset that are useless, broken or redundant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from proctor.cli import options as cli

if TYPE_CHECKING:
    from proctor.ports import History
    from proctor.records.run import RunMetadata
    from proctor.validity.items import CoreSet, ItemAnalysis, ItemFacts

MAX_RUNS, IDS_SHOWN, ID_WIDTH = 1_000, 8, 40


@click.command("items")
@click.argument("runs", nargs=-1, required=True, metavar="NAME|RUN...")
@cli.option("--evaluator -e NAME", "Use the verdicts of this evaluator. Default: all evaluators must pass.")
@cli.option("--core N", "Select a core set of N samples. Default: a tenth, at least 10.", type=cli.POSITIVE_INTEGER)
@cli.seed_option
@cli.common_options
def command(
    runs: tuple[str, ...], evaluator: str | None, core: int | None, seed: int, history: str | None, as_json: bool
) -> None:
    """Find samples that do not distinguish configurations, that are probably wrong, or that repeat another.

    NAME selects all runs of that name. The runs must use the same dataset and evaluators; each configuration of
    each target counts once, and repeated runs of it are averaged. At least eight configurations are needed.

    \b
    proctor items exam
    proctor items run-a run-b run-c --evaluator exact_match --json
    """
    from proctor.validity.items import analyze_items, collect_verdicts
    from proctor.wiring.open_history import open_history

    store = open_history(history)
    selected = {run.run_id: run for name in runs for run in _find_runs(store, name)}
    newest_first = sorted(selected.values(), key=lambda run: run.started_at, reverse=True)
    verdicts = collect_verdicts(((run, store.results(run.run_id)) for run in newest_first), evaluator)
    analysis = analyze_items(verdicts, core_size=core, seed=seed)
    if as_json:
        cli.print_json(analysis)
    else:
        click.echo("\n".join(_render(analysis)))


def _find_runs(store: History, name: str) -> Sequence[RunMetadata]:
    """Return all runs of a name, or the run with this id."""
    return store.runs(name=name, limit=MAX_RUNS) or [store.find(name)]


def _render(analysis: ItemAnalysis) -> Iterator[str]:
    import textwrap

    from proctor.reports.format import single_line

    def list_ids(ids: Sequence[str]) -> str:
        shown = ", ".join(single_line(sample_id, ID_WIDTH) for sample_id in ids[:IDS_SHOWN])
        return shown + (f", … ({len(ids) - IDS_SHOWN} more; --json lists all)" if len(ids) > IDS_SHOWN else "")

    yield from textwrap.wrap(analysis.answer, 88)
    yield from _list_items("Probably broken: check the expected output", analysis.broken)
    yield from _list_items("Suspicious, not shown to be broken (p up to 0.5, before adjustment)", analysis.suspicious)
    for title, ids in (("Always passed", analysis.always_passed), ("Never passed", analysis.never_passed)):
        if ids:
            yield f"\n{title} ({len(ids)}): {list_ids(ids)}"
    if analysis.redundant:
        yield f"\nRedundant: the same verdict in all {len(analysis.configurations)} configurations; keep one of each"
        yield from (f"  {list_ids(group.sample_ids)}" for group in analysis.redundant[:IDS_SHOWN])
    yield from _list_items("Most informative", analysis.informative)
    if analysis.core is not None:
        yield f"\nCore set for quick runs {_describe_core(analysis.core, list_ids(analysis.core.sample_ids), analysis)}"
    for note in (*analysis.notes, *(f"left out: run {reason}" for reason in analysis.left_out)):
        yield from textwrap.wrap(f"Note: {note}", 88)


def _list_items(title: str, items: Sequence[ItemFacts]) -> Iterator[str]:
    from proctor.core.stats.judge_rates import correlation_interval
    from proctor.reports.format import single_line

    if items:
        yield f"\n{title}"
        yield "  (95% intervals of the correlation with the other samples; they ignore that the samples were selected)"
    for item in items:
        p = "" if item.adjusted_p is None else f"  p {item.p:.4f}, adjusted {item.adjusted_p:.3f}"
        name, value = single_line(item.sample_id, ID_WIDTH), item.correlation or 0.0
        interval = correlation_interval(value, item.n)
        ends = f"{interval[0]:+.2f} to {interval[1]:+.2f}" if interval else "no interval below 4 configurations"
        yield f"  {name:<24} passed {item.pass_rate:>4.0%} of {item.n}, correlation {value:+.2f} ({ends}){p}"


def _describe_core(core: CoreSet, ids: str, analysis: ItemAnalysis) -> str:
    error, size = core.error, len(core.sample_ids)
    advice = "" if core.is_better_than_random else "not shown to be better than random samples; "
    return (
        f"({size} of {core.of} samples): {ids}\n"
        f"  {advice}error of its pass rate on configurations that did not choose it (n = "
        f"{len(analysis.configurations)}): typically {100 * error.rmse:.1f} points, at most {100 * error.largest:.1f}; "
        f"{size} random samples: {100 * error.random_rmse:.1f}"
    )
