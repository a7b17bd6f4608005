"""A report as an Inspect log (`.json`), which `inspect view` and inspect-ai's `read_eval_log` read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError
from proctor.records import codec
from proctor.records.metric import MetricValue
from proctor.records.run import RunMetadata
from proctor.records.score import Score
from proctor.records.session import Message, Session, ToolCall, Usage
from proctor.records.trial import EvalResult

VERSION = 2
# The content parts of Inspect, and the texts that they must have.
PARTS = {"text": ["text"], "reasoning": ["reasoning"], "image": ["image"], "audio": ["audio", "format"]}
ROLES = ("system", "user", "assistant")
# The value of a score without a grade; JSON has no NaN.
NO_GRADE = "nan"
STATUSES = {"completed": "success", "failed": "error", "interrupted": "cancelled"}


class InspectReporter:
    """Write a report of one configuration as an Inspect log.

    A score has its value, with the verdict in its metadata; an error of an evaluator has the value "nan", and a skip is
    no score.
    """

    extension = "inspect.json"
    signature = r'\{\s*"version":\s*2,\s*"status"'

    def name_file(self, report: EvalReport) -> str:
        """Return the name of the file in a folder: `inspect log list` shows only logs that start with their time."""
        run = report.metadata
        if run is None:
            return f"report.{self.extension}"
        time = run.started_at.astimezone(UTC).strftime("%Y-%m-%dT%H-%M-%S-00-00")
        task = re.sub(r"[^\w.-]|_", "-", run.name)
        return f"{time}_{task}_{re.sub(r'[^A-Za-z0-9-]', '-', run.run_id)}.json"

    def generate(self, report: EvalReport) -> str:
        """Return the report as text."""
        return codec.encode_pretty(make_log(report)).decode()


def make_log(report: EvalReport) -> dict[str, Any]:
    """Return the content of a log."""
    run = report.metadata or RunMetadata("report", "report", datetime.fromtimestamp(0, UTC))
    names = list(dict.fromkeys(result.trial.configuration for result in report.results))
    if len(names) > 1:
        raise ConfigError(
            f"an Inspect log has one configuration; the run has {len(names)}: {', '.join(names[:10])}",
            fix=f"proctor report {shlex.quote(f'{run.run_id}@{names[0]}')} --format inspect",
        )
    options = next((c.options for c in run.configurations if names and c.name == names[0]), {})
    model = str(options.get("model") or run.target.name or "unknown")
    log: dict[str, Any] = {"version": VERSION, "status": STATUSES.get(run.status, "started")}
    log["eval"] = {
        "eval_id": run.run_id,
        "run_id": run.run_id,
        "created": run.started_at.isoformat(),
        "task": run.name,
        "task_id": run.run_id,
        "task_version": 0,
        "dataset": {"name": run.dataset.name, "samples": run.dataset.length},
        "model": model,
        "config": {"epochs": run.options.epochs},
        "tags": [f"{key}={value}" for key, value in run.tags.items()],
        "metadata": {"written_by": "proctor"},
        "scorers": [{"name": spec.name, "options": codec.to_plain(spec.parameters)} for spec in run.evaluators],
    }
    log["plan"] = {"name": "plan", "steps": [], "config": {}}
    log["results"] = {
        "total_samples": run.total or report.total,
        "completed_samples": report.total - report.counts.error,
        "scores": [_describe_scorer(spec.name, report.metrics) for spec in run.evaluators],
    }
    usage = sum((result.trial.usage for result in report.results if result.trial.usage), Usage())
    finished = (run.finished_at or run.started_at).isoformat()
    log["stats"] = {"started_at": run.started_at.isoformat(), "completed_at": finished}
    log["stats"]["model_usage"] = _describe_usage(model, usage)
    log["samples"] = [_describe_sample(result, model) for result in report.results]
    return log


def _describe_scorer(name: str, metrics: Mapping[str, MetricValue]) -> dict[str, Any]:
    reported = {key: metrics.get(f"{name}.{key}") for key in ("mean", "pass_rate")}
    values = {
        key: {"name": key, "value": metric.value, "params": {}}
        for key, metric in reported.items()
        if metric is not None and metric.value is not None
    }
    return {"name": name, "scorer": name, "params": {}, "metrics": values}


def _describe_usage(model: str, usage: Usage | None) -> dict[str, Any]:
    if usage is None or usage.total_tokens is None:
        return {}
    counts = {
        "input_tokens": usage.input_tokens or 0,
        "output_tokens": usage.output_tokens or 0,
        "total_tokens": usage.total_tokens,
    }
    cached = {"input_tokens_cache_read": usage.cached_tokens} if usage.cached_tokens is not None else {}
    return {model: {**counts, **cached}}


def _describe_sample(result: EvalResult, model: str) -> dict[str, Any]:
    trial, sample = result.trial, result.trial.sample
    messages = list(_list_messages(trial.session)) if trial.session is not None else []
    text = _to_text(trial.output)
    if not messages:
        messages = [{"role": "user", "content": _to_text(sample.input)}]
        messages += [{"role": "assistant", "content": text, "source": "generate"}] if trial.error is None else []
    choices = [{"message": {"role": "assistant", "content": text, "source": "generate"}, "stop_reason": "stop"}]
    content: dict[str, Any] = {
        "id": sample.id,
        "epoch": trial.epoch + 1,
        "input": _describe_input(sample.input),
        "target": _describe_target(sample.expected),
        "messages": messages,
        "output": {
            "model": model,
            "choices": [] if trial.error else choices,
            "completion": "" if trial.error else text,
        },
        "scores": {
            name: _describe_score(score, text) for name, score in result.scores.items() if score.status != "skipped"
        },
        "metadata": codec.to_plain(sample.metadata),
        "store": {},
        "events": [],
        "model_usage": _describe_usage(model, trial.usage),
        "attachments": {},
    }
    choices_of_question = sample.metadata.get("choices")
    if isinstance(choices_of_question, list) and all(isinstance(choice, str) for choice in choices_of_question):
        content["choices"] = choices_of_question
        content["metadata"] = {key: value for key, value in content["metadata"].items() if key != "choices"}
    if trial.latency_ms is not None:
        content["total_time"] = trial.latency_ms / 1000
    if trial.error is not None:
        trace = trial.error.traceback
        message = f"{trial.error.kind}({trial.error.message!r})"
        content["error"] = {"message": message, "traceback": trace, "traceback_ansi": trace}
    return content


def _describe_input(value: Any) -> str | list[dict[str, Any]]:
    """Return an input as text, or as messages if it is a list of them."""
    is_chat = (
        isinstance(value, list) and value and all(isinstance(m, Mapping) and m.get("role") in ROLES for m in value)
    )
    return [{**m, "content": _describe_content(m.get("content"))} for m in value] if is_chat else _to_text(value)


def _describe_target(expected: Any) -> str | list[str]:
    if isinstance(expected, list | tuple):
        return [_to_text(item) for item in expected]
    return "" if expected is None else _to_text(expected)


def _describe_score(score: Score, answer: str) -> dict[str, Any]:
    if not score.ok:
        # A sample without the score would pass if its other scores do.
        return {"value": NO_GRADE, "answer": answer, "explanation": score.reason, "metadata": {"status": score.status}}
    return {"value": score.value, "answer": answer, "explanation": score.reason, "metadata": {"passed": score.passed}}


def _list_messages(session: Session) -> Iterator[dict[str, Any]]:
    """Yield the messages of a session; the result of a tool call follows the message that requests it."""
    requested: dict[str, int] = {}
    for number, event in enumerate(session.events):
        if isinstance(event, Message) and event.role != "tool":
            calls = [_describe_call(call, f"{number}-{index}") for index, call in enumerate(event.tool_calls)]
            requested |= {call["id"]: number for call in calls}
            message: dict[str, Any] = {"role": event.role, "content": _describe_content(event.content)}
            if event.role == "assistant":
                message |= {"source": "generate", **({"tool_calls": calls} if calls else {})}
            yield message
        elif isinstance(event, ToolCall):
            call = _describe_call(event, str(number))
            if call["id"] not in requested:
                yield {"role": "assistant", "content": "", "source": "generate", "tool_calls": [call]}
            error = {"error": {"type": "unknown", "message": event.error}} if event.error is not None else {}
            result = "" if event.result is None else _to_text(event.result)
            yield {"role": "tool", "content": result, "tool_call_id": call["id"], "function": event.name, **error}


def _describe_content(content: Any) -> str | list[dict[str, Any]]:
    """Return the parts of a message as Inspect has them; parts that it does not know become text."""
    if not isinstance(content, list | tuple):
        return _to_text(content)
    return [_describe_part(codec.to_plain(part)) for part in content]


def _describe_part(part: Any) -> dict[str, Any]:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind in PARTS and all(isinstance(part.get(key), str) for key in PARTS[kind]):
        return dict(part)
    return {"type": "text", "text": _to_text(part)}


def _describe_call(call: ToolCall, number: str) -> dict[str, Any]:
    arguments = codec.to_plain(call.arguments)
    return {"id": call.call_id or f"call-{number}", "function": call.name, "arguments": arguments, "type": "function"}


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else codec.to_text(value)
