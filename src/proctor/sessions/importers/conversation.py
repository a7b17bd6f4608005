"""Turn the messages that a target returns, such as an agent's state, into the trial's session.

Accepts a list of messages, an object or mapping with `messages`, one message, or a response of a
model API; each as data or as objects of LangChain, OpenAI or Anthropic.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.core import optional as extras
from proctor.records import codec
from proctor.records.session import Event, Message, ModelCall, Session, Usage
from proctor.records.session_events import find_call
from proctor.sessions.genai.bodies import parse_response
from proctor.sessions.genai.message_parser import is_message, parse_messages
from proctor.sessions.genai.transcript import Atom, split_message
from proctor.sessions.genai.values import decode_json
from proctor.sessions.importers.json_values import as_list, as_mapping, as_text, extract_text
from proctor.sessions.importers.langchain_messages import add_message as add_langchain_message
from proctor.sessions.importers.langchain_messages import classify_message
from proctor.sessions.importers.openai_messages import add_message as add_openai_message
from proctor.sessions.importers.openai_messages import add_response, is_response, read_usage
from proctor.sessions.importers.session_builder import UNKNOWN_MODEL, SessionBuilder

MESSAGES = "messages"
# Only the roles of APIs, because other words also occur in data that is not a conversation.
_ROLES = ("system", "developer", "user", "human", "assistant", "ai", "model", "tool", "function")
_LANGCHAIN_TYPES = ("human", "ai", "system", "tool", "function", "chat")
_CONTENT = ("content", "parts", "tool_calls", "function_call", "refusal")
# An object without any of these is neither a message nor a response.
_MARKERS = ("role", "type", "lc", "choices", "candidates", "object")
# LangGraph marks answers that it wrote itself.
_HANDOFF = "__is_handoff_back"
# Fields next to `messages` that describe all of them.
_EXTRA_FIELDS = ("system", "usage", "model")


class Conversation(NamedTuple):
    """A conversation in an output: its events and its final answer.

    `has_answer` is False if it ends with a tool result, an open call or a user message.
    """

    session: Session
    answer: Any = None
    has_answer: bool = False


class _Messages(NamedTuple):
    """The messages in an output, or an API response; `extra` are the fields next to the messages.

    `is_state` is True if they are under `messages`, as in the state of an agent.
    """

    messages: Sequence[dict[str, Any]] = ()
    response: dict[str, Any] | None = None
    extra: Mapping[str, Any] = {}
    is_state: bool = False


def read_conversation(output: Any, target_input: Any = None) -> Conversation | None:
    """Read the conversation in an output; None if the output is something else.

    Messages up to the end of `target_input` are history: they are in the session, but their tool
    calls do not belong to this trial.
    """
    parsed = _find_messages(output)
    if parsed is None:
        return None
    builder = SessionBuilder()
    history: list[Message] = []
    if parsed.response is not None:
        add_response(builder, {"response": parsed.response}, [])
    else:
        start = _find_history_end(parsed.messages, target_input)
        history = _read_history(parsed, start)
        for number, message in enumerate(parsed.messages[start:], start=1):
            add = add_openai_message if classify_message(message) is None else add_langchain_message
            add(builder, number, message)
    session = builder.build("", "", "").session
    has_answers = any(message.role == "assistant" for message in session[Message])
    if not parsed.is_state and not has_answers and not any(map(find_call, session)):
        return None
    for call in _find_missing_model_calls(session, parsed):
        session.append(call)
    last = _get_last_message(parsed)
    has_answer = last is not None and last.role == "assistant" and not last.tool_calls
    answer = None
    if last is not None and has_answer:
        # Content without text, such as an image, is the answer itself.
        answer = extract_text(last.content, "assistant") or last.content or ""
    return Conversation(Session([*history, *session]), answer, has_answer)


def has_messages(value: Any) -> bool:
    """Return True if a value is or contains a conversation."""
    return _find_messages(value) is not None


def list_state_names(output: Any) -> tuple[str, ...]:
    """Return the keys or fields next to `messages` in a mapping or object."""
    if _get_field(output, MESSAGES) is None:
        return ()
    if isinstance(output, Mapping):
        names = [name for name in output if isinstance(name, str)]
    elif isinstance(output, msgspec.Struct):
        names = list(output.__struct_fields__)
    elif dataclasses.is_dataclass(output):
        names = [field.name for field in dataclasses.fields(output)]
    else:
        names = list(type(output).model_fields)
    return tuple(name for name in names if name != MESSAGES)


def select_state_names(names: Sequence[str], output: Any) -> list[str]:
    """Return the names whose value is neither None nor part of the session."""
    return [item for item in names if item not in _EXTRA_FIELDS and _get_field(output, item) is not None]


def is_fully_encoded(output: Any, written: Any) -> bool:
    """Return False if an object has messages that its JSON lacks.

    Does not call properties of the object: they may have side effects.
    """
    if isinstance(output, Mapping | list | tuple | str) or not _is_record(output):
        return True
    missing = object()
    return all(
        inspect.getattr_static(output, name, missing) is missing or (isinstance(written, Mapping) and name in written)
        for name in (MESSAGES, *_EXTRA_FIELDS)
    )


def merge_sessions(recorded: Session, conversation: Session) -> Session:
    """Return the recorded events plus the events of the conversation that were not recorded.

    Messages and model calls are added only if none were recorded, tool calls only if no recorded call matches.
    """
    calls = [call for event in recorded if (call := find_call(event)) is not None]
    if not calls and any(message.tool_calls for message in recorded[Message]):
        # The recorded messages contain the tool calls.
        return recorded
    ids = {call.call_id for call in calls if call.call_id is not None}
    names = [call.name for call in calls if call.call_id is None]
    added: list[Event] = []
    for event in conversation:
        call = find_call(event)
        if call is None:
            is_recorded = bool(recorded[ModelCall if isinstance(event, ModelCall) else Message])
        elif not (is_recorded := call.call_id in ids) and call.name in names:
            names.remove(call.name)
            is_recorded = True
        if not is_recorded:
            added.append(event)
    return Session([*recorded, *added])


def _find_messages(output: Any) -> _Messages | None:
    """Return the messages in an output as data, or None if it contains no messages."""
    if isinstance(output, str):
        return _find_messages(decode_json(output)) if is_langchain_json(output) else None
    if isinstance(output, list | tuple):
        messages = _read_list(output)
        return None if messages is None else _Messages(messages)
    inner = _get_field(output, MESSAGES)
    if isinstance(inner, list | tuple):
        if not inner and not list_state_names(output):
            return _Messages(is_state=True)
        if (messages := _read_list(inner)) is not None:
            values = ((name, _get_field(output, name)) for name in _EXTRA_FIELDS)
            extra = {name: _to_json(value) for name, value in values if value is not None}
            return _Messages(messages, extra=extra, is_state=True)
    if (messages := _read_steps(output)) is not None:
        return _Messages(messages, is_state=True)
    data = _to_data(output)
    if data is None:
        return None
    if _is_message(data):
        # A message of Anthropic's API is a response with its usage and its ending.
        is_body = classify_message(data) is None and ("usage" in data or "stop_reason" in data)
        return _Messages(response=data) if is_body else _Messages([data])
    return _Messages(response=data) if _is_body(data) else None


def _read_steps(output: Any) -> list[dict[str, Any]] | None:
    """Return the messages of a mapping with the `output` and the steps or tool calls that led to it.

    LangChain's AgentExecutor returns `intermediate_steps`, pairs of an action (`tool`, `tool_input`) and its result.
    """
    if not isinstance(output, Mapping) or not isinstance(output.get("output"), str):
        return None
    answer = {"role": "assistant", "content": output["output"]}
    steps, calls = output.get("intermediate_steps"), output.get("tool_calls")
    if isinstance(steps, list | tuple) and steps:
        messages: list[dict[str, Any]] = []
        for number, step in enumerate(steps):
            name = _get_step_field(step[0], "tool") if isinstance(step, list | tuple) and len(step) == 2 else None
            if not isinstance(name, str):
                return None
            call = {"name": name, "args": _to_json(_get_step_field(step[0], "tool_input")), "id": f"step {number}"}
            result = {"role": "tool", "tool_call_id": call["id"], "name": name, "content": _to_json(step[1])}
            messages += [{"role": "assistant", "content": "", "tool_calls": [call]}, result]
        return [*messages, answer]
    if isinstance(calls, list | tuple) and calls and "role" not in output:
        message = {"role": "assistant", "content": "", "tool_calls": _to_json(list(calls))}
        return [message, answer] if parse_messages([message]).messages[0].tool_calls[0].name else None
    return None


def _get_step_field(action: Any, name: str) -> Any:
    return action.get(name) if isinstance(action, Mapping) else getattr(action, name, None)


def is_langchain_json(output: str) -> bool:
    """Return True for a string that LangChain's `dumps` may have written."""
    return output[:1] in ("[", "{") and '"lc"' in output[:200]


