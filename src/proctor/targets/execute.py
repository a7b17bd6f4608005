"""Objects with `execute`: `execute(input)` gives a response, or a response and its session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from proctor.identity import identity_of
from proctor.records.run import TargetSpec
from proctor.records.session import Session, Usage
from proctor.records.trial import Reply
from proctor.targets.parameters import parameters_of
from proctor.targets.python import PythonTarget, is_async, reading


def from_execute(loop: Any, name: str) -> PythonTarget:
    """A main loop as a target: the output is `response.output`, and the session is kept.

    >>> from proctor.records.sample import Sample
    >>> class Greeter:
    ...     def execute(self, request):
    ...         return f"Hello {request}", Session()
    >>> from_execute(Greeter(), "greeter").call(Sample("1", "Ada"), {}).output
    'Hello Ada'
    """
    execute = loop.execute
    waits = is_async(execute)
    return PythonTarget(
        TargetSpec(name, "execute", identity_of(execute)),
        reading(execute, reply_of, waits=waits),
        parameters_of(execute, f"{name}.execute"),
        blocking=not waits,
    )


def reply_of(answer: Any) -> Reply:
    """What `execute` gave, as a reply.

    A pair is a response with its session if the response has an `output`, or if the second part
    is a session or None; any other pair is itself the output.

    >>> reply_of(("Paris", None)).output
    'Paris'
    >>> reply_of((48.9, 2.4)).output
    (48.9, 2.4)
    """
    if isinstance(answer, Reply):
        return answer
    response, session = answer, None
    if isinstance(answer, tuple) and len(answer) == 2:
        kept = _session_of(answer[1])
        if kept is not None or answer[1] is None or hasattr(answer[0], "output"):
            response, session = answer[0], kept
    if isinstance(response, Reply):
        return Reply(response.output, response.usage, session, response.latency_ms)
    usage = getattr(response, "usage", None)
    return Reply(
        getattr(response, "output", response),
        usage if isinstance(usage, Usage) else None,
        session,
    )


def _session_of(thing: Any) -> Session | None:
    """A session as ours: itself, or the events of an object that has them."""
    if isinstance(thing, Session):
        return thing
    events = getattr(thing, "events", None)
    if not isinstance(events, Iterable) or isinstance(events, str | bytes):
        return None
    session = Session()
    for event in events:
        session.append(event)
    return session
