"""One message, in whatever shape it was written down.

Understood are the shapes of OpenAI (chat and responses), Anthropic, Gemini, LangChain, the Vercel
AI SDK and the conventions of OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from proctor.records.session import Message, Role, ToolCall
from proctor.sessions.genai.fragments import (
    answer_in,
    arguments_of,
    asks_for_tool,
    has_failed,
    join_fragments,
    name_of,
    tells_result,
)
from proctor.sessions.genai.values import BREAK, arguments_in, decoded, join_texts, plain, text_or_none

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("assistant", "model", "ai"), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
    **dict.fromkeys(("user", "human"), "user"),
}
# Words for the same that only stand as a role: as a type they mean other things.
_OTHER_ROLES: dict[str, Role] = {
    **dict.fromkeys(("bot", "chatbot", "agent"), "assistant"),
    **dict.fromkeys(("customer", "client"), "user"),
}
_ASKS_FOR_TOOL = (
    *("tool_call", "tool_use", "function_call", "tool-call", "custom_tool_call"),
    "functionCall",
)
_TELLS_RESULT = (
    *("tool_call_response", "tool_result", "tool-result"),
    *("function_call_output", "custom_tool_call_output", "functionResult"),
)
_THOUGHT = ("reasoning", "thinking", "redacted_thinking")
_TEXTS = ("text", "output_text", "input_text")
_REFUSAL = "refusal"
# Where a call stands inside its part: Gemini's two spellings, and OpenAI's.
_CALLS = ("function_call", "functionCall")
_RESPONSES = ("function_response", "functionResponse")
_SAYS = ("content", "parts", "contents", _REFUSAL, "audio")
_LISTS_OF_CALLS = ("tool_calls", "toolCalls")
# Where the name and the arguments stand inside a call.
_INSIDE = ("function", "custom", *_CALLS)


class Turns(NamedTuple):
    """Messages; beside them what a model only thought, the tools it was offered, why it ended.

    `failed` are the places of those messages in which a tool says that it failed. `alternatives`
    are further answers to the same question: nobody went on with them.
    """

    messages: list[Message]
    thoughts: list[Any]
    tools: list[Any]
    endings: list[str]
    failed: set[int]
    alternatives: list[Any]


def turns_in(given: Sequence[Any], otherwise: str = "user") -> Turns:
    """Read messages one by one; `otherwise` is who speaks where nothing tells it.

    >>> turns_in([{"role": "model", "parts": [{"text": "Hi"}]}]).messages
    [Message(role='assistant', content='Hi')]
    """
    turns = Turns([], [], [], [], set(), [])
    asked: set[str] = set()
    for one in join_fragments(given) if otherwise == "assistant" else given:
        message = _as_result(_unwrapped(one), asked)
        for read, is_failure in _read(message, otherwise, turns):
            if is_failure:
                turns.failed.add(len(turns.messages))
            turns.messages.append(read)
            asked.update(call.name for call in read.tool_calls)
        ended = message.get("finish_reason") or message.get("finishReason")
        if isinstance(ended, str):
            turns.endings.append(ended)
    return turns


def is_message(thing: Any) -> bool:
    """True if something has the shape of a message, and is not just any mapping.

    >>> is_message({"role": "user", "content": "Hi"}), is_message({"content": "role"})
    (True, False)
    """
    if not isinstance(thing, Mapping):
        return False
    given = _unwrapped(thing)
    if _kind(given) is not None:
        return True
    says = any(key in given for key in (*_SAYS, *_LISTS_OF_CALLS, *_CALLS))
    return says and (isinstance(given.get("role"), str) or _type_as_role(given) is not None)


def _unwrapped(thing: Any) -> Mapping[str, Any]:
    """A message without what LangChain, a choice or a candidate puts around it."""
    if not isinstance(thing, Mapping):
        return {"content": thing}
    given: Mapping[str, Any] = thing
    if isinstance(message := given.get("message"), Mapping) and "content" not in given:
        given = {**given, **message}
    if isinstance(kwargs := given.get("kwargs"), Mapping) and given.get("lc"):
        path = given.get("id")
        name = path[-1] if isinstance(path, list | tuple) and path else None
        given = {**given, "id": None, "type": name, **kwargs}
    elif isinstance(data := given.get("data"), Mapping) and (
        _type_as_role(given) is not None or (given.get("type") == "chat" and "role" in data)
    ):
        given = {"type": given["type"], **data}
    content = given.get("content")
    if isinstance(content, Mapping) and isinstance(content.get("parts"), list | tuple):
        given = {key: value for key, value in given.items() if key != "content"} | dict(content)
    return given


def _as_result(given: Mapping[str, Any], asked: Collection[str]) -> Mapping[str, Any]:
    """A message as that of a tool if its role is the name of a tool that was asked for.

    Langfuse's handler for LangChain.js writes the results of tools like that.
    """
    role = given.get("role")
    if role is None and asked and is_bare(given):
        return {**given, "role": "tool"}
    if not isinstance(role, str) or role not in asked or role_of(role) is not None:
        return given
    return {"name": role, **given, "role": "tool"}


def is_bare(given: Any) -> bool:
    """True for a message of LangChain's whose role got lost: that of a tool without a name.

    >>> is_bare({"content": "sunny", "additional_kwargs": {}}), is_bare({"content": "sunny"})
    (True, False)
    """
    if not isinstance(given, Mapping) or given.get("role") is not None:
        return False
    return {"content", "additional_kwargs"} <= given.keys() and _type_as_role(given) is None


def _read(given: Mapping[str, Any], otherwise: str, turns: Turns) -> Iterator[tuple[Message, bool]]:
    """One message, and whether it tells of a failure; results of tools in it are messages too."""
    kind = None if given.get("role") else _kind(given)
    role = "assistant" if kind else _role(given, otherwise)
    if _offers_tool(given, role):
        turns.tools.append(plain(given["content"]))
        return
    said = _Said(given, role, is_item=kind is not None)
    for part in [given] if kind else _parts(given, role):
        what = _kind(part)
        if what is not None:
            said.kept.append(BREAK)
        if what == "thought":
            turns.thoughts.append(plain(part))
        elif what == "result":
            yield from said.answer(_result(part), is_failure=_tells_failure(part))
        elif what != "call":
            said.kept.append(part)
        elif (call := said.ask(part)) is not None and (given_back := answer_in(part)) is not None:
            answer = Message("tool", plain(given_back), call.name, call_id=call.call_id)
            yield from said.answer(answer, is_failure=has_failed(part))
    yield from said.rest()


class _Said:
    """A message in the making, and the results of tools in it.

    Results of calls before it stand before it. Where a provider ran a tool itself, the call, its
    result and what the model says then are parts of one message: they become three.
    """

    def __init__(self, given: Mapping[str, Any], role: Role, *, is_item: bool) -> None:
        self._given, self._role, self._is_item = given, role, is_item
        self._calls = [] if is_item else [_call(call) for call in _calls_beside(given)]
        self._beside = {call.call_id for call in self._calls if call.call_id is not None}
        self._asked = {_which(call) for call in self._calls}
        self._results: list[tuple[Message, bool]] = []
        self._is_told = False
        self.kept: list[Any] = []

    def ask(self, part: Any) -> ToolCall | None:
        """Take a call; LangChain tells what Anthropic's ask for in the parts and beside them."""
        call = _call(part)
        if call.call_id in self._beside:
            return None
        self._calls.append(call)
        self._asked.add(_which(call))
        return call

    def answer(self, answer: Message, *, is_failure: bool) -> Iterator[tuple[Message, bool]]:
        """Take a result: of a call before this message, or of one in it, which is told first."""
        if (answer.call_id or answer.name) in self._asked:
            yield from self._told()
            yield answer, is_failure
        else:
            self._results.append((answer, is_failure))

    def rest(self) -> Iterator[tuple[Message, bool]]:
        """What is not told yet; an empty message is one, unless it only brought results."""
        is_empty = not (self._is_told or self._results or self._is_item)
        yield from self._told(is_empty=is_empty)

    def _told(self, *, is_empty: bool = False) -> Iterator[tuple[Message, bool]]:
        yield from self._results
        kept = [part for part in self.kept if part is not BREAK]
        if kept or self._calls or is_empty:
            given, role = self._given, self._role
            call_id = given.get("tool_call_id") or given.get("toolCallId")
            name = given.get("name")
            message = Message(
                role,
                _content(self.kept, role),
                name if isinstance(name, str) and not self._is_item else None,
                tuple(self._calls),
                text_or_none(call_id or given.get("id")) if role == "tool" else None,
            )
            yield message, role == "tool" and _tells_failure(given)
        self._results, self.kept, self._calls, self._is_told = [], [], [], True


