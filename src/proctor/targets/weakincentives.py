"""Sessions of the weakincentives package, told in our events; nothing of it is imported here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from proctor import codec, extras
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage

PACKAGE = "weakincentives"


def session_from(thing: Any) -> Session | None:
    """What a session of weakincentives has logged, in order, then the user's own slices.

    None if it is no such session, or the package is not in use.
    """
    home = extras.loaded(f"{PACKAGE}.runtime.session")
    logged = extras.loaded(f"{PACKAGE}.runtime.events")
    if home is None or logged is None or not isinstance(thing, home.Session):
        return None
    told: Mapping[type, Callable[[Any], Iterator[Any]]] = {
        logged.PromptRendered: _rendered,
        logged.ToolInvoked: _invoked,
        logged.PromptExecuted: _executed,
    }
    entries = [(entry, tell) for kind, tell in told.items() for entry in thing[kind].all()]
    entries.sort(key=lambda pair: pair[0].created_at)
    session = Session()
    for entry, tell in entries:
        for event in tell(entry):
            session.append(event)
    for kept in _slices(thing, home):
        session.append(kept)
    return session


def _rendered(entry: Any) -> Iterator[Message]:
    yield Message("user", entry.rendered_prompt)


def _invoked(entry: Any) -> Iterator[ToolCall]:
    arguments = codec.plain(entry.params)
    result, error = entry.result, None
    if hasattr(result, "success") and hasattr(result, "value"):
        error = None if result.success else result.message or "it failed"
        result = result.value
    yield ToolCall(
        entry.name,
        arguments if isinstance(arguments, dict) else {"params": arguments} if arguments else {},
        codec.plain(result),
        error,
        call_id=entry.call_id,
    )


def _executed(entry: Any) -> Iterator[Message | ModelCall]:
    text = getattr(entry.result, "text", None)
    if text:
        yield Message("assistant", text)
    used = entry.usage
    told = Usage() if used is None else Usage(*(getattr(used, name) for name in _COUNTS))
    yield ModelCall(str(entry.adapter), told)


_COUNTS = ("input_tokens", "output_tokens", "cached_tokens")


def _slices(thing: Any, home: Any) -> Iterator[Any]:
    """The user's own state; that of the package itself says nothing about the answer."""
    try:
        slices = thing.snapshot(include_all=True).slices
    except home.SnapshotSerializationError:
        # Something in it cannot be written down, by the package's own rules.
        return
    for kind, kept in slices.items():
        if kind.__module__.partition(".")[0] != PACKAGE:
            yield from kept
