"""What is to be evaluated, from the command line: options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.options import Decorator, budget_from, pairs, together, value
from proctor.errors import ConfigError

USUAL_FILE = Path("eval.yaml")
MAP_FORM = "COLUMN=FIELD, such as question=input"


def file_argument() -> Decorator:
    """The eval file."""
    return click.argument("file", required=False, type=click.Path(path_type=Path))


def name_option() -> Decorator:
    """How the run is called."""
    return click.option("--name", help="The name under which runs are kept.")


def tag_option() -> Decorator:
    """What else is known of the run, such as a commit."""
    return click.option("--tag", metavar="KEY=VALUE", multiple=True, help="Kept with the run.")


def concurrency_option() -> Decorator:
    """How fast it goes."""
    return click.option("--concurrency", type=int, help="How many samples run at once. Default: 20.")


def dataset_options() -> Decorator:
    """Which samples."""
    return together(
        click.option(
            "--dataset",
            metavar="PATH",
            help="A .jsonl, .ndjson, .json, .csv or .tsv file (or .gz); or logs and traces, a file "
            "or a folder.",
        ),
        click.option(
            "--map",
            "mapping",
            metavar="COLUMN=FIELD",
            multiple=True,
            help="Read a field of the samples from this column. Example: question=input.",
        ),
        click.option("--generate-ids", is_flag=True, help="Make ids from the inputs."),
        click.option("--delimiter", metavar="SIGN", help="What separates the cells of a CSV file."),
        click.option(
            "--format",
            "form",
            metavar="NAME",
            help="Read the dataset in this format. Samples: jsonl, json, csv, tsv. Logs and "
            "traces, which need no target: claude-code, gemini, codex, qwen, openai, langchain, "
            "otlp, langfuse, proctor, or auto. Default: what the ending and the content say.",
        ),
        click.option("--pattern", metavar="GLOB", help="Which files of a folder of logs."),
    )


def subject_options() -> Decorator:
    """What runs on the samples, and what scores it."""
    return together(
        click.option("--target", metavar="ADDRESS", help="module:attr, file.py:attr, a URL or a model."),
        click.option("--evaluator", "-e", metavar="NAME", multiple=True, help="A name or module:attr."),
        click.option(
            "--set",
            "parameters",
            metavar="EVALUATOR.PARAMETER=VALUE",
            multiple=True,
            help="Set a parameter of an evaluator, over what the file says. Example: "
            "contains.case_sensitive=false. In a field: FIELD.EVALUATOR.PARAMETER.",
        ),
        click.option(
            "--plugin",
            metavar="MODULE:OBJECT",
            multiple=True,
            help="Register an evaluator or a metric; with no evaluator named, use it.",
        ),
    )


def open_mailbox(address: str, body_type: type[Any], **options: Any) -> Any:
    """A mailbox that other processes reach too, found to be there before anything is paid for."""
    from proctor.models.connect import mailbox

    refuse_memory(address)
    box = mailbox(address, body_type, **options)
    box.approximate_count()
    return box


def refuse_memory(address: str) -> None:
    """No other process would find a mailbox in memory."""
    if address.startswith("memory:"):
        raise ConfigError(
            "a mailbox in memory belongs to one process, and ends with it",
            fix="write redis://host:6379/0/NAME or sqs://NAME",
        )


def loaded(
    file: Path | None,
    options: dict[str, Any],
    registry: Any,
    needed: tuple[str, ...] = ("dataset", "target", "evaluator"),
) -> Any:
    """What the eval file says, with what the command line says put in its place."""
    import msgspec

    from proctor.wiring.config import Loaded, load

    found = None if file is None else load(file)
    registry.load_plugins(found.plugins if found else ())
    # With no evaluator named, on the command line or in the file, those of the plugins are used.
    brought = list(registry.load_plugins(options.get("plugin", ())))
    missing = [name for name in needed if not options.get(name)]
    if "evaluator" in missing and brought:
        missing.remove("evaluator")
    if "target" in missing and _brings_sessions(options):
        missing.remove("target")
    if file is None and missing and USUAL_FILE.exists():
        found = _with_what_is_missing(load(USUAL_FILE), missing)
    if found is None:
        if missing:
            fix = "proctor run eval.yaml; `proctor init` writes one to start from"
            if missing == ["target"]:
                fix += "; recorded sessions need no target: say --format auto"
            raise ConfigError(
                "nothing to run: give an eval file, or " + ", ".join(f"--{m}" for m in missing), fix=fix
            )
        from proctor.wiring.prepare import Evaluation

        found = Loaded(Evaluation(None, (), brought))
    registry.load_plugins(found.plugins)
    evaluation = _overridden(found.evaluation, options, registry)
    return msgspec.structs.replace(found, evaluation=evaluation)


def _with_what_is_missing(found: Any, missing: list[str]) -> Any:
    """The eval file of the folder; not one without a target where nothing else is wanted of it."""
    gives_target = found.evaluation.target is not None or found.evaluation.fields
    return found if gives_target or missing != ["target"] else None


def _overridden(evaluation: Any, options: dict[str, Any], registry: Any) -> Any:
    """The evaluation with what the command line says put in the place of what the file says."""
    import dataclasses

    from proctor.wiring.eval_file import DatasetEntry
    from proctor.wiring.open_dataset import open_dataset

    changes: dict[str, Any] = {}
    if options.get("dataset"):
        entry = DatasetEntry(
            options["dataset"],
            pairs(options["mapping"], "--map", MAP_FORM) or None,
            options["generate_ids"],
            options["delimiter"],
            options["form"],
            options["pattern"],
        )
        changes["dataset"] = open_dataset(entry, Path())
    elif any(options.get(name) for name in _OF_A_DATASET):
        raise ConfigError("--map, --generate-ids, --delimiter, --format and --pattern go with --dataset")
    if options.get("target"):
        changes["target"] = options["target"]
    if options.get("evaluator") or options.get("parameters"):
        chosen = list(options["evaluator"]) or evaluation.evaluators
        changes["evaluators"] = with_parameters(chosen, options["parameters"], registry)
    for name in ("name", "baseline", "canary"):
        if options.get(name):
            changes[name] = options[name]
    if options.get("tag"):
        changes["tags"] = {**evaluation.tags, **pairs(options["tag"], "--tag")}
    names = (
        "timeout", "concurrency", "epochs", "limit", "retries", "max_errors", "max_output_bytes",
        "on_error", "cache", "redact", "shuffle", "skipped",
    )  # fmt: skip
    given = {name: options[name] for name in names if options.get(name) is not None}
    if options.get("budget"):
        given["budget"] = budget_from(options["budget"])
    changes["options"] = {**evaluation.options, **given}
    changes["fail_under"] = {**evaluation.fail_under, **thresholds(options.get("fail_under", ()))}
    return dataclasses.replace(evaluation, **changes)


_OF_A_DATASET = ("mapping", "generate_ids", "delimiter", "form", "pattern")


def _brings_sessions(options: dict[str, Any]) -> bool:
    """True if the dataset is recorded sessions, which hold what would be run."""
    from proctor.wiring.eval_file import DatasetEntry
    from proctor.wiring.open_dataset import holds_sessions

    path = options.get("dataset")
    if not path:
        return False
    entry = DatasetEntry(
        path,
        pairs(options["mapping"], "--map", MAP_FORM) or None,
        options["generate_ids"],
        format=options.get("form"),
        pattern=options.get("pattern"),
    )
    return holds_sessions(entry, Path(path))


def with_parameters(evaluators: Any, given: tuple[str, ...], registry: Any) -> list[Any]:
    """Evaluators with the parameters of --set put to those they are for."""
    from proctor.errors import EvaluatorError, Problem
    from proctor.wiring.evaluator_entries import Setting, apply_settings

    several = isinstance(evaluators, list | tuple)
    entries = list(evaluators) if several else [evaluators]
    settings, problems = [], []
    for path, text in pairs(given, "--set", "EVALUATOR.PARAMETER=VALUE").items():
        name, dot, parameter = path.rpartition(".")
        if dot and name and parameter:
            settings.append(Setting(name, parameter, text))
        else:
            problems.append(Problem(path, "expected EVALUATOR.PARAMETER=VALUE"))
    try:
        changed = apply_settings(entries, settings, registry.describe, value)
    except EvaluatorError as error:
        if not error.problems:
            raise
        problems += error.problems
    if problems:
        raise ConfigError(
            "a parameter cannot be set",
            where="--set",
            problems=problems,
            fix="write EVALUATOR.PARAMETER=VALUE with an evaluator of this run; "
            "`proctor evaluators NAME` lists the parameters of an evaluator",
        )
    return changed


def thresholds(given: tuple[str, ...]) -> dict[str, float]:
    """What --fail-under says: a bare number is for the strict pass rate."""
    from proctor.comparison.gates.thresholds import DEFAULT_METRIC, read_thresholds

    named = (text.rpartition("=") for text in given)
    return read_thresholds(
        {metric if equals else DEFAULT_METRIC: least for metric, equals, least in named}, "--fail-under"
    )
