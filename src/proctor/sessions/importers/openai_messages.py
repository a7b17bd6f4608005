"""OpenAI messages: a list of `role` and `content`, with tool calls and results.

A session is such a list, or an object with such a list (`messages`, `traj`, …) whose other fields are
recorded. A file contains one session, a list of sessions, one session per line, or one message per line.
Responses of the Responses API with their `input` and output lines of the Batch API are sessions too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.session import CustomEvent, Event, Message, Usage
from proctor.sessions.current import is_abnormal
from proctor.sessions.genai.bodies import parse_response
from proctor.sessions.genai.message_parser import ParsedMessages, is_message, parse_messages, parse_role
from proctor.sessions.genai.values import decode_json
from proctor.sessions.importers.content_matcher import ContentMatcher
from proctor.sessions.importers.gemini import read_api_usage as read_gemini_usage
from proctor.sessions.importers.imported_session import ImportedSession, describe_type, flatten_values
from proctor.sessions.importers.json_values import (
    as_count,
    as_list,
    as_mapping,
    as_number,
    as_text,
    find_unknown_parts,
    first_count,
    omit_keys,
)
from proctor.sessions.importers.session_builder import PendingSession, SessionBuilder, group_items, merge_distinct
from proctor.sessions.importers.trace import THINKING

NAME = "openai"

_SYSTEM_ROLES = ("system", "developer")
_ROLES = (*_SYSTEM_ROLES, "user", "assistant", "tool", "function")
_SYSTEM = ("system", "system_prompt", "system_instruction", "systemInstruction")
_LISTS = ("messages", "traj", "trajectory", "conversation", "turns", "history", "chat")
_CONTENT = ("content", "parts", "tool_calls", "function_call", "refusal", "audio")
_IDS = ("session_id", "conversation_id", "id", "trace_id", "thread_id")
_SCORES = ("reward", "score", "rating")
UNNAMED_CALL = "tool call without a name"
# Fields of a response that do not contain the answer.
_METADATA = ("id", "object", "created", "model", "usage", "usageMetadata")


def looks_like(values: Sequence[Any]) -> bool:
    """Return True for messages with a known role, or for objects with a list of messages."""
    items = flatten_values(values)
    return any(_is_session(item) or _is_message(item) or _is_message_list(item) for item in items)


def _is_message(value: Any) -> bool:
    fields = as_mapping(value)
    role = fields.get("role")
    has_content = any(key in fields for key in _CONTENT)
    return has_content and isinstance(role, str) and parse_role(role) is not None


def _is_message_list(value: Any) -> bool:
    return any(map(_is_message, as_list(value)))


def _is_session(value: Any) -> bool:
    return _find_list(as_mapping(value)) is not None or _is_exchange(as_mapping(value))


def _is_exchange(fields: Mapping[str, Any]) -> bool:
    return is_batch_line(fields) or is_response(fields)


def _find_list(fields: Mapping[str, Any]) -> str | None:
    key = next((key for key in _LISTS if _is_message_list(fields.get(key))), None)
    # An empty session; this format is detected last.
    return "messages" if key is None and fields.get("messages") == [] else key


def read(values: Iterable[tuple[int, Any]], source: str) -> Iterator[ImportedSession]:
    """Read the sessions of a file; see `group_items`."""
    for pending in group_items(_split_sessions(values, source), source, _is_message):
        yield _build(pending)


def _split_sessions(values: Iterable[tuple[int, Any]], source: str) -> Iterator[tuple[Any, str | None]]:
    """Yield each session with its location; other values have no location."""
    for line, value in values:
        if _is_message_list(value):
            yield value, f"{source}:{line}" if line > 1 else source
        elif isinstance(value, list) and value:
            for number, item in enumerate(value, start=1):
                is_session = _is_session(item) or _is_message_list(item)
                yield item, f"{source}:{number}" if is_session else None
        else:
            yield value, f"{source}:{line}" if _is_session(value) else None


def _build(pending: PendingSession) -> ImportedSession:
    builder, fields = SessionBuilder(), as_mapping(pending.value)
    messages, extra = _split_fields(pending.value)
    scores = {name: item for name in _SCORES if isinstance(item := extra.get(name), bool | int | float)}
    builder.recorded = merge_distinct(extra, {"scores": scores} if scores else {})
    _add_system(builder, fields, extra, messages)
    for number, message in enumerate(messages, start=1):
        add_message(builder, number, message)
    add_response(builder, fields, messages)
    return builder.build(_find_id(extra), NAME, pending.location, pending.strays)


def _find_id(extra: Mapping[str, Any]) -> str | None:
    for name in ("custom_id", *_IDS) if is_batch_line(extra) else _IDS:
        if isinstance(value := extra.get(name), str | int) and value != "":
            return str(value)
    task, trial = extra.get("task_id"), extra.get("trial")
    if not isinstance(task, str | int):
        return None
    return str(task) if trial is None else f"{task}-{trial}"


def _split_fields(value: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    fields = as_mapping(value)
    if (key := _find_list(fields)) is not None:
        return fields[key], omit_keys(fields, key)
    if not _is_exchange(fields):
        return value, {}
    inputs = fields.get("input")
    if isinstance(inputs, str):
        inputs = [{"role": "user", "content": inputs}]
    return (inputs, omit_keys(fields, "input")) if isinstance(inputs, list) else ([], fields)


def add_message(builder: SessionBuilder, number: int, message: Any) -> None:
    """Add one message: its content, its tool calls, or the result of a tool."""
    fields = as_mapping(message)
    role, content = as_text(fields.get("role")), fields.get("content")
    if role is not None and parse_role(role) is None and content not in (None, "", []):
        builder.add_unknown_role(role, content, omit_keys(fields, "role", "content"))
        return
    # Items of OpenAI's responses have a type instead of a role.
    if not (_is_message(message) or ("role" not in fields and is_message(fields))):
        builder.add_unknown(f"message: {describe_type(message)}", message)
        return
    rest = add_parsed(builder, parse_messages([message])).unmatched_fields(message)
    if not isinstance(rest.get("tool_calls"), list | None):
        builder.add_unknown(UNNAMED_CALL, rest.pop("tool_calls"))
    if role is not None and role not in _ROLES:
        rest["role"] = role
    if has_usage(fields):
        builder.add_model_call(number, as_text(fields.get("model")), read_usage(as_mapping(fields["usage"])))
    builder.add_note(number, rest)


def _add_system(
    builder: SessionBuilder, fields: Mapping[str, Any], extra: Mapping[str, Any], messages: Sequence[Any]
) -> None:
    """Add the system prompt that a request has outside its messages."""
    content = next((extra[key] for key in _SYSTEM if extra.get(key)), None)
    if content is None and _is_exchange(fields):
        content = as_mapping(get_body(fields)).get("instructions") or extra.get("instructions") or None
    content = as_mapping(content).get("parts", content)
    contents = [item.get("content") for item in map(as_mapping, messages) if item.get("role") in _SYSTEM_ROLES]
    if isinstance(content, str | list) and content not in contents:
        add_parsed(builder, parse_messages([{"role": "system", "content": content}]))


def add_parsed(builder: SessionBuilder, parsed: ParsedMessages) -> ContentMatcher:
    """Add parsed messages; the returned matcher finds the fields that the session lacks."""
    events: list[Event] = []
    for kind, items in ((THINKING, parsed.thoughts), ("tool on offer", parsed.tools)):
        for item in items:
            events.append(CustomEvent(kind, item))
            builder.add_event(kind, item)
    for index, message in enumerate(parsed.messages):
        if message.role == "tool":
            has_failed = index in parsed.failed
            name = builder.add_result(message.call_id, message.content, has_failed=has_failed, name=message.name)
            message = msgspec.structs.replace(message, name=name, tool_calls=())
        else:
            _add_parsed_message(builder, message)
        events.append(message)
    for alternative in parsed.alternatives:
        builder.add_unknown("alternative answer", alternative)
    return ContentMatcher(events)


def _add_parsed_message(builder: SessionBuilder, message: Message) -> None:
    calls = [call for call in message.tool_calls if call.name]
    builder.add_message(message.role, message.content, name=message.name, calls=calls)
    for call in message.tool_calls:
        if not call.name:
            builder.add_unknown(UNNAMED_CALL, {"id": call.call_id, "arguments": call.arguments})
    for part in find_unknown_parts(message.content):
        builder.add_unknown(f"part: {describe_type(part)}", part)


def is_response(fields: Mapping[str, Any]) -> bool:
    """Return True for a response of OpenAI's Responses API, with or without its `input`."""
    is_candidate = fields.get("object") == "response" or isinstance(fields.get("input"), str | list)
    return is_candidate and _has_output_items(fields)


