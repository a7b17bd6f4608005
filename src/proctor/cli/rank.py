"""`proctor rank`: rank runs, or the configurations of one run, by a metric."""

from __future__ import annotations

from typing import get_args

import click

from proctor.cli.options import Choice, common_options, option, print_json
from proctor.records.comparison import Order


@click.command("rank")
@click.argument("metric")
@click.argument("runs", nargs=-1, required=True)
@option(
    "--order",
    "List the lowest value first (asc) or the highest (desc). Default: the best first.",
    type=Choice(get_args(Order)),
)
@common_options
def command(metric: str, runs: tuple[str, ...], order: str | None, history: str | None, as_json: bool) -> None:
    """Rank RUNS by METRIC, and show which ranks the evidence supports.

    For a single run, its configurations are ranked. METRIC is a number that every sample has:
    pass_rate, strict_pass_rate, mean_score, total_score (of rubrics), latency_ms.mean,
    tokens.mean, cost.mean, an evaluator's name, a field, or a path into the results. Percentiles
    and sums cannot be ranked.

    \b
    proctor rank pass_rate latest
    proctor rank latency_ms.mean main candidate-a candidate-b
    """
    from proctor.reports.comparison import show_ranking
    from proctor.wiring.compare_runs import rank

    ranking = rank(metric, runs, history=history, order=order)
    if as_json:
        print_json({"answer": ranking.answer, "ranking": ranking})
    else:
        show_ranking(ranking)
