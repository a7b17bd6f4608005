"""The keys of an eval file as records, and their JSON Schema for editors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from proctor.errors import ConfigError, suggest_name
from proctor.records.run import Positive, Retention, RunOptions
from proctor.records.score import Skipped

SCHEMA_FILE = "eval.schema.json"


def _doc(description: str, **limits: Any) -> msgspec.Meta:
    return msgspec.Meta(description=description, **limits)


class DatasetEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A dataset in an eval file, with settings."""

    path: Annotated[
        str,
        _doc(
            "A .jsonl, .ndjson, .json, .csv or .tsv file, compressed (.gz) or not; or logs and traces, as a "
            "file or a folder."
        ),
    ]
    mapping: Annotated[dict[str, str] | None, _doc("Fields by column or key: {question: input}.")] = None
    generate_ids: Annotated[bool, _doc("Derive ids from the inputs if the file has none.")] = False
    delimiter: Annotated[str | None, _doc("The delimiter between the cells of a table, such as ;.")] = None
    format: Annotated[
        str | None,
        _doc(
            "The format of the file, if its name and content do not show it. Samples: jsonl, json, csv, tsv. "
            "Recorded sessions, which need no target: the format of the logs or traces, such as claude-code "
            "or otlp, or auto."
        ),
    ] = None
    pattern: Annotated[str | None, _doc("The files of a folder to read, such as *.jsonl.")] = None


class FieldEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A field of the results in an eval file, with its evaluators."""

    path: Annotated[str | None, _doc("The path of the field, such as usage.total_tokens. Default: its name.")] = None
    evaluators: Annotated[
        list[str | dict[str, Any]], _doc("Evaluators that receive the value of the field as the output.")
    ] = []
    combine: Annotated[str, _doc("and (all must pass), or (any), or module:function.")] = "and"
    skipped: Annotated[
        Skipped, _doc("If an evaluator skips: skip the field (skip), or ignore that evaluator (ignore).")
    ] = "skip"


class HistoryEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The retention of the runs of an eval file. By default, runs are kept forever."""

    retention_days: Annotated[
        Annotated[float, msgspec.Meta(gt=0)] | None, _doc("Keep the runs of the last N days.")
    ] = None
    retention_count: Annotated[Positive | None, _doc("Keep the last N runs of this name.")] = None

    @property
    def retention(self) -> Retention:
        """The limits, for the history."""
        return Retention(self.retention_days, self.retention_count)


class EvalFile(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of an eval file."""

    dataset: Annotated[
        str | DatasetEntry | list[dict[str, Any]], _doc("A path, a path with settings, or the samples themselves.")
    ]
    target: Annotated[
        str | dict[str, Any] | None,
        _doc(
            "module:attribute, file.py:attribute, a URL, a model such as openai:gpt-4o-mini, or one of {uses: …}, "
            "{command: …}, {conversation: …}, {http: …}, {model: …}, {recorded: FILE} or {recorded: "
            "null}, which reads the outputs in the samples. Optional with fields and for recorded sessions: then the "
            "samples hold the recorded results."
        ),
    ] = None
    evaluators: Annotated[
        list[str | dict[str, Any]],
        _doc("Names, module:attribute, or {name: {parameter: value}}; `proctor evaluators` lists the names."),
    ] = []
    fields: Annotated[
        dict[str, str | list[str | dict[str, Any]] | FieldEntry],
        _doc("Fields of the results by name: a path selects a field, a list names the evaluators of the field."),
    ] = {}
    baseline: Annotated[str | None, _doc("The configuration with which the other configurations are compared.")] = None
    name: Annotated[str | None, _doc("The name under which runs are stored.")] = None
    configurations: Annotated[
        dict[str, dict[str, Any]], _doc("Options by name; each configuration is run and compared.")
    ] = {}
    metrics: Annotated[list[str], _doc("Your own metrics, as module:attribute, or installed ones by name.")] = []
    plugins: Annotated[list[str], _doc("Evaluators and metrics to register, as module:attribute.")] = []
    run: Annotated[RunOptions, _doc("Options of the run.")] = RunOptions()
    canary: Annotated[
        Positive | None,
        _doc(
            "Show every judge a bad answer that asks for praise, on about one of N samples, and warn if the "
            "judge passes it."
        ),
    ] = None
    tags: Annotated[dict[str, str], _doc("Tags stored with the run, to find it by.")] = {}
    history: Annotated[
        HistoryEntry, _doc("The retention of runs of this name; a run that either limit covers is not deleted.")
    ] = HistoryEntry()
    fail_under: Annotated[
        float | str | dict[str, float | str],
        _doc(
            "The lowest acceptable strict pass rate, such as 0.8 or 80%, or the lowest value of each named "
            "metric; below it the command exits with 1."
        ),
    ] = {}


def build_schema() -> dict[str, Any]:
    """Return the JSON Schema of eval files."""
    generated: dict[str, Any] = _clean_descriptions(msgspec.json.schema(EvalFile))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Proctor eval file", **generated}


def _clean_descriptions(node: Any) -> Any:
    """Remove the indentation of docstrings, which Python before 3.13 does not remove."""
    if isinstance(node, dict):
        return {
            key: inspect.cleandoc(value) if key == "description" else _clean_descriptions(value)
            for key, value in node.items()
        }
    return [_clean_descriptions(item) for item in node] if isinstance(node, list) else node


def has_evaluators(values: Mapping[str, Any]) -> bool:
    """True if a file has an evaluator, for outputs or for a field."""
    return bool(values.get("evaluators") or field_evaluators(values.get("fields") or {}))


def field_paths(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return the path of each field by name."""
    return {
        name: entry if isinstance(entry, str) else _parse_field(entry).path or name for name, entry in fields.items()
    }


def field_evaluators(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an evaluator entry for each field that has evaluators."""
    entries = {name: _parse_field(value) for name, value in fields.items() if not isinstance(value, str)}
    return [
        {
            "uses": "field",
            "name": name,
            "path": entry.path or name,
            "evaluators": entry.evaluators,
            "combine": entry.combine,
            "skipped": entry.skipped,
        }
        for name, entry in entries.items()
        if entry.evaluators
    ]


def find_field_problems(fields: Mapping[str, Any]) -> list[str]:
    """Find unknown keys in the entries of fields."""
    return [
        f"fields.{name}: unknown key {key!r}; {suggest_name(str(key), FieldEntry.__struct_fields__)}"
        for name, entry in fields.items()
        for key in (entry if isinstance(entry, Mapping) else ())
        if key not in FieldEntry.__struct_fields__
    ]


def _parse_field(entry: Any) -> FieldEntry:
    if isinstance(entry, FieldEntry):
        return entry
    if isinstance(entry, list | tuple):
        return FieldEntry(evaluators=list(entry))
    for key in entry:
        if key not in FieldEntry.__struct_fields__:
            fix = suggest_name(key, FieldEntry.__struct_fields__)
            raise ConfigError(f"a field has no key {key!r}", where="fields", fix=fix)
    return FieldEntry(**entry)
