"""Messages that a target returns, such as the state of an agent, become the session of the trial.

Understood are a list of messages, an object or mapping that holds one under `messages`, one
message, and a whole response of a model API; each as data or as objects of the libraries that
write them (LangChain, OpenAI, Anthropic).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.core import optional as extras
from proctor.records import codec
from proctor.records.session import CustomEvent, Event, Message, ModelCall, Session, ToolCall, Usage
from proctor.records.telling import UNANSWERED
from proctor.sessions.genai.bodies import said_in
from proctor.sessions.genai.transcript import Atom, atoms_of
from proctor.sessions.genai.turns import is_message, turns_in
from proctor.sessions.genai.values import decoded
from proctor.sessions.importers.chronicle import UNKNOWN_MODEL, Chronicle
from proctor.sessions.importers.langchain_messages import kind_of_message
from proctor.sessions.importers.langchain_messages import tell_message as tell_langchain
from proctor.sessions.importers.openai_messages import tell_message as tell_openai
from proctor.sessions.importers.responses import is_response, tell_response, usage_of
from proctor.sessions.importers.shapes import items, mapping, plain, text

MESSAGES = "messages"
# The roles that APIs use. Other words for them occur in data that is no conversation.
_ROLES = ("system", "developer", "user", "human", "assistant", "ai", "model", "tool", "function")
_LANGCHAIN = ("human", "ai", "system", "tool", "function", "chat")
_SAYS = ("content", "parts", "tool_calls", "function_call", "refusal")
# An object without any of these is neither a message nor a response.
_SIGNS = ("role", "type", "lc", "choices", "object")
# LangGraph marks answers with it that it wrote itself.
_HANDOFF = "__is_handoff_back"
# What a mapping with messages may tell of all of them.
_AROUND = ("system", "usage", "model")


class Conversation(NamedTuple):
    """A conversation in an output: its events, and the answer that it ends with.

    `has_answer` is False where it does not end with an answer: with the result of a tool, say, with
    a call that nobody has answered, or with what the user said. A state without messages has none.
    """

    session: Session
    answer: Any = None
    has_answer: bool = False


class _Found(NamedTuple):
    """The messages in an output, or the response of an API, and what stands around the messages.

    `is_state` is True where they are under `messages`, as in the state of an agent.
    """

    messages: Sequence[dict[str, Any]] = ()
    response: dict[str, Any] | None = None
    around: Mapping[str, Any] = {}
    is_state: bool = False


def read_conversation(output: Any, given: Any = None) -> Conversation | None:
    """Read the conversation in an output; None if the output is something else.

    `given` is the input of the target. Messages up to the end of the input are history: they are
    in the session, but a tool that was called there was not called by this trial.

    >>> read_conversation([{"role": "user", "content": "Hi"},
    ...     {"role": "assistant", "content": "Hello!"}]).answer
    'Hello!'
    >>> read_conversation({"answer": "Hello!"}) is None
    True
    """
    found = _find(output)
    if found is None:
        return None
    chronicle = Chronicle()
    earlier: list[Message] = []
    if found.response is not None:
        tell_response(chronicle, {"response": found.response}, [])
    else:
        start = _end_of_history(found.messages, given)
        earlier = _history(found, start)
        for number, message in enumerate(found.messages[start:], start=1):
            tell = tell_openai if kind_of_message(message) is None else tell_langchain
            tell(chronicle, number, message)
    session = chronicle.imported("", "", "").session
    if not found.is_state and not any(map(_is_act, session)):
        return None
    for call in _other_model_calls(session, found):
        session.append(call)
    last = _last_message(found)
    ends = last is not None and last.role == "assistant" and not last.tool_calls
    answer = _text_of(last.content) if ends and last is not None else None
    return Conversation(Session([*earlier, *session]), answer, ends)


def holds_messages(value: Any) -> bool:
    """True if a value is a conversation, or holds one.

    >>> holds_messages({"messages": [{"role": "user", "content": "Hi"}]}), holds_messages("Hi")
    (True, False)
    """
    return _find(value) is not None


def names_in(output: Any) -> tuple[str, ...]:
    """The keys or fields beside `messages`, of a mapping or object that holds messages.

    >>> names_in({"messages": [], "category": "refund"}), names_in({"category": "refund"})
    (('category',), ())
    """
    if _field(output, MESSAGES) is None:
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


def names_to_look_up(names: Sequence[str], output: Any) -> list[str]:
    """Those of the names beside the messages whose value is neither None nor in the session."""
    return [it for it in names if it not in _AROUND and _field(output, it) is not None]


def is_told_as_data(output: Any, written: Any) -> bool:
    """False if an object has messages that are not in the JSON that is written of it.

    The object is not asked for anything: its properties may do whatever they like.
    """
    if isinstance(output, Mapping | list | tuple | str) or not _is_record(output):
        return True
    missing = object()
    return all(
        inspect.getattr_static(output, name, missing) is missing
        or (isinstance(written, Mapping) and name in written)
        for name in (MESSAGES, *_AROUND)
    )


def add_missing(recorded: Session, conversation: Session) -> Session:
    """The recorded events, and those of the conversation that were not recorded.

    Recorded events win: messages and model calls of the conversation are added only where none
    were recorded, and a tool call only where no recorded call stands for it.
    """
    said = recorded[Message]
    calls = [call for event in recorded if (call := _call_in(event)) is not None]
    if not calls and any(message.tool_calls for message in said):
        # The recorded messages say which tools were called.
        return recorded
    ids = {call.call_id for call in calls if call.call_id is not None}
    names = [call.name for call in calls if call.call_id is None]
    added: list[Event] = []
    for event in conversation:
        call = _call_in(event)
        if call is None:
            kind = ModelCall if isinstance(event, ModelCall) else Message
            is_known = bool(recorded[kind])
        elif not (is_known := call.call_id in ids) and call.name in names:
            names.remove(call.name)
            is_known = True
        if not is_known:
            added.append(event)
    return Session([*recorded, *added])


def _call_in(event: Event) -> ToolCall | None:
    if isinstance(event, ToolCall):
        return event
    if isinstance(event, CustomEvent) and event.kind == UNANSWERED:
        about = mapping(event.data)
        return ToolCall(str(about.get("tool_name")), call_id=text(about.get("call_id")))
    return None


def _is_act(event: Event) -> bool:
    """True for what only an agent does: it answers, or calls a tool."""
    if isinstance(event, Message):
        return event.role == "assistant"
    return _call_in(event) is not None


def _find(output: Any) -> _Found | None:
    """The messages in an output, as data; None if it holds none."""
    if isinstance(output, str):
        return _find(decoded(output)) if is_langchain_json(output) else None
    if isinstance(output, list | tuple):
        listed = _messages(output)
        return None if listed is None else _Found(listed)
    held = _field(output, MESSAGES)
    if isinstance(held, list | tuple) and not held and not names_in(output):
        return _Found(is_state=True)
    if isinstance(held, list | tuple) and (listed := _messages(held)) is not None:
        around = {name: _json(it) for name in _AROUND if (it := _field(output, name)) is not None}
        return _Found(listed, around=around, is_state=True)
    whole = _data(output)
    if whole is None:
        return None
    if _is_message(whole):
        # A message of Anthropic's is a response, too: it has its usage beside it.
        is_body = kind_of_message(whole) is None and "usage" in whole
        return _Found(response=whole) if is_body else _Found([whole])
    return _Found(response=whole) if _is_body(whole) else None


def is_langchain_json(output: str) -> bool:
    """True for a text that may be what LangChain's `dumps` wrote.

    >>> is_langchain_json('[{"lc": 1, "type": "constructor"}]'), is_langchain_json("Paris")
    (True, False)
    """
    return output[:1] in ("[", "{") and '"lc"' in output[:200]


def _is_body(found: dict[str, Any]) -> bool:
    """True for a response of OpenAI's, of either API."""
    choices = items(found.get("choices"))
    if choices and all(isinstance(mapping(one).get("message"), dict) for one in choices):
        return True
    return found.get("object") == "response" and is_response(found)


