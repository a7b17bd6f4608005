"""OpenTelemetry: emit spans for runs, and record the program's spans in sessions."""

from proctor.sessions.telemetry.run_observer import RunObserver, observe_run

__all__ = ["RunObserver", "observe_run"]
