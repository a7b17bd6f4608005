"""`proctor compare`: compare two runs, or two configurations of one run."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import PATH, display_name, history_option, json_option


@click.command("compare")
@click.argument("a")
@click.argument("b")
@click.option("--run", metavar="RUN", help="Read A and B as configurations of this run.")
@click.option("--configuration", metavar="NAME", help="Compare only this configuration of both runs.")
@click.option("--metric", metavar="NAME", multiple=True, help="Compare only this metric; repeat for more.")
@click.option(
    "--min-difference",
    metavar="1%",
    default="1%",
    show_default=True,
    help="Treat smaller differences of rates and scores as no difference.",
)
@click.option("--accept-changes", is_flag=True, help="Compare runs whose evaluators differ.")
@click.option(
    "--flips",
    metavar="N",
    type=int,
    default=10,
    show_default=True,
    help="List N samples whose verdict changed.",
)
@click.option("--markdown", metavar="FILE", type=PATH, help="Also write the comparison as Markdown.")
@history_option
@json_option
def command(
    a: str,
    b: str,
    run: str | None,
    configuration: str | None,
    metric: tuple[str, ...],
    min_difference: str,
    accept_changes: bool,
    flips: int,
    markdown: Path | None,
    history: str | None,
    as_json: bool,
) -> None:
    """Compare A with the reference B: better, worse, alike, or not enough evidence.

    A and B are runs: an id, the start of an id, a name, "latest", or a baseline; RUN@CONFIGURATION
    selects one configuration. Samples are paired by id. If the evaluators differ, metrics that
    combine all evaluators have no verdict. The exit code is 0 for every answer: use `proctor gate`
    in CI.

    \b
    proctor compare latest main
    proctor compare latest@small latest@large
    proctor compare small large --run latest --metric pass_rate
    """
    from proctor.cli.options import parse_share
    from proctor.cli.outcome import render_comparisons
    from proctor.cli.outputs import COMPARISON, check_file
    from proctor.records import codec
    from proctor.reports.comparison import show_comparisons
    from proctor.reports.files import write_file
    from proctor.wiring.compare_runs import compare_configurations, open_pair

    least = parse_share(min_difference, "--min-difference")
    check_file(markdown, COMPARISON, "--markdown", history)
    first, second = open_pair(a, b, history=history, configuration=configuration, run=run)
    comparisons, unpaired = compare_configurations(
        first, second, metrics=metric or None, min_difference=least, accept_changes=accept_changes
    )
    if markdown is not None:
        write_file(markdown, [render_comparisons(comparisons, flips=flips).encode()], what="the comparison")
    if as_json:
        click.echo(codec.encode_pretty({"comparisons": comparisons, "only_one_has": unpaired}))
        return
    show_comparisons(comparisons, flips=flips)
    if unpaired:
        click.echo(f"\nNot compared, only one run has it: {', '.join(map(display_name, unpaired))}")
    if markdown is not None:
        click.echo(f"wrote {markdown}")
