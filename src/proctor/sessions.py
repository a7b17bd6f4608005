"""The session of the trial that is running, and the warnings of its run, from anywhere inside."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from proctor.records.session import Session, Usage, impossible_counts, plausible_usage

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


def checked_usage(usage: Usage, source: str) -> Usage:
    """The usage that a server or target reported; what cannot be true is dropped with a warning.

    >>> checked_usage(Usage(-5, 3), "the server")
    Usage()
    """
    wrong = impossible_counts(usage)
    if not wrong:
        return plausible_usage(usage)
    reported = ", ".join(f"{name}: {str(value)[:40]}" for name, value in wrong.items())
    warn(f"{source} reported a usage that cannot be true ({reported}); it counts as unknown")
    return plausible_usage(usage)
