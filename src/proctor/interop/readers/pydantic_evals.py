"""pydantic-evals: datasets in YAML or JSON, and reports in JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.errors import DatasetError
from proctor.interop.files import read_json, read_yaml
from proctor.interop.imported import ImportedFile
from proctor.interop.run_builder import (
    Notes,
    RunBuilder,
    make_failure,
    make_sample,
    make_usage,
    number_duplicates,
    to_milliseconds,
)
from proctor.interop.tables import require_object
from proctor.records.sample import Sample
from proctor.records.score import Score

NAME = "pydantic-evals"
_STRING = rb'"(?:[^"\\]|\\.)*"'
_JSON_START = re.compile(rb'\A\s*\{(?:\s*"(?:\$schema|name)"\s*:\s*(?:' + _STRING + rb'|null)\s*,)*\s*"cases"\s*:\s*\[')
_YAML_START = re.compile(rb"(?m)\A(?:\s*#.*\n|\s*\n|(?:name|\$schema):.*\n)*cases:")
# The classes whose instances JSON can tell apart.
_JSON_TYPES = {"str": "string", "dict": "object", "list": "array", "bool": "boolean"}
_FIRST_ARGUMENTS = {
    "Equals": "value", "Contains": "value", "IsInstance": "type_name", "MaxDuration": "seconds", "LLMJudge": "rubric",
}  # fmt: skip
_PROVIDERS = {
    "openai": "openai",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "anthropic": "anthropic",
    "google": "gemini",
    "google-gla": "gemini",
}


def recognize(path: Path, head: bytes) -> bool:
    """Return True if a file is a pydantic-evals dataset or report."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return _YAML_START.match(head) is not None and b"inputs:" in head
    return _JSON_START.match(head) is not None and b'"inputs"' in head


def read(path: Path) -> ImportedFile:
    """Read a dataset or a report."""
    content = read_yaml(path) if path.suffix.lower() in (".yaml", ".yml") else read_json(path)
    document = require_object(content, str(path))
    cases = document.get("cases")
    if not isinstance(cases, list):
        raise DatasetError(
            "the file has no list of cases", where=str(path), fix="pass a dataset or a report of pydantic-evals"
        )
    cases = [require_object(case, f"{path}, case {number}") for number, case in enumerate(cases, start=1)]
    notes = Notes()
    if "failures" in document or any("output" in case for case in cases):
        return _read_report(document, cases, notes, path)
    names = number_duplicates(_name_case(case, number) for number, case in enumerate(cases, start=1))
    notes.add("left out", "report evaluator", "of the whole dataset", len(document.get("report_evaluators") or ()))
    accepts_any = any(_is_list_of_text(case.get("expected_output")) for case in cases)
    samples = tuple(
        _make_sample(case, name, _translate_all(case.get("evaluators") or (), notes, accepts_any))
        for case, name in zip(cases, names, strict=True)
    )
    evaluators = _translate_all(document.get("evaluators") or (), notes, accepts_any)
    return ImportedFile(NAME, samples=samples, evaluators=evaluators, warnings=notes.texts)


def _name_case(case: Mapping[str, Any], number: int) -> str:
    return str(case.get("name") or f"case {number}")


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)


def _make_sample(case: Mapping[str, Any], name: str, evaluators: tuple[Any, ...] = ()) -> Sample[Any, Any]:
    return make_sample(name, case.get("inputs"), case.get("expected_output"), case.get("metadata"), evaluators)


def _translate_all(entries: Sequence[Any], notes: Notes, accepts_any: bool) -> tuple[Any, ...]:
    """Return the evaluators in the notation of eval files; the others are counted."""
    translated = []
    for entry in entries:
        name, arguments = _read_entry(entry)
        if name == "EqualsExpected" and accepts_any:
            notes.add("left out", "evaluator", "EqualsExpected: exact_match accepts any item of an expected list")
            continue
        result = _TRANSLATIONS[name](arguments) if name in _TRANSLATIONS else None
        if isinstance(result, dict):
            label = str(arguments.get("evaluation_name") or name)
            translated.append({"uses": result["uses"], "name": label, **result})
        else:
            notes.add("left out", "evaluator", f"{name}, {result or 'which Proctor does not have'}")
    return tuple(translated)


