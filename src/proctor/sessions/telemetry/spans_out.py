"""A run, its trials and its evaluations as spans."""

from __future__ import annotations

import importlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from proctor.records import codec
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Event, Message, ModelCall, Session, ToolCall
from proctor.records.trial import EvalResult, Failure
from proctor.sessions.telemetry.spans_in import SCOPE, TrialRecorder
from proctor.version import VERSION

Truncate = Callable[[str], str]


class CallSpan(NamedTuple):
    """One call, ready to be emitted; times are in nanoseconds since 1970."""

    name: str
    attributes: dict[str, Any]
    began: int
    ended: int
    error: str | None
    is_remote: bool


def build_call_spans(
    events: Sequence[Event], began: int, ended: int, cut: Truncate | None
) -> Iterator[CallSpan]:
    """A span for each call among the events; `cut` shortens contents, None leaves them out."""
    calls = [event for event in events if isinstance(event, ModelCall | ToolCall)]
    in_turn = sum(map(_took, calls)) <= ended - began
    messages: list[Message] = []
    at = began
    for event in events:
        if isinstance(event, Message):
            messages.append(event)
            continue
        if not isinstance(event, ModelCall | ToolCall):
            continue
        if isinstance(event, ModelCall):
            name, attributes, error = _model(event, messages, cut)
            messages = []
        else:
            name, attributes, error = _tool(event, cut)
        yield CallSpan(name, attributes, at, at + _took(event), error, isinstance(event, ModelCall))
        if in_turn:
            at += _took(event)


def _took(call: ModelCall | ToolCall) -> int:
    lasted = call.latency_ms if isinstance(call, ModelCall) else call.duration_ms
    return max(0, int((lasted or 0.0) * 1e6))


def _model(
    call: ModelCall, messages: Sequence[Message], cut: Truncate | None
) -> tuple[str, dict[str, Any], str | None]:
    error = call.details.get("error")
    usage = call.usage
    operation = str(call.details.get("operation", "chat"))
    about = {
        "gen_ai.operation.name": operation,
        "gen_ai.request.model": call.model,
        "gen_ai.provider.name": _provider(call.model),
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cost": usage.cost,
        "gen_ai.response.finish_reasons": [call.finish_reason] if call.finish_reason else None,
        "openinference.span.kind": "LLM" if operation == "chat" else "EMBEDDING",
        "error.type": "call_failed" if error is not None else None,
    }
    if cut is not None:
        asked = [message for message in messages if message.role != "assistant"]
        said = [message for message in messages if message.role == "assistant"]
        about["gen_ai.input.messages"] = _written(asked, cut)
        about["gen_ai.output.messages"] = _written(said, cut)
    return f"{operation} {call.model}", _known(about), None if error is None else str(error)


def _provider(model: str) -> str | None:
    """Who answers to the address of a model, where the address tells it."""
    name, colon, _ = model.partition(":")
    return name if colon and name not in ("http", "https") else None


def _tool(call: ToolCall, cut: Truncate | None) -> tuple[str, dict[str, Any], str | None]:
    about: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.call.id": call.call_id,
        "openinference.span.kind": "TOOL",
        "error.type": None if call.error is None else "tool_failed",
    }
    if cut is not None:
        about["gen_ai.tool.call.arguments"] = cut(_json(call.arguments))
        if call.error is None:
            about["gen_ai.tool.call.result"] = cut(_json(call.result))
    return f"execute_tool {call.name}", _known(about), call.error


def _written(messages: Sequence[Message], cut: Truncate) -> str | None:
    """Messages as the conventions want them; long texts are cut, so that the JSON stays whole."""
    return _json([_message(message, cut) for message in messages]) if messages else None