def _messages(listed: Sequence[Any]) -> list[dict[str, Any]] | None:
    """All items as messages; None if one is something else, or there is none."""
    found: list[dict[str, Any]] = []
    for item in listed:
        message = _data(item)
        if message is None or not _is_message(message):
            return None
        found.append(message)
    return found or None


def _is_message(found: dict[str, Any]) -> bool:
    kind = kind_of_message(found)
    if kind is not None:
        return "lc" in found or kind in _LANGCHAIN
    role = found.get("role")
    if role is not None:
        is_role = isinstance(role, str) and role.casefold() in _ROLES
        return is_role and any(key in found for key in _SAYS)
    # Items of OpenAI's responses have a type of their own.
    return found.get("type") not in _ROLES and is_message(found)


def _field(thing: Any, name: str) -> Any:
    if isinstance(thing, Mapping):
        return thing.get(name)
    return getattr(thing, name, None) if _is_record(thing) else None


def _is_record(thing: Any) -> bool:
    """True for an object that is made of named fields."""
    if isinstance(thing, type):
        return False
    pydantic = extras.loaded("pydantic")
    if pydantic is not None and isinstance(thing, pydantic.BaseModel):
        return True
    return isinstance(thing, msgspec.Struct) or dataclasses.is_dataclass(thing)


