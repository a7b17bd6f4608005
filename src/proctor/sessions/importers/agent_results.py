"""Read what agent frameworks return: results of the OpenAI Agents SDK, Pydantic AI, smolagents, CrewAI and messages of
the Claude Agent SDK.

Results are recognized by the module or the names of their classes, so no framework is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from proctor.records import codec
from proctor.records.session import Event, ModelCall, Session, Usage
from proctor.sessions import current as sessions
from proctor.sessions.importers import claude_code, pydantic_ai_messages, smolagents_steps
from proctor.sessions.importers.conversation import read_conversation
from proctor.sessions.importers.crewai_log import read_token_usage
from proctor.sessions.importers.json_values import as_mapping, as_text, first_count
from proctor.sessions.importers.openai_messages import read_usage
from proctor.sessions.importers.session_builder import UNKNOWN_MODEL, find_first_text

# Classes of messages and blocks of the Claude Agent SDK, and the types that Claude Code gives them.
_CLAUDE_MESSAGES = {"AssistantMessage": "assistant", "UserMessage": "user", "SystemMessage": "system"}
_CLAUDE_RESULT = "ResultMessage"
_CLAUDE_BLOCKS = {
    "TextBlock": "text", "ThinkingBlock": "thinking", "ToolUseBlock": "tool_use", "ToolResultBlock": "tool_result",
    "ServerToolUseBlock": "server_tool_use", "ServerToolResultBlock": "server_tool_result",
}  # fmt: skip
# Without function calling, an agent of CrewAI writes its tool calls into its messages.
_WRITTEN_CALL = re.compile(r"^Action Input:", re.MULTILINE)
CREW_TOTALS = (
    "the token counts of this crew are left out: CrewAI reports the sum of all kickoffs. Fix: create the crew, its "
    "agents and their models inside the target function"
)
_OUTER_FIELDS = ("session_id", "uuid", "parent_tool_use_id", "tool_use_result")


class AgentResult(NamedTuple):
    """The output of an agent, its session and usage if they are known, and the error that it ended with."""

    output: Any
    session: Session | None = None
    usage: Usage | None = None
    error: str | None = None


def read_agent_result(result: Any) -> AgentResult | None:
    """Read the result of an agent framework; None for any other object."""
    if type(result) is list:
        return _read_claude_messages(result) if _is_claude(result) else None
    read = _READERS.get((type(result).__module__.partition(".")[0], type(result).__name__))
    # The user's own package may be called `agents` too.
    is_known = read is not None and (read is not _read_openai_run or hasattr(result, "raw_responses"))
    return read(result) if read is not None and is_known else None


def _read_openai_run(result: Any) -> AgentResult:
    session = read_openai_items(result)
    return AgentResult(result.final_output, session, None if session is None else session.known_usage())


def read_openai_items(run: Any) -> Session | None:
    """Read the session of a run of the OpenAI Agents SDK, or of the `run_data` of its exceptions."""
    inputs = run.input if isinstance(run.input, list) else [{"role": "user", "content": run.input}]
    # Items that wait for an approval cannot be converted.
    items = [item.to_input_item() for item in run.new_items if type(item).__name__ != "ToolApprovalItem"]
    conversation = read_conversation(_to_json([*inputs, *items]), run.input)
    if conversation is None:
        return None
    model = getattr(getattr(run, "last_agent", None), "model", None)
    name = as_text(model) or as_text(getattr(model, "model", None)) or UNKNOWN_MODEL
    usages = (read_usage(as_mapping(_to_json(response.usage))) for response in run.raw_responses)
    events: list[Event] = [event for event in conversation.session if not isinstance(event, ModelCall)]
    return Session([*events, *(ModelCall(name, usage) for usage in usages)])


def _read_pydantic_ai_run(result: Any) -> AgentResult:
    session = read_pydantic_ai_messages(msgspec.json.decode(result.new_messages_json()))
    return AgentResult(result.output, session, session.known_usage())


def read_pydantic_ai_messages(messages: Sequence[Any]) -> Session:
    """Read the messages of Pydantic AI, as data."""
    return _read_session(pydantic_ai_messages, [messages])


def _read_smolagents_run(result: Any) -> AgentResult:
    session = read_smolagents_steps(result.steps)
    return AgentResult(result.output, session, session.known_usage())


def read_smolagents_steps(steps: Iterable[Mapping[str, Any]]) -> Session:
    """Read the steps of an agent of smolagents, without the prompt that each step repeats."""
    short = [{key: value for key, value in step.items() if key != "model_input_messages"} for step in steps]
    return _read_session(smolagents_steps, [_to_json(short)])


def _read_crew_output(result: Any) -> AgentResult:
    """Read the output of a crew or of one of its agents.

    The messages are the session, unless they have tool calls only in their text, or the version of CrewAI has none.
    """
    outputs = (result.pydantic, getattr(result, "json_dict", None), result.raw)
    tasks = getattr(result, "tasks_output", (result,))
    messages = _to_json([message for task in tasks for message in getattr(task, "messages", None) or ()])
    answers = [as_text(message.get("content")) or "" for message in messages if message.get("role") == "assistant"]
    conversation = None if any(map(_WRITTEN_CALL.search, answers)) else read_conversation(messages)
    counts = as_mapping(_to_json(getattr(result, "token_usage", None) or getattr(result, "usage_metrics", None)))
    usage = read_token_usage(counts)
    is_total = bool(answers) and (first_count(counts, "successful_requests") or 0) > len(answers)
    if is_total:
        sessions.warn(CREW_TOTALS)
    return AgentResult(
        next((item for item in outputs if item is not None), None),
        None if conversation is None else conversation.session,
        usage if usage.total_tokens and not is_total else None,
    )


def _is_claude(items: Sequence[Any]) -> bool:
    names = {type(item).__name__ for item in items}
    is_typed = _CLAUDE_RESULT in names or "AssistantMessage" in names
    return is_typed and all(hasattr(item, "content") for item in items if type(item).__name__ == "AssistantMessage")


def _read_claude_messages(messages: Sequence[Any]) -> AgentResult:
    session = _read_session(claude_code, filter(None, map(_to_claude_line, messages)))
    results = [item for item in messages if type(item).__name__ == _CLAUDE_RESULT]
    if not results:
        answer = find_first_text(session.events[::-1], "assistant")
        return AgentResult(answer, session, session.known_usage())
    return _read_claude_result(results[-1], session)


def _read_claude_result(result: Any, session: Session | None = None) -> AgentResult:
    """Read the last message of the SDK; alone, it has the answer and the usage, but no calls."""
    structured = getattr(result, "structured_output", None)
    output = getattr(result, "result", None) if structured is None else structured
    error = None
    if getattr(result, "is_error", False):
        reasons = getattr(result, "errors", None) or ([output] if output else [])
        error = ": ".join([str(getattr(result, "subtype", "error")), *map(str, reasons)])
    totals = session or _read_session(claude_code, filter(None, [_to_claude_line(result)]))
    return AgentResult(output, session, totals.known_usage(), error)


def _to_claude_line(message: Any) -> dict[str, Any] | None:
    """Convert a message of the SDK to the line of Claude Code that it was read from."""
    # Messages about tasks and hooks are subclasses of SystemMessage.
    names = [base.__name__ for base in type(message).__mro__]
    name = next((name for name in names if name == _CLAUDE_RESULT or name in _CLAUDE_MESSAGES), "")
    fields = _read_fields(message)
    if name == _CLAUDE_RESULT:
        return {**fields, "type": "result", "modelUsage": fields.get("model_usage")}
    if not name:
        return None
    if name == "SystemMessage":
        return {**as_mapping(fields.get("data")), "type": "system"}
    content = fields.get("content")
    blocks = [_to_claude_block(block) for block in content] if isinstance(content, list) else content
    inner = {key: value for key, value in fields.items() if key not in _OUTER_FIELDS and value is not None}
    inner |= {"content": blocks, "role": _CLAUDE_MESSAGES[name], "id": fields.get("message_id")}
    outer = {key: fields[key] for key in _OUTER_FIELDS if fields.get(key) is not None}
    return {**outer, "type": _CLAUDE_MESSAGES[name], "message": inner}


def _to_claude_block(block: Any) -> Any:
    kind = _CLAUDE_BLOCKS.get(type(block).__name__)
    return block if kind is None else {"type": kind, **_read_fields(block)}


def _read_fields(value: Any) -> dict[str, Any]:
    return {key: item for key, item in vars(value).items() if not key.startswith("_")}


def _read_session(log_format: Any, values: Iterable[Any]) -> Session:
    """Read all events of some values in a log format."""
    lines = enumerate([_to_json(value) for value in values], start=1)
    return Session([event for imported in log_format.read(lines, "") for event in imported.session])


def _to_json(value: Any) -> Any:
    return msgspec.json.decode(codec.encode(value))


_READERS: Mapping[tuple[str, str], Callable[[Any], AgentResult]] = {
    ("agents", "RunResult"): _read_openai_run,
    ("agents", "RunResultStreaming"): _read_openai_run,
    ("pydantic_ai", "AgentRunResult"): _read_pydantic_ai_run,
    ("smolagents", "RunResult"): _read_smolagents_run,
    ("crewai", "CrewOutput"): _read_crew_output,
    ("crewai", "LiteAgentOutput"): _read_crew_output,
    ("claude_agent_sdk", _CLAUDE_RESULT): _read_claude_result,
}
