"""Objects with `execute`: `execute(input)` gives a response, or a response and its session."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

from proctor import sessions
from proctor.identity import Identity, examine
from proctor.records.run import TargetSpec
from proctor.records.session import Session, Usage
from proctor.records.trial import Reply
from proctor.targets.parameters import parameters_of
from proctor.targets.python import PythonTarget, is_async, reading
from proctor.targets.weakincentives import session_from

# What a loop holds that is not what it answers: who listens to it, where its requests come from,
# and, in loops of weakincentives, in which process it works.
_PASSING = frozenset({
    "bus", "_bus", "_dlq", "_heartbeat", "_lease_extender", "_lock", "_requests", "_running",
    "_shutdown_event", "_worker_id",
})  # fmt: skip


def from_execute(loop: Any, name: str) -> PythonTarget:
    """A main loop as a target: the output is `response.output`, and the session is kept.

    A loop that has an async `aexecute` beside its `execute` is run by that.

    >>> from proctor.records.sample import Sample
    >>> class Greeter:
    ...     def execute(self, request):
    ...         return f"Hello {request}", Session()
    >>> from_execute(Greeter(), "greeter").call(Sample("1", "Ada"), {}).output
    'Hello Ada'
    """
    execute = _entry(loop)
    waits = is_async(execute)
    return PythonTarget(
        TargetSpec(name, "execute", *_identity(loop)),
        reading(execute, reply_of, waits=waits),
        parameters_of(execute, f"{name}.execute"),
        blocking=not waits,
    )


def _entry(loop: Any) -> Any:
    """`aexecute` if there is one; but not if `execute` alone was written anew below it."""
    beside = getattr(loop, "aexecute", None)
    if not callable(beside) or not is_async(beside):
        return loop.execute
    written = (vars(kind).keys() & {"execute", "aexecute"} for kind in type(loop).__mro__)
    return beside if "aexecute" in next(filter(None, written), {"aexecute"}) else loop.execute


def _identity(loop: Any) -> Identity:
    """What tells one loop from another: what its classes define, and what it holds.

    `execute` alone would not do, for it is often inherited, and what is asked stands elsewhere.
    """
    code = [
        [f"{kind.__qualname__}.{name}", _bare(part)]
        for kind in type(loop).__mro__
        if kind is not object
        for name, part in vars(kind).items()
        if isinstance(part, FunctionType) or not name.startswith("__")
    ]
    if not hasattr(loop, "__dict__"):
        return examine([code, loop.execute])
    held = {name: part for name, part in vars(loop).items() if name not in _PASSING}
    return examine([code, held])


def _bare(part: Any) -> Any:
    """The function behind a property, a static method or a class method."""
    return getattr(part, "fget", None) or getattr(part, "__func__", part)


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
    return Reply(getattr(response, "output", response), _usage(response, session), session)


def _usage(response: Any, session: Session | None) -> Usage | None:
    """What a response or its session tells of usage.

    None if the session of the trial says the same: there, failed attempts are counted too.
    """
    told = getattr(response, "usage", None)
    if not isinstance(told, Usage):
        told = None if session is None else session.known_usage()
    around = sessions.current_session()
    return None if around is not None and around.usage == told else told


def _session_of(thing: Any) -> Session | None:
    """A session as ours: itself, or the events of an object that has them."""
    if isinstance(thing, Session):
        return thing
    if (known := session_from(thing)) is not None:
        return known
    events = getattr(thing, "events", None)
    if not isinstance(events, Iterable) or isinstance(events, str | bytes):
        return None
    session = Session()
    for event in events:
        session.append(event)
    return session
