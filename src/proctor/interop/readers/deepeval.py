"""DeepEval: goldens (JSON, JSONL, CSV), conversational goldens, and test runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proctor.interop.files import damaged_file, decode_json, read_json, read_json_lines, read_table
from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.interop.run_builder import (
    clean_metadata,
    count_warnings,
    make_id,
    make_score,
    make_unique,
    make_usage,
    number_duplicates,
)
from proctor.interop.translations import translate_checks
from proctor.records import codec
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
_OWN_KEYS = ("input", "scenario", "expected_output", "expected_outcome", "actual_output", "name",
             "additional_metadata", "custom_column_key_values", "context")  # fmt: skip
_CASE_METADATA = {
    "context": "context", "retrievalContext": "retrieval_context", "expectedTools": "expected_tools",
    "comments": "comments", "userDescription": "user_description", "chatbotRole": "chatbot_role",
}  # fmt: skip
# The key of `.deepeval/.latest_test_run.json` that holds the test run.
_WRAPPED = b'"testRunData"'
_NO_SCORE = "it raised or gave no score, and the file does not say why"
_CASE = "test case"
_CASE_FAILED = "DeepEval counts the case as failed, and the file has no failed metric"
_DEFAULT_PERSONA = "a person who writes to the assistant"
_LOST_SEPARATOR = "context and retrieval_context are split at every |, because CSV and JSONL do not escape it"


def recognize(path: Path, head: bytes) -> bool:
    """Return True for a test run, or for goldens by their keys or columns."""
    if path.suffix.lower() == ".csv":
        columns = {name.strip(b'" \r') for name in head.partition(b"\n")[0].split(b",")}
        return (b"input" in columns and b"expected_output" in columns) or {b"scenario", b"turns"} <= columns
    if not head.lstrip().startswith((b"{", b"[")):
        return False
    if b'"testCases"' in head and (b'"metricsData"' in head or b'"metricsScores"' in head or _WRAPPED in head):
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
    if isinstance(document, dict) and isinstance(document.get("testRunData"), dict):
        document = document["testRunData"]
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
    ids = _choose_ids(goldens, "golden", ("input", "scenario", "expected_output", "expected_outcome"))
    samples = [_make_sample(golden, sample_id) for golden, sample_id in zip(goldens, ids, strict=True)]
    has_context = any(golden.get(key) for golden in goldens for key in _JOINED)
    warnings = (_LOST_SEPARATOR,) if is_joined and has_context else ()
    return ImportedFile(NAME, samples=tuple(samples), warnings=warnings)


def _choose_ids(cases: Sequence[Mapping[str, Any]], word: str, keys: Sequence[str]) -> list[str]:
    """Return unique ids: the name of a case, with a digest of its content if others have the name, else its number.

    A test that calls `assert_test` in a loop gives all its cases one name. The content stays the same if cases are
    added, so that runs remain comparable.
    """
    names = [as_text(case.get("name")) for case in cases]
    counts = Counter(names)
    ids = []
    for number, (case, name) in enumerate(zip(cases, names, strict=True), start=1):
        if not name:
            ids.append(f"{word}-{number}")
        elif counts[name] == 1:
            ids.append(name)
        else:
            ids.append(f"{name}-{make_id(*(case.get(key) for key in keys))[:6]}")
    return number_duplicates(ids)


def _make_sample(golden: Mapping[str, Any], sample_id: str) -> Sample[Any, Any]:
    metadata: dict[str, Any] = {}
    for key in ("additional_metadata", "custom_column_key_values"):
        metadata |= {str(name): value for name, value in as_mapping(golden.get(key)).items()}
    metadata |= {key: value for key, value in golden.items() if key not in _OWN_KEYS and value not in (None, [], {})}
    if golden.get("context"):
        metadata[CONTEXT] = golden["context"]
    name = as_text(golden.get("name"))
    if name and name != sample_id:
        metadata["name"] = name
    if golden.get("actual_output") is not None:
        metadata |= _record_output(golden)
    value = _make_persona(golden) if "scenario" in golden else golden["input"]
    expected = golden.get("expected_outcome") if "scenario" in golden else golden.get("expected_output")
    return Sample(sample_id, value, expected, clean_metadata(metadata, NAME))


def _record_output(golden: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that a recorded target reads: the output, and the session if the tools are known."""
    recorded: dict[str, Any] = {"output": golden["actual_output"]}
    tools = golden.get("tools_called")
    # Names alone, as older files have them, are calls without arguments.
    calls = [tool if isinstance(tool, dict) else {"name": tool} for tool in as_list(tools)]
    if isinstance(tools, list):
        case = {"input": golden.get("input"), "actualOutput": golden["actual_output"], "toolsCalled": calls}
        recorded["session"] = codec.to_plain(Session(list(_read_exchange(case))))
    return recorded


