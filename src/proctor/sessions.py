"""The session of the trial that is running, found from anywhere inside it."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from proctor.records.session import Session

current: ContextVar[Session | None] = ContextVar("proctor_session", default=None)


def current_session() -> Session | None:
    """The session of the running trial, or None outside of one.

    >>> current_session() is None
    True
    """
    return current.get()


def record(event: Any) -> None:
    """Add an event to the session of the running trial; outside of one nothing happens."""
    session = current.get()
    if session is not None:
        session.append(event)
