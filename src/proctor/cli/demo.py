"""`proctor demo`: a real evaluation, small enough to watch."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from proctor.cli.options import history_option, json_option

LETTERS_ONLY = """
semantic_similarity compared letters only: the weights for meanings are not here.
To get them: proctor models pull minilm"""
NEXT = """
What next:
  what it still gets wrong:      proctor show latest --outcome failed --configuration bm25
  new evaluators, old outputs:   proctor rescore latest -e exact_match
  every run is kept:             proctor runs
  start your own:                proctor init my-evals"""


@click.command("demo")
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path("eval_results"),
    show_default=True,
    help="Where the reports go.",
)
@history_option()
@json_option()
def command(output: Path, history: str | None, as_json: bool) -> None:
    """Evaluate a question answerer with a knowledge base of its own, in two configurations."""
    from proctor.cli.outcome import conclude
    from proctor.cli.outputs import check_reports
    from proctor.core import bridge, resources
    from proctor.engine.start import Conduct
    from proctor.reports.live import live_display
    from proctor.wiring.config import load
    from proctor.wiring.evaluate import execute
    from proctor.wiring.open_history import open_history

    check_reports(output, history)
    loaded = load(resources.path("demo", "eval.yaml"))
    if not as_json:
        click.echo("A question answerer, two ways of ranking, the same questions for both.\n")
    how = Conduct(watch=live_display(not as_json))
    report = bridge.run(execute(loaded.evaluation, open_history(history), how))
    conclude(report, thresholds={}, output=output, as_json=as_json)
    if not as_json:
        # `make demo` runs it from an environment that is not on the PATH.
        program = "proctor" if shutil.which("proctor") else os.path.relpath(sys.argv[0])
        assert report.metadata is not None
        used = [one.parameters.get("embedder") for one in report.metadata.evaluators]
        told = LETTERS_ONLY + "\n" + NEXT if "lexical" in used else NEXT
        click.echo(f"kept as run {report.run_id}\n{told.replace(' proctor ', f' {program} ')}")
