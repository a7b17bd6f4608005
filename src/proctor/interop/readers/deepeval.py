"""DeepEval: goldens (JSON, JSONL, CSV), conversational goldens, and test runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.interop.files import damaged_file, decode_json, read_json, read_json_lines, read_table
from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.interop.run_builder import clean_metadata, count_warnings, make_score, make_usage
from proctor.interop.translations import translate_checks
from proctor.records.numbers import as_number, is_number
from proctor.records.sample import CONTEXT, Sample
from proctor.records.score import Score
from proctor.records.session import Event, Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Configuration, EvalResult, Trial
from proctor.sessions.genai.message_parser import parse_role
from proctor.sessions.importers.imported_session import parse_time
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text

NAME = "deepeval"
_GOLDEN_KEYS = re.compile(rb'"(?:expected_output|actual_output|expected_outcome)"\s*:')
_INPUT_KEYS = re.compile(rb'"(?:input|scenario)"\s*:')
_LINES = (".jsonl", ".ndjson")
_JOINED = ("context", "retrieval_context")
_JSON_CELLS = ("tools_called", "expected_tools", "additional_metadata", "custom_column_key_values", "turns",
               "expectations", "persona")  # fmt: skip
_OWN_KEYS = ("input", "scenario", "expected_output", "expected_outcome", "name", "additional_metadata",
             "custom_column_key_values", "context")  # fmt: skip
_CASE_METADATA = {
    "context": "context", "retrievalContext": "retrieval_context", "expectedTools": "expected_tools",
    "comments": "comments", "userDescription": "user_description", "chatbotRole": "chatbot_role",
}  # fmt: skip
_LOST_SEPARATOR = "context and retrieval_context are split at every |, because CSV and JSONL do not escape it"


def recognize(path: Path, head: bytes) -> bool:
    """Return True for a test run, or for goldens by their keys or columns."""
    if path.suffix.lower() == ".csv":
        columns = {name.strip(b'" \r') for name in head.partition(b"\n")[0].split(b",")}
        return (b"input" in columns and b"expected_output" in columns) or {b"scenario", b"turns"} <= columns
    if not head.lstrip().startswith((b"{", b"[")):
        return False
    if b'"testCases"' in head and (b'"metricsData"' in head or b'"metricsScores"' in head):
        return True
    has_keys = _GOLDEN_KEYS.search(head) is not None and _INPUT_KEYS.search(head) is not None
    return has_keys and (head.lstrip().startswith(b"[") or path.suffix.lower() in _LINES)


def read(path: Path) -> ImportedFile:
    """Read goldens as samples, or a test run with its results."""
    suffix = path.suffix.lower()
    if suffix == ".csv":
        header, rows = read_table(path)
        records = [_parse_cells(dict(zip(header, row, strict=False)), path) for row in rows]
        return _read_goldens(path, records, is_joined=True)
    if suffix in _LINES:
        return _read_goldens(path, [_parse_cells(value, path) for _, value in read_json_lines(path)], is_joined=True)
    document = read_json(path)
    if isinstance(document, dict) and "testCases" in document:
        return _read_test_run(path, document)
    return _read_goldens(path, as_list(document), is_joined=False)


def _parse_cells(record: Any, path: Path) -> dict[str, Any]:
    """Return a record of a CSV or JSONL file with its joined lists and JSON texts as values."""
    fields: dict[str, Any] = {key: None if value == "" else value for key, value in as_mapping(record).items()}
    for key in _JOINED:
        if isinstance(fields.get(key), str):
            fields[key] = fields[key].split("|")
    for key in _JSON_CELLS:
        if isinstance(text := fields.get(key), str):
            # Older files have the names of the tools, separated by semicolons.
            is_json = text.lstrip().startswith(("[", "{"))
            fields[key] = decode_json(text.encode(), f"{path}, {key}") if is_json else text.split(";")
    return fields


def _read_goldens(path: Path, records: Sequence[Any], *, is_joined: bool) -> ImportedFile:
    goldens = [dict(as_mapping(record)) for record in records]
    if not goldens or not all("input" in golden or "scenario" in golden for golden in goldens):
        raise damaged_file("not a list of goldens: every golden needs an input or a scenario", path)
    for golden in goldens:
        if isinstance(turns := golden.get("turns"), str):
            golden["turns"] = decode_json(turns.encode(), f"{path}, turns")
    names = [as_text(golden.get("name")) for golden in goldens]
    are_ids = all(names) and len(set(names)) == len(names)
    samples = [
        _make_sample(golden, str(name) if are_ids else f"golden-{number}", name)
        for number, (golden, name) in enumerate(zip(goldens, names, strict=True), start=1)
    ]
    has_context = any(golden.get(key) for golden in goldens for key in _JOINED)
    warnings = (_LOST_SEPARATOR,) if is_joined and has_context else ()
    return ImportedFile(NAME, samples=tuple(samples), warnings=warnings)


def _make_sample(golden: Mapping[str, Any], sample_id: str, name: str | None) -> Sample[Any, Any]:
    metadata: dict[str, Any] = {}
    for key in ("additional_metadata", "custom_column_key_values"):
        metadata |= {str(name): value for name, value in as_mapping(golden.get(key)).items()}
    metadata |= {key: value for key, value in golden.items() if key not in _OWN_KEYS and value not in (None, [], {})}
    if golden.get("context"):
        metadata[CONTEXT] = golden["context"]
    if name is not None and name != sample_id:
        metadata["name"] = name
    value = golden["scenario"] if "scenario" in golden else golden["input"]
    expected = golden.get("expected_outcome") if "scenario" in golden else golden.get("expected_output")
    return Sample(sample_id, value, expected, clean_metadata(metadata, NAME))


def _read_test_run(path: Path, document: Mapping[str, Any]) -> ImportedFile:
    cases = [*as_list(document.get("testCases")), *as_list(document.get("conversationalTestCases"))]
    fields = sorted(map(as_mapping, cases), key=lambda case: case["order"] if is_number(case.get("order")) else 0)
    names = [as_text(case.get("name")) for case in fields]
    are_ids = all(names) and len(set(names)) == len(names)
    warnings = ["trace spans are left out" for case in fields if case.get("trace")]
    results = tuple(
        _read_case(case, str(name) if are_ids else f"case-{number}")
        for number, (case, name) in enumerate(zip(fields, names, strict=True), start=1)
    )
    options = {str(key): value for key, value in as_mapping(document.get("hyperparameters")).items()}
    metrics = [metric for case in fields for metric in map(as_mapping, as_list(case.get("metricsData")))]
    times = [parse_time(as_mapping(case.get("trace")).get("startTime")) for case in fields]
    run = ImportedRun(
        as_text(document.get("identifier")) or path.name.partition(".")[0],
        results,
        started_at=min(filter(None, times), default=None),
        configurations=(Configuration(options=options),),
        reported=_read_totals(document),
        tags={"model": options["model"]} if isinstance(options.get("model"), str) else {},
        details={"evaluators": {str(metric.get("name")): _describe_metric(metric) for metric in metrics}},
    )
    untranslated: list[str] = []
    evaluators = translate_checks(NAME, (str(metric.get("name")) for metric in metrics), untranslated, "metric")
    samples = tuple(result.trial.sample for result in results)
    return ImportedFile(NAME, "", samples, (run,), evaluators, count_warnings(warnings), tuple(untranslated))


def _describe_metric(metric: Mapping[str, Any]) -> dict[str, Any]:
    fields = {"threshold": metric.get("threshold"), "model": metric.get("evaluationModel")}
    return {key: value for key, value in fields.items() if value is not None}


def _read_totals(document: Mapping[str, Any]) -> dict[str, float]:
    totals = {"passed": document.get("testPassed"), "failed": document.get("testFailed"),
              "judges.cost": document.get("evaluationCost")}  # fmt: skip
    for metric in map(as_mapping, as_list(document.get("metricsScores"))):
        scores = [score for score in as_list(metric.get("scores")) if is_number(score)]
        if scores:
            totals[f"{metric.get('metric')}.mean"] = sum(scores) / len(scores)
    numbers = {key: as_number(value) for key, value in totals.items()}
    return {key: number for key, number in numbers.items() if number is not None}


def _read_case(case: Mapping[str, Any], sample_id: str) -> EvalResult:
    turns = as_list(case.get("turns"))
    metadata = dict(as_mapping(case.get("metadata")))
    for source, key in _CASE_METADATA.items():
        if case.get(source):
            metadata[key] = case[source]
    if tags := [tag for tag in as_list(case.get("tags")) if isinstance(tag, str)]:
        metadata["tags"] = tags
    value = case.get("input") if "input" in case else case.get("scenario") or _first_content(turns, "user")
    expected = case.get("expectedOutput", case.get("expectedOutcome"))
    session = Session(list(_read_turns(turns) if turns else _read_exchange(case)))
    seconds = as_number(case.get("completionTime"))
    usage = make_usage(cost=case.get("tokenCost"))
    output = case.get("actualOutput") if "actualOutput" in case else _first_content(turns[::-1], "assistant")
    trial = Trial(
        Sample(sample_id, "" if value is None else value, expected, clean_metadata(metadata, NAME)),
        output,
        latency_ms=None if seconds is None else seconds * 1000,
        usage=None if usage == Usage() else usage,
        session=session,
    )
    scores: dict[str, Score] = {}
    sessions: dict[str, Session] = {}
    for metric in map(as_mapping, as_list(case.get("metricsData"))):
        name = str(metric.get("name"))
        score = _read_score(metric)
        if score is not None:
            scores[name] = score
        if metric.get("evaluationModel") and is_number(cost := metric.get("evaluationCost")):
            sessions[name] = Session([ModelCall(str(metric["evaluationModel"]), make_usage(cost=cost))])
    return EvalResult(trial, scores, sessions, skipped="ignore")


def _read_score(metric: Mapping[str, Any]) -> Score | None:
    details = {"threshold": metric["threshold"]} if is_number(metric.get("threshold")) else {}
    if metric.get("error"):
        return Score.error(str(metric["error"]), details)
    if metric.get("skipped"):
        return Score.skipped(str(metric.get("reason") or "the metric was skipped"), details)
    return make_score(metric.get("score"), metric.get("success"), metric.get("reason"), details)


def _first_content(turns: Sequence[Any], role: str) -> Any:
    contents = (turn.get("content") for turn in map(as_mapping, turns) if turn.get("role") == role)
    return next(contents, None)


def _read_turns(turns: Sequence[Any]) -> Iterator[Event]:
    for turn in map(as_mapping, turns):
        calls = _read_calls(turn.get("toolsCalled"))
        yield Message(parse_role(str(turn.get("role"))) or "user", turn.get("content"), tool_calls=calls)
        yield from calls


def _read_exchange(case: Mapping[str, Any]) -> Iterator[Event]:
    yield Message("user", case.get("input"))
    yield from _read_calls(case.get("toolsCalled"))
    yield Message("assistant", case.get("actualOutput"))


def _read_calls(tools: Any) -> tuple[ToolCall, ...]:
    return tuple(
        ToolCall(str(tool.get("name")), dict(as_mapping(tool.get("inputParameters"))), tool.get("output"))
        for tool in map(as_mapping, as_list(tools))
    )