def _which(call: ToolCall) -> str:
    """By what an answer in the same message finds its call."""
    return call.call_id or call.name


def _role(given: Mapping[str, Any], otherwise: str) -> Role:
    told = given.get("role") or _type_as_role(given) or otherwise
    return role_of(str(told)) or "user"


def role_of(word: str) -> Role | None:
    """The role that a word stands for, or None if it is none of the four.

    >>> role_of("Human"), role_of("bot"), role_of("critic")
    ('user', 'assistant', None)
    """
    word = word.casefold()
    return _ROLES.get(word) or _OTHER_ROLES.get(word)


def _type_as_role(given: Mapping[str, Any]) -> Role | None:
    """LangChain's messages have a type in place of a role: `human`, or `HumanMessageChunk`."""
    told = given.get("type")
    if not isinstance(told, str):
        return None
    return _ROLES.get(told.removesuffix("Chunk").removesuffix("Message").casefold())


def _offers_tool(given: Mapping[str, Any], role: Role) -> bool:
    """LangChain's handler for Langfuse writes the tools on offer as messages of tools."""
    content = given.get("content")
    return (
        role == "tool"
        and isinstance(content, Mapping)
        and isinstance(content.get("function"), Mapping)
        and not given.get("tool_call_id")
    )


def _calls_beside(given: Mapping[str, Any]) -> Sequence[Any]:
    """Calls that stand beside the content of a message."""
    more = given.get("additional_kwargs")
    for place in (given, more if isinstance(more, Mapping) else {}):
        for key in _LISTS_OF_CALLS:
            found = decoded(place.get(key))
            if isinstance(found, list | tuple) and found:
                return found
        for key in _CALLS:
            if isinstance(place.get(key), Mapping):
                return [{key: place[key]}]
    return ()