def _is_body(fields: dict[str, Any]) -> bool:
    choices = as_list(fields.get("choices"))
    if choices and all(isinstance(as_mapping(item).get("message"), dict) for item in choices):
        return True
    candidates = as_list(fields.get("candidates"))
    if candidates and all("parts" in as_mapping(as_mapping(item).get("content")) for item in candidates):
        return True
    return fields.get("object") == "response" and is_response(fields)


def _read_list(items: Sequence[Any]) -> list[dict[str, Any]] | None:
    """Return all items as messages, or None if the list is empty or contains other items."""
    messages: list[dict[str, Any]] = []
    for item in items:
        message = _to_data(item)
        if message is None or not _is_message(message):
            return None
        messages.append(message)
    return messages or None


def _is_message(fields: dict[str, Any]) -> bool:
    message_type = classify_message(fields)
    if message_type is not None:
        return "lc" in fields or message_type in _LANGCHAIN_TYPES
    role = fields.get("role")
    if role is not None:
        is_role = isinstance(role, str) and role.casefold() in _ROLES
        return is_role and any(key in fields for key in _CONTENT)
    # Items of OpenAI's responses have a type instead of a role.
    return fields.get("type") not in _ROLES and is_message(fields)


def _get_field(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None) if _is_record(value) else None


