"""OpenTelemetry both ways: a run as spans, and the program's spans in its sessions."""

from proctor.sessions.telemetry.observing import Observed, observing
from proctor.sessions.telemetry.spans_out import belongs_to

__all__ = ["Observed", "belongs_to", "observing"]
