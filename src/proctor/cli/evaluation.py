"""Options that describe an evaluation (dataset, target, evaluators), shared by several commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from proctor.cli.options import (
    NATURAL_NUMBER,
    PATH,
    POSITIVE_INTEGER,
    combine,
    option,
    parse_budget,
    parse_pairs,
    parse_value,
    raise_problems,
)
from proctor.errors import ConfigError, UsageError
from proctor.records.formatting import format_count

DEFAULT_FILE = Path("eval.yaml")
# Set by `proctor run --watch` in the process of each run: the file that lists what the run has read.
WATCH_VARIABLE = "_PROCTOR_WATCH_REPORT"
EVAL_FILE_ENDINGS = (".yaml", ".yml", ".json", ".py")
MAP_FORM = "COLUMN=FIELD"
# The options that replace a key of an eval file, and the keys that are named otherwise.
EXAMPLES = {"dataset": "--dataset qa.jsonl", "target": "--target app.py:answer", "evaluator": "-e exact_match"}
KEYS = {"evaluator": "evaluators"}
DATASET_OPTIONS = {
    "mapping": "--map",
    "generate_ids": "--generate-ids",
    "delimiter": "--delimiter",
    "format": "--dataset-format",
    "pattern": "--pattern",
}

file_argument = click.argument("file", required=False, type=PATH)
concurrency_option = option("--concurrency N", "Run up to N samples concurrently. Default: 20.", type=POSITIVE_INTEGER)
cache_option = option(
    "--cache/--no-cache",
    "Reuse the outputs of identical earlier calls, or call the target for every sample. Default: as in FILE, else "
    "--no-cache.",
    default=None,
)
timeout_option = option("--timeout SECONDS", "Stop each target call after SECONDS. Default: 30.")
retries_option = option(
    "--retries N", "Retry a failed call up to N times if the error is transient. Default: 0.", type=NATURAL_NUMBER
)
epochs_option = option("--epochs N", "Run each sample N times. Default: 1.", type=POSITIVE_INTEGER)
limit_option = option("--limit N", "Run only the first N samples.", type=POSITIVE_INTEGER)
pattern_option = option("--pattern GLOB", 'Read only the files in a folder that match GLOB. Example: "*.jsonl".')
set_option = option(
    "--set EVALUATOR.PARAMETER=VALUE",
    "Set a parameter of an evaluator; overrides the eval file. Example: --set contains.case_sensitive=false. For an "
    "evaluator of a field, write FIELD.EVALUATOR.PARAMETER=VALUE.",
    multiple=True,
    into="parameters",
)
plugin_option = option(
    "--plugin MODULE:OBJECT",
    "Register an evaluator or a metric; without --evaluator, use the evaluators of the plugin.",
    multiple=True,
)
evaluator_option = option(
    "--evaluator -e NAME",
    "Score with this evaluator; repeat for more: a name that `proctor evaluators` lists, module:attr or file.py:attr.",
    multiple=True,
)
dataset_options = combine(
    option(
        "--dataset PATH",
        "Read the samples from a .jsonl, .ndjson, .json, .csv or .tsv file (or .gz), or "
        "from logs and traces (a file or a folder).",
    ),
    option(
        "--map COLUMN=FIELD",
        "Read a field of the samples from this column. Example: question=input.",
        multiple=True,
        into="mapping",
    ),
    option("--generate-ids", "Derive sample ids from the inputs."),
    option("--delimiter CHAR", "Split the cells of a CSV file at CHAR. Example: ';'."),
    option(
        "--dataset-format NAME",
        "Read the dataset in this format. Samples: jsonl, json, csv, tsv, a format of proctor import, or a plugin's "
        "name. Logs and traces, which need no target: claude-code, gemini, codex, qwen, copilot-cli, vscode-chat, "
        "chatgpt, claude-ai, openai, langchain, pydantic-ai, openai-agents, smolagents, crewai, atif, otlp, langfuse, "
        "proctor, or auto. "
        "Default: detected from the file name and content. Without --output, --format is an alias of this option.",
        into="form",
    ),
    pattern_option,
)
subject_options = combine(
    option(
        "--target ADDRESS",
        "Evaluate this target: module:attr, file.py:attr, a URL, a model such as openai:gpt-4o, or a mapping as in an "
        "eval file: '{http: https://example.com/chat, body: {message: $input}, response: reply}'.",
    ),
    evaluator_option,
    set_option,
    plugin_option,
)


def open_mailbox(address: str, body_type: type[Any], **options: Any) -> Any:
    """Open a mailbox that other processes can reach."""
    from proctor.models.connect import mailbox

    reject_memory_mailbox(address)
    return mailbox(address, body_type, **options)


def reject_memory_mailbox(address: str) -> None:
    """Reject an in-memory mailbox: other processes cannot reach it."""
    if address.startswith("memory:"):
        raise ConfigError(
            f"a memory: mailbox exists only inside one process: {address}",
            fix="write redis://host:6379/0/NAME or sqs://NAME",
        )


def load_evaluation(
    file: Path | None,
    options: dict[str, Any],
    registry: Any,
    required: tuple[str, ...] = ("dataset", "target", "evaluator"),
) -> Any:
    """Read the eval file; options of the command line override it."""
    import msgspec

    from proctor.wiring.config import LoadedEvalFile, has_checks, load_eval_file
    from proctor.wiring.prepare import Evaluation

    overridden = {KEYS.get(name, name) for name in EXAMPLES if options.get(name)}
    overridden |= {"target"} if _has_sessions(options) else set()
    settings = _dataset_settings(options)
    loaded = None if file is None else load_eval_file(file, overridden, settings)
    if loaded is not None:
        _load_plugins(loaded, registry)
    plugin_evaluators = list(registry.load_plugins(options.get("plugin", ())))
    overridden |= {"evaluators"} if plugin_evaluators else set()
    missing = [name for name in required if KEYS.get(name, name) not in overridden]
    if file is None and missing and DEFAULT_FILE.exists():
        loaded = load_eval_file(DEFAULT_FILE, overridden, settings)
        has_target = loaded.evaluation.target is not None or loaded.evaluation.fields
        if missing == ["target"] and not has_target:
            loaded = None
        elif overridden and not options.get("quiet"):
            click.echo(_describe_default_file(loaded.evaluation, missing), err=True)
    if loaded is None:
        if missing == ["evaluator"] and options.get("dataset"):
            missing = [] if has_checks({"dataset": _dataset_entry(options)}, Path()) else missing
        if missing:
            raise _make_missing_error(missing)
        if settings and not options.get("dataset"):
            names = [DATASET_OPTIONS[key] for key in settings]
            need = "needs" if len(names) == 1 else "need"
            raise ConfigError(f"{' and '.join(names)} {need} --dataset", fix="add --dataset PATH, or pass an eval file")
        loaded = LoadedEvalFile(Evaluation(None, (), plugin_evaluators))
    _load_plugins(loaded, registry)
    return msgspec.structs.replace(loaded, evaluation=_override(loaded.evaluation, options, registry))


def _load_plugins(loaded: Any, registry: Any) -> None:
    from proctor.wiring.prepare import add_place

    try:
        registry.load_plugins(loaded.plugins)
    except UsageError as error:
        raise add_place(error, loaded.evaluation.places, "plugins") from None


def _describe_default_file(evaluation: Any, missing: list[str]) -> str:
    evaluators, epochs = evaluation.evaluators, evaluation.options.get("epochs", 1)
    count = format_count(len(evaluators) if isinstance(evaluators, list | tuple) else 1, "evaluator")
    facts = f"{count}, epochs {epochs}" if epochs > 1 else count
    return f"using {DEFAULT_FILE} ({facts}); to leave it out, add {' '.join(EXAMPLES[name] for name in missing)}"


def _make_missing_error(missing: list[str]) -> ConfigError:
    names = " and ".join(f"--{name}" for name in missing)
    options_to_add = " ".join(EXAMPLES[name] for name in missing)
    fix = f"add {options_to_add}; or pass an eval file, which `proctor init` creates"
    if missing == ["target"]:
        fix += "; for recorded sessions, which need no target, add --dataset-format auto"
    verb = "is" if len(missing) == 1 else "are"
    return ConfigError(f"no eval file is given, and {names} {verb} missing", fix=fix)


def _override(evaluation: Any, options: dict[str, Any], registry: Any) -> Any:
    import dataclasses

    from proctor.records.run import RunOptions
    from proctor.wiring.open_dataset import open_dataset

    changes: dict[str, Any] = {
        name: options[name] for name in ("target", "name", "baseline", "canary") if options.get(name)
    }
    if "target" in changes:
        changes["target"] = parse_target(changes["target"])
    if options.get("dataset"):
        changes["dataset"] = open_dataset(_dataset_entry(options), Path())
    if options.get("evaluator") or options.get("parameters"):
        evaluators = list(options["evaluator"]) or evaluation.evaluators
        changes["evaluators"] = set_parameters(evaluators, options["parameters"], registry)
    if options.get("tag"):
        changes["tags"] = {**evaluation.tags, **parse_pairs(options["tag"], "--tag")}
    # Options of `run` with the same name as an engine option are passed on.
    run_options = {name: options[name] for name in RunOptions.__struct_fields__ if options.get(name) is not None}
    if budget := run_options.pop("budget", None):
        run_options["budget"] = parse_budget(budget)
    changes["options"] = {**evaluation.options, **run_options}
    changes["fail_under"] = {**evaluation.fail_under, **parse_thresholds(options.get("fail_under", ()))}
    replaced = {name for name in (*EXAMPLES, "fail_under", "baseline", "canary") if options.get(name)}
    replaced |= {"run"} if run_options else set()
    places = evaluation.places.items()
    changes["places"] = {key: place for key, place in places if key not in {KEYS.get(name, name) for name in replaced}}
    return dataclasses.replace(evaluation, **changes)


def parse_target(text: str) -> Any:
    """Return the value of --target: an address, or the mapping that is written as in an eval file."""
    target = parse_value(text) if text.startswith("{") else text
    if isinstance(target, str) and text.startswith("{"):
        fix = "write --target '{http: https://example.com/chat, response: reply}'"
        raise ConfigError(f"must be an address or a YAML mapping, got {text!r}", where="--target", fix=fix)
    return target


def _dataset_entry(options: dict[str, Any]) -> Any:
    from proctor.wiring.eval_file import DatasetEntry

    return DatasetEntry(options["dataset"], **_dataset_settings(options))


def _dataset_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a dataset on the command line, by their keys in an eval file."""
    values = {**options, "format": options.get("form")}
    settings = {key: values[key] for key in DATASET_OPTIONS if values.get(key)}
    if "mapping" in settings:
        settings["mapping"] = parse_pairs(settings["mapping"], "--map", MAP_FORM)
    return settings


