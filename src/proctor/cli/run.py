"""`proctor run`: evaluate a target on a dataset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.options import (
    budget_from,
    budget_option,
    history_option,
    json_option,
    number,
    pairs,
    value,
)
from proctor.errors import ConfigError

EVAL_FILE_ENDINGS = (".yaml", ".yml", ".json", ".py")
USUAL_FILE = Path("eval.yaml")
UNFINISHED = "the latest unfinished run"


@click.command("run")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--dataset", metavar="PATH", help="A .jsonl, .ndjson, .csv or .tsv file.")
@click.option("--map", "mapping", metavar="COLUMN=FIELD", multiple=True, help="Map a column.")
@click.option("--generate-ids", is_flag=True, help="Make ids from the inputs.")
@click.option("--delimiter", metavar="SIGN", help="What separates the cells of a CSV file.")
@click.option("--target", metavar="ADDRESS", help="module:attr, file.py:attr, a URL or a model.")
@click.option("--evaluator", "-e", metavar="NAME", multiple=True, help="A name or module:attr.")
@click.option(
    "--set",
    "parameters",
    metavar="EVALUATOR.PARAMETER=VALUE",
    multiple=True,
    help="A parameter of an evaluator.",
)
@click.option("--plugin", metavar="MODULE:OBJECT", multiple=True, help="Register an evaluator.")
@click.option("--name", help="The name under which runs are kept.")
@click.option("--timeout", type=float, help="Seconds for each call of the target. Default: 30.")
@click.option("--concurrency", type=int, help="How many samples run at once. Default: 20.")
@click.option("--epochs", type=int, help="How often each sample is run. Default: 1.")
@click.option("--limit", type=int, help="Only the first so many samples.")
@click.option("--retries", type=int, help="Further attempts after a passing trouble.")
@click.option("--max-errors", type=int, help="Stop after so many failed samples.")
@click.option("--on-error", type=click.Choice(["continue", "raise"]), help="Stop at an error?")
@click.option("--tag", metavar="KEY=VALUE", multiple=True, help="Kept with the run.")
@click.option("--cache", is_flag=True, default=None, help="Reuse outputs of equal calls.")
@budget_option()
@click.option(
    "--resume", metavar="[ID]", is_flag=False, flag_value=UNFINISHED, help="Run what is missing."
)
@click.option("--allow-changes", is_flag=True, help="Resume although something has changed.")
@click.option("--retry-errors", is_flag=True, help="With --resume: run failed samples again.")
@click.option("--fail-under", metavar="[METRIC=]VALUE", multiple=True, help="Exit 1 below it.")
@click.option("--output", metavar="DIR", type=click.Path(path_type=Path), help="Write reports.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no table.")
@history_option()
@json_option()
def command(file: Path | None, **options: Any) -> int:
    """Evaluate a target on a dataset.

    \b
    proctor run                  the eval.yaml in this folder
    proctor run eval.yaml
    proctor run --dataset qa.jsonl --target app.py:answer -e exact_match

    What FILE says can be overridden by options. The run is kept in the history; --output writes
    report.md and report.json too. Exit codes: 0 good, 1 below --fail-under, 2 usage, 3 trouble.
    """
    from proctor import bridge
    from proctor.api import execute
    from proctor.cli.outcome import check_output, conclude, prints_aside
    from proctor.config import Loaded
    from proctor.engine.start import Conduct
    from proctor.lookback import open_history
    from proctor.registry import Registry
    from proctor.reports.live import live_display

    file, resume = _file_and_resume(file, options["resume"])
    check_output(options["output"])
    if not resume and (options["retry_errors"] or options["allow_changes"]):
        raise ConfigError("--retry-errors and --allow-changes go with --resume")
    registry = Registry.standard()
    with prints_aside(options["as_json"]):
        loaded: Loaded = _loaded(file, options, registry)
    quiet = options["quiet"] or options["as_json"]
    how = Conduct(
        watch=live_display(not quiet),
        allow_changes=options["allow_changes"],
        retry_errors=options["retry_errors"],
    )
    with prints_aside(options["as_json"]):
        report = bridge.run(
            execute(
                loaded.evaluation,
                open_history(options["history"]),
                how,
                resume_from=resume,
                registry=registry,
            )
        )
    return conclude(
        report,
        thresholds=loaded.evaluation.fail_under,
        output=options["output"],
        quiet=options["quiet"],
        as_json=options["as_json"],
    )


def _file_and_resume(file: Path | None, resume: str | None) -> tuple[Path | None, str | bool]:
    """`--resume eval.yaml` means the file, not a run of that name."""
    if resume is None or resume == UNFINISHED:
        return file, resume is not None
    if file is None and resume.endswith(EVAL_FILE_ENDINGS):
        return Path(resume), True
    return file, resume


def _loaded(file: Path | None, options: dict[str, Any], registry: Any) -> Any:
    import msgspec

    from proctor.config import Loaded, load

    missing = [name for name in ("dataset", "target", "evaluator") if not options[name]]
    if file is None and missing and USUAL_FILE.exists():
        file = USUAL_FILE
    if file is not None:
        found = load(file)
    else:
        if missing:
            raise ConfigError(
                "nothing to run: give an eval file, or " + ", ".join(f"--{m}" for m in missing),
                fix="proctor run eval.yaml; `proctor init` writes one to start from",
            )
        from proctor.prepare import Evaluation

        found = Loaded(Evaluation(None, None, None))
    for address in (*found.plugins, *options["plugin"]):
        registry.load_plugin(address)
    evaluation = _overridden(found.evaluation, options, registry)
    return msgspec.structs.replace(found, evaluation=evaluation)


def _overridden(evaluation: Any, options: dict[str, Any], registry: Any) -> Any:
    """The evaluation with what the command line says put in the place of what the file says."""
    import dataclasses

    from proctor.config import DatasetEntry, open_dataset

    changes: dict[str, Any] = {}
    if options["dataset"]:
        entry = DatasetEntry(
            options["dataset"],
            pairs(options["mapping"], "--map") or None,
            options["generate_ids"],
            options["delimiter"],
        )
        changes["dataset"] = open_dataset(entry, Path())
    elif options["mapping"] or options["generate_ids"] or options["delimiter"]:
        raise ConfigError("--map, --generate-ids and --delimiter go with --dataset")
    if options["target"]:
        changes["target"] = options["target"]
    if options["evaluator"] or options["parameters"]:
        chosen = list(options["evaluator"]) or evaluation.evaluators
        changes["evaluators"] = with_parameters(chosen, options["parameters"], registry)
    if options["name"]:
        changes["name"] = options["name"]
    if options["tag"]:
        changes["tags"] = {**evaluation.tags, **pairs(options["tag"], "--tag")}
    names = (
        "timeout", "concurrency", "epochs", "limit", "retries", "max_errors", "on_error", "cache"
    )  # fmt: skip
    given = {name: options[name] for name in names if options[name] is not None}
    if options["budget"]:
        given["budget"] = budget_from(options["budget"])
    changes["options"] = {**evaluation.options, **given}
    changes["fail_under"] = {**evaluation.fail_under, **thresholds(options["fail_under"])}
    return dataclasses.replace(evaluation, **changes)


def with_parameters(evaluators: list[Any], given: tuple[str, ...], registry: Any) -> list[Any]:
    """Evaluators with the parameters of --set put to those they are for."""
    parameters: dict[str, dict[str, Any]] = {}
    for path, text in pairs(given, "--set").items():
        name, dot, parameter = path.rpartition(".")
        if not dot:
            raise ConfigError(f"expected EVALUATOR.PARAMETER=VALUE, found {path!r}", where="--set")
        is_text = name in evaluators and _takes_text(registry, name, parameter)
        parameters.setdefault(name, {})[parameter] = text if is_text else value(text)
    made = [
        {name: parameters.pop(name)} if isinstance(name, str) and name in parameters else name
        for name in evaluators
    ]
    if parameters:
        raise ConfigError(
            f"--set names {', '.join(sorted(parameters))}, which is not among the evaluators",
            fix="name the evaluator with --evaluator, or set the parameter in the eval file",
        )
    return made


def _takes_text(registry: Any, name: str, parameter: str) -> bool:
    """True if a parameter is a text: then its value is taken to the letter."""
    attached = registry.describe(name)
    kinds = [known.type for known in attached.parameters if known.name == parameter]
    return any("str" in kind.split(" | ") for kind in kinds)


def thresholds(given: tuple[str, ...]) -> dict[str, float]:
    """What --fail-under says: a bare number is for the strict pass rate."""
    from proctor.gates import DEFAULT_METRIC

    found = {}
    for text in given:
        metric, equals, least = text.rpartition("=")
        found[metric if equals else DEFAULT_METRIC] = number(least, "--fail-under")
    return found