def _kind(part: Any) -> Literal["call", "result", "thought"] | None:
    """Whether a part asks for a tool, tells a result or was only thought."""
    if not isinstance(part, Mapping):
        return None
    kind = part.get("type", part.get("$type"))
    if (
        kind in _TELLS_RESULT
        or tells_result(kind)
        or any(isinstance(part.get(key), Mapping) for key in _RESPONSES)
    ):
        return "result"
    if kind in _THOUGHT or part.get("thought") is True:
        return "thought"
    if kind in _ASKS_FOR_TOOL or asks_for_tool(kind) or ("toolName" in part and "toolCallId" in part):
        return "call"
    bare = "role" not in part and "content" not in part
    return "call" if bare and any(isinstance(part.get(key), Mapping) for key in _CALLS) else None


def _parts(given: Mapping[str, Any], role: Role) -> Sequence[Any]:
    """The parts of a message; a text is one. What a tool gave is not looked into."""
    content = next((given[key] for key in ("parts", "contents", "content") if given.get(key)), None)
    if isinstance(content, list | tuple):
        return content
    found = decoded(content)
    if role != "tool" and isinstance(found, list) and found and all(map(_is_part, found)):
        return found
    if content is None and role != "tool":
        content = _said_otherwise(given)
    return [] if content is None else [content]