def is_batch_line(fields: Mapping[str, Any]) -> bool:
    """Return True for an output line of OpenAI's Batch API: a response or an error."""
    if not isinstance(fields.get("custom_id"), str):
        return False
    has_body = isinstance(as_mapping(fields.get("response")).get("body"), dict)
    has_error = fields.get("response", 0) is None and bool(as_mapping(fields.get("error")))
    return has_body or has_error


def get_body(fields: Mapping[str, Any]) -> Any:
    """Return the response body of a logged request; batches wrap it with the status."""
    response = decode_json(fields.get("response"))
    body = as_mapping(response).get("body")
    return body if is_batch_line(fields) and isinstance(body, dict) else response


def _has_output_items(fields: Mapping[str, Any]) -> bool:
    return any(map(is_message, as_list(fields.get("output"))))


def add_response(builder: SessionBuilder, fields: Mapping[str, Any], messages: Sequence[Any]) -> None:
    """Add the response to a request and its usage, unless the messages already contain them."""
    body = get_body(fields)
    # Some logs put the fields of the response next to the fields of the request.
    source = as_mapping(body) or fields
    inline = {"output": fields["output"]} if is_response(fields) else {"choices": fields.get("choices")}
    answer = _parse_answer(builder, body or inline)
    expected = [] if answer is None else answer.messages
    size = len(expected)
    is_repeated = size > 0 and parse_messages(messages[-size:]).messages[-size:] == expected
    if answer is None:
        values = omit_keys(body, *_METADATA).values() if isinstance(body, dict) else [body]
        if body and any(values):
            builder.add_unknown("response", body)
    elif not is_repeated:
        add_parsed(builder, answer)
    if is_batch_line(fields) and fields.get("error"):
        builder.add_unknown("error", fields["error"])
    counted = messages[-1:] if is_repeated else () if source is body else messages
    if not any(map(has_usage, counted)):
        model = as_text(source.get("model")) or as_text(fields.get("model"))
        _add_usage(builder, source, model, answer)


