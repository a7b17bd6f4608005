"""The session of the trial that is running, and the warnings of its run, from anywhere inside."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from proctor.records.session import ModelCall, Session, Usage, impossible_counts, plausible_usage

current: ContextVar[Session | None] = ContextVar("proctor_session", default=None)
warnings: ContextVar[list[str] | None] = ContextVar("proctor_warnings", default=None)
# One entry for each output of the running run that was cut off.
cut_off: ContextVar[list[None] | None] = ContextVar("proctor_cut_off", default=None)

# How providers call the end of an answer that reached its token limit.
CUT_OFF_REASONS = frozenset(
    ("length", "max_tokens", "max_output_tokens", "model_length", "max_length", "token_limit")
)


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


def note_cut_off(session: Session) -> None:
    """Count the output of a session if the model's last answer reached its token limit.

    Where nobody counts, such as in a worker, it is a warning without a number.
    """
    calls = session[ModelCall]
    reason = calls[-1].finish_reason if calls else None
    if reason is None or reason.casefold() not in CUT_OFF_REASONS:
        return
    counted = cut_off.get()
    if counted is not None:
        counted.append(None)
    else:
        warn(f"outputs were {CUT_OFF}")


CUT_OFF = "cut off at the token limit and judged as they are. Fix: raise max_tokens"


def describe_cut_off(number: int) -> str:
    """The warning about outputs that were cut off.

    >>> describe_cut_off(2)[:44]
    '2 outputs were cut off at the token limit an'
    """
    return f"{number:,} output{' was' if number == 1 else 's were'} {CUT_OFF}"


def count_cut_off(warning: str) -> int | None:
    """The number in such a warning; None for any other text.

    >>> count_cut_off(describe_cut_off(1_200)), count_cut_off("2 outputs were lost")
    (1200, None)
    """
    number, _, rest = warning.partition(" ")
    digits = number.replace(",", "")
    return int(digits) if digits.isdecimal() and rest.endswith(CUT_OFF) else None


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
