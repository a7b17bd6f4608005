"""`proctor compare`: compare two runs, or two configurations of one run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.options import common_options, display_name, name_options_as_typed, option, parse_share, print_json


@click.command("compare")
@click.argument("a")
@click.argument("b")
@option("--run RUN", "Read A and B as configurations of this run.")
@option("--configuration NAME", "Compare only this configuration of both runs.")
@option("--metric NAME", "Compare only this metric; repeat for more.", multiple=True)
@option("--plugin MODULE:METRIC", "Load your own metric, to compare it by --metric.", multiple=True)
@option("--min-difference 1%", "Treat smaller differences of rates and scores as irrelevant.", default="1%")
@option("--accept-changes", "Compare runs whose evaluators differ.")
@option("--flips N", "List N samples whose verdict changed.", default=10)
@option("--markdown FILE", "Also write the comparison as Markdown.")
@common_options
def command(a: str, b: str, *, markdown: Path | None, flips: int, as_json: bool, **options: Any) -> None:
    """Compare A with the reference B: better, worse, no relevant difference, or not enough evidence.

    A and B are runs: an id, the start of an id, a name, "latest", or a baseline; RUN@CONFIGURATION
    selects one configuration. Samples are paired by id. If the evaluators differ, metrics that
    combine all evaluators have no verdict. The exit code is 0 for every answer: use `proctor gate`
    in CI.

    \b
    proctor compare latest main
    proctor compare latest@small latest@large
    proctor compare small large --run latest --metric pass_rate
    """
    from proctor.cli.outputs import COMPARISON, check_file
    from proctor.reports.comparison import render_markdown, show_comparisons
    from proctor.reports.files import write_file
    from proctor.wiring.compare_runs import add_own_metrics, compare_configurations, open_pair
    from proctor.wiring.registry import load_own_metrics

    check_file(markdown, COMPARISON, "--markdown", options["history"])
    with name_options_as_typed():
        selected = {name: options[name] for name in ("history", "configuration", "run")}
        comparisons, unpaired = compare_configurations(
            *add_own_metrics(*open_pair(a, b, **selected), own=load_own_metrics(options["plugin"])),
            metrics=options["metric"] or None,
            min_difference=parse_share(options["min_difference"], "--min-difference"),
            accept_changes=options["accept_changes"],
        )
    if markdown is not None:
        texts = [render_markdown(each, flips=flips) for each in comparisons]
        write_file(markdown, ["\n".join(texts).encode()], what="the comparison")
    if as_json:
        print_json({"comparisons": comparisons, "only_one_has": unpaired})
        return
    show_comparisons(comparisons, flips=flips)
    if unpaired:
        click.echo(f"\nNot compared, only one run has it: {', '.join(map(display_name, unpaired))}")
    if markdown is not None:
        click.echo(f"wrote {markdown}")
