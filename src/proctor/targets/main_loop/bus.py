"""An event bus: whoever wants to know what a main loop does is told as it happens."""

from __future__ import annotations

import inspect
import threading
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from proctor.errors import UsageError
from proctor.records.model import ModelResponse
from proctor.records.session import Message, Session, ToolCall, Usage
from proctor.sessions import current as sessions

EventT = TypeVar("EventT")


class PromptRendered(msgspec.Struct, frozen=True):
    """A main loop is about to ask its first question.

    `prompt` is the name and version of the prompt. `session`, here and in the other events, tells
    one execution from another.
    """

    session: Session
    messages: tuple[Message, ...]
    prompt: str = ""


class ModelAnswered(msgspec.Struct, frozen=True):
    """The model has answered; `turn` counts its answers from 1."""

    session: Session
    response: ModelResponse
    turn: int


class ToolInvoked(msgspec.Struct, frozen=True):
    """A tool was called, and its result or error is known."""

    session: Session
    call: ToolCall
    turn: int


class LoopEnded(msgspec.Struct, frozen=True):
    """The execution is over; `error` says why, where it ended without an answer."""

    session: Session
    turns: int
    usage: Usage
    error: str | None = None


class EventBus:
    """Tells whoever subscribed of events by their type, one after the other, from any thread.

    Handlers are plain functions and should be quick: who publishes waits for them. All handlers
    see all events in one order; what a handler itself publishes comes after the event it was told
    of. A handler that fails is reported, as a warning of the run or of Python, and stops nobody.

    >>> bus, heard = EventBus(), []
    >>> leave = bus.subscribe(str, heard.append)
    >>> bus.publish("one"), bus.publish(2)
    (None, None)
    >>> leave()
    >>> bus.publish("three")
    >>> heard
    ['one']
    """

    def __init__(self) -> None:
        self._handlers: dict[object, tuple[type[Any], Callable[[Any], object]]] = {}
        self._waiting: deque[Any] = deque()
        self._telling = False
        # Held while handlers are told, so that threads take turns; a handler may publish.
        self._lock = threading.RLock()

    def subscribe(self, kind: type[EventT], handler: Callable[[EventT], object]) -> Callable[[], None]:
        """Be told of every event of a type, and of types derived from it; gives what ends that."""
        if inspect.iscoroutinefunction(handler):
            raise UsageError(
                "a handler of events is a plain function, and this one has to be awaited",
                where=getattr(handler, "__name__", ""),
                fix="let it start a task, or put the event into a queue",
            )
        key = object()
        with self._lock:
            self._handlers = {**self._handlers, key: (kind, handler)}

        def leave() -> None:
            with self._lock:
                self._handlers = {k: each for k, each in self._handlers.items() if k is not key}

        return leave

    def publish(self, event: Any) -> None:
        """Tell everybody who wants to know of such an event."""
        with self._lock:
            self._waiting.append(event)
            if self._telling:
                return
            self._telling = True
            failures: list[str] = []
            try:
                while self._waiting:
                    failures += self._tell(self._waiting.popleft())
            finally:
                self._telling = False
                self._waiting.clear()
        for failure in failures:
            _report(failure)

    def _tell(self, event: Any) -> list[str]:
        failures = []
        for kind, handler in self._handlers.values():
            if isinstance(event, kind):
                try:
                    handler(event)
                except Exception as error:
                    told = f"{type(error).__name__}: {error}"
                    failures.append(f"a handler of {type(event).__name__} failed: {told}")
        return failures


def _report(failure: str) -> None:
    if sessions.warnings.get() is None:
        warnings.warn(failure, RuntimeWarning, stacklevel=3)
    else:
        sessions.warn(failure)