def _has_sessions(options: dict[str, Any]) -> bool:
    """True if the dataset is recorded sessions, which need no target."""
    from proctor.wiring.open_dataset import holds_sessions

    if not options.get("dataset"):
        return False
    return holds_sessions(_dataset_entry(options), Path(options["dataset"]))


def set_parameters(evaluators: Any, settings: tuple[str, ...], registry: Any) -> list[Any]:
    """Apply the parameters of --set to the named evaluators."""
    from proctor.errors import EvaluatorError, Problem
    from proctor.wiring.evaluator_entries import Setting, apply_settings

    entries = list(evaluators) if isinstance(evaluators, list | tuple) else [evaluators]
    parsed, problems = [], []
    for path, text in parse_pairs(settings, "--set", "EVALUATOR.PARAMETER=VALUE").items():
        name, _, parameter = path.rpartition(".")
        if name and parameter:
            parsed.append(Setting(name, parameter, text))
        else:
            problems.append(Problem(path, "must be EVALUATOR.PARAMETER=VALUE"))
    try:
        entries = apply_settings(entries, parsed, registry.describe, parse_value)
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
    return entries


def parse_thresholds(values: tuple[str, ...]) -> dict[str, float]:
    """Parse --fail-under; a number alone applies to the strict pass rate."""
    from proctor.comparison.gates.thresholds import DEFAULT_METRIC, read_thresholds

    name_value_pairs = (text.rpartition("=") for text in values)
    thresholds = {metric if equals else DEFAULT_METRIC: threshold for metric, equals, threshold in name_value_pairs}
    try:
        return read_thresholds(thresholds, "--fail-under")
    except ConfigError as error:
        raise_problems([problem._replace(where="--fail-under") for problem in error.problems], error.fix)
        raise