def _read_entry(entry: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the arguments of an evaluator: a name, {name: argument} or {name: {arguments}}."""
    if not isinstance(entry, dict) or len(entry) != 1:
        return str(entry), {}
    ((name, value),) = entry.items()
    first = _FIRST_ARGUMENTS.get(name, "value")
    if isinstance(value, dict) and (first in value or name not in _FIRST_ARGUMENTS or not value):
        return str(name), value
    return str(name), {first: value}


def _translate_contains(arguments: dict[str, Any]) -> dict[str, Any] | str:
    value = arguments.get("value")
    if not isinstance(value, str) or arguments.get("as_strings"):
        return "which here looks for something else than text in text"
    flags = {} if arguments.get("case_sensitive", True) else {"flags": "i"}
    return {"uses": "regex_match", "pattern": re.escape(value), **flags}


def _translate_type(arguments: dict[str, Any]) -> dict[str, Any] | str:
    name = arguments.get("type_name")
    if name not in _JSON_TYPES:
        return f"because outputs are stored without their class ({name})"
    return {"uses": "schema_match", "schema": {"type": _JSON_TYPES[name]}, "parse": False}


def _translate_duration(arguments: dict[str, Any]) -> dict[str, Any] | str:
    milliseconds = to_milliseconds(arguments.get("seconds"))
    if milliseconds is None:
        return f"because {arguments.get('seconds')!r} is not a number of seconds"
    return {"uses": "latency", "max_ms": milliseconds}


def _translate_judge(arguments: dict[str, Any]) -> dict[str, Any] | str:
    provider, _, model = str(arguments.get("model") or "").partition(":")
    shown = {"show_input": bool(arguments.get("include_input"))}
    shown["reference"] = bool(arguments.get("include_expected_output"))
    if provider not in _PROVIDERS or not model:
        rubric = arguments.get("rubric")
        return f"which names no model of Proctor; add it: llm_judge: {{model: openai:MODEL, rubric: {rubric!r}}}"
    return {"uses": "llm_judge", "model": f"{_PROVIDERS[provider]}:{model}", "rubric": arguments.get("rubric"), **shown}


_TRANSLATIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any] | str]] = {
    "EqualsExpected": lambda arguments: {"uses": "exact_match"},  # noqa: ARG005
    "Equals": lambda arguments: {"uses": "schema_match", "schema": {"const": arguments.get("value")}, "parse": False},
    "Contains": _translate_contains,
    "IsInstance": _translate_type,
    "MaxDuration": _translate_duration,
    "LLMJudge": _translate_judge,
}


def _read_report(document: Mapping[str, Any], cases: list[dict[str, Any]], notes: Notes, path: Path) -> ImportedFile:
    builder = RunBuilder(notes)
    for case in cases:
        metrics = case.get("metrics") or {}
        builder.add(
            _make_sample(case, _find_source(case)),
            _read_scores(case, builder),
            output=case.get("output"),
            latency_ms=to_milliseconds(case.get("task_duration")),
            usage=make_usage(metrics.get("input_tokens"), metrics.get("output_tokens"), cost=metrics.get("cost")),
            metrics={**metrics, **(case.get("attributes") or {})},
        )
    for case in document.get("failures") or ():
        failure = make_failure(
            case.get("error_message"), case.get("error_type"), traceback=case.get("error_stacktrace")
        )
        builder.add(_make_sample(case, _find_source(case)), {}, error=failure)
    notes.add("left out", "analysis of the whole report", "", len(document.get("analyses") or ()))
    details = {"dataset": document.get("dataset_name"), "experiment_metadata": document.get("experiment_metadata")}
    details = {name: value for name, value in details.items() if value}
    return builder.build_file(NAME, str(document.get("name") or path.stem), details)


def _find_source(case: Mapping[str, Any]) -> str:
    """Return the name of the case in the dataset; repeats are called "name [1/3]"."""
    return str(case.get("source_case_name") or case.get("name"))


def _read_scores(case: Mapping[str, Any], builder: RunBuilder) -> dict[str, Score | None]:
    scores = {
        name: builder.score(result.get("value"), reason=result.get("reason"))
        for group in ("assertions", "scores", "labels")
        for name, result in (case.get(group) or {}).items()
    }
    failures = {
        str(failure["name"]): builder.score(
            None,
            error=failure.get("error_message") or failure.get("error_type") or "the evaluator failed",
            details={"traceback": failure.get("error_stacktrace")},
        )
        for failure in case.get("evaluator_failures") or ()
    }
    return {**scores, **failures}
