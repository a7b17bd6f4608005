"""A session as a transcript: who said what, which tools ran, what the models used."""

from __future__ import annotations

from collections.abc import Iterator

from proctor.records.session import Event, Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import EvalResult
from proctor.reports.excerpts import excerpt, line

TEXT_WIDTH = 4_000
VALUE_WIDTH = 300
INDENT = "    "


def transcripts(result: EvalResult) -> str:
    """What was said while a result came about: the target's session, then each evaluator's."""
    told = {"target": result.trial.session, **result.sessions}
    parts = [
        f"── {line(name, VALUE_WIDTH)} ──\n{transcript(session)}"
        for name, session in told.items()
        if session is not None and len(session)
    ]
    return "\n\n".join(parts) or "no model or tool was called"


def transcript(session: Session) -> str:
    """One session as text, event by event.

    >>> print(transcript(Session([Message("user", "Capital of France?")])))
    user:
        Capital of France?
    """
    return "\n".join(_lines(event) for event in session)


def _lines(event: Event) -> str:
    if isinstance(event, Message):
        return _message(event)
    if isinstance(event, ToolCall):
        return f"tool {_called(event)}\n{INDENT}{_outcome(event)}"
    if isinstance(event, ModelCall):
        return f"[{', '.join(_facts(event))}]"
    return f"{event.kind}: {excerpt(event.data, VALUE_WIDTH)}"


def _message(message: Message) -> str:
    speaker = message.role + (f" ({message.name})" if message.name else "")
    lines = [f"{speaker}:"]
    if message.content not in (None, ""):
        text = excerpt(message.content, TEXT_WIDTH).strip("\n")
        lines.append(INDENT + text.replace("\n", "\n" + INDENT))
    lines += [f"{INDENT}→ {_called(call)}" for call in message.tool_calls]
    return "\n".join(lines)


def _called(call: ToolCall) -> str:
    arguments = ", ".join(
        f"{name}={line(value, VALUE_WIDTH)}" for name, value in call.arguments.items()
    )
    return f"{call.name}({arguments})"


def _outcome(call: ToolCall) -> str:
    if call.error is not None:
        return f"failed: {line(call.error, VALUE_WIDTH)}"
    return line(call.result, VALUE_WIDTH)


def _facts(call: ModelCall) -> Iterator[str]:
    yield call.model
    yield from _used(call.usage)
    if call.latency_ms is not None:
        yield f"{call.latency_ms:,.0f} ms"
    if call.finish_reason not in (None, "stop"):
        yield f"ended by {call.finish_reason}"
    for name, value in call.details.items():
        yield name if value is True else f"{name}: {line(value, VALUE_WIDTH)}"


def _used(usage: Usage) -> Iterator[str]:
    if usage.total_tokens is not None:
        yield f"{usage.input_tokens or 0:,} + {usage.output_tokens or 0:,} tokens"
    if usage.cost is not None:
        yield f"{usage.cost:.6g} USD"
