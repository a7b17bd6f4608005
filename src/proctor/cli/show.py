"""`proctor show`: show a run, its failed samples, or one sample."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import click

from proctor.cli import filters
from proctor.cli import options as cli
from proctor.errors import ConfigError
from proctor.records.trial import OUTCOMES, Outcome

if TYPE_CHECKING:
    from proctor.comparison.report import EvalReport
    from proctor.ports import History
    from proctor.records.slices import LabelReport


# Another argument is most likely a sample, which an option names.
@click.command("show", context_settings={"allow_extra_args": True})
@click.argument("run", default="latest")
@cli.option("--sample ID", "Show everything about this sample.")
@cli.option("--session", "With --sample or --outcome: also show the messages of models and tools.")
@cli.option("--outcome", "List only results with this outcome.", type=cli.Choice(get_args(Outcome)))
@cli.option("--evaluator NAME", "Apply --outcome to this evaluator alone. Default outcome: failed.")
@cli.option("--configuration NAME", "List only results of this configuration.")
@filters.by_option
@filters.where_option
@filters.sample_tag_option
@filters.text_option
@cli.page_options("results")
@cli.output_options
@cli.common_options
def command(run: str, *, session: bool, as_json: bool, **options: Any) -> None:
    """Show a run. RUN is an id, the start of an id, a name, or "latest" (the default); RUN@CONFIGURATION selects one.

    \b
    proctor show
    proctor show latest --outcome failed --limit 5
    proctor show latest --format markdown
    proctor show 20260101-1200 --sample q17 --session
    proctor show latest --by topic
    proctor show latest --where topic=billing --text refund

    --where and --sample-tag restrict everything that is shown; --text lists results. Without --output, --format prints
    the report in one format.
    """
    from proctor.cli.outputs import check_reports
    from proctor.reports.formats import find_format, write_reports
    from proctor.wiring.compare_runs import open_report
    from proctor.wiring.open_history import open_history
    from proctor.wiring.select_samples import filter_report

    if others := click.get_current_context().args:
        fix = f"for a sample, write: proctor show {shlex.quote(run)} --sample {shlex.quote(others[0])}"
        raise ConfigError(f"unexpected argument {others[0]!r}: one run is shown at a time", fix=fix)
    prints_format = len(options["formats"]) == 1 and options["output"] is None
    if prints_format and as_json:
        raise ConfigError("--json and --format both print the report", fix="leave out one of them")
    if not prints_format:
        check_reports(options)
    history = open_history(options["history"])
    _, report, options["configuration"], _ = open_report(run, history, options["configuration"])
    report = filter_report(report, filters.read_selection(options))
    if prints_format:
        click.echo(find_format(options["formats"][0]).render(report), nl=False)
        return
    if options["output"]:
        for path in write_reports(report, options["output"], options["formats"]):
            click.echo(f"wrote {path}", err=as_json)
    selection = _read_selection(session, options)
    if options["by"] is not None:
        with cli.show_cli_option_names():
            _show_slices(report, options["by"], options["configuration"], as_json=as_json)
    elif not selection and options["text"] is None:
        _show_summary(report, history, as_json=as_json)
    else:
        _list_results(report, selection, options, sessions=session, as_json=as_json)


def _show_summary(report: EvalReport, history: History, *, as_json: bool) -> None:
    from proctor.cli.outcome import show_card_lines, show_report, summarize

    labels = [quality for quality in _measure_labels(report) if not quality.problem]
    if as_json:
        cli.print_json({**summarize(report), **({"labels": labels} if labels else {})})
        return
    show_report(report)
    show_card_lines(history, report)
    _show_labels(labels)


def _list_results(
    report: EvalReport, selection: dict[str, Any], options: dict[str, Any], *, sessions: bool, as_json: bool
) -> None:
    from proctor.reports.listing import show_results
    from proctor.reports.summary import count_epochs
    from proctor.wiring.open_history import select_results
    from proctor.wiring.select_samples import find_text

    if options["text"] is not None:
        report = find_text(report, options["text"])
    results = select_results(report, **selection, offset=options["offset"], limit=options["limit"])
    if as_json:
        cli.print_json(results)
    else:
        hint = "" if results or options["text"] is not None else _describe_outcomes(report, selection)
        show_results(results, count_epochs(report), sessions=sessions, hint=hint)


def _describe_outcomes(report: EvalReport, selection: Mapping[str, Any]) -> str:
    """Return the outcomes that the run, or an evaluator of it, does have; empty if another selection is the cause."""
    results, evaluator = report.results, selection.get("evaluator")
    if "outcome" not in selection or "sample" in selection or not results:
        return ""
    if "configuration" in selection:
        results = results.for_configuration(selection["configuration"])
    outcomes = results.outcomes() if evaluator is None else results.figures().marks.get(evaluator, b"")
    counts = {outcome: count for index, outcome in enumerate(OUTCOMES) if (count := outcomes.count(index))}
    if selection["outcome"] in counts or not counts:
        return ""
    found = ", ".join(f"{count:,} {outcome}" for outcome, count in counts.items())
    return f"; {evaluator or 'the run'} has {found}: --outcome {max(counts, key=lambda name: counts[name])}"


def _show_slices(report: EvalReport, key: str, configuration: str | None, *, as_json: bool) -> None:
    from proctor.reports.slices import show_slices

    if configuration is not None:
        report = report.for_configuration(configuration)
    slices, labels = report.by(key), _measure_labels(report)
    if as_json:
        cli.print_json({"run_id": report.run_id, "by": slices, "labels": labels})
        return
    show_slices(slices)
    _show_labels(labels)


def _show_labels(labels: Sequence[LabelReport]) -> None:
    from proctor.reports.slices import show_labels

    if labels:
        click.echo()
        show_labels(labels)


def _measure_labels(report: EvalReport) -> Sequence[LabelReport]:
    """Return the quality of labels; empty if the first results show that the outputs are not labels."""
    from proctor.comparison.labels import may_be_labels

    return report.labels() if may_be_labels(report.results) else ()


def _read_selection(session: bool, options: dict[str, Any]) -> dict[str, Any]:
    listing = [f"--{name}" for name in ("sample", "outcome", "evaluator", "text") if options[name] is not None]
    if options["by"] is not None and listing:
        raise ConfigError(
            f"--by shows metrics, and {' and '.join(listing)} {'lists' if len(listing) == 1 else 'list'} results",
            fix="leave out one of them; --where restricts the metrics of --by",
        )
    names = ("sample", "outcome", "evaluator", "configuration")
    selection = {name: options[name] for name in names if options[name] is not None}
    if session and not ("sample" in selection or "outcome" in selection):
        raise ConfigError("--session needs --sample or --outcome", fix="add --sample ID or --outcome failed")
    return {"outcome": "failed", **selection} if "evaluator" in selection else selection
