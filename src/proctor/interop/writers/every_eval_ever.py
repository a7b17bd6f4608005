"""Every Eval Ever 0.3: one record per run, with the results of its samples in a second file."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.core.clock import Clock, SystemClock
from proctor.errors import ConfigError, Problem
from proctor.records import codec
from proctor.records.numbers import is_number
from proctor.records.run import IMPORTED, EvaluatorSpec, RunMetadata
from proctor.records.score import Score
from proctor.records.session import Message, ModelCall, Session, ToolCall
from proctor.records.trial import EvalResult
from proctor.reports.files import write_file
from proctor.version import VERSION

SCHEMA_VERSION = "0.3.0"
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
# Folder names may have these characters.
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_NUMBERS = ("temperature", "top_p", "top_k")
_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}


class EveryEvalEverWriter:
    """Write a run as `data/<benchmark>/<developer>/<model>/<uuid>.json`, with `<uuid>_samples.jsonl` beside it.

    `model` is the model's id, "developer/name"; `organization` is who ran the evaluation, and `relationship` is its
    relation to the developer: first_party, third_party, collaborative or other. What is left out is taken from the tags
    of the run with these names. `benchmark` is by default the name of the dataset. Results without a verdict (errors
    and skipped scores) are counted in the record and have no line, because a line needs a score.
    """

    folder = True
    extension = "json"

    def __init__(
        self,
        *,
        model: str = "",
        organization: str = "",
        relationship: str = "",
        benchmark: str = "",
        clock: Clock | None = None,
    ) -> None:
        self._options = {"model": model, "organization": organization, "relationship": relationship}
        self._benchmark = benchmark
        self._clock = clock or SystemClock()

    def generate(self, report: EvalReport) -> str:
        """Return the record of the run, without the results of its samples."""
        return codec.encode_pretty(_Record(report, self._read_facts(report), self._clock).aggregate()).decode() + "\n"

    def save(self, report: EvalReport, path: str | os.PathLike[str]) -> None:
        """Write the record and the results of its samples into a folder."""
        record = _Record(report, self._read_facts(report), self._clock)
        lines = b"".join(codec.encode(line) + b"\n" for line in record.lines())
        aggregate = record.aggregate()
        aggregate["detailed_evaluation_results"] = {
            "format": "jsonl",
            "file_path": record.samples_path,
            "hash_algorithm": "sha256",
            "checksum": hashlib.sha256(lines).hexdigest(),
            "total_rows": lines.count(b"\n"),
        }
        write_file(Path(path) / record.samples_path, [lines])
        write_file(Path(path) / record.path, [codec.encode_pretty(aggregate), b"\n"])

    def _read_facts(self, report: EvalReport) -> dict[str, str]:
        """Return the facts about the run that Proctor does not know; one error lists all that are missing."""
        metadata = report.metadata
        if metadata is None:
            raise ConfigError("the report has no run", fix="write the report of a stored run")
        configurations = list(dict.fromkeys(result.trial.configuration for result in report.results))
        if len(configurations) > 1:
            raise ConfigError(
                f"the run has {len(configurations)} configurations, and a record has one",
                where=metadata.name,
                fix=f"choose one: proctor report {metadata.run_id}@{configurations[0]} --format every-eval-ever",
            )
        facts = {name: value or metadata.tags.get(name, "") for name, value in self._options.items()}
        problems = list(_find_problems(facts, report))
        if problems:
            raise ConfigError(
                "the record needs facts that the run does not have",
                where="every-eval-ever",
                problems=problems,
                fix="add " + " ".join(f"--option {problem.where}={problem.fix}" for problem in problems),
            )
        dataset = metadata.dataset.name
        return {**facts, "benchmark": self._benchmark or dataset.partition(".")[0] or metadata.name}


def _find_problems(facts: Mapping[str, str], report: EvalReport) -> Iterator[Problem]:
    developer, _, name = facts["model"].partition("/")
    if not (developer and name):
        models = list(dict.fromkeys(m for result in report.results for m in _list_models(result.trial.session)))
        suggestion = f"DEVELOPER/{models[0]}" if len(models) == 1 else "DEVELOPER/NAME"
        yield Problem("model", 'must be "developer/name"', suggestion)
    if not facts["organization"]:
        yield Problem("organization", "is missing: who ran the evaluation?", "NAME")
    if facts["relationship"] not in RELATIONSHIPS:
        yield Problem("relationship", f"must be one of: {', '.join(RELATIONSHIPS)}", RELATIONSHIPS[0])


def _list_models(session: Session | None) -> list[str]:
    return [] if session is None else [call.model for call in session[ModelCall]]


class _Record:
    """The record of one run and the lines of its samples."""

    def __init__(self, report: EvalReport, facts: Mapping[str, str], clock: Clock) -> None:
        assert report.metadata is not None
        self._report, self._facts = report, facts
        self._metadata: RunMetadata = report.metadata
        self._specs = {spec.name: spec for spec in report.metadata.evaluators}
        now = str(int(clock.now().timestamp()))
        self._retrieved = now
        self._id = f"{facts['benchmark']}/{facts['model'].replace('/', '_')}/{now}"
        developer, _, name = facts["model"].partition("/")
        folder = "/".join(_OTHER.sub("_", part) for part in ("data", facts["benchmark"], developer, name))
        # The same run has the same file each time it is written.
        digest = hashlib.sha256(self._metadata.run_id.encode()).digest()
        stem = uuid.UUID(bytes=digest[:16], version=4)
        self.path, self.samples_path = f"{folder}/{stem}.json", f"{folder}/{stem}_samples.jsonl"

    def aggregate(self) -> dict[str, Any]:
        """Return the record without the reference to its samples."""
        metadata, facts = self._metadata, self._facts
        return {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self._id,
            "evaluation_timestamp": str(int(metadata.started_at.timestamp())),
            "retrieved_timestamp": self._retrieved,
            "source_metadata": {
                "source_name": metadata.name,
                "source_type": "evaluation_run",
                "source_organization_name": facts["organization"],
                "evaluator_relationship": facts["relationship"],
                "additional_details": {"run_id": metadata.run_id, "status": metadata.status},
            },
            "eval_library": _describe_library(metadata),
            "model_info": {
                "name": facts["model"].partition("/")[2],
                "id": facts["model"],
                "developer": facts["model"].partition("/")[0],
                "additional_details": _UNKNOWN,
            },
            "evaluation_results": [self._describe_result(name) for name in self._list_evaluators()],
        }

    def _list_evaluators(self) -> list[str]:
        """Return the evaluators with at least one verdict."""
        return list(
            dict.fromkeys(name for r in self._report.results if r.success for name, s in r.scores.items() if s.ok)
        )

    def _describe_result(self, name: str) -> dict[str, Any]:
        metadata = self._metadata
        results = [result for result in self._report.results if result.success and _is_verdict(result.scores.get(name))]
        values = [result.scores[name].value for result in results]
        is_binary = set(values) <= {0.0, 1.0}
        metric = self._report.metrics.get(f"{name}.mean")
        spec = self._specs.get(name, EvaluatorSpec(name, name))
        counts = {
            "results_with_error": self._count("error", name),
            "results_without_score": self._count("skipped", name),
        }
        details = {key: str(value) for key, value in counts.items() if value}
        uncertainty: dict[str, Any] = {"num_samples": len(values)}
        if metric is not None and metric.interval is not None:
            lower, upper = metric.interval
            uncertainty["confidence_interval"] = {"lower": lower, "upper": upper, "confidence_level": 0.95}
        elif metric is not None and metric.note:
            details["no_interval"] = metric.note
        return {
            "evaluation_result_id": name,
            "evaluation_name": self._facts["benchmark"],
            "source_data": {
                "dataset_name": metadata.dataset.name or self._facts["benchmark"],
                "source_type": "other",
                "additional_details": _describe_dataset(metadata),
            },
            "metric_config": {
                "evaluation_description": f"mean score of {_describe_evaluator(spec)}",
                "metric_id": f"{_describe_library(metadata)['name']}.{name}",
                "metric_name": name,
                "metric_kind": "pass_rate" if is_binary else "mean_score",
                "metric_unit": "proportion",
                "lower_is_better": False,
                "score_type": "binary" if is_binary else "continuous",
                "min_score": 0.0,
                "max_score": 1.0,
                "additional_details": {"judges": ", ".join(spec.judges_inside)} if spec.judges_inside else {},
            },
            "score_details": {
                "score": sum(value for value in values if value is not None) / len(values),
                "details": details,
                "uncertainty": uncertainty,
            },
            "generation_config": self._describe_generation(),
        }

    def _count(self, status: str, name: str) -> int:
        """Count the results without a verdict of an evaluator: because of an error, or for another reason."""
        missing = [
            result for result in self._report.results if not (result.success and _is_verdict(result.scores.get(name)))
        ]
        errors = [r for r in missing if not r.success or (name in r.scores and r.scores[name].status == "error")]
        return len(errors) if status == "error" else len(missing) - len(errors)

    def _describe_generation(self) -> dict[str, Any]:
        name = next((result.trial.configuration for result in self._report.results), "")
        options = next((item.options for item in self._metadata.configurations if item.name == name), {})
        arguments = {key: options[key] for key in _NUMBERS if is_number(options.get(key))}
        if isinstance(options.get("max_tokens"), int):
            arguments["max_tokens"] = options["max_tokens"]
        others = {key: _to_text(value) for key, value in options.items() if key not in arguments}
        return {"generation_args": arguments, "additional_details": {"configuration": name, **others}}

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield one line for each verdict."""
        for result in self._report.results:
            for name, score in result.scores.items() if result.success else ():
                if _is_verdict(score):
                    yield self._make_line(result, name, score)

    def _make_line(self, result: EvalResult, name: str, score: Score) -> dict[str, Any]:
        trial, sample = result.trial, result.trial.sample
        raw, reference = _to_text(sample.input), _list_texts(sample.expected)
        messages = _list_messages(result)
        calls = sum(len(message.get("tool_calls") or ()) for message in messages)
        is_single = not calls and sum(message["role"] == "user" for message in messages) <= 1
        turn = 0 if is_single else messages[-1]["turn_idx"]
        spec = self._specs.get(name)
        line: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": self._id,
            "model_id": self._facts["model"],
            "evaluation_name": self._facts["benchmark"],
            "evaluation_result_id": name,
            "sample_id": sample.id,
            "sample_hash": hashlib.sha256((raw + "".join(reference)).encode("utf-8", "replace")).hexdigest(),
            "interaction_type": "single_turn" if is_single else "agentic" if calls else "multi_turn",
            "input": {"raw": raw, "reference": reference},
            "output": {"raw": [_to_text(trial.output)]} if is_single else None,
            "messages": None if is_single else messages,
            "answer_attribution": [
                {
                    "turn_idx": turn,
                    "source": "output.raw" if is_single else f"messages[{turn}].content",
                    "extracted_value": _to_text(trial.output),
                    "extraction_method": spec.uses if spec else name,
                    "is_terminal": True,
                }
            ],
            "evaluation": {"score": score.value, "is_correct": score.passed},
            "metadata": {
                "epoch": str(trial.epoch + 1),
                **{str(key): _to_text(value) for key, value in sample.metadata.items()},
                **({"reason": score.reason} if score.reason else {}),
            },
        }
        if not is_single:
            line["evaluation"] |= {"num_turns": len(messages), "tool_calls_count": calls}
        if trial.latency_ms is not None:
            line["performance"] = {"latency_ms": trial.latency_ms}
        usage = trial.usage
        if usage is not None and usage.input_tokens is not None and usage.output_tokens is not None:
            counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
            cache = {
                "input_tokens_cache_read": usage.cached_tokens,
                "input_tokens_cache_write": usage.cache_write_tokens,
            }
            known = {key: value for key, value in cache.items() if value is not None}
            line["token_usage"] = {**counts, "total_tokens": usage.total_tokens, **known}
        return line


