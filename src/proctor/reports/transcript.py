"""A session as a transcript: messages, tool calls, and model usage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proctor.records import codec, session_events
from proctor.records.formatting import format_cost
from proctor.records.model import render_content, render_value, summarize_data
from proctor.records.session import CustomEvent, Event, Message, ModelCall, Session, ToolCall
from proctor.records.trial import EvalResult
from proctor.reports.format import excerpt, single_line

TEXT_LIMIT = 4_000
RESULT_LIMIT = 1_000
VALUE_LIMIT = 300
# Other events are shortened to a recognizable excerpt.
OTHER_EVENT_LIMIT = 60
THOUGHTS = ("thinking", "reasoning", "thought")
_THOUGHT_KEYS = ("thinking", "text", "content", "description", "summary")
INDENT = "    "


def render_transcripts(result: EvalResult) -> str:
    """Return the transcripts of a result: the target's session, then each evaluator's."""
    sessions = {"target": result.trial.session, **result.sessions}
    blocks = [
        f"── {single_line(name, VALUE_LIMIT)} ──\n{render_transcript(session)}"
        for name, session in sessions.items()
        if session is not None and len(session)
    ]
    return "\n\n".join(blocks) or "no model or tool was called"


def render_transcript(session: Session) -> str:
    """Return one session as text, event by event."""
    repeated_calls, callers = session_events.RepeatedCalls(session), session_events.CallerIndex()
    return "\n".join(text for event in session if (text := _render_event(event, repeated_calls, callers)))


def _render_event(
    event: Event, repeated_calls: session_events.RepeatedCalls, callers: session_events.CallerIndex
) -> str:
    if isinstance(event, Message):
        callers.add_message(event)
        return "" if repeated_calls.repeats(event) else _render_message(event, repeated_calls)
    if isinstance(event, ToolCall):
        result = f"failed: {event.error}" if event.error is not None else _as_text(event.result)
        return _render_tool_call(event, callers, excerpt(result, RESULT_LIMIT).strip("\n"))
    if isinstance(event, ModelCall):
        return f"[{', '.join(_model_call_facts(event))}]"
    return _render_custom_event(event, callers)


def _render_custom_event(event: CustomEvent, callers: session_events.CallerIndex) -> str:
    match session_events.interpret_event(event):
        case session_events.UnansweredCall() as unanswered:
            return _render_tool_call(unanswered.call, callers, "no result is recorded")
        case session_events.OrphanResult() as orphan:
            name = f" {single_line(orphan.name, VALUE_LIMIT)}" if orphan.name else ""
            error = "" if orphan.error is None else f"failed: {orphan.error}\n"
            content = f"{error}{excerpt(_as_text(orphan.content), RESULT_LIMIT)}"
            return f"tool result{name}, whose call is not recorded\n{_indent(content)}"
        case session_events.UnknownRoleMessage() as message:
            content = excerpt(_as_text(message.content), TEXT_LIMIT)
            return f"{single_line(message.role, VALUE_LIMIT)}:\n{_indent(content)}"
    if event.kind in THOUGHTS and (thought := _find_thought(event.data)):
        return f"{event.kind}:\n{_indent(excerpt(thought, RESULT_LIMIT))}"
    return f"{single_line(event.kind, VALUE_LIMIT)}: {single_line(event.data, OTHER_EVENT_LIMIT)}"


def _find_thought(data: Any) -> str:
    """Return the text of a thought without its signature and timestamps."""
    if isinstance(data, str):
        return data
    if isinstance(data, list):
        return "\n".join(filter(None, map(_find_thought, data)))
    if not isinstance(data, dict):
        return ""
    return next((thought for key in _THOUGHT_KEYS if (thought := _find_thought(data.get(key)))), "")


def _render_tool_call(call: ToolCall, callers: session_events.CallerIndex, result: str) -> str:
    name = callers.get_caller(call)
    caller = f" ({single_line(name, VALUE_LIMIT)})" if name else ""
    return f"tool {_format_call(call)}{caller}\n{_indent(result)}"


def _render_message(message: Message, repeated_calls: session_events.RepeatedCalls) -> str:
    calls = [f"{INDENT}→ {_format_call(call)}" for call in repeated_calls.unrepeated_calls(message)]
    is_empty = message.content in (None, "", [])
    if is_empty and not calls and message.tool_calls:
        # The tool calls follow as events.
        return ""
    speaker = message.role + (f" ({single_line(message.name, VALUE_LIMIT)})" if message.name else "")
    text = [] if is_empty else [_indent(excerpt(_as_text(message.content), TEXT_LIMIT).strip("\n"))]
    return "\n".join([f"{speaker}:", *text, *calls])


def _as_text(content: Any) -> str:
    """Return content as text, with short descriptions of images and other media."""
    if isinstance(content, str):
        return summarize_data(content)
    has_typed_parts = isinstance(content, list) and any(isinstance(p, dict) and "type" in p for p in content)
    return render_content(content, codec.to_text) if has_typed_parts else render_value(content, codec.to_text)


def _indent(text: str) -> str:
    return INDENT + text.replace("\n", "\n" + INDENT)


def _format_call(call: ToolCall) -> str:
    arguments = ", ".join(_format_argument(name, value) for name, value in call.arguments.items())
    return f"{single_line(call.name, VALUE_LIMIT)}({arguments})"


def _format_argument(name: str, value: Any) -> str:
    text = single_line(_as_text(value), VALUE_LIMIT)
    if name:
        return f"{single_line(name, VALUE_LIMIT)}={text}"
    is_broken = isinstance(value, str) and value.lstrip().startswith(("{", "["))
    return f"unreadable arguments: {text}" if is_broken else text


def _model_call_facts(call: ModelCall) -> Iterator[str]:
    yield single_line(call.model, VALUE_LIMIT)
    usage = call.usage
    if usage.total_tokens is not None:
        yield f"{usage.input_tokens or 0:,} + {usage.output_tokens or 0:,} tokens"
    if usage.cost is not None:
        yield format_cost(usage.cost)
    if call.latency_ms is not None:
        yield f"{call.latency_ms:,.0f} ms"
    if call.finish_reason not in (None, "stop"):
        yield f"ended by {call.finish_reason}"
    for name, value in call.details.items():
        yield name if value is True else f"{name}: {single_line(value, VALUE_LIMIT)}"
