"""OpenAI evals: recorded logs of `oaieval`, sample files, and the registry that names them.

A log has events in any order; those of one sample share its `sample_id`. In a model-graded eval the last sampling of a
sample is the grader's. A metric besides `match` has no verdict of its own, so it has the verdict of `match`; without a
`match`, a metric with numbers between 0 and 1 has the verdict of the other metrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.errors import DatasetError
from proctor.interop.files import damaged_file, read_json_lines, read_yaml
from proctor.interop.imported import ImportedFile, ImportedRun
from proctor.interop.run_builder import (
    NAN_REASON,
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
from proctor.records.numbers import is_number
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Message, ModelCall, Session, Usage
from proctor.records.trial import Configuration, EvalResult, Failure, Trial
from proctor.sessions.genai.message_parser import parse_role
from proctor.sessions.importers.imported_session import parse_time
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text, omit_keys

NAME = "openai-evals"
_LOG_LINE = re.compile(rb'\{\s*"(?:spec|final_report|run_id)"\s*:')
_SAMPLE_LINE = re.compile(rb'\s*\{\s*"(?:input|ideal)"\s*:')
_REGISTRY = re.compile(rb"^\s+(?:class:\s*evals\.|samples_jsonl:|choice_strings:)|^\s+evals:\s*$", re.MULTILINE)
_INVALID = "__invalid__"
_NO_SAMPLES = "name the file that defines the evals with `class:` and `samples_jsonl:`, or a samples file"


def recognize(path: Path, head: bytes) -> bool:
    """Return True for a log, a file of samples with `input` and `ideal`, or a registry file."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return _REGISTRY.search(head) is not None
    first = head.lstrip().partition(b"\n")[0]
    if _LOG_LINE.match(first):
        return b'"sample_id"' in head or b'"eval_name"' in head
    return _SAMPLE_LINE.match(first) is not None and b'"ideal"' in first


def read(path: Path) -> ImportedFile:
    """Read a log as a run, or a samples file or registry as a dataset."""
    if path.suffix.lower() in (".yaml", ".yml"):
        return _read_registry(path)
    lines = [(number, as_mapping(value)) for number, value in read_json_lines(path)]
    if not lines:
        raise damaged_file("the file is empty", path)
    if all("ideal" in fields for _, fields in lines):
        samples = [_read_sample(f"{path.stem}.{index}", fields) for index, (_, fields) in enumerate(lines)]
        return ImportedFile(NAME, samples=tuple(samples))
    return _read_log(path, [fields for _, fields in lines])


def _read_sample(
    sample_id: str, fields: Mapping[str, Any], evaluators: tuple[Any, ...] = (), **metadata: Any
) -> Sample[Any, Any]:
    metadata |= omit_keys(fields, "input", "ideal")
    return Sample(sample_id, fields.get("input"), fields.get("ideal"), clean_metadata(metadata, NAME), evaluators)


def _read_registry(path: Path) -> ImportedFile:
    specs = as_mapping(read_yaml(path))
    warnings: list[str] = []
    untranslated: list[str] = []
    samples: list[Sample[Any, Any]] = []
    for name, spec in specs.items():
        args = as_mapping(as_mapping(spec).get("args"))
        source = as_text(args.get("samples_jsonl"))
        if source is None:
            continue
        kind = str(as_mapping(spec).get("class")).rpartition(":")[2]
        evaluators = () if kind == "Match" else translate_checks(NAME, [kind], untranslated, f"eval {name}, class")
        if kind == "Includes" and args.get("ignore_case"):
            evaluators = ({"contains": {"match": "any", "case_sensitive": False}},)
        base = str(name).rpartition(".")[0] or str(name)
        try:
            lines = list(read_json_lines(_find_samples(path, source)))
        except DatasetError as error:
            warnings.append(f"the samples of {name} are left out ({error.what})")
            continue
        samples += [
            _read_sample(f"{base}.{index}", as_mapping(value), evaluators or _match_start(kind, value), eval=str(name))
            for index, (_, value) in enumerate(lines)
        ]
    if not samples:
        what = "the file defines no eval with readable samples"
        reasons = [warning for warning in warnings if "left out" in warning]
        raise damaged_file("; ".join([what, *reasons[:1]]), path, _NO_SAMPLES)
    return ImportedFile(
        NAME, samples=tuple(samples), warnings=count_warnings(warnings), untranslated=tuple(untranslated)
    )


def _match_start(kind: str, fields: Any) -> tuple[Any, ...]:
    """Return the check of the class Match: the output starts with one of the ideal answers."""
    ideal = as_mapping(fields).get("ideal")
    phrases = [str(item) for item in (ideal if isinstance(ideal, list) else [ideal])]
    if kind != "Match" or not all(phrases):
        return ()
    return ({"starts_with": {"phrases": phrases, "whole_words": False, "case_sensitive": True}},)


def _find_samples(registry_file: Path, source: str) -> Path:
    """Return the path of a samples file below the registry's data folder."""
    data = (registry_file.parent.parent / "data").resolve()
    path = (data / source).resolve()
    if not path.is_relative_to(data):
        raise damaged_file(f"{source!r} is outside the registry's data folder", registry_file)
    return path


