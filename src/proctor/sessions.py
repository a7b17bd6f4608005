"""The session of the trial that is running, and the warnings of its run, from anywhere inside."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from proctor.records.session import Session

current: ContextVar[Session | None] = ContextVar("proctor_session", default=None)
warnings: ContextVar[list[str] | None] = ContextVar("proctor_warnings", default=None)


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


def warn(text: str) -> None:
    """Put a warning into the report of the running run, once; outside of one nothing happens."""
    found = warnings.get()
    if found is not None and text not in found:
        found.append(text)