def _make_persona(golden: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input that `ConversationTarget` with a simulated user reads."""
    described = golden.get("user_description") or as_mapping(golden.get("persona")).get("characteristics")
    persona = {"persona": as_text(described) or _DEFAULT_PERSONA, "goal": golden["scenario"]}
    first = as_mapping(next(iter(as_list(golden.get("turns"))), None))
    opening = first.get("content") if first.get("role") == "user" else None
    return {**persona, "opening": opening} if isinstance(opening, str) and opening else persona


def _read_test_run(path: Path, document: Mapping[str, Any]) -> ImportedFile:
    cases = [*as_list(document.get("testCases")), *as_list(document.get("conversationalTestCases"))]
    fields = sorted(map(as_mapping, cases), key=lambda case: case["order"] if is_number(case.get("order")) else 0)
    ids = _choose_ids(fields, "case", ("input", "scenario", "expectedOutput", "expectedOutcome"))
    warnings = ["trace spans are left out" for case in fields if case.get("trace")]
    directions = _find_directions(fields)
    warnings += [direction.describe(name) for name, direction in directions.items()]
    results = tuple(_read_case(case, sample_id, directions) for case, sample_id in zip(fields, ids, strict=True))
    failed = (item for result in results for item in result.scores.items() if item[1].status == "error")
    warnings += [f"{name}: an error of the metric: {score.reason}" for name, score in failed]
    options = {str(key): value for key, value in as_mapping(document.get("hyperparameters")).items()}
    metrics = [metric for case in fields for metric in map(as_mapping, as_list(case.get("metricsData")))]
    times = [parse_time(as_mapping(case.get("trace")).get("startTime")) for case in fields]
    run = ImportedRun(
        as_text(document.get("identifier")) or path.name.partition(".")[0],
        results,
        started_at=min(filter(None, times), default=None),
        configurations=(Configuration(options=options),),
        reported=_read_totals(document, directions),
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


class _Direction(NamedTuple):
    """A metric of which less is better, or whose scores are not all from 0 to 1 (`is_fraction` is False)."""

    is_less_better: bool
    is_fraction: bool

    def describe(self, name: str) -> str:
        less = "less is better in this file"
        if self.is_fraction:
            return f"{name}: {less}, so its scores and their mean are 1 - score"
        reason = f"{less}, and not all scores" if self.is_less_better else "not all scores"
        return f"{name}: {reason} are from 0 to 1: a score is 1 if it passed, else 0"


def _find_directions(cases: Sequence[Mapping[str, Any]]) -> dict[str, _Direction]:
    """Return the metrics whose scores are not fractions of which more is better.

    A file does not name the direction: Hallucination passed up to its threshold before DeepEval 4.2, and passes from it
    since. The verdicts show it. At the threshold 0 (strict mode), only a metric of which less is better can fail.
    """
    verdicts: dict[str, list[tuple[float, float, bool]]] = {}
    for metric in (metric for case in cases for metric in map(as_mapping, as_list(case.get("metricsData")))):
        score, threshold = as_number(metric.get("score")), as_number(metric.get("threshold"))
        success = metric.get("success")
        if metric.get("error") or not isinstance(success, bool):
            continue
        if score is not None and threshold is not None:
            verdicts.setdefault(str(metric.get("name")), []).append((score, threshold, success))
    directions = {
        name: _Direction(
            all(success == (score <= threshold) for score, threshold, success in group)
            and any(threshold == 0 or success != (score >= threshold) for score, threshold, success in group),
            all(0 <= score <= 1 for score, _, _ in group),
        )
        for name, group in verdicts.items()
    }
    return {name: found for name, found in directions.items() if found.is_less_better or not found.is_fraction}


def _read_totals(document: Mapping[str, Any], directions: Mapping[str, _Direction]) -> dict[str, float]:
    totals = {"passed": document.get("testPassed"), "failed": document.get("testFailed"),
              "judges.cost": document.get("evaluationCost")}  # fmt: skip
    for metric in map(as_mapping, as_list(document.get("metricsScores"))):
        scores = [score for score in as_list(metric.get("scores")) if is_number(score)]
        name = str(metric.get("metric"))
        if scores and (name not in directions or directions[name].is_fraction):
            mean = sum(scores) / len(scores)
            totals[f"{name}.mean"] = 1 - mean if name in directions else mean
    numbers = {key: as_number(value) for key, value in totals.items()}
    return {key: number for key, number in numbers.items() if number is not None}


def _read_case(case: Mapping[str, Any], sample_id: str, directions: Mapping[str, _Direction]) -> EvalResult:
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
        scores[name] = _read_score(metric, directions[name].is_fraction if name in directions else None)
        if metric.get("evaluationModel") and is_number(cost := metric.get("evaluationCost")):
            sessions[name] = Session([ModelCall(str(metric["evaluationModel"]), make_usage(cost=cost))])
    result = EvalResult(trial, scores, sessions, skipped="ignore")
    if case.get("success") is False and result.outcome == "passed":
        scores[make_unique(_CASE, scores)] = Score.error(_CASE_FAILED)
    return result


def _read_score(metric: Mapping[str, Any], is_turned: bool | None) -> Score:
    """Return the score of a metric; `is_turned` is None if more is better, False if its numbers are no fractions."""
    details = {"threshold": metric["threshold"]} if is_number(metric.get("threshold")) else {}
    if metric.get("error"):
        return Score.error(str(metric["error"]), details)
    if metric.get("skipped"):
        return Score.skipped(str(metric.get("reason") or "the metric was skipped"), details)
    value, success, reason = as_number(metric.get("score")), metric.get("success"), metric.get("reason")
    if value is None:
        return Score.error(str(reason or _NO_SCORE), details)
    if not isinstance(success, bool):
        success = value >= details["threshold"] if details else None
    if is_turned is not None:
        details["score"] = value
    if isinstance(success, bool) and (is_turned is False or not 0 <= value <= 1):
        # The verdict of the tool is known, although the number is no score.
        return Score(float(success), success, str(reason or ""), {**details, "score": value})
    score = make_score(1 - value if is_turned else value, success, reason, details)
    assert score is not None  # It is a number.
    return score


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
