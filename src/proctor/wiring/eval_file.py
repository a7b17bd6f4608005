"""What an eval file may say, as records, and its JSON Schema for editors."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from proctor.errors import ConfigError, nearest
from proctor.records.run import Positive, Retention, RunOptions
from proctor.records.score import Skipped

SCHEMA_FILE = "eval.schema.json"


class DatasetEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A dataset in an eval file, where a path alone does not say enough."""

    path: Annotated[
        str,
        msgspec.Meta(
            description="A .jsonl, .ndjson, .json, .csv or .tsv file, compressed (.gz) or not; or "
            "logs and traces, as a file or a folder."
        ),
    ]
    mapping: Annotated[
        dict[str, str] | None,
        msgspec.Meta(description="Which column or key is which field: {question: input}."),
    ] = None
    generate_ids: Annotated[
        bool, msgspec.Meta(description="Make ids from the inputs where the file has none.")
    ] = False
    delimiter: Annotated[
        str | None, msgspec.Meta(description="What separates the cells of a table, such as ;.")
    ] = None
    format: Annotated[
        str | None,
        msgspec.Meta(
            description="How to read the file, where its ending and content do not tell. Samples: "
            "jsonl, json, csv, tsv. Recorded sessions, which need no target: the format of the "
            "logs or traces, such as claude-code or otlp, or auto."
        ),
    ] = None
    pattern: Annotated[
        str | None, msgspec.Meta(description="Which files of a folder of logs, such as *.jsonl.")
    ] = None


class FieldEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A field of the results in an eval file, with its evaluators."""

    path: Annotated[
        str | None, msgspec.Meta(description="Where it is, such as usage.total_tokens; its name if left out.")
    ] = None
    evaluators: Annotated[
        list[str | dict[str, Any]],
        msgspec.Meta(description="As above; to them the field's value is the output."),
    ] = []
    combine: Annotated[
        str, msgspec.Meta(description="and (all must pass), or (any), or module:function.")
    ] = "and"
    skipped: Annotated[
        Skipped,
        msgspec.Meta(
            description="Whether an evaluator that skips makes the field skipped (skip) or is "
            "left out (ignore)."
        ),
    ] = "skip"


class HistoryEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the runs of an eval file are kept; with neither, for ever."""

    retention_days: Annotated[
        Annotated[float, msgspec.Meta(gt=0)] | None,
        msgspec.Meta(description="Keep what began within so many days."),
    ] = None
    retention_count: Annotated[
        Positive | None, msgspec.Meta(description="Keep the last so many runs of this name.")
    ] = None

    @property
    def retention(self) -> Retention:
        """The same as it is carried out."""
        return Retention(self.retention_days, self.retention_count)


class EvalFile(msgspec.Struct, forbid_unknown_fields=True):
    """What an eval file may say."""

    dataset: Annotated[
        str | DatasetEntry | list[dict[str, Any]],
        msgspec.Meta(description="A path, a path with settings, or the samples themselves."),
    ]
    target: Annotated[
        str | dict[str, Any] | None,
        msgspec.Meta(
            description="module:attribute, file.py:attribute, a URL, a model such as "
            "openai:gpt-4o-mini, or one of {command: …}, {http: …}, {model: …}, {recorded: …}. "
            "With fields, or for recorded sessions, it may be left out: the samples then hold what "
            "was recorded."
        ),
    ] = None
    evaluators: Annotated[
        list[str | dict[str, Any]],
        msgspec.Meta(
            description="Names, module:attribute, or {name: {parameter: value}}; "
            "`proctor evaluators` lists them."
        ),
    ] = []
    fields: Annotated[
        dict[str, str | list[str | dict[str, Any]] | FieldEntry],
        msgspec.Meta(
            description="Fields of the results by name: a path alone selects one, a list are the "
            "evaluators of the field of that name."
        ),
    ] = {}
    baseline: Annotated[
        str | None, msgspec.Meta(description="The configuration that the others are compared with.")
    ] = None
    name: Annotated[str | None, msgspec.Meta(description="The name runs are kept under.")] = None
    configurations: Annotated[
        dict[str, dict[str, Any]], msgspec.Meta(description="Options by name; each set is run and compared.")
    ] = {}
    metrics: Annotated[list[str], msgspec.Meta(description="Your own metrics, as module:attribute.")] = []
    plugins: Annotated[
        list[str], msgspec.Meta(description="Evaluators and metrics to register, as module:attribute.")
    ] = []
    run: Annotated[RunOptions, msgspec.Meta(description="How the run is carried out.")] = RunOptions()
    canary: Annotated[
        Positive | None,
        msgspec.Meta(
            description="Show every judge a bad answer that asks for praise, on about one of N "
            "samples, and warn if the judge passes it."
        ),
    ] = None
    tags: Annotated[dict[str, str], msgspec.Meta(description="Words kept with the run, to find it by.")] = {}
    history: Annotated[
        HistoryEntry,
        msgspec.Meta(description="How long runs of this name are kept: while either limit keeps them."),
    ] = HistoryEntry()
    fail_under: Annotated[
        float | str | dict[str, float | str],
        msgspec.Meta(
            description="The least strict pass rate, such as 0.8 or 80%, or the least value of "
            "each metric named; below it the command exits with 1."
        ),
    ] = {}


def schema() -> dict[str, Any]:
    """The JSON Schema of eval files, for editors."""
    made: dict[str, Any] = _tidied(msgspec.json.schema(EvalFile))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Proctor eval file"}
    return head | made


def _tidied(part: Any) -> Any:
    """Descriptions as docstrings are meant: Python 3.13 takes their indent away, older ones not."""
    if isinstance(part, dict):
        return {
            key: inspect.cleandoc(value) if key == "description" else _tidied(value)
            for key, value in part.items()
        }
    return [_tidied(one) for one in part] if isinstance(part, list) else part


NOTHING_TO_EVALUATE = "evaluators is missing or empty, and there are no `fields` with some"


def says_what_to_evaluate(found: Mapping[str, Any]) -> bool:
    """True if any evaluator is named, for whole outputs or for a field."""
    return bool(found.get("evaluators") or field_evaluators(found.get("fields") or {}))


def field_paths(fields: Mapping[str, Any]) -> dict[str, str]:
    """Where each field of an eval file is: paths by name."""
    return {
        name: entry if isinstance(entry, str) else entry_of(entry).path or name
        for name, entry in fields.items()
    }


def field_evaluators(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields of an eval file that have evaluators, as evaluators."""
    entries = {name: entry_of(it) for name, it in fields.items() if not isinstance(it, str)}
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


def field_faults(fields: Mapping[str, Any]) -> list[str]:
    """Keys of fields' entries that say nothing, each with the one probably meant."""
    known = FieldEntry.__struct_fields__
    return [
        f"fields.{name}: unknown key {key!r}; {nearest(str(key), known)}"
        for name, entry in fields.items()
        if isinstance(entry, Mapping)
        for key in entry
        if key not in known
    ]


def entry_of(given: Any) -> FieldEntry:
    """A field's entry, however short it was written."""
    if isinstance(given, FieldEntry):
        return given
    if isinstance(given, list | tuple):
        return FieldEntry(evaluators=list(given))
    known = FieldEntry.__struct_fields__
    for key in given:
        if key not in known:
            raise ConfigError(f"a field has no {key!r}", where="fields", fix=nearest(key, known))
    return FieldEntry(**given)
