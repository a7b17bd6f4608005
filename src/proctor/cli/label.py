"""`proctor label`: label outputs by hand, without seeing the verdicts."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from proctor.cli import options as cli
from proctor.errors import ConfigError, UsageError, list_names
from proctor.records.label import HumanLabel, Strategy

if TYPE_CHECKING:
    from proctor.ports import History
    from proctor.records.run import RunMetadata
    from proctor.validity.labelling import LabelSession

KEYS = "p pass · f fail · s skip · u undo · c comment · q quit"
# How much of a text is shown.
MAX_CHARACTERS, MAX_LINES = 6_000, 80


@click.command("label")
@click.argument("run")
@cli.option("--evaluator NAME", "Answer the question of this evaluator. Default: the overall verdict.", default="")
@cli.option("--sample-size N", "Draw N outputs.", type=cli.POSITIVE_INTEGER, default=50)
@cli.option(
    "--strategy",
    "Draw at random, by verdict (stratified), or where evaluators disagree. Default: random.",
    type=cli.Choice(get_args(Strategy)),
)
@cli.option("--annotator NAME", "Store the labels under this name. Default: your user name.")
@cli.seed_option
@cli.option("--import FILE", "Import labels from a CSV or JSONL file instead of asking.", into="source")
@cli.option("--same-question", "Import labels of another version of the evaluator although its question has changed.")
@cli.option("--export FILE", "Export the stored labels to a CSV or JSONL file instead of asking.", into="destination")
@cli.common_options
def command(run: str, evaluator: str, strategy: Strategy | None, as_json: bool, **options: Any) -> None:
    """Label outputs of a run by hand: input, expected value and output are shown, the verdict is not.

    \b
    proctor label latest --evaluator helpful --sample-size 30
    proctor label latest --evaluator helpful --strategy disagreement
    proctor label latest --evaluator helpful --import labels.csv --strategy random

    Press q to stop; run the same command to continue. Without a terminal, keys are read from standard input, one per
    line. Labels drawn at random or stratified correct the pass rate (`proctor judge card`); labels of disagreements
    only find mistakes. With --json, the command prints the state of the draw and asks nothing.
    """
    from proctor.core.clock import SystemClock
    from proctor.validity.drawing import digest_evaluator
    from proctor.validity.label_files import read_labels
    from proctor.validity.labelling import LabelSession, require_outputs, user_name
    from proctor.wiring.compare_runs import open_report
    from proctor.wiring.open_history import open_history

    if options["source"] and options["destination"]:
        raise ConfigError("--import and --export cannot be combined", fix="leave out one of them")
    history = open_history(options["history"])
    opened = open_report(run, history)
    metadata = opened.report.metadata
    if metadata is None:
        raise ConfigError(f"run {run} has no metadata", fix="choose another run: proctor runs")
    digest = digest_evaluator(metadata, evaluator)
    results = opened.report.results
    if opened.configuration is not None:
        if opened.configuration not in opened.report.configurations:
            fix = list_names(opened.configuration, opened.report.configurations)
            raise ConfigError(f"the run has no configuration {opened.configuration!r}", where=run, fix=fix)
        results = results.for_configuration(opened.configuration)
    annotator = options["annotator"] or user_name()
    if options["destination"]:
        labels = history.labels(run_id=metadata.run_id, evaluator=evaluator)
        _export(labels, Path(options["destination"]), as_json=as_json)
    elif options["source"]:
        outputs = require_outputs(metadata, results, evaluator)

        def is_same(run_id: str, version: str) -> bool:
            return options["same_question"] or _asks_the_same(history, metadata, evaluator, run_id, version)

        now, path = SystemClock().now(), Path(options["source"])
        labels = read_labels(
            path, outputs, strategy=strategy, annotator=annotator, digest=digest, now=now, same_question=is_same
        )
        _import(history, labels, as_json=as_json)
    else:
        size, seed = options["sample_size"], options["seed"]
        session = LabelSession(history, metadata, results, evaluator, strategy or "random", size, seed)
        TerminalSession(session, annotator).run(as_json=as_json)


def _export(labels: Sequence[HumanLabel], path: Path, *, as_json: bool) -> None:
    from proctor.records.formatting import format_count
    from proctor.validity.label_files import write_labels

    write_labels(labels, path)
    if as_json:
        cli.print_json({"exported": len(labels), "file": str(path)})
    else:
        click.echo(f"wrote {format_count(len(labels), 'label')} to {path}")


def _asks_the_same(history: History, run: RunMetadata, evaluator: str, run_id: str, version: str) -> bool:
    """True if `version` of the evaluator in another run of the history has the question that it has in this run."""
    from proctor.validity.drawing import digest_evaluator, has_same_question

    try:
        other = history.find(run_id)
        is_known = bool(run_id) and digest_evaluator(other, evaluator) == version
    except UsageError:
        return False
    return is_known and has_same_question(run, other, evaluator)


def _import(history: History, labels: Sequence[HumanLabel], *, as_json: bool) -> None:
    from proctor.records.formatting import format_count

    new = history.add_labels(labels)
    if as_json:
        cli.print_json({"imported": new, "already_stored": len(labels) - new})
    else:
        known = f"; {len(labels) - new:,} were already stored" if new < len(labels) else ""
        click.echo(f"imported {format_count(new, 'label')}{known}")


class TerminalSession:
    """Asks one annotator about the drawn outputs."""

    def __init__(self, session: LabelSession, annotator: str) -> None:
        self._session, self._annotator = session, annotator
        self._undo: list[int] = []
        self._comment = ""

    def run(self, *, as_json: bool) -> None:
        """Ask about every drawn output that the annotator has not labelled yet."""
        from proctor.validity.label_files import show_item

        drawn, done = self._session.drawn, set(self._session.find_labels(self._annotator))
        if as_json:
            states = [{**show_item(each.output.item), "labelled": each.output.item in done} for each in drawn]
            remaining = sum(not state["labelled"] for state in states)
            cli.print_json({"strategy": self._session.strategy, "remaining": remaining, "drawn": states})
            return
        index = 0
        while index < len(drawn):
            if drawn[index].output.item in done:
                index += 1
                continue
            self._show(index)
            key = self._read_key()
            if key == "q":
                break
            index = self._apply(key, index, done)
        skipped = sum(label.skipped for label in self._session.find_labels(self._annotator).values())
        counts = f"{len(done) - skipped:,} of {len(drawn):,} drawn outputs labelled"
        click.echo(f"{counts}{f', {skipped:,} skipped' if skipped else ''} by {self._annotator}")
        if len(done) == len(drawn) and (evaluator := self._session.evaluator):
            click.echo(f"next: proctor judge card {shlex.quote(evaluator)} --run {self._session.run.run_id}")

    def _apply(self, key: str, index: int, done: set[Any]) -> int:
        """Apply a key to an output and return the index of the next one."""
        drawn = self._session.drawn
        if key == "c":
            self._comment = _ask_comment() if _is_terminal() else sys.stdin.readline().strip()
        elif key == "u":
            if not self._undo:
                click.echo("nothing to undo in this session")
                return index
            index = self._undo.pop()
            self._store(index, withdrawn=True)
            done.discard(drawn[index].output.item)
        else:
            self._store(index, **({"skipped": True} if key == "s" else {"passed": key == "p"}))
            done.add(drawn[index].output.item)
            self._undo.append(index)
            return index + 1
        return index

    def _store(self, index: int, **verdict: bool) -> None:
        self._session.store(self._session.drawn[index], self._annotator, comment=self._comment, **verdict)
        self._comment = ""

    def _show(self, index: int) -> None:
        drawn = self._session.drawn[index]
        item, epochs = drawn.output.item, self._session.run.options.epochs
        epoch = f", epoch {item.epoch + 1} of {epochs}" if epochs > 1 else ""
        click.echo(f"\n{index + 1} of {len(self._session.drawn)} · sample {cli.display_name(item.sample_id)}{epoch}")
        for title, value in self._session.list_texts(drawn):
            click.secho(f"{title}:", bold=True)
            click.echo(_render(value))

    def _read_key(self) -> str:
        while True:
            click.echo(f"[{KEYS}] ", nl=False)
            if _is_terminal():
                key = click.getchar().lower()
            else:
                line = sys.stdin.readline()
                key = line.strip().lower()[:1] if line else "q"
            click.echo(key)
            if key and key in "pfsucq":
                return key


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def _ask_comment() -> str:
    return str(click.prompt("comment", default="", show_default=False)).strip()


def _render(value: Any) -> str:
    from proctor.reports.format import shorten_lines

    lines = shorten_lines(value, MAX_CHARACTERS, MAX_LINES).splitlines() or ["(empty)"]
    return "\n".join(f"  {line}" for line in lines)
