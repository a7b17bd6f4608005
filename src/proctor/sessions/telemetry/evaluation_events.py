"""Emit the score of each evaluation as an event `gen_ai.evaluation.result`, through OpenTelemetry's Logs API."""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from proctor.core import optional as extras
from proctor.records.score import Score
from proctor.version import VERSION

EVENT = "gen_ai.evaluation.result"
TOO_OLD = (
    "OpenTelemetry emits no evaluation events: the installed version has no event names. "
    'Fix: pip install --upgrade "opentelemetry-sdk"'
)


class JudgedSpan(NamedTuple):
    """The span of the operation whose output is judged, and the id of its response."""

    trace_id: int
    span_id: int
    flags: int
    response_id: str | None = None


def get_program_logger_provider() -> Any:
    """Return the logger provider that the program has set, or None; do not import OpenTelemetry."""
    api = extras.loaded_module("opentelemetry._logs")
    provider = None if api is None else api.get_logger_provider()
    return provider if callable(getattr(provider, "add_log_record_processor", None)) else None


class EvaluationEvents:
    """Emits events to a logger provider; `count` is called for each of them."""

    def __init__(self, provider: Any, scope: str, count: Callable[[], None] | None = None) -> None:
        self._api = importlib.import_module("opentelemetry._logs")
        self._flags = importlib.import_module("opentelemetry.trace").TraceFlags
        self._logger = provider.get_logger(scope, VERSION)
        self._count = count

    @staticmethod
    def is_supported() -> bool:
        """Return False if log records of the installed version have no event name."""
        api = importlib.import_module("opentelemetry._logs")
        return "event_name" in inspect.signature(api.LogRecord.__init__).parameters

    def emit(
        self, name: str, score: Score, explanation: str | None, span: JudgedSpan, attributes: Mapping[str, Any]
    ) -> None:
        """Emit a score. Labels are pass, fail and skipped; an evaluation that failed has an error instead."""
        labels = {True: "pass", False: "fail", None: "skipped" if score.status == "skipped" else None}
        fields = {
            "gen_ai.evaluation.name": name,
            "gen_ai.evaluation.score.value": None if score.value is None else float(score.value),
            "gen_ai.evaluation.score.label": labels[score.passed],
            "gen_ai.evaluation.explanation": explanation,
            "gen_ai.response.id": span.response_id,
            "error.type": "evaluation_failed" if score.status == "error" else None,
            **attributes,
        }
        if self._count is not None:
            self._count()
        now = time.time_ns()
        self._logger.emit(
            self._api.LogRecord(
                timestamp=now,
                observed_timestamp=now,
                trace_id=span.trace_id,
                span_id=span.span_id,
                trace_flags=self._flags(span.flags),
                severity_number=self._api.SeverityNumber.INFO,
                attributes={key: value for key, value in fields.items() if value is not None},
                event_name=EVENT,
            )
        )