def _said_otherwise(given: Mapping[str, Any]) -> str | None:
    """What a model says in place of a content: why it refuses, or what it speaks aloud."""
    more = given.get("additional_kwargs")
    for place in (given, more if isinstance(more, Mapping) else {}):
        audio = place.get("audio")
        spoken = audio.get("transcript") if isinstance(audio, Mapping) else None
        for said in (place.get(_REFUSAL), spoken):
            if isinstance(said, str) and said:
                return said
    return None


def _is_part(thing: Any) -> bool:
    kinds = ("text", *_THOUGHT, *_ASKS_FOR_TOOL, *_TELLS_RESULT)
    return isinstance(thing, Mapping) and thing.get("type") in kinds


def _content(parts: Sequence[Any], role: str) -> Any:
    """The text of a message; its parts where some are no text."""
    texts = [BREAK if part is BREAK else _text(part) for part in parts]
    if all(text is not None for text in texts):
        # Parts of OpenTelemetry have their text under "content"; its conventions do not say that
        # such texts belong together, so each begins on its own line.
        apart = any(isinstance(part, Mapping) and "content" in part for part in parts)
        return join_texts((text for text in texts if text), "" if apart else role)
    return [plain(part) for part in parts if part is not BREAK]


def _text(part: Any) -> str | None:
    """What a part says, or None if it is no text."""
    if isinstance(part, Mapping) and part.get("type") == _REFUSAL:
        part = part.get(_REFUSAL)
    elif isinstance(part, Mapping) and part.get("type", "text") in _TEXTS:
        part = part.get("content", part.get("text"))
    return part if isinstance(part, str) else None


def _call(given: Any) -> ToolCall:
    """A tool that was asked for: flat, or with a `function` inside; it may lack a name."""
    if not isinstance(given, Mapping):
        return ToolCall(given) if isinstance(given, str) else ToolCall("", arguments_in(given))
    around = (given.get(key) for key in _INSIDE)
    inside = next((inner for inner in around if isinstance(inner, Mapping)), given)
    ids = (*(given.get(key) for key in ("call_id", "toolCallId", "callId", "id")), inside.get("id"))
    names = ("arguments", "input", "args")
    arguments = next((inside[name] for name in names if name in inside), arguments_of(given))
    return ToolCall(
        str(_tool_name(inside) or name_of(given)),
        arguments_in(arguments),
        call_id=next((str(found) for found in ids if text_or_none(found)), None),
    )


def _tool_name(given: Mapping[str, Any]) -> Any:
    return next((given[key] for key in ("name", "toolName", "tool_name") if given.get(key)), None)


def _tells_failure(given: Mapping[str, Any]) -> bool:
    """True for a result that is an error, as Anthropic, LangChain and the Vercel SDK tell it."""
    output = given.get("output")
    kind = output.get("type") if isinstance(output, Mapping) else None
    said = given.get("is_error") is True or given.get("status") == "error" or has_failed(given)
    return said or (isinstance(kind, str) and kind.startswith("error"))


def _result(part: Mapping[str, Any]) -> Message:
    """What a tool gave back to the model."""
    around = (part.get(key) for key in _RESPONSES)
    inside: Mapping[str, Any] = next((one for one in around if isinstance(one, Mapping)), part)
    keys = ("response", "result", "content", "output")
    given = next((inside[key] for key in keys if key in inside), "")
    if isinstance(given, Mapping) and set(given) == {"type", "value"}:
        # The Vercel SDK tells of which kind a result is.
        given = given["value"]
    if isinstance(given, list | tuple):
        given = _content(given, "tool")
    names = ("call_id", "tool_use_id", "toolCallId", "tool_call_id", "callId", "id")
    ids = (inside.get(key) for key in names)
    name = _tool_name(inside)
    return Message(
        "tool",
        plain(given),
        name if isinstance(name, str) else None,
        call_id=next((str(found) for found in ids if text_or_none(found)), None),
    )
