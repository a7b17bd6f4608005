"""Add parsed messages, responses and their usage to a session, for formats of model APIs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from proctor.records.session import CustomEvent, Event, Message, Usage
from proctor.sessions.genai.bodies import parse_response
from proctor.sessions.genai.message_parser import ParsedMessages, is_message, parse_messages, parse_role
from proctor.sessions.genai.values import decode_json
from proctor.sessions.importers.content_matcher import ContentMatcher
from proctor.sessions.importers.json_values import (
    as_count,
    as_list,
    as_mapping,
    as_number,
    as_text,
    describe_type,
    find_unknown_parts,
    first_count,
    omit_keys,
    read_gemini_usage,
)
from proctor.sessions.importers.session_builder import SessionBuilder
from proctor.sessions.importers.trace import THINKING

UNNAMED_CALL = "tool call without a name"
# Fields of a response that do not contain the answer.
_METADATA = ("id", "object", "created", "model", "usage", "usageMetadata")


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
            _add_message(builder, message)
        events.append(message)
    for alternative in parsed.alternatives:
        builder.add_unknown("alternative answer", alternative)
    return ContentMatcher(events)


def _add_message(builder: SessionBuilder, message: Message) -> None:
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
    """Add the response to a request and its usage, unless the messages contain them already."""
    body = get_body(fields)
    # Some logs put the fields of the response next to those of the request.
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
    if usage != Usage() or (model and answer is not None):
        reasons = () if answer is None else answer.finish_reasons
        reason = next(iter(reasons), None) or as_text(body.get("stop_reason"))
        reason = reason or as_text(as_mapping(body.get("incomplete_details")).get("reason"))
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