def _is_record(value: Any) -> bool:
    """Return True for an instance of a Pydantic model, a Struct or a dataclass."""
    if isinstance(value, type):
        return False
    pydantic = extras.loaded_module("pydantic")
    if pydantic is not None and isinstance(value, pydantic.BaseModel):
        return True
    return isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value)


def _to_data(item: Any) -> dict[str, Any] | None:
    """Return a message or response as data; LangChain objects as `message_to_dict` writes them."""
    if not (isinstance(item, Mapping) or _is_record(item)):
        return None
    if all(_get_field(item, name) is None for name in _MARKERS):
        return None
    fields = _to_json(item)
    if not isinstance(fields, dict):
        return None
    item_type = fields.get("type")
    if not isinstance(item_type, str) or "content" not in fields or "lc" in fields or "data" in fields:
        return fields
    bare_type = item_type.removesuffix("Chunk").removesuffix("Message").lower()
    is_langchain = bare_type in _LANGCHAIN_TYPES and (bare_type == "chat") == ("role" in fields)
    return {"type": bare_type, "data": {**fields, "type": bare_type}} if is_langchain else fields


def _to_json(value: Any) -> Any:
    return msgspec.json.decode(codec.encode(value))


def _find_history_end(messages: Sequence[dict[str, Any]], target_input: Any) -> int:
    """Return the number of messages that existed before the target started: up to the end of its input."""
    inputs = parse_messages(_read_input(target_input)).messages
    atoms = [[atom for item in parse_messages([m]).messages for atom in split_message(item)] for m in messages]
    users = [message for message in inputs if message.role == "user"]
    return _find_end(atoms, inputs) or _find_end(atoms, users[-1:])


def _read_input(target_input: Any) -> Sequence[Any]:
    """Return the messages of an input: a string, or messages as data, objects, or pairs of role and text."""
    if isinstance(target_input, str):
        return [{"role": "user", "content": target_input}]
    items = target_input if isinstance(target_input, list | tuple) else _get_field(target_input, MESSAGES)
    if not isinstance(items, list | tuple):
        return ()
    return _read_list([_expand_item(item) for item in items]) or ()


def _expand_item(item: Any) -> Any:
    if isinstance(item, list | tuple) and len(item) == 2:
        return {"role": item[0], "content": item[1]}
    return {"role": "user", "content": item} if isinstance(item, str) else item


def _find_end(atoms: Sequence[Sequence[Atom]], inputs: Sequence[Message]) -> int:
    """Return the index after the last of the inputs, in order; 0 if an input is missing."""
    index = 0
    for message in inputs:
        message_atoms = set(split_message(message))
        while index < len(atoms) and not message_atoms <= set(atoms[index]):
            index += 1
        if index == len(atoms):
            return 0
        index += 1
    return index


def _read_history(parsed: _Messages, end: int) -> list[Message]:
    """Return the messages before this trial, without their tool calls, which earlier trials made."""
    history = parse_messages(parsed.messages[:end]).messages
    system = as_text(parsed.extra.get("system"))
    if system is not None and not any(message.role == "system" for message in history):
        history.insert(0, Message("system", system))
    return [msgspec.structs.replace(message, tool_calls=()) for message in history]


def _find_missing_model_calls(session: Session, parsed: _Messages) -> list[ModelCall]:
    """Return the model calls that no message contains: one call with the total usage, or the answers without a usage.

    If only some answers have a usage, the total is unknown.
    """
    counted = len(session[ModelCall])
    if counted and parsed.response is None:
        answers = sum(message.role == "assistant" for message in session[Message])
        fields = (as_mapping(item.get("data")) or as_mapping(item.get("kwargs")) for item in parsed.messages)
        handoffs = sum(_HANDOFF in as_mapping(item.get("response_metadata")) for item in fields)
        uncounted = answers - counted - handoffs
        return [ModelCall(UNKNOWN_MODEL)] * uncounted
    usage = read_usage(as_mapping(parsed.extra.get("usage")))
    if counted or usage == Usage():
        return []
    return [ModelCall(as_text(parsed.extra.get("model")) or UNKNOWN_MODEL, usage)]


def _get_last_message(parsed: _Messages) -> Message | None:
    if parsed.response is not None:
        response = parse_response(parsed.response)
        return response.messages[-1] if response is not None and response.messages else None
    # Items that are only thoughts contain no message.
    lists = (parse_messages([message]).messages for message in reversed(parsed.messages))
    return next((messages[-1] for messages in lists if messages), None)