def _data(item: Any) -> dict[str, Any] | None:
    """A message or response as data, one of LangChain's as its `message_to_dict` writes it."""
    if not (isinstance(item, Mapping) or _is_record(item)):
        return None
    if all(_field(item, name) is None for name in _SIGNS):
        return None
    found = _json(item)
    if not isinstance(found, dict):
        return None
    kind = found.get("type")
    if not isinstance(kind, str) or "content" not in found or "lc" in found or "data" in found:
        return found
    bare = kind.removesuffix("Chunk").removesuffix("Message").lower()
    is_langchain = bare in _LANGCHAIN and (bare == "chat") == ("role" in found)
    return {"type": bare, "data": {**found, "type": bare}} if is_langchain else found


def _json(value: Any) -> Any:
    return msgspec.json.decode(codec.encode(value))


def _end_of_history(messages: Sequence[dict[str, Any]], given: Any) -> int:
    """How many of the messages were there before the target began: the input, and all before it."""
    asked = turns_in(_given_messages(given)).messages
    told = [[atom for it in turns_in([one]).messages for atom in atoms_of(it)] for one in messages]
    users = [message for message in asked if message.role == "user"]
    for wanted in (asked, users[-1:]):
        if wanted and (end := _end_of(told, [atoms_of(message) for message in wanted])):
            return end
    return 0


def _given_messages(given: Any) -> Sequence[Any]:
    """The messages of an input: a text, or messages as data, objects, or pairs of role and text."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    held = given if isinstance(given, list | tuple) else _field(given, MESSAGES)
    if not isinstance(held, list | tuple):
        return ()
    found: list[Any] = []
    for item in held:
        if isinstance(item, list | tuple) and len(item) == 2:
            item = {"role": item[0], "content": item[1]}
        elif isinstance(item, str):
            item = {"role": "user", "content": item}
        message = _data(item)
        if message is None or not _is_message(message):
            return ()
        found.append(message)
    return found


def _end_of(told: Sequence[Sequence[Atom]], wanted: Sequence[Sequence[Atom]]) -> int:
    """The place after the last of some messages, looked for in order; 0 if one is missing."""
    place = 0
    for atoms in wanted:
        while place < len(told) and not set(atoms) <= set(told[place]):
            place += 1
        if place == len(told):
            return 0
        place += 1
    return place


def _history(found: _Found, end: int) -> list[Message]:
    """The messages before this trial, without the calls in them: those are not its own."""
    earlier = turns_in(found.messages[:end]).messages
    system = text(found.around.get("system"))
    if system is not None and not any(message.role == "system" for message in earlier):
        earlier.insert(0, Message("system", system))
    return [msgspec.structs.replace(message, tool_calls=()) for message in earlier]


def _other_model_calls(session: Session, found: _Found) -> list[ModelCall]:
    """Model calls that no message tells of: all of them in one sum, or those without a usage.

    Where one answer tells its tokens and another does not, the sum of both is not known.
    """
    counted = len(session[ModelCall])
    if counted and found.response is None:
        answers = sum(message.role == "assistant" for message in session[Message])
        silent = answers - counted - sum(map(_is_handoff, found.messages))
        return [ModelCall(UNKNOWN_MODEL)] * silent
    used = usage_of(mapping(found.around.get("usage")))
    if counted or used == Usage():
        return []
    return [ModelCall(text(found.around.get("model")) or UNKNOWN_MODEL, used)]


def _is_handoff(message: Mapping[str, Any]) -> bool:
    """True for an answer that no model gave: LangGraph wrote it."""
    fields = mapping(message.get("data")) or mapping(message.get("kwargs"))
    return _HANDOFF in mapping(fields.get("response_metadata"))


def _last_message(found: _Found) -> Message | None:
    if found.response is not None:
        said = said_in(found.response)
        return said.messages[-1] if said is not None and said.messages else None
    for message in reversed(found.messages):
        # One that was only thought is no message.
        if read := turns_in([message]).messages:
            return read[-1]
    return None


def _text_of(content: Any) -> Any:
    """The text of a content; the content itself where it has none, as an image."""
    if content is None or isinstance(content, str):
        return content or ""
    return plain(content, "assistant") or content
