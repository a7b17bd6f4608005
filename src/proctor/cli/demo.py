"""`proctor demo`: run a small evaluation that ships with Proctor."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from proctor.cli.options import common_options, format_option, option, progress

LEXICAL_NOTE = """
semantic_similarity compared spelling only, because no embedding model is installed.
To install one: proctor models pull minilm"""
NEXT_STEPS = """
Next steps:
  look at it in a browser:        proctor view latest --open
  see what still fails:           proctor show latest --outcome failed --configuration bm25
  score with other evaluators:    proctor rescore latest -e exact_match
  list all runs:                  proctor runs
  start your own project:         proctor init my-evals"""


@click.command("demo")
@option("--output DIR", "Write the report to this folder.", default=Path("eval_results"))
@format_option
@common_options
def command(**options: Any) -> None:
    """Evaluate a small question-answering program in two configurations; needs no model or API key."""
    from proctor.cli.outcome import report_outcome
    from proctor.cli.outputs import check_reports
    from proctor.core import bridge, resources
    from proctor.engine.start import RunControls
    from proctor.wiring.config import load_eval_file
    from proctor.wiring.evaluate import execute
    from proctor.wiring.open_history import open_history

    as_json = options["as_json"]
    check_reports(options)
    evaluation = load_eval_file(resources.path("demo", "eval.yaml")).evaluation
    if not as_json:
        click.echo("A question-answering program with two ranking methods, evaluated on the same questions.\n")
    controls = RunControls(watch=progress(options))
    report = bridge.run(execute(evaluation, open_history(options["history"]), controls))
    report_outcome(report, {}, options)
    if not as_json:
        # `make demo` uses an environment that is not on the PATH.
        program = "proctor" if shutil.which("proctor") else os.path.relpath(sys.argv[0])
        assert report.metadata is not None
        embedders = [spec.parameters.get("embedder") for spec in report.metadata.evaluators]
        text = f"{LEXICAL_NOTE}\n{NEXT_STEPS}" if "lexical" in embedders else NEXT_STEPS
        click.echo(f"stored as run {report.run_id}\n{text.replace(' proctor ', f' {program} ')}")
