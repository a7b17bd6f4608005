"""The session of the running trial and the warnings of its run, as context variables."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Protocol

from proctor.records.session import ModelCall, Session, Usage, drop_impossible_counts, find_impossible_counts


class HasSession(Protocol):
    """An object that creates its session when the first event is recorded."""

    @property
    def session(self) -> Session: ...


current: ContextVar[Session | HasSession | None] = ContextVar("proctor_session", default=None)
warnings: ContextVar[list[str] | None] = ContextVar("proctor_warnings", default=None)
# One entry for each output of the current run that reached its token limit.
cut_off_outputs: ContextVar[list[None] | None] = ContextVar("proctor_cut_off", default=None)

# The finish reasons of answers that reached their token limit.
CUT_OFF_REASONS = frozenset(("length", "max_tokens", "max_output_tokens", "model_length", "max_length", "token_limit"))
# The finish reasons of answers that a provider withheld or stopped, or that the model refused.
FILTER_REASONS = frozenset(
    ("content_filter", "content_filtered", "refusal", "safety", "recitation", "blocklist", "prohibited_content", "spii",
     "image_safety", "guardrail_intervened")
)  # fmt: skip


def is_abnormal(reason: str | None) -> bool:
    """Return True if an answer was cut off, filtered or refused."""
    return reason is not None and reason.casefold() in CUT_OFF_REASONS | FILTER_REASONS


def current_session() -> Session | None:
    """Return the session of the current trial, or None outside a trial.

    >>> current_session() is None
    True
    """
    session = current.get()
    return session if session is None or isinstance(session, Session) else session.session


def record(event: Any) -> None:
    """Add an event to the session of the current trial; do nothing outside a trial."""
    session = current_session()
    if session is not None:
        session.append(event)


def warn(text: str) -> None:
    """Add a warning to the report of the current run, once; do nothing outside a run."""
    texts = warnings.get()
    if texts is not None and text not in texts:
        texts.append(text)


def note_cut_off(session: Session) -> None:
    """Count the output of a session if the model's last answer reached its token limit, and warn if it was filtered.

    Without a counter, for example in a worker, add a warning without a number.
    """
    calls = session[ModelCall]
    reason = calls[-1].finish_reason if calls else None
    if reason is not None and reason.casefold() in FILTER_REASONS:
        warn(f"answers were stopped by the provider's filter or refused (finish reason {reason!r}) and judged as is")
    if reason is None or reason.casefold() not in CUT_OFF_REASONS:
        return
    outputs = cut_off_outputs.get()
    if outputs is not None:
        outputs.append(None)
    else:
        warn(f"outputs were {CUT_OFF}")


CUT_OFF = "cut off at the token limit and judged as they are. Fix: raise max_tokens"


def describe_cut_off(number: int) -> str:
    """Return the warning about truncated outputs."""
    return f"{number:,} output{' was' if number == 1 else 's were'} {CUT_OFF}"


def parse_cut_off_count(warning: str) -> int | None:
    """Return the number in a warning about truncated outputs; None for any other string."""
    number, _, rest = warning.partition(" ")
    digits = number.replace(",", "")
    return int(digits) if digits.isdecimal() and rest.endswith(CUT_OFF) else None


def check_usage(usage: Usage, source: str) -> Usage:
    """Return the usage that a server or target reported; drop impossible counts with a warning."""
    if impossible := find_impossible_counts(usage):
        counts = ", ".join(f"{name}: {str(value)[:40]}" for name, value in impossible.items())
        warn(f"{source} reported impossible token counts or costs ({counts}); they count as unknown")
    return drop_impossible_counts(usage)
