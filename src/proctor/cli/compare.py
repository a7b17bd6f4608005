"""`proctor compare`: compare two runs, or two configurations of one run."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from proctor.cli.filters import (
    by_option,
    find_in_time,
    read_selection,
    sample_tag_option,
    text_option,
    time_options,
    where_option,
)
from proctor.cli.options import (
    NATURAL_NUMBER,
    common_options,
    display_name,
    option,
    parse_share,
    print_json,
    show_cli_option_names,
)
from proctor.errors import ConfigError
from proctor.records.run import RunMetadata


@click.command("compare")
@click.argument("a", metavar="NEW")
@click.argument("b", metavar="REFERENCE")
@option("--run RUN", "Read NEW and REFERENCE as configurations of this run.")
@option("--configuration NAME", "Compare only this configuration of both runs.")
@option("--metric NAME", "Compare only this metric; repeat for more.", multiple=True)
@option("--plugin MODULE:METRIC", "Load a custom metric for --metric.", multiple=True)
@option("--min-difference PERCENT", "Treat smaller differences of rates and scores as irrelevant.", default="1%")
@option("--accept-changes", "Compare runs whose evaluators or expected values differ.")
@option("--unpaired", "Compare the runs as two groups, not sample by sample.")
@by_option
@where_option
@sample_tag_option
@text_option
@time_options
@option("--flips N", "List up to N samples that passed in only one of the runs.", type=NATURAL_NUMBER, default=5)
@option("--markdown FILE", "Also write the comparison to FILE, as Markdown.")
@common_options
def command(a: str, b: str, *, markdown: Path | None, flips: int, as_json: bool, **options: Any) -> None:
    """Compare the run NEW with REFERENCE: better, worse, no relevant difference, or not enough evidence.

    The new run comes first: "better" means that NEW is better than REFERENCE. Both are runs: an id, the
    start of an id, a name, "latest", or a baseline; RUN@CONFIGURATION selects one configuration. Samples are
    paired by id, and runs without a common sample need --unpaired; --where, --sample-tag and --text compare only some
    samples. With --since, --until or --tag, a name means its newest run that matches. If the evaluators differ,
    metrics that combine all evaluators have no verdict.
    The exit code is 0 for every verdict: use `proctor gate` in CI.

    \b
    proctor compare latest main
    proctor compare latest@small latest@large
    proctor compare small large --run latest --metric pass_rate
    proctor compare latest main --by topic
    """
    from proctor.cli.outcome import show_card_lines
    from proctor.cli.outputs import COMPARISON, check_file
    from proctor.reports.comparison import render_markdown, show_comparisons
    from proctor.reports.files import write_file
    from proctor.wiring.compare_runs import add_custom_metrics, compare_configurations, open_pair
    from proctor.wiring.open_history import open_history
    from proctor.wiring.registry import load_custom_metrics
    from proctor.wiring.select_samples import add_notes, filter_pair

    check_file(markdown, COMPARISON, "--markdown", options["history"])
    with show_cli_option_names():
        selected = {name: options[name] for name in ("history", "configuration", "run")}
        min_difference = _parse_min_difference(options["min_difference"])
        selection = read_selection(options)
        if options["run"] is None:
            store, now = open_history(options["history"]), datetime.now().astimezone()
            names = [find_in_time(store, name, options, now) for name in (a, b)]
        else:
            names = [a, b]
        new, reference = open_pair(*names, **selected)
        new, reference, notes = filter_pair(new, reference, selection, options["text"])
        comparisons, without_partner = compare_configurations(
            *add_custom_metrics(new, reference, custom_metrics=load_custom_metrics(options["plugin"])),
            metrics=options["metric"] or None,
            min_difference=min_difference,
            accept_changes=options["accept_changes"],
            flips=flips,
            by=options["by"],
            unpaired=options["unpaired"],
        )
        comparisons = add_notes(comparisons, notes)
    if markdown is not None:
        texts = [render_markdown(comparison, flips=flips) for comparison in comparisons]
        write_file(markdown, ["\n".join(texts).encode(errors="backslashreplace")], what="the comparison")
    if as_json:
        print_json({"comparisons": comparisons, "only_one_has": without_partner})
        return
    show_comparisons(comparisons, flips=flips)
    _advise_swap(a, b, new.report.metadata, reference.report.metadata)
    if without_partner:
        click.echo(f"\nNot compared, only one run has it: {', '.join(map(display_name, without_partner))}")
    show_card_lines(open_history(options["history"]), new.report)
    if markdown is not None:
        click.echo(f"wrote {markdown}")


def _advise_swap(a: str, b: str, new: RunMetadata | None, reference: RunMetadata | None) -> None:
    if new and reference and new.started_at < reference.started_at:
        swapped = " ".join(map(shlex.quote, (b, a)))
        click.echo(f"\nNote: {display_name(a)} is older than its reference; to swap them: proctor compare {swapped}")


def _parse_min_difference(text: str) -> float:
    example = "1% or 0.01"
    share = parse_share(text, "--min-difference", example)
    if not 0 <= share < 1:
        raise ConfigError(
            f"must be 0 or more and less than 1, got {text}", where="--min-difference", fix=f"write {example}"
        )
    return share
