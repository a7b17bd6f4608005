"""OpenTelemetry: emit spans for runs, and record the program's spans in sessions."""

from proctor.sessions.telemetry.run_observer import RunObserver, observe_run
from proctor.sessions.telemetry.run_tracer import current_run_id

__all__ = ["RunObserver", "current_run_id", "observe_run"]