def _message(message: Message, cut: Truncate) -> dict[str, Any]:
    content = message.content if isinstance(message.content, str) else _json(message.content)
    parts: list[dict[str, Any]] = []
    if message.role == "tool":
        parts.append({"type": "tool_call_response", "id": message.call_id, "response": cut(content)})
    elif message.content:
        parts.append({"type": "text", "content": cut(content)})
    for call in message.tool_calls:
        asked = {"type": "tool_call", "id": call.call_id, "name": call.name}
        parts.append({**asked, "arguments": call.arguments})
    return {"role": message.role, "parts": parts}


def _json(value: Any) -> str:
    try:
        return codec.encode(value).decode()
    except codec.UNWRITABLE:
        return f'"({type(value).__name__}, which cannot be written)"'


def _known(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
# Longer contents are cut: backends refuse or drop spans of megabytes.
MAX_LENGTH = 8_192
CUT_MARK = "… (cut)"
_WITHOUT_CONTENT = ("false", "0", "no_content", "event_only")


# The run that a trial belongs to, where that is another process's.
belongs_to: ContextVar[str] = ContextVar("proctor_run", default="")


class RunTracer:
    """The spans of one run: one for the run, below it one a trial, below that one an evaluation.

    The span of a trial is the current one while its target and its evaluators run, so that spans
    of the program stand below it. With `for_others` the trials are those of runs elsewhere: each
    begins a trace, and bears the id of its run as its session.
    """

    def __init__(
        self, provider: Any, run: RunMetadata, environment: Mapping[str, str], *, for_others: bool = False
    ) -> None:
        self._api = importlib.import_module("opentelemetry.trace")
        self._context = importlib.import_module("opentelemetry.context")
        self._tracer = provider.get_tracer(SCOPE, VERSION)
        self._with_content = environment.get(CAPTURE, "").strip().lower() not in _WITHOUT_CONTENT
        # What a rescoring is made of was called before.
        self._with_calls = run.rescored_from is None
        self._id = run.run_id
        self._root = self._api.INVALID_SPAN
        self._under_root = self._context.Context()
        if not for_others:
            self._root = self._tracer.start_span(
                f"proctor run {run.name}", attributes=_about_run(run) | {"session.id": run.run_id}
            )
            self._under_root = self._api.set_span_in_context(self._root)
        self._outcomes: Counter[str] = Counter()
        self._open: set[Any] = set()

    @contextmanager
    def trial(
        self, hearing: TrialRecorder, sample: Sample[Any, Any], configuration: str, epoch: int
    ) -> Iterator[list[EvalResult]]:
        """Open the span of a trial; what is put into the list is what it came to."""
        about = {
            "openinference.span.kind": "CHAIN",
            "proctor.sample.id": sample.id,
            "proctor.configuration": configuration,
            "proctor.epoch": epoch,
            **self._content("input.value", sample.input),
        }
        results: list[EvalResult] = []
        began = time.time_ns()
        with self._span("proctor trial", about, self._under_root) as span:
            self._open.add(span)
            try:
                yield results
            finally:
                self._open.discard(span)
                for result in results if span.is_recording() else ():
                    self._end_trial(span, result, began, hearing)

    @contextmanager
    def evaluation(
        self, spec: EvaluatorSpec, hearing: TrialRecorder, session: Session | None
    ) -> Iterator[list[Score]]:
        """Open the span of an evaluation; what is put into the list is its score."""
        about = {
            "openinference.span.kind": "EVALUATOR",
            "gen_ai.evaluation.name": spec.name,
            "proctor.evaluator": spec.uses,
        }
        scores: list[Score] = []
        began = time.time_ns()
        with self._span(f"evaluate {spec.name}", about) as span:
            yield scores
            for score in scores:
                self._end_evaluation(span, score)
            if session is not None:
                self._emit_calls(span, session, began, time.time_ns(), hearing)

    def close(self) -> None:
        """End the run's span, and those of trials that were given up."""
        for span in tuple(self._open):
            self._fail(span, Failure("TimeoutError", "it kept running after it was cancelled"))
            span.end()
        self._root.set_attributes(
            {f"proctor.outcome.{name}": count for name, count in self._outcomes.items()}
            | {"proctor.trials": self._outcomes.total()}
        )
        self._root.end()

    @contextmanager
    def _span(self, name: str, attributes: dict[str, Any], context: Any = None) -> Iterator[Any]:
        """A span that is the current one until the end; what passes through makes it a failure."""
        span = self._tracer.start_span(name, context, attributes=attributes | self._about_all())
        token = self._context.attach(self._api.set_span_in_context(span, context))
        try:
            yield span
        except GeneratorExit:
            # Dropped with its event loop, in a context that is not its own.
            token = None
            raise
        except BaseException as error:
            if span.is_recording():
                self._fail(span, Failure(type(error).__name__, str(error)))
            raise
        finally:
            if token is not None:
                self._context.detach(token)
            if span.is_recording():
                span.end()

    def _about_all(self) -> dict[str, Any]:
        run = belongs_to.get() or self._id
        return {"session.id": run, "proctor.run.id": run}

    def _end_trial(self, span: Any, result: EvalResult, began: int, hearing: TrialRecorder) -> None:
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
            self._fail(span, trial.error)
        else:
            span.set_attributes(self._content("output.value", trial.output))
        if trial.session is not None and self._with_calls and not trial.cached:
            ended = began + int((trial.latency_ms or 0.0) * 1e6)
            self._emit_calls(span, trial.session, began, ended, hearing)

    def _end_evaluation(self, span: Any, score: Score) -> None:
        labels = {True: "pass", False: "fail", None: score.status}
        label = labels[score.passed]
        span.set_attribute("gen_ai.evaluation.score.label", label)
        if score.value is not None:
            span.set_attribute("gen_ai.evaluation.score.value", score.value)
        if score.reason and self._with_content:
            span.set_attribute("gen_ai.evaluation.explanation", truncate(score.reason))
        if score.status == "error":
            span.set_attribute("error.type", "evaluation_failed")
            said = truncate(score.reason) if self._with_content else None
            span.set_status(self._api.Status(self._api.StatusCode.ERROR, said))

    def _fail(self, span: Any, failure: Failure) -> None:
        told = {"exception.type": failure.kind, "exception.message": truncate(failure.message)}
        if failure.traceback:
            told["exception.stacktrace"] = failure.traceback
        span.add_event("exception", told)
        span.set_attribute("error.type", failure.kind)
        span.set_status(self._api.Status(self._api.StatusCode.ERROR, truncate(str(failure))))

    def _emit_calls(
        self, span: Any, session: Session, began: int, ended: int, hearing: TrialRecorder
    ) -> None:
        """The calls that a session tells of, but those that are spans already."""
        own = [event for event in session if not hearing.came_in(event)]
        under = self._api.set_span_in_context(span)
        about = self._about_all()
        for call in build_call_spans(own, began, ended, truncate if self._with_content else None):
            made = self._tracer.start_span(
                call.name,
                under,
                kind=self._api.SpanKind.CLIENT if call.is_remote else self._api.SpanKind.INTERNAL,
                attributes=call.attributes | about,
                start_time=call.began,
            )
            if call.error is not None:
                made.set_status(self._api.Status(self._api.StatusCode.ERROR, truncate(call.error)))
            made.end(call.ended)

    def _content(self, name: str, value: Any) -> dict[str, str]:
        if not self._with_content:
            return {}
        kind = "text/plain" if isinstance(value, str) else "application/json"
        return {name: truncate(as_text(value)), name.replace("value", "mime_type"): kind}


def truncate(text: str) -> str:
    """A text of at most `LONGEST` characters.

    >>> cut("short"), len(cut("x" * 10_000))
    ('short', 8192)
    """
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - len(CUT_MARK)] + CUT_MARK


def as_text(value: Any) -> str:
    """A value as an attribute can hold it: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return codec.encode(value).decode()
    except codec.UNWRITABLE:
        return f"({type(value).__name__}, which cannot be written)"


def _about_run(run: RunMetadata) -> dict[str, Any]:
    about = {
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
    return {name: value for name, value in about.items() if value not in (None, "", [])}
