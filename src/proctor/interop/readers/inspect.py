"""Inspect logs: `.eval` archives and `.json` documents.

Inspect gives values, not verdicts: a score passes from 1, as in Inspect's own `pass_at` and `at_least` reducers. The
values C, P, I and N are 1, 0.5, 0 and 0. A scorer with other numbers between 0 and 1 is graded: its scores have the
verdict of the other scorers.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.interop.files import ZipReader, damaged_file, read_json
from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.interop.run_builder import (
    GRADE,
    clean_metadata,
    count_warnings,
    describe_graded,
    find_graded,
    follow_verdicts,
    is_nan,
    make_score,
    make_usage,
)
from proctor.interop.translations import translate_checks
from proctor.records.formatting import format_count
from proctor.records.numbers import as_number, token_count
from proctor.records.run import RunStatus
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Configuration, EvalResult, Failure, Trial
from proctor.sessions.genai.message_parser import parse_role
from proctor.sessions.genai.values import parse_arguments
from proctor.sessions.importers.imported_session import parse_time
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text, extract_text, omit_keys
from proctor.sessions.importers.session_builder import SessionBuilder

NAME = "inspect"
_LOG_START = re.compile(rb'\s*\{\s*(?:"version"\s*:\s*\d+\s*,\s*)?"status"\s*:\s*"')
_HEADERS = ("header.json", "_journal/start.json")
_STATUSES: dict[str, RunStatus] = {"success": "completed", "error": "failed"}
_GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_ATTACHMENTS = ("attachment://", "tc://")
# The message of an error is the representation of its exception.
_EXCEPTION = re.compile(r"""(\w+)\((?:(['"])(.*)\2)?\)""", re.DOTALL)
_CHOICES = "the choices of a sample are in its metadata, so a target does not see them; add them to its input"
_SCORING = ("scorer", "scorers")
_COUNTED = ("input_tokens", "output_tokens")
_NO_FRACTION = "a value is not a number from 0 to 1, so it is no score"
_NO_GRADE = "the scorer gave no grade (NaN)"
_CANCELLED = "CancelledError"
# Ids of digits are numbers, and other ids come after them.
MAX_DIGITS, MAX_NUMBER = 18, 10**18
# A model call with the id of its message.
ModelEvent = tuple[str | None, ModelCall]


def recognize(path: Path, head: bytes) -> bool:
    """Return True for an archive with the members of a log, or a document that starts like a log."""
    if head.startswith(b"PK"):
        return path.suffix.lower() == ".eval" or any(name.encode() in head for name in _HEADERS)
    return _LOG_START.match(head) is not None and b'"eval"' in head


def read(path: Path) -> ImportedFile:
    """Read a log: its samples, and one run with their results."""
    with path.open("rb") as file:
        is_archive = file.read(2) == b"PK"
    header, logged = _read_archive(path) if is_archive else _read_document(path)
    spec = as_mapping(header.get("eval"))
    if not spec:
        raise damaged_file("this is not an Inspect log: the key 'eval' is missing", path)
    warnings: list[str] = []
    untranslated: list[str] = []
    logged = _sort_samples(list(map(as_mapping, logged)), spec)
    results = tuple(_read_result(sample, spec, warnings) for sample in logged)
    warnings += _list_limits(logged)
    samples = {result.sample_id: result.trial.sample for result in results}
    untranslated += [_CHOICES for sample in samples.values() if "choices" in sample.metadata]
    evaluators = translate_checks(NAME, (name for name, _ in _list_scorers(spec)), untranslated, "scorer")
    names = _list_without_verdicts(results)
    graded = find_graded(results, names)
    warnings += describe_graded(results, graded)
    run = msgspec.structs.replace(
        _read_run(header, spec, follow_verdicts(results, graded)), without_verdicts=names, graded=graded
    )
    version = as_text(as_mapping(spec.get("packages")).get("inspect_ai")) or ""
    return ImportedFile(
        NAME,
        version,
        tuple(samples.values()),
        (run,),
        evaluators,
        count_warnings(warnings),
        count_warnings(untranslated),
    )


def _read_archive(path: Path) -> tuple[Mapping[str, Any], list[Any]]:
    with ZipReader(path) as archive:
        names = archive.names
        header = next((name for name in _HEADERS if name in names), None)
        if header is None:
            raise damaged_file(f"not an Inspect log: it has neither {' nor '.join(_HEADERS)}", path)
        samples = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
        return as_mapping(archive.read_json(header)), [archive.read_json(name) for name in samples]


def _read_document(path: Path) -> tuple[Mapping[str, Any], Sequence[Any]]:
    document = as_mapping(read_json(path))
    return document, as_list(document.get("samples"))


def _sort_samples(samples: list[Mapping[str, Any]], spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the samples in the order of the dataset; an archive has them in the order in which they ended."""
    ids = as_list(as_mapping(spec.get("dataset")).get("sample_ids"))
    positions = {str(sample_id): number for number, sample_id in enumerate(ids)}

    def get_position(sample: Mapping[str, Any]) -> tuple[int, int, str, int]:
        name = str(sample.get("id"))
        number = int(name) if name.isdecimal() and len(name) < MAX_DIGITS else MAX_NUMBER
        return positions.get(name, len(ids)), number, name, token_count(sample.get("epoch")) or 1

    return sorted(samples, key=get_position)


def _list_limits(samples: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a warning for each limit that ended samples."""
    limits = (as_mapping(sample.get("limit")) for sample in samples)
    counts = Counter(str(limit.get("type") or "unknown") for limit in limits if limit)
    for kind, count in counts.items():
        yield (
            f"a {kind} limit ended {format_count(count, 'trial')}, which {'has' if count == 1 else 'have'} the output "
            "and the scores at that point; their sessions end with the event sample_limit"
        )


def _list_without_verdicts(results: Sequence[EvalResult]) -> tuple[str, ...]:
    """Return the names of the scorers without verdicts; a log of Proctor has them in the metadata of its scores."""
    scores = [item for result in results for item in result.scores.items() if item[1].ok]
    judged = {name for name, score in scores if "passed" in as_mapping(score.details.get("metadata"))}
    return tuple(dict.fromkeys(name for name, _ in scores if name not in judged))


def _read_run(header: Mapping[str, Any], spec: Mapping[str, Any], results: tuple[EvalResult, ...]) -> ImportedRun:
    stats, summary = as_mapping(header.get("stats")), as_mapping(header.get("results"))
    total = token_count(summary.get("total_samples"))
    total = _count_planned(spec) if total is None else total
    model = str(spec.get("model") or "")
    usage = as_mapping(stats.get("model_usage"))
    details = {
        "dataset": as_mapping(spec.get("dataset")).get("name"),
        "target": model,
        "model_usage": usage,
        "evaluators": {name: as_mapping(scorer.get("options")) for name, scorer in _list_scorers(spec)},
    }
    reported = _read_metrics(summary)
    if usage and (total is None or total == len(results)):
        reported["tokens"] = float(
            sum(token_count(as_mapping(u).get(key)) or 0 for u in usage.values() for key in _COUNTED)
        )
    tags = {"model": model} if model else {}
    if labels := [tag for tag in as_list(spec.get("tags")) if isinstance(tag, str)]:
        tags["tags"] = ", ".join(labels)
    config = as_mapping(spec.get("model_generate_config"))
    return ImportedRun(
        str(spec.get("task") or NAME),
        results,
        _STATUSES.get(str(header.get("status")), "interrupted"),
        parse_time(stats.get("started_at")) or parse_time(spec.get("created")),
        parse_time(stats.get("completed_at")),
        (Configuration(options={"model": model, **config} if model else dict(config)),),
        reported,
        total,
        tags,
        {key: value for key, value in details.items() if value},
    )


def _count_planned(spec: Mapping[str, Any]) -> int | None:
    """Return how many results (samples × epochs) an unfinished log planned; None if the log does not say."""
    dataset, config = as_mapping(spec.get("dataset")), as_mapping(spec.get("config"))
    samples: int | None = len(as_list(dataset.get("sample_ids")))
    if not samples:
        # `samples` is the size of the dataset, of which a run may take a part.
        is_part = any(config.get(key) is not None for key in ("limit", "sample_id"))
        samples = None if is_part else token_count(dataset.get("samples"))
    return samples and samples * (token_count(config.get("epochs")) or 1)


def _read_metrics(summary: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics that Inspect computed, by score and metric; reducers other than the mean are named."""
    reported = {}
    for score in map(as_mapping, as_list(summary.get("scores"))):
        reducer = score.get("reducer")
        suffix = "" if reducer in (None, "mean") else f" ({reducer})"
        for name, metric in as_mapping(score.get("metrics")).items():
            if (value := as_number(as_mapping(metric).get("value"))) is not None:
                reported[f"{score.get('name')}.{name}{suffix}"] = value
    return reported


def _list_scorers(spec: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for scorer in map(as_mapping, as_list(spec.get("scorers"))):
        yield str(scorer.get("name")).rpartition("/")[2], scorer


def _read_result(sample: Mapping[str, Any], spec: Mapping[str, Any], warnings: list[str]) -> EvalResult:
    if attachments := as_mapping(sample.get("attachments")):
        sample = {**sample, **_resolve({key: sample.get(key) for key in ("input", "messages", "output")}, attachments)}
    calls, scorer_calls = _split_model_calls(sample, str(spec.get("model") or ""))
    session = _build_session(sample, calls)
    usage = sum((call.usage for _, call in calls), Usage())
    seconds = as_number(sample.get("working_time") or sample.get("total_time"))
    epoch = token_count(sample.get("epoch")) or 1
    error = as_mapping(sample.get("error"))
    trial = Trial(
        _read_sample(sample),
        None if error else _read_output(sample),
        _read_failure(error) if error else None,
        None if seconds is None else seconds * 1000,
        parse_time(sample.get("started_at")),
        epoch=max(0, epoch - 1),
        usage=None if usage == Usage() else usage,
        session=session,
    )
    scores = {} if error else _read_scores(sample, warnings)
    return EvalResult(
        trial, scores, {name: Session(list(calls)) for name, calls in scorer_calls.items()}, skipped="ignore"
    )


def _read_sample(sample: Mapping[str, Any]) -> Sample[Any, Any]:
    metadata = dict(as_mapping(sample.get("metadata")))
    if choices := as_list(sample.get("choices")):
        metadata["choices"] = list(choices)
    content = sample.get("input")
    if isinstance(content, list):
        content = [
            {"role": message.get("role"), "content": message.get("content")} for message in map(as_mapping, content)
        ]
    return Sample(str(sample.get("id")), content, sample.get("target") or None, clean_metadata(metadata, NAME))


def _read_failure(error: Mapping[str, Any]) -> Failure:
    message, traceback = str(error.get("message") or "the sample failed"), str(error.get("traceback") or "")
    if message.startswith(_CANCELLED):
        # The text has internals of the event loop.
        return Failure(_CANCELLED, "the sample was cancelled", traceback)
    match = _EXCEPTION.fullmatch(message)
    return Failure(match[1], match[3] or "", traceback) if match else Failure("SampleError", message, traceback)


def _read_output(sample: Mapping[str, Any]) -> Any:
    output = as_mapping(sample.get("output"))
    if isinstance(completion := output.get("completion"), str):
        return completion
    message = as_mapping(as_mapping(next(iter(as_list(output.get("choices"))), None)).get("message"))
    return extract_text(message.get("content"), "assistant") or ""


def _read_scores(sample: Mapping[str, Any], warnings: list[str]) -> dict[str, Score]:
    scores: dict[str, Score] = {}
    logged = as_mapping(sample.get("scores")) or ({"score": sample["score"]} if sample.get("score") else {})
    for scorer, content in logged.items():
        fields = as_mapping(content)
        details = {key: fields[key] for key in ("answer",) if fields.get(key) is not None}
        if metadata := omit_keys(as_mapping(fields.get("metadata")), "grading"):
            details["metadata"] = metadata
        if limit := as_mapping(sample.get("limit")):
            details["limit"] = dict(limit)
        for name, value in _split_value(scorer, fields.get("value"), logged):
            # Logs that Proctor writes have the verdict, too.
            passed = as_mapping(fields.get("metadata")).get("passed")
            score = scores[name] = _make_score(value, passed, fields.get("explanation"), details)
            if score.status == "error":
                warnings.append(f"{name}: no grade (NaN), which is an error of the scorer")
            elif score.status == "skipped" and "value" in score.details:
                warnings.append(f"{name}: {_NO_FRACTION}; its values are in the details of the scores")
    return scores


def _split_value(scorer: str, value: Any, logged: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each number; a dict or list has several."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"{scorer}.{key}" if key in logged else key, item
    elif isinstance(value, list):
        yield from ((f"{scorer}.{index}", item) for index, item in enumerate(value))
    else:
        yield scorer, value


def _make_score(value: Any, passed: Any, reason: Any, details: Mapping[str, Any]) -> Score:
    """Return the score of a value: NaN is an error, because the scorer found no grade; null does not apply."""
    if is_nan(value):
        return Score.error(f"{_NO_GRADE}: {reason}" if reason else _NO_GRADE, details)
    if value is None:
        return Score.skipped(str(reason or "the scorer gave no value (null)"), details)
    if not isinstance(value, str):
        score = make_score(value, passed, reason, details)
        return score or Score.skipped(f"{str(value)[:80]!r} is not a number", {**details, "value": value})
    number = _GRADES.get(value, _GRADES.get(value.lower()))
    if number is not None:
        details = {**details, GRADE: value}
    else:
        try:
            number = float(value)
        except ValueError:
            return Score.skipped(f"{value[:80]!r} is not a grade", {**details, "value": value})
    score = make_score(number, passed, reason, details)
    return score or Score.skipped(f"{value!r} is not between 0 and 1", {**details, "value": value})


def _split_model_calls(sample: Mapping[str, Any], model: str) -> tuple[list[ModelEvent], dict[str, list[ModelCall]]]:
    """Return the model calls of the solver with the id of their message, and those of each scorer.

    The log has each call as an event, and the sum by model; where they differ, the sum is right.
    """
    calls: list[ModelEvent] = []
    scorer_calls: defaultdict[str, list[ModelCall]] = defaultdict(list)
    for scorer, event in _read_model_events(as_list(sample.get("events"))):
        output = as_mapping(event.get("output"))
        usage = as_mapping(output.get("usage"))
        call = _make_model_call(str(event.get("model") or output.get("model") or model), usage)
        choice = as_mapping(next(iter(as_list(output.get("choices"))), None))
        if scorer is None:
            calls.append((as_text(as_mapping(choice.get("message")).get("id")), call))
        else:
            scorer_calls[scorer].append(call)
    totals = {str(name): as_mapping(usage) for name, usage in as_mapping(sample.get("model_usage")).items()}
    usage = as_mapping(as_mapping(sample.get("output")).get("usage"))
    if not calls and not totals and usage:
        # Early logs without events have only the usage of the last call.
        return [(None, _make_model_call(model, usage))], {}
    judged = [call for group in scorer_calls.values() for call in group]
    if totals and not _agree(totals, [*(call for _, call in calls), *judged]):
        sums = {name: _make_model_call(name, usage) for name, usage in totals.items()}
        # A judge is a model that only scorers called.
        judges = {call.model for call in judged} - {call.model for _, call in calls} - {model}
        calls = [(None, call) for name, call in sums.items() if name not in judges]
        scorer_calls = defaultdict(list, {"scorers": [sums[name] for name in sums if name in judges]} if judges else {})
    return calls, dict(scorer_calls)


def _read_model_events(events: Sequence[Any]) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Yield the model events with the scorer that made them; older logs have steps instead of spans."""
    spans: dict[str, str | None] = {}
    step: str | None = None
    for event in map(as_mapping, events):
        kind, name = event.get("event"), str(event.get("name"))
        if kind == "span_begin":
            parent = spans.get(str(event.get("parent_id")))
            is_scoring = event.get("type") in _SCORING
            spans[str(event.get("id") or event.get("span_id"))] = name if is_scoring else parent
        elif kind == "step" and event.get("type") == "scorer":
            step = name if event.get("action") == "begin" else None
        elif kind == "model":
            yield spans.get(str(event.get("span_id"))) or step, event


def _agree(totals: Mapping[str, Mapping[str, Any]], calls: Sequence[ModelCall]) -> bool:
    for name, total in totals.items():
        usage = sum((call.usage for call in calls if call.model == name), Usage())
        pairs = (usage.input_tokens, usage.output_tokens), tuple(token_count(total.get(key)) for key in _COUNTED)
        if tuple(count or 0 for count in pairs[0]) != tuple(count or 0 for count in pairs[1]):
            return False
    return {call.model for call in calls if call.usage != Usage()} <= totals.keys()


def _make_model_call(model: str, usage: Mapping[str, Any]) -> ModelCall:
    counts = make_usage(
        usage.get("input_tokens"),
        usage.get("output_tokens"),
        cached=usage.get("input_tokens_cache_read"),
        cost=usage.get("total_cost"),
    )
    written = token_count(usage.get("input_tokens_cache_write"))
    reasoning = token_count(usage.get("reasoning_tokens"))
    details = {} if not reasoning else {"reasoning_tokens": reasoning}
    return ModelCall(model, counts if written is None else counts + Usage(cache_write_tokens=written), details=details)


def _build_session(sample: Mapping[str, Any], calls: list[ModelEvent]) -> Session:
    builder = SessionBuilder()
    by_message = {message_id: call for message_id, call in calls if message_id is not None}
    placed = set()
    for number, message in enumerate(map(as_mapping, as_list(sample.get("messages")))):
        message_id = as_text(message.get("id"))
        if message_id in by_message and message_id not in placed:
            placed.add(message_id)
            _add_model_call(builder, number, by_message[message_id])
        _add_message(builder, message)
    for number, (message_id, call) in enumerate(calls):
        if message_id not in placed:
            _add_model_call(builder, -1 - number, call)
    if limit := as_mapping(sample.get("limit")):
        builder.add_event("sample_limit", dict(limit))
    return builder.build(None, NAME, NAME).session


def _add_model_call(builder: SessionBuilder, key: int, call: ModelCall) -> None:
    builder.add_model_call(key, call.model, call.usage)
    if call.details:
        builder.add_event("model_usage", call.details)


def _add_message(builder: SessionBuilder, message: Mapping[str, Any]) -> None:
    role, content = str(message.get("role")), message.get("content")
    known_role = parse_role(role)
    if role == "tool":
        failure = as_mapping(message.get("error"))
        error = str(failure.get("message") or failure.get("type") or "the call failed") if failure else None
        builder.add_result(
            as_text(message.get("tool_call_id")), content, error=error, name=as_text(message.get("function"))
        )
    elif known_role is None:
        builder.add_unknown_role(role, content, {})
    else:
        calls = [
            ToolCall(
                str(call.get("function") or "unknown"),
                parse_arguments(call.get("arguments") or {}),
                error=as_text(call.get("parse_error")),
                call_id=as_text(call.get("id")),
            )
            for call in map(as_mapping, as_list(message.get("tool_calls")))
        ]
        builder.add_message(known_role, content, calls=calls)


def _resolve(value: Any, attachments: Mapping[str, Any]) -> Any:
    """Return a value with the attachments in place of the references to them."""
    if isinstance(value, str) and value.startswith(_ATTACHMENTS):
        return attachments.get(value.partition("://")[2], value)
    if isinstance(value, dict):
        return {key: _resolve(item, attachments) for key, item in value.items()}
    return [_resolve(item, attachments) for item in value] if isinstance(value, list) else value
