"""A session as a transcript: who said what, which tools ran, what the models used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proctor.records import codec
from proctor.records.model import in_text, in_words, text_of
from proctor.records.session import CustomEvent, Event, Message, ModelCall, Session, ToolCall, Usage
from proctor.records.telling import Callers, Stranger, Told, Unanswered, Unasked, meaning
from proctor.records.trial import EvalResult
from proctor.reports.format import excerpt, line

TEXT_WIDTH = 4_000
RESULT_WIDTH = 1_000
VALUE_WIDTH = 300
# What stands in a log beside what took place: enough to recognise it; the record has it whole.
BESIDE_WIDTH = 60
THOUGHTS = ("thinking", "reasoning", "thought")
_THOUGHT_IN = ("thinking", "text", "content", "description", "summary")
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
    told, callers = Told(session), Callers()
    return "\n".join(part for event in session if (part := _lines(event, told, callers)))


def _lines(event: Event, told: Told, callers: Callers) -> str:
    if isinstance(event, Message):
        callers.hear(event)
        return "" if told.repeats(event) else _message(event, told)
    if isinstance(event, ToolCall):
        return f"tool {_called(event)}{_by(event, callers)}\n{_outcome(event)}"
    if isinstance(event, ModelCall):
        return f"[{', '.join(_facts(event))}]"
    return _other(event, callers)


def _other(event: CustomEvent, callers: Callers) -> str:
    found = meaning(event)
    if isinstance(found, Unanswered):
        said = f"{INDENT}no answer is recorded"
        return f"tool {_called(found.call)}{_by(found.call, callers)}\n{said}"
    if isinstance(found, Unasked):
        name = f" {line(found.name, VALUE_WIDTH)}" if found.name else ""
        failed = "" if found.error is None else f"failed: {found.error}\n"
        said = f"{failed}{excerpt(_said(found.content), RESULT_WIDTH)}"
        return f"tool result{name}, whose call is not recorded\n{_indented(said)}"
    if isinstance(found, Stranger):
        said = excerpt(_said(found.content), TEXT_WIDTH)
        return f"{line(found.role, VALUE_WIDTH)}:\n{_indented(said)}"
    if event.kind in THOUGHTS and (thought := _thought(event.data)):
        return f"{event.kind}:\n{_indented(excerpt(thought, RESULT_WIDTH))}"
    return f"{line(event.kind, VALUE_WIDTH)}: {line(event.data, BESIDE_WIDTH)}"


def _thought(data: Any) -> str:
    """What a model thought, without the signatures and times around it."""
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return "\n".join(filter(None, map(_thought, data)))
    if not isinstance(data, dict):
        return ""
    return next((said for key in _THOUGHT_IN if (said := _thought(data.get(key)))), "")


def _by(call: ToolCall, callers: Callers) -> str:
    name = callers.of(call)
    return f" ({line(name, VALUE_WIDTH)})" if name else ""


def _message(message: Message, told: Told) -> str:
    """What was said; a message that only asks for calls which are told next needs no line."""
    asked = [f"{INDENT}→ {_called(call)}" for call in told.only_asked(message)]
    silent = message.content in (None, "", [])
    if silent and not asked and message.tool_calls:
        return ""
    speaker = message.role + (f" ({line(message.name, VALUE_WIDTH)})" if message.name else "")
    said = [] if silent else [_indented(excerpt(_said(message.content), TEXT_WIDTH).strip("\n"))]
    return "\n".join([f"{speaker}:", *said, *asked])


def _said(content: Any) -> str:
    """What was said, or what a tool gave, as text; images and the like in a few words."""
    if isinstance(content, str):
        return in_words(content)
    is_parts = isinstance(content, list) and any(
        isinstance(part, dict) and "type" in part for part in content
    )
    return text_of(content, codec.in_text) if is_parts else in_text(content, codec.in_text)


def _indented(text: str) -> str:
    return INDENT + text.replace("\n", "\n" + INDENT)


def _called(call: ToolCall) -> str:
    arguments = ", ".join(_given(name, value) for name, value in call.arguments.items())
    return f"{line(call.name, VALUE_WIDTH)}({arguments})"


def _given(name: str, value: Any) -> str:
    """An argument; what was given without names stands alone, and broken JSON is called so."""
    told = line(_said(value), VALUE_WIDTH)
    if name:
        return f"{line(name, VALUE_WIDTH)}={told}"
    is_broken = isinstance(value, str) and value.lstrip().startswith(("{", "["))
    return f"arguments that cannot be read: {told}" if is_broken else told


def _outcome(call: ToolCall) -> str:
    if call.error is not None:
        return _indented(excerpt(f"failed: {call.error}", RESULT_WIDTH))
    return _indented(excerpt(_said(call.result), RESULT_WIDTH).strip("\n"))


def _facts(call: ModelCall) -> Iterator[str]:
    yield line(call.model, VALUE_WIDTH)
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
