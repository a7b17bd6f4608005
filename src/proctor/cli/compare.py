"""`proctor compare`: two runs, or two configurations of one, beside each other."""

from __future__ import annotations

from pathlib import Path

import click

from proctor.cli.options import history_option, json_option, shown


@click.command("compare")
@click.argument("a")
@click.argument("b")
@click.option("--run", metavar="RUN", help="A and B are configurations of this run.")
@click.option("--configuration", metavar="NAME", help="Only this configuration of both.")
@click.option("--metric", metavar="NAME", multiple=True, help="Only this one; may be repeated.")
@click.option(
    "--worth",
    metavar="1%",
    default="1%",
    show_default=True,
    help="Rates and scores that differ by less do not differ by anything worth the name.",
)
@click.option("--accept-changes", is_flag=True, help="Compare although the evaluators are not the same.")
@click.option("--flips", default=10, show_default=True, help="Show N samples whose verdict changed.")
@click.option("--markdown", metavar="FILE", type=click.Path(path_type=Path), help="Write it too.")
@history_option()
@json_option()
def command(
    a: str,
    b: str,
    run: str | None,
    configuration: str | None,
    metric: tuple[str, ...],
    worth: str,
    accept_changes: bool,
    flips: int,
    markdown: Path | None,
    history: str | None,
    as_json: bool,
) -> None:
    """Say what A is beside B, the reference: better, worse, alike, or not enough evidence.

    A and B are runs: an id, how one begins, a name, "latest", a baseline; RUN@CONFIGURATION means
    one configuration. Samples are paired by their ids. Where the evaluators are not the same, what
    all of them say together has no verdict. The exit code is 0 whatever comes out: `proctor gate`
    is for CI.

    \b
    proctor compare latest main
    proctor compare latest@small latest@large
    proctor compare small large --run latest --metric pass_rate
    """
    from proctor.cli.comparing import as_markdown
    from proctor.cli.options import number
    from proctor.cli.outputs import COMPARISON, check_file
    from proctor.records import codec
    from proctor.reports.comparison import show
    from proctor.reports.files import write
    from proctor.wiring.compare_runs import compare_every, meant

    least = number(worth, "--worth")
    check_file(markdown, COMPARISON, "--markdown", history)
    one, other = meant(a, b, history=history, configuration=configuration, run=run)
    found, alone = compare_every(
        one, other, metrics=metric or None, worth=least, accept_changes=accept_changes
    )
    if markdown is not None:
        write(markdown, [as_markdown(found, flips=flips).encode()], what="the comparison")
    if as_json:
        click.echo(codec.encode_pretty({"comparisons": found, "only_one_has": alone}))
        return
    show(found, flips=flips)
    if alone:
        click.echo(f"\nNot compared, for only one of them has it: {', '.join(map(shown, alone))}")
    if markdown is not None:
        click.echo(f"wrote {markdown}")
