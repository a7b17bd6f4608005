"""An event bus that reports the progress of a main loop."""

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
    """A main loop is about to send its first prompt.

    `prompt` is the name and version of the prompt. `session`, here and in the other events, identifies the execution.
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
    """A tool call has ended with a result or an error."""

    session: Session
    call: ToolCall
    turn: int


class LoopEnded(msgspec.Struct, frozen=True):
    """The execution is over; `error` is the reason if there is no answer."""

    session: Session
    turns: int
    usage: Usage
    error: str | None = None


class EventBus:
    """Passes events to subscribed handlers by type, one at a time, from any thread.

    Handlers are plain functions and should be fast: `publish` waits for them. All handlers see all events in
    the same order; events that a handler publishes come after the current event. A handler that fails causes a
    warning, of the run or of Python, and does not affect the others.

    >>> bus, events = EventBus(), []
    >>> unsubscribe = bus.subscribe(str, events.append)
    >>> bus.publish("one"), bus.publish(2)
    (None, None)
    >>> unsubscribe()
    >>> bus.publish("three")
    >>> events
    ['one']
    """

    def __init__(self) -> None:
        self._handlers: dict[object, tuple[type[Any], Callable[[Any], object]]] = {}
        self._queue: deque[Any] = deque()
        self._is_publishing = False
        # Held while handlers run, so that threads take turns; reentrant, because handlers may publish.
        self._lock = threading.RLock()

    def subscribe(self, kind: type[EventT], handler: Callable[[EventT], object]) -> Callable[[], None]:
        """Call the handler for every event of a type or a subtype; return a function that ends the subscription."""
        if inspect.iscoroutinefunction(handler):
            raise UsageError(
                "an event handler must be a plain function, not an async one",
                where=getattr(handler, "__name__", ""),
                fix="let it start a task, or put the event into a queue",
            )
        key = object()
        with self._lock:
            self._handlers = {**self._handlers, key: (kind, handler)}

        def unsubscribe() -> None:
            with self._lock:
                self._handlers = {k: entry for k, entry in self._handlers.items() if k is not key}

        return unsubscribe

    def publish(self, event: Any) -> None:
        """Pass an event to all handlers of its type."""
        with self._lock:
            self._queue.append(event)
            if self._is_publishing:
                return
            self._is_publishing = True
            failures: list[str] = []
            try:
                while self._queue:
                    failures += self._call_handlers(self._queue.popleft())
            finally:
                self._is_publishing = False
                self._queue.clear()
        for failure in failures:
            if sessions.warnings.get() is None:
                warnings.warn(failure, RuntimeWarning, stacklevel=2)
            else:
                sessions.warn(failure)

    def _call_handlers(self, event: Any) -> list[str]:
        failures = []
        for kind, handler in self._handlers.values():
            if isinstance(event, kind):
                try:
                    handler(event)
                except Exception as error:
                    reason = f"{type(error).__name__}: {error}"
                    failures.append(f"a handler of {type(event).__name__} failed: {reason}")
        return failures