def _read_log(path: Path, lines: Sequence[Mapping[str, Any]]) -> ImportedFile:
    spec = as_mapping(next((line["spec"] for line in lines if "spec" in line), None))
    report = as_mapping(next((line["final_report"] for line in lines if "final_report" in line), None))
    config = as_mapping(as_mapping(spec.get("run_config")).get("eval_spec"))
    kind = str(config.get("cls")).rpartition(":")[2]
    grader = None
    if "modelgraded" in str(config.get("cls")):
        grader = str(as_mapping(config.get("args")).get("modelgraded_spec") or "model_graded")
    events: dict[str, list[Mapping[str, Any]]] = {}
    for line in lines:
        if isinstance(sample_id := line.get("sample_id"), str):
            events.setdefault(sample_id, []).append(line)
    warnings: list[str] = []
    results = tuple(_read_result(name, events[name], grader, warnings) for name in sorted(events, key=_sort_key))
    name = str(spec.get("eval_name") or path.stem)
    models = [str(model) for model in as_list(spec.get("completion_fns"))]
    # The event `match` has the verdict of its sample.
    names = tuple(dict.fromkeys(name for r in results if "match" not in r.scores for name in r.scores))
    graded = find_graded(results, names)
    warnings += describe_graded(results, graded)
    run = ImportedRun(
        str(spec.get("base_eval") or name),
        follow_verdicts(results, graded),
        "completed" if report else "interrupted",
        parse_time(spec.get("created_at")) or min(filter(None, (r.trial.started_at for r in results)), default=None),
        configurations=(Configuration(options={"model": models[0]} if models else {}),),
        reported=_read_report(report, grader),
        tags={"model": models[0]} if models else {},
        details={"dataset": name, "target": models[0] if models else "", "eval_class": kind},
        without_verdicts=names,
        graded=graded,
    )
    untranslated: list[str] = []
    evaluators = translate_checks(NAME, [kind], untranslated, "eval class")
    samples = tuple(result.trial.sample for result in results)
    return ImportedFile(NAME, "", samples, (run,), evaluators, count_warnings(warnings), tuple(untranslated))


def _sort_key(sample_id: str) -> tuple[str, int]:
    base, _, number = sample_id.rpartition(".")
    return (base, int(number)) if number.isdecimal() and len(number) < 18 else (sample_id, 0)


def _read_report(report: Mapping[str, Any], grader: str | None) -> dict[str, float]:
    names = {"accuracy": "match.accuracy", "f1_score": "f1_score.mean", "usage_total_tokens": "tokens"}
    names |= {"score": f"{grader}.mean"} if grader else {}
    reported = {str(names.get(key, key)): value for key, value in report.items()}
    # The first number depends on a random seed; the others are part of the total.
    for key in ("boostrap_std", "usage_prompt_tokens", "usage_completion_tokens"):
        reported.pop(key, None)
    return {key: float(value) for key, value in reported.items() if is_number(value)}


def _read_result(
    sample_id: str, events: Sequence[Mapping[str, Any]], grader: str | None, warnings: list[str]
) -> EvalResult:
    by_type: dict[str, list[Mapping[str, Any]]] = {}
    for event in events:
        by_type.setdefault(str(event.get("type")), []).append(as_mapping(event.get("data")))
    calls = by_type.get("sampling", [])
    answers, gradings = (calls[:-1], calls[-1:]) if grader and len(calls) > 1 else (calls, [])
    match = next(iter(by_type.get("match", ())), {})
    prompt = answers[0].get("prompt") if answers else None
    session = Session([event for call in answers for event in _read_call(call)])
    errors = by_type.get("error", [])
    failure = None
    if errors:
        message = str(errors[0].get("message") or errors[0].get("type") or "the sample failed")
        failure = Failure(str(errors[0].get("type") or "SampleError"), message)
    trial = Trial(
        Sample(sample_id, "" if prompt is None else prompt, match.get("expected")),
        None if failure or not answers else _get_output(answers[-1]),
        failure,
        None,
        min(filter(None, (parse_time(event.get("created_at")) for event in events)), default=None),
        usage=session.known_usage(),
        session=session,
    )
    scores = {} if failure else dict(_read_scores(match, by_type.get("metrics", ()), grader, warnings))
    sessions = {str(grader): Session([e for call in gradings for e in _read_call(call)])} if gradings else {}
    return EvalResult(trial, scores, sessions, skipped="ignore")


def _get_output(call: Mapping[str, Any]) -> Any:
    sampled = call.get("sampled")
    return sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled


def _read_call(call: Mapping[str, Any]) -> Iterator[Message | ModelCall]:
    prompt = call.get("prompt")
    for message in map(as_mapping, prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt}]):
        yield Message(parse_role(str(message.get("role"))) or "user", message.get("content"))
    usage = as_mapping(call.get("usage"))
    counts = make_usage(usage.get("prompt_tokens"), usage.get("completion_tokens"))
    if counts != Usage():
        yield ModelCall(str(call.get("model") or "unknown"), counts)
    yield Message("assistant", _get_output(call))


def _read_scores(
    match: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]], grader: str | None, warnings: list[str]
) -> Iterator[tuple[str, Score]]:
    correct = match.get("correct")
    if isinstance(correct, bool):
        yield "match", Score(float(correct), correct, f"picked {match.get('picked')!r}" if "picked" in match else "")
    for values in metrics:
        choice = values.get("choice")
        if choice is not None:
            name = grader or "score"
            if choice == _INVALID:
                warnings.append(
                    f"{name}: the grader's answer has no valid choice; the tool counts it as 0, Proctor as an error"
                )
                yield name, Score.error("the grader's answer has no valid choice")
            else:
                score = make_score(values.get("score"), None, f"choice {choice!r}")
                yield name, score or Score.skipped(f"the choice {choice!r} has no score")
            continue
        for name, value in values.items():
            score = None if name == "accuracy" and match else make_score(value, correct)
            if is_nan(value):
                warnings.append(f"{name}: NaN, which is an error of the metric")
                score = Score.error(NAN_REASON)
            if score is not None:
                yield name, score
