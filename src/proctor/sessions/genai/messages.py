"""Read the messages of a model call from the attributes and events of its span.

Conventions: JSON in `gen_ai.input.messages`, span events such as `gen_ai.user.message`, numbered
attributes (`gen_ai.prompt.0.content`, OpenInference), the Vercel AI SDK, and bodies (`input.value`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from proctor.records.session import Message
from proctor.sessions.genai.bodies import parse_request, parse_response
from proctor.sessions.genai.message_parser import ParsedMessages, parse_messages
from proctor.sessions.genai.values import decode_json

# OpenInference wraps each part of a message in a mapping with one of these keys.
_WRAPPERS = ("message", "message_content", "tool_call")
_VERCEL_OUTPUTS = ("ai.response.text", "ai.response.object", "ai.response.toolCalls")
# No attribute name has more dots, and no list more items.
_MAX_DOTS = 16
_MAX_DIGITS = 6
_INSTRUCTIONS = "gen_ai.system_instructions"
# The source name of messages in span events.
EVENTS = "events"


class SpanEvent(NamedTuple):
    name: str
    attributes: Mapping[str, Any] = {}


class CallMessages(NamedTuple):
    """The messages that a model call received and returned.

    `unreadable` lists the attributes that should contain messages but cannot be parsed. `thoughts` are not in the
    messages because later calls do not repeat them. `input_sources` and `output_sources` list the
    attributes that were read; a name that ends with a dot is a prefix.
    """

    inputs: list[Message]
    outputs: list[Message]
    finish_reason: str | None = None
    unreadable: tuple[str, ...] = ()
    thoughts: tuple[Any, ...] = ()
    input_sources: tuple[str, ...] = ()
    output_sources: tuple[str, ...] = ()


def read_call_messages(attributes: Mapping[str, Any], events: Iterable[SpanEvent] = ()) -> CallMessages:
    """Read the messages of a model call, each direction from the first convention that has it."""
    messages = _read_json(attributes)
    logged_events = decode_json(attributes.get("events"))
    listed_events = (
        [event for event in logged_events if isinstance(event, Mapping)] if isinstance(logged_events, list) else []
    )
    events = [*events, *(SpanEvent(str(event.get("event.name", "")), event) for event in listed_events)]
    if not (messages.inputs and messages.outputs):
        messages = _merge(messages, _read_events(events))
    for read, *names in _OTHER_READERS:
        if (messages.inputs and messages.outputs) or messages.unreadable:
            break
        messages = _merge(messages, read(attributes, *names))
    return _add_instructions(messages, attributes, events)


def read_instructions(attributes: Mapping[str, Any]) -> list[Message]:
    """Read the system message that a span stores outside its messages."""
    parts = decode_json(attributes.get(_INSTRUCTIONS))
    if not parts:
        return []
    parts = parts if isinstance(parts, list | tuple) else [parts]
    return parse_messages([{"role": "system", "parts": parts}]).messages


def _add_instructions(
    messages: CallMessages, attributes: Mapping[str, Any], events: Iterable[SpanEvent]
) -> CallMessages:
    system = read_instructions(attributes)
    source = [_INSTRUCTIONS] if system else []
    for name, data in events if not system else ():
        if name.startswith("gen_ai.") and (system := read_instructions(data)):
            source = [EVENTS]
            break
    if not system or all(message in messages.inputs for message in system):
        return messages
    sources = (*source, *(messages.input_sources if messages.inputs else ()))
    return messages._replace(inputs=[*system, *messages.inputs], input_sources=tuple(dict.fromkeys(sources)))


def _merge(first: CallMessages, second: CallMessages) -> CallMessages:
    """Fill the empty fields of the first messages with the fields of the second."""
    return CallMessages(
        first.inputs or second.inputs,
        first.outputs or second.outputs,
        first.finish_reason or second.finish_reason,
        (*first.unreadable, *second.unreadable),
        first.thoughts or second.thoughts,
        first.input_sources if first.inputs else second.input_sources,
        first.output_sources if first.outputs else second.output_sources,
    )


def _combine(
    inputs: ParsedMessages | None,
    outputs: ParsedMessages | None,
    input_sources: Sequence[str],
    output_sources: Sequence[str],
) -> CallMessages:
    inputs, outputs = inputs or parse_messages(()), outputs or parse_messages(())
    return CallMessages(
        inputs.messages,
        outputs.messages,
        next(iter(outputs.finish_reasons), None),
        thoughts=(*inputs.thoughts, *outputs.thoughts),
        input_sources=tuple(input_sources),
        output_sources=tuple(output_sources),
    )


def _read_json(attributes: Mapping[str, Any]) -> CallMessages:
    """Read JSON in one attribute per direction."""
    unreadable: list[str] = []

    def read(
        name: str, older_name: str, parse_body: Callable[[Any], ParsedMessages | None], role: str
    ) -> tuple[ParsedMessages | None, list[str]]:
        value, source = decode_json(attributes.get(name)), name
        if isinstance(value, list | tuple):
            return parse_messages(value, role), [source]
        if value is None:
            value, source = decode_json(attributes.get(older_name)), older_name
        elif not isinstance(value, Mapping):
            # Probably truncated: this attribute is always a list.
            unreadable.append(name)
            return None, [source]
        if value is None or value == "":
            return None, [] if value is None else [source]
        items = value if isinstance(value, list | tuple) else [value]
        return parse_body(value) or parse_messages(items, role), [source]

    inputs, input_sources = read("gen_ai.input.messages", "gen_ai.prompt", parse_request, "user")
    outputs, output_sources = read("gen_ai.output.messages", "gen_ai.completion", parse_response, "assistant")
    messages = _combine(inputs, outputs, input_sources, output_sources)
    return messages._replace(unreadable=tuple(unreadable))


def _read_events(events: Sequence[SpanEvent]) -> CallMessages:
    """Read one event per message, or one per direction."""
    inputs: list[Any] = []
    outputs: list[Any] = []
    messages = CallMessages([], [])
    for name, data in events:
        role = name.removeprefix("gen_ai.").removesuffix(".message")
        if name == "gen_ai.choice":
            message = decode_json(data.get("message"))
            outputs.append({**data, **message} if isinstance(message, Mapping) else data)
        elif name == f"gen_ai.{role}.message":
            inputs.append({"role": role, **data})
        elif name.startswith("gen_ai.") and name != "gen_ai.evaluation.result":
            messages = _merge(messages, _read_json(data))
    directional_messages = _combine(parse_messages(inputs), parse_messages(outputs, "assistant"), (), ())
    return _merge(messages, directional_messages)._replace(input_sources=(EVENTS,), output_sources=(EVENTS,))


def _read_bodies(attributes: Mapping[str, Any], input_name: str, output_name: str) -> CallMessages:
    request, response = parse_request(attributes.get(input_name)), parse_response(attributes.get(output_name))
    return _combine(request, response, [input_name], [output_name])


def _read_vercel(attributes: Mapping[str, Any]) -> CallMessages:
    source = "ai.prompt.messages"
    request = parse_request(attributes.get(source))
    if request is None:
        source = "ai.prompt"
        request = parse_request(attributes.get(source))
    answer = {
        "content": attributes.get("ai.response.text") or attributes.get("ai.response.object"),
        "tool_calls": attributes.get("ai.response.toolCalls"),
    }
    outputs = parse_messages([answer], "assistant") if any(answer.values()) else None
    return _combine(request, outputs, [source], _VERCEL_OUTPUTS)


def _read_numbered(attributes: Mapping[str, Any], input_prefix: str, output_prefix: str) -> CallMessages:
    """Read one attribute per field of each message."""
    inputs = parse_messages(_unflatten(attributes, input_prefix))
    outputs = parse_messages(_unflatten(attributes, output_prefix), "assistant")
    return _combine(inputs, outputs, [input_prefix], [output_prefix])


# The readers of older conventions, and the names of the attributes for inputs and outputs.
_OTHER_READERS: tuple[tuple[Any, ...], ...] = (
    (_read_numbered, "gen_ai.prompt.", "gen_ai.completion."),
    (_read_numbered, "llm.input_messages.", "llm.output_messages."),
    (_read_vercel,),
    (_read_bodies, "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),
    (_read_bodies, "input.value", "output.value"),
)


def _unflatten(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """Return the list that attributes with dots and numbers represent."""
    root: dict[str, Any] = {}
    for name, value in attributes.items():
        if not name.startswith(prefix) or name.count(".") > _MAX_DOTS:
            continue
        *path, last = name[len(prefix) :].split(".")
        node = root
        for step in path:
            child = node.setdefault(step, {})
            if not isinstance(child, dict):
                child = node[step] = {"": child}
            node = child
        node[last] = value
    result = _to_lists(root)
    return result if isinstance(result, list) else []


def _to_lists(tree: Any) -> Any:
    """Turn numbered mappings into lists and remove OpenInference's wrappers."""
    if not isinstance(tree, dict):
        return tree
    if len(tree) == 1 and (key := next(iter(tree))) in _WRAPPERS:
        return _to_lists(tree[key])
    if tree and all(key.isdecimal() and len(key) <= _MAX_DIGITS for key in tree):
        return [_to_lists(tree[key]) for key in sorted(tree, key=int)]
    return {key: _to_lists(value) for key, value in tree.items()}
