"""Where spans go: the tracer provider of the program, or one that the environment asks for."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from proctor import extras
from proctor.threads import in_thread

INSTALL = 'pip install "proctor[otel]"'
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}

# How many spans may wait to be exported before some are dropped, rather than the run held up.
QUEUE = 65_536
# At the end of a run: how long is waited for the next batch to go out, and for all of them.
STALL_SECONDS = 3.0
LONGEST_SECONDS = 30.0


def is_installed() -> bool:
    """True if the program could use OpenTelemetry; nothing is loaded for the look."""
    return extras.loaded("opentelemetry") is not None or (
        importlib.util.find_spec("opentelemetry") is not None
    )


def of_the_program() -> Any:
    """The tracer provider that the program has set, or None; nothing is loaded for the look."""
    api = extras.loaded("opentelemetry.trace")
    if api is None:
        return None
    provider = api.get_tracer_provider()
    return provider if callable(getattr(provider, "add_span_processor", None)) else None


def exporters_asked_for(environment: Mapping[str, str]) -> list[str]:
    """The exporters that OpenTelemetry's environment variables name.

    >>> exporters_asked_for({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"})
    ['otlp_proto_http']
    >>> exporters_asked_for({"OTEL_TRACES_EXPORTER": "none"})
    []
    """
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    asked = environment.get("OTEL_TRACES_EXPORTER") or ""
    if not asked.strip():
        asked = "otlp" if _first(environment, ENDPOINTS) else ""
    names = [name.strip() for name in asked.split(",")]
    protocol = _first(environment, PROTOCOLS) or "http/protobuf"
    otlp = _OTLP.get(protocol, f"otlp ({protocol})")
    return [otlp if name == "otlp" else name for name in names if name not in ("", "none")]


class Pipeline:
    """A provider of our own that exports in the background, and what became of its spans.

    It is not made the program's: that one can be set only once, and it is the program's to set.
    """

    def __init__(self, exporters: Sequence[Any], environment: Mapping[str, str]) -> None:
        sdk = importlib.import_module("opentelemetry.sdk.trace")
        export = importlib.import_module("opentelemetry.sdk.trace.export")
        resources = importlib.import_module("opentelemetry.sdk.resources")
        quiet = logging.getLogger("opentelemetry")
        if not quiet.handlers:
            # Without any handler Python prints each failed attempt; the report has one warning.
            quiet.addHandler(logging.NullHandler())
        own = {} if _is_named(environment) else {"service.name": "proctor"}
        self.provider = sdk.TracerProvider(
            resource=resources.Resource.create(own), shutdown_on_exit=False
        )
        self._ended = _Ended()
        self.provider.add_span_processor(self._ended)
        self._exporters = [_Counted(exporter, export.SpanExportResult) for exporter in exporters]
        queue = None if "OTEL_BSP_MAX_QUEUE_SIZE" in environment else QUEUE
        for exporter in self._exporters:
            processor = export.BatchSpanProcessor(exporter, max_queue_size=queue)
            self.provider.add_span_processor(processor)

    async def close(self) -> str | None:
        """Send what is left within a bounded time; gives what must be said if some was not sent."""
        failing = any(one.failed for one in self._exporters)
        waiting = asyncio.ensure_future(in_thread(self.provider.shutdown))
        waited, sent = 0.0, -1
        while not failing and not waiting.done() and waited < LONGEST_SECONDS:
            before, sent = sent, sum(one.sent for one in self._exporters)
            if before == sent:
                break
            await asyncio.wait({waiting}, timeout=STALL_SECONDS)
            waited += STALL_SECONDS
        if not waiting.done():
            # Ends its attempts at once; the thread that made them is nobody's to wait for.
            await asyncio.wait({asyncio.ensure_future(in_thread(self._give_up))}, timeout=1.0)
            waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return self._missing()

    def _give_up(self) -> None:
        for exporter in self._exporters:
            exporter.shutdown()

    def _missing(self) -> str | None:
        ended = self._ended.count
        sent = min(one.sent for one in self._exporters)
        if sent >= ended:
            return None
        return (
            f"OpenTelemetry: {ended - sent} of {ended} spans could not be exported; "
            "see whether the collector can be reached"
        )


def pipeline_for(environment: Mapping[str, str]) -> tuple[Pipeline | None, str | None]:
    """What the environment asks for, if it does; else, or if it cannot be had, why not."""
    names = exporters_asked_for(environment)
    if not names:
        return None, None
    try:
        importlib.import_module("opentelemetry.sdk.trace")
        points = importlib.import_module("importlib.metadata").entry_points
        known = {point.name: point for point in points(group="opentelemetry_traces_exporter")}
        missing = [name for name in names if name not in known]
        if missing:
            return None, (
                f"OpenTelemetry: no spans are exported, for the exporter {missing[0]!r} is not "
                f"installed (installed: {', '.join(sorted(known)) or 'none'}); {INSTALL} brings "
                "the one for http/protobuf"
            )
        return Pipeline([known[name].load()() for name in names], environment), None
    except ImportError as error:
        return None, f"OpenTelemetry is configured but cannot be loaded ({error}); {INSTALL}"
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        return None, f"OpenTelemetry: no spans are exported, for its settings are wrong: {problem}"


class _Ended:
    """A span processor that counts."""

    def __init__(self) -> None:
        self.count = 0

    def on_start(self, span: Any, parent_context: Any = None) -> None: ...

    def _on_ending(self, span: Any) -> None: ...

    def on_end(self, span: Any) -> None:
        self.count += span.context.trace_flags.sampled

    def shutdown(self) -> None: ...

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002
        return True


class _Counted:
    """An exporter, and how many spans it has sent or failed to send."""

    def __init__(self, exporter: Any, results: Any) -> None:
        self._exporter = exporter
        self._results = results
        self._is_shut = False
        self.sent = 0
        self.failed = 0

    def export(self, spans: Sequence[Any]) -> Any:
        result = self._results.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if result is self._results.SUCCESS:
                self.sent += len(spans)
            else:
                self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        if not self._is_shut:
            self._is_shut = True
            self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return bool(self._exporter.force_flush(timeout_millis))


def _first(environment: Mapping[str, str], names: Sequence[str]) -> str:
    return next((environment[name].strip() for name in names if environment.get(name)), "")


def _is_named(environment: Mapping[str, str]) -> bool:
    """True if the environment gives the service a name."""
    told = environment.get("OTEL_RESOURCE_ATTRIBUTES", "").replace(" ", "")
    return "OTEL_SERVICE_NAME" in environment or "service.name=" in told
