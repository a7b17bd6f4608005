"""OpenTelemetry: emit spans for runs, and record the program's spans in sessions."""

from proctor.sessions.telemetry.observing import Observed, observing
from proctor.sessions.telemetry.spans_out import belongs_to

__all__ = ["Observed", "belongs_to", "observing"]