def _is_verdict(score: Score | None) -> bool:
    return score is not None and score.ok and score.value is not None


def _describe_evaluator(spec: EvaluatorSpec) -> str:
    """Return the name of an evaluator, with its type if that says more; an imported one has only a name."""
    is_plain = spec.uses == spec.name or spec.uses.startswith(IMPORTED)
    return spec.name if is_plain else f"{spec.name} ({spec.uses})"


def _describe_library(metadata: RunMetadata) -> dict[str, str]:
    """Return the tool that made the results: that of the file for an imported run."""
    if metadata.target.kind != IMPORTED:
        return {"name": "proctor", "version": VERSION}
    tool = metadata.tags.get(IMPORTED, "unknown")
    return {"name": tool, "version": metadata.provenance.packages.get(tool, "unknown")}


def _describe_dataset(metadata: RunMetadata) -> dict[str, str]:
    facts = {"samples_number": metadata.dataset.length, "fingerprint": metadata.dataset.fingerprint}
    return {name: str(value) for name, value in facts.items() if value is not None}


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else codec.to_text(value)


def _list_texts(value: Any) -> list[str]:
    if value is None:
        return []
    return [_to_text(item) for item in value] if isinstance(value, list | tuple) else [_to_text(value)]


def _list_messages(result: EvalResult) -> list[dict[str, Any]]:
    """Return the conversation of a trial: its messages and tool calls, from the input to the output."""
    session = result.trial.session
    if session is None:
        return []
    messages: list[dict[str, Any]] = []
    requested: set[str] = set()

    def add(role: str, content: Any, calls: list[dict[str, Any]] | None = None, answered: str | None = None) -> None:
        message = {"turn_idx": len(messages), "role": role, "content": _to_text(content)}
        messages.append(
            message | ({"tool_calls": calls} if calls else {}) | ({"tool_call_id": [answered]} if answered else {})
        )

    if not any(message.role == "user" for message in session[Message]):
        add("user", result.trial.sample.input)
    answered = {message.call_id for message in session[Message] if message.role == "tool"}
    for event in session:
        if isinstance(event, Message):
            add(event.role, event.content, [_describe_call(call) for call in event.tool_calls], event.call_id)
            requested |= {_name_call(call) for call in event.tool_calls}
        elif isinstance(event, ToolCall):
            if _name_call(event) not in requested:
                add("assistant", None, [_describe_call(event)])
            if event.call_id is None or event.call_id not in answered:
                add("tool", event.error if event.error is not None else event.result, answered=_name_call(event))
    output = _to_text(result.trial.output)
    if messages[-1]["role"] != "assistant" or messages[-1]["content"] != output:
        add("assistant", output)
    return messages


def _name_call(call: ToolCall) -> str:
    """Return the id of a call, or its content for a call without one."""
    return call.call_id or codec.digest(call.name, call.arguments)


def _describe_call(call: ToolCall) -> dict[str, Any]:
    arguments = {str(name): _to_text(value) for name, value in call.arguments.items()}
    return {"id": _name_call(call), "name": call.name, "arguments": arguments}
