"""Emit spans for a run, its trials, its evaluations and their calls."""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from proctor.records import codec
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Event, Message, ModelCall, Session, ToolCall
from proctor.records.trial import EvalResult, Failure
from proctor.sessions.telemetry.evaluation_events import EvaluationEvents, JudgedSpan
from proctor.sessions.telemetry.trial_recorder import SCOPE, TrialRecorder
from proctor.version import VERSION


class CallSpan(NamedTuple):
    """The span of one call; times are in nanoseconds since 1970."""

    name: str
    attributes: dict[str, Any]
    start: int
    end: int
    error: str | None
    is_remote: bool


def build_call_spans(events: Sequence[Event], start: int, end: int, *, with_content: bool) -> Iterator[CallSpan]:
    """Build a span for each call; if the calls cannot have run one after another, all start at `start`."""
    calls = [event for event in events if isinstance(event, ModelCall | ToolCall)]
    is_sequential = sum(map(_get_duration, calls)) <= end - start
    messages: list[Message] = []
    for event in events:
        if isinstance(event, Message):
            messages.append(event)
        if not isinstance(event, ModelCall | ToolCall):
            continue
        if isinstance(event, ModelCall):
            name, attributes, error = _describe_model_call(event, messages, with_content=with_content)
            messages = []
        else:
            name, attributes, error = _describe_tool_call(event, with_content=with_content)
        call_end = start + _get_duration(event)
        yield CallSpan(name, _drop_none(attributes), start, call_end, error, isinstance(event, ModelCall))
        if is_sequential:
            start = call_end


def _get_duration(call: ModelCall | ToolCall) -> int:
    milliseconds = call.latency_ms if isinstance(call, ModelCall) else call.duration_ms
    return max(0, int((milliseconds or 0.0) * 1e6))


def _describe_model_call(
    call: ModelCall, messages: Sequence[Message], *, with_content: bool
) -> tuple[str, dict[str, Any], str | None]:
    error = call.details.get("error")
    usage = call.usage
    operation = str(call.details.get("operation", "chat"))
    provider, colon, _ = call.model.partition(":")
    attributes = {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": call.model,
        "gen_ai.provider.name": provider if colon and provider not in ("http", "https") else None,
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cost": usage.cost,
        "gen_ai.response.finish_reasons": [call.finish_reason] if call.finish_reason else None,
        "openinference.span.kind": "LLM" if operation == "chat" else "EMBEDDING",
        "error.type": "call_failed" if error is not None else None,
    }
    if with_content:
        inputs = [_encode_message(message) for message in messages if message.role != "assistant"]
        outputs = [_encode_message(message) for message in messages if message.role == "assistant"]
        attributes["gen_ai.input.messages"] = _to_json(inputs) if inputs else None
        attributes["gen_ai.output.messages"] = _to_json(outputs) if outputs else None
    return f"{operation} {call.model}", attributes, None if error is None else str(error)


def _describe_tool_call(call: ToolCall, *, with_content: bool) -> tuple[str, dict[str, Any], str | None]:
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.call_id,
        "openinference.span.kind": "TOOL",
        "error.type": None if call.error is None else "tool_failed",
    }
    if with_content:
        attributes["gen_ai.tool.call.arguments"] = truncate(_to_json(call.arguments))
        if call.error is None:
            attributes["gen_ai.tool.call.result"] = truncate(_to_json(call.result))
    return f"execute_tool {call.name}", attributes, call.error


def _encode_message(message: Message) -> dict[str, Any]:
    content = truncate(as_text(message.content))
    parts: list[dict[str, Any]] = []
    if message.role == "tool":
        parts.append({"type": "tool_call_response", "id": message.call_id, "response": content})
    elif message.content:
        parts.append({"type": "text", "content": content})
    for call in message.tool_calls:
        fields = {"type": "tool_call", "id": call.call_id, "name": call.name, "arguments": call.arguments}
        parts.append(fields)
    return {"role": message.role, "parts": parts}