def _parse_answer(builder: SessionBuilder, response: Any) -> ParsedMessages | None:
    if isinstance(response, str):
        return parse_messages([response], "assistant")
    if not _has_output_items(as_mapping(response)):
        return parse_response(response)
    for item in response["output"]:
        if not is_message(item):
            builder.add_unknown(f"message: {describe_type(item)}", item)
    return parse_messages(list(filter(is_message, response["output"])), "assistant")


def _add_usage(
    builder: SessionBuilder, body: Mapping[str, Any], model: str | None, answer: ParsedMessages | None
) -> None:
    usage = read_usage(as_mapping(body.get("usage")))
    if usage == Usage():
        usage = read_gemini_usage(as_mapping(body.get("usageMetadata")))
    reasons = () if answer is None else answer.finish_reasons
    reason = next(iter(reasons), None) or as_text(body.get("stop_reason"))
    reason = reason or as_text(as_mapping(body.get("incomplete_details")).get("reason"))
    if usage != Usage() or (model and answer is not None) or is_abnormal(reason):
        builder.add_model_call("response", model, usage, finish_reason=reason)


def has_usage(message: Any) -> bool:
    """Return True if an assistant message contains its usage."""
    fields = as_mapping(message)
    role = as_text(fields.get("role"))
    is_answer = role is not None and parse_role(role) == "assistant"
    return is_answer and read_usage(as_mapping(fields.get("usage"))) != Usage()


def read_usage(fields: Mapping[str, Any]) -> Usage:
    """Return the usage in the formats of OpenAI and Anthropic.

    Anthropic counts cached tokens separately from the input.
    """
    detail_names = ("prompt_tokens_details", "input_tokens_details")
    details = next(filter(None, (as_mapping(fields.get(name)) for name in detail_names)), {})
    inputs = first_count(fields, "prompt_tokens", "input_tokens")
    cache_read = first_count(fields, "cache_read_input_tokens")
    cache_write = first_count(fields, "cache_creation_input_tokens")
    if "prompt_tokens" not in fields and (cache_read or cache_write):
        inputs = as_count((inputs or 0) + (cache_read or 0) + (cache_write or 0))
    return Usage(
        inputs,
        first_count(fields, "completion_tokens", "output_tokens"),
        first_count(details, "cached_tokens") if cache_read is None else cache_read,
        as_number(fields.get("cost")),
        cache_write,
    )
