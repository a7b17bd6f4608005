"""Convert the results of runnables and of loops with `execute` to replies with sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from proctor.core import optional as extras
from proctor.records import codec
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Reply
from proctor.sessions import current as sessions

_WEAKINCENTIVES = "weakincentives"
_TOKEN_COUNTS = ("input_tokens", "output_tokens", "cached_tokens")


def convert_runnable_result(result: Any) -> Any:
    """Return the content of a LangChain message that is not an answer; return other results unchanged."""
    messages = extras.loaded_module("langchain_core.messages")
    if messages is None or not isinstance(result, messages.BaseMessage):
        return result
    return result if isinstance(result, messages.AIMessage) else Reply(result.content)


def convert_execute_result(result: Any) -> Reply:
    """Convert the result of `execute` to a reply.

    A pair is a response with its session if the response has an `output`, or if the second item is a session
    or None; any other pair is the output.
    """
    if isinstance(result, Reply):
        return result
    response, session = result, None
    if isinstance(result, tuple) and len(result) == 2:
        candidate = _to_session(result[1])
        if candidate is not None or result[1] is None or hasattr(result[0], "output"):
            response, session = result[0], candidate
    if isinstance(response, Reply):
        return Reply(response.output, response.usage, session, response.latency_ms)
    return Reply(getattr(response, "output", response), _find_usage(response, session), session)


def _find_usage(response: Any, session: Session | None) -> Usage | None:
    """Return the usage of a response or its session.

    Return None if the trial's session has the same usage, because it includes failed attempts too.
    """
    usage = getattr(response, "usage", None)
    if not isinstance(usage, Usage):
        usage = None if session is None else session.known_usage()
    trial_session = sessions.current_session()
    return None if trial_session is not None and trial_session.usage == usage else usage


def _to_session(source: Any) -> Session | None:
    """Convert a session of another package, or an object with `events`."""
    if isinstance(source, Session):
        return source
    if (session := _from_weakincentives(source)) is not None:
        return session
    events = getattr(source, "events", None)
    if not isinstance(events, Iterable) or isinstance(events, str | bytes):
        return None
    session = Session()
    for event in events:
        session.append(event)
    return session


def _from_weakincentives(source: Any) -> Session | None:
    """Convert a session of weakincentives: its log in order, then the user's slices.

    Return None for any other object, or if the package is not loaded.
    """
    package = extras.loaded_module(f"{_WEAKINCENTIVES}.runtime.session")
    events = extras.loaded_module(f"{_WEAKINCENTIVES}.runtime.events")
    if package is None or events is None or not isinstance(source, package.Session):
        return None
    converters: Mapping[type, Callable[[Any], Iterator[Any]]] = {
        events.PromptRendered: lambda entry: iter([Message("user", entry.rendered_prompt)]),
        events.ToolInvoked: _convert_tool_call,
        events.PromptExecuted: _convert_response,
    }
    entries = [(entry, convert) for kind, convert in converters.items() for entry in source[kind].all()]
    entries.sort(key=lambda pair: pair[0].created_at)
    session = Session()
    for entry, convert in entries:
        for event in convert(entry):
            session.append(event)
    for item in _user_slices(source, package):
        session.append(item)
    return session


def _convert_tool_call(entry: Any) -> Iterator[ToolCall]:
    arguments = codec.to_plain(entry.params)
    result, error = entry.result, None
    if hasattr(result, "success") and hasattr(result, "value"):
        error = None if result.success else result.message or "it failed"
        result = result.value
    yield ToolCall(
        entry.name,
        arguments if isinstance(arguments, dict) else {"params": arguments} if arguments else {},
        codec.to_plain(result),
        error,
        call_id=entry.call_id,
    )


def _convert_response(entry: Any) -> Iterator[Message | ModelCall]:
    text = getattr(entry.result, "text", None)
    if text:
        yield Message("assistant", text)
    usage = Usage() if entry.usage is None else Usage(*(getattr(entry.usage, name) for name in _TOKEN_COUNTS))
    yield ModelCall(str(entry.adapter), usage)


def _user_slices(source: Any, package: Any) -> Iterator[Any]:
    """Yield the user's state; the state of the package itself is left out."""
    try:
        slices = source.snapshot(include_all=True).slices
    except package.SnapshotSerializationError:
        # The package cannot serialize part of the state.
        return
    for kind, items in slices.items():
        if kind.__module__.partition(".")[0] != _WEAKINCENTIVES:
            yield from items