def _drop_none(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
# Backends reject or drop spans with very long contents.
MAX_LENGTH = 8_192
CUT_MARK = "… (cut)"
_WITHOUT_CONTENT = ("false", "0", "no_content", "event_only")

# The run id of a trial that belongs to a run of another process.
current_run_id: ContextVar[str] = ContextVar("proctor_run", default="")


class RunTracer:
    """Emits the spans of one run: the run, its trials, and their evaluations.

    The span of a trial is current while its target and evaluators run, so that spans of the program are its children.
    With `for_other_runs` the trials belong to runs of other processes: each trial starts a separate trace, with its run
    id as the session.
    """

    def __init__(
        self, provider: Any, run: RunMetadata, environment: Mapping[str, str], *, for_other_runs: bool = False
    ) -> None:
        self._api = importlib.import_module("opentelemetry.trace")
        self._context = importlib.import_module("opentelemetry.context")
        self._tracer = provider.get_tracer(SCOPE, VERSION)
        self._with_content = environment.get(CAPTURE, "").strip().lower() not in _WITHOUT_CONTENT
        # The original run has already emitted the calls of a rescored run.
        self._with_calls = run.rescored_from is None
        self._id = run.run_id
        self._root = self._api.INVALID_SPAN
        self._root_context = self._context.Context()
        if not for_other_runs:
            self._root = self._tracer.start_span(
                f"proctor run {run.name}", attributes=_describe_run(run) | {"session.id": run.run_id}
            )
            self._root_context = self._api.set_span_in_context(self._root)
        self._outcomes: Counter[str] = Counter()
        self._open_spans: set[Any] = set()
        self.events: EvaluationEvents | None = None

    @contextmanager
    def trace_trial(
        self, recorder: TrialRecorder, sample: Sample[Any, Any], configuration: str, epoch: int
    ) -> Iterator[list[EvalResult]]:
        """Open the span of a trial; the caller appends the result to the list."""
        attributes = {
            "openinference.span.kind": "CHAIN",
            "proctor.sample.id": sample.id,
            "proctor.configuration": configuration,
            "proctor.epoch": epoch,
            **self._make_content("input.value", sample.input),
        }
        results: list[EvalResult] = []
        start = time.time_ns()
        with self._start_span("proctor trial", attributes, self._root_context) as span:
            self._open_spans.add(span)
            try:
                yield results
            finally:
                self._open_spans.discard(span)
                for result in results if span.is_recording() else ():
                    self._end_trial(span, result, start, recorder)

    @contextmanager
    def trace_evaluation(
        self, spec: EvaluatorSpec, recorder: TrialRecorder, session: Session | None
    ) -> Iterator[list[Score]]:
        """Open the span of an evaluation; the caller appends the score to the list."""
        attributes = {
            "openinference.span.kind": "EVALUATOR",
            "gen_ai.evaluation.name": spec.name,
            "proctor.evaluator": spec.uses,
        }
        scores: list[Score] = []
        start = time.time_ns()
        trial_span = self._api.get_current_span()
        with self._start_span(f"evaluate {spec.name}", attributes) as span:
            yield scores
            for score in scores:
                self._end_evaluation(span, score)
                self._emit_event(spec.name, score, recorder, trial_span)
            if session is not None:
                self._emit_calls(span, session, start, time.time_ns(), recorder)

    def close(self) -> None:
        """End the spans of the run and of abandoned trials."""
        for span in tuple(self._open_spans):
            self._mark_failed(span, Failure("TimeoutError", "the trial kept running after it was cancelled"))
            span.end()
        self._root.set_attributes(
            {f"proctor.outcome.{name}": count for name, count in self._outcomes.items()}
            | {"proctor.trials": self._outcomes.total()}
        )
        self._root.end()

    @contextmanager
    def _start_span(self, name: str, attributes: dict[str, Any], context: Any = None) -> Iterator[Any]:
        """Open a span and make it current; an exception marks it as failed."""
        span = self._tracer.start_span(name, context, attributes=attributes | self._get_run_attributes())
        token = self._context.attach(self._api.set_span_in_context(span, context))
        try:
            yield span
        except GeneratorExit:
            # The event loop was closed, so the token belongs to another context.
            token = None
            raise
        except BaseException as error:
            if span.is_recording():
                self._mark_failed(span, Failure(type(error).__name__, str(error)))
            raise
        finally:
            if token is not None:
                self._context.detach(token)
            if span.is_recording():
                span.end()

    def _get_run_attributes(self) -> dict[str, Any]:
        run = current_run_id.get() or self._id
        return {"session.id": run, "proctor.run.id": run}

    def _end_trial(self, span: Any, result: EvalResult, start: int, recorder: TrialRecorder) -> None:
        trial, (outcome, value) = result.trial, result.verdict()
        self._outcomes[outcome] += 1
        span.set_attributes(
            {
                "proctor.outcome": outcome,
                "proctor.latency_ms": trial.latency_ms or 0.0,
                "proctor.attempts": trial.attempts,
                "proctor.cached": trial.cached,
                **({} if value is None else {"proctor.score": value}),
            }
        )
        if trial.error is not None:
            self._mark_failed(span, trial.error)
        else:
            span.set_attributes(self._make_content("output.value", trial.output))
        if trial.session is not None and self._with_calls and not trial.cached:
            end = start + int((trial.latency_ms or 0.0) * 1e6)
            self._emit_calls(span, trial.session, start, end, recorder)

    def _end_evaluation(self, span: Any, score: Score) -> None:
        labels = {True: "pass", False: "fail", None: score.status}
        span.set_attribute("gen_ai.evaluation.score.label", labels[score.passed])
        if score.value is not None:
            span.set_attribute("gen_ai.evaluation.score.value", score.value)
        if score.reason and self._with_content:
            span.set_attribute("gen_ai.evaluation.explanation", truncate(score.reason))
        if score.status == "error":
            span.set_attribute("error.type", "evaluation_failed")
            description = truncate(score.reason) if self._with_content else None
            span.set_status(self._api.Status(self._api.StatusCode.ERROR, description))

    def _emit_event(self, name: str, score: Score, recorder: TrialRecorder, trial_span: Any) -> None:
        """Emit a score as a child of the program's operation that is judged, or else of the trial."""
        if self.events is None:
            return
        context = trial_span.get_span_context()
        span = recorder.judged_span or JudgedSpan(context.trace_id, context.span_id, int(context.trace_flags))
        explanation = truncate(score.reason) if score.reason and self._with_content else None
        self.events.emit(name, score, explanation, span, self._get_run_attributes())

    def _mark_failed(self, span: Any, failure: Failure) -> None:
        attributes = {"exception.type": failure.kind, "exception.message": truncate(failure.message)}
        if failure.traceback:
            attributes["exception.stacktrace"] = failure.traceback
        span.add_event("exception", attributes)
        span.set_attribute("error.type", failure.kind)
        span.set_status(self._api.Status(self._api.StatusCode.ERROR, truncate(str(failure))))

    def _emit_calls(self, span: Any, session: Session, start: int, end: int, recorder: TrialRecorder) -> None:
        """Emit the calls of a session that have no span yet."""
        events = [event for event in session if not recorder.has_recorded(event)]
        context = self._api.set_span_in_context(span)
        run_attributes = self._get_run_attributes()
        for call in build_call_spans(events, start, end, with_content=self._with_content):
            call_span = self._tracer.start_span(
                call.name,
                context,
                kind=self._api.SpanKind.CLIENT if call.is_remote else self._api.SpanKind.INTERNAL,
                attributes=call.attributes | run_attributes,
                start_time=call.start,
            )
            if call.error is not None:
                call_span.set_status(self._api.Status(self._api.StatusCode.ERROR, truncate(call.error)))
            call_span.end(call.end)

    def _make_content(self, name: str, value: Any) -> dict[str, str]:
        if not self._with_content:
            return {}
        mime_type = "text/plain" if isinstance(value, str) else "application/json"
        return {name: truncate(as_text(value)), name.replace("value", "mime_type"): mime_type}


def truncate(text: str) -> str:
    """Limit a text to `MAX_LENGTH` characters."""
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - len(CUT_MARK)] + CUT_MARK


def as_text(value: Any) -> str:
    """Return a string unchanged, and any other value as JSON."""
    return value if isinstance(value, str) else _to_json(value)


def _to_json(value: Any) -> str:
    try:
        return codec.encode(value).decode()
    except codec.ENCODE_ERRORS:
        return f'"({type(value).__name__}, which cannot be written)"'


def _describe_run(run: RunMetadata) -> dict[str, Any]:
    attributes = {
        "openinference.span.kind": "CHAIN",
        "proctor.run.id": run.run_id,
        "proctor.run.name": run.name,
        "proctor.dataset": run.dataset.name,
        "proctor.target": run.target.name,
        "proctor.evaluators": [spec.name for spec in run.evaluators],
        "proctor.planned": run.total,
        "proctor.rescored_from": run.rescored_from,
        **{f"proctor.tag.{name}": value for name, value in run.tags.items()},
    }
    return {name: value for name, value in attributes.items() if value not in (None, "", [])}
