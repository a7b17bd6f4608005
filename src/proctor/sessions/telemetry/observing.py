"""A run observed: its spans go out, and spans of the program come into its sessions."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar, cast

from proctor.core import optional as extras
from proctor.core.threads import in_thread
from proctor.ports import AttachedEvaluator
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Configuration, EvalResult, Trial
from proctor.sessions import current as sessions
from proctor.sessions.telemetry.spans_in import SpanListener, TrialRecorder, current_recorder, get_listener
from proctor.sessions.telemetry.spans_out import RunTracer

INSTALL = 'pip install "proctor[otel]"'
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}

# How many spans may wait to be exported before some are dropped, rather than the run held up.
QUEUE_SIZE = 65_536
# At the end of a run: how long is waited for the next batch to go out, and for all of them.
STALL_SECONDS = 3.0
CLOSE_SECONDS = 30.0


def is_installed() -> bool:
    """True if the program could use OpenTelemetry; nothing is loaded for the look."""
    return extras.loaded("opentelemetry") is not None or (
        importlib.util.find_spec("opentelemetry") is not None
    )


def get_program_provider() -> Any:
    """The tracer provider that the program has set, or None; nothing is loaded for the look."""
    api = extras.loaded("opentelemetry.trace")
    if api is None:
        return None
    provider = api.get_tracer_provider()
    return provider if callable(getattr(provider, "add_span_processor", None)) else None


def list_exporters(environment: Mapping[str, str]) -> list[str]:
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


class ExportPipeline:
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
        self.provider = sdk.TracerProvider(resource=resources.Resource.create(own), shutdown_on_exit=False)
        self._ended = _Ended()
        self.provider.add_span_processor(self._ended)
        self._exporters = [_Counted(exporter, export.SpanExportResult) for exporter in exporters]
        queue = None if "OTEL_BSP_MAX_QUEUE_SIZE" in environment else QUEUE_SIZE
        for exporter in self._exporters:
            processor = export.BatchSpanProcessor(exporter, max_queue_size=queue)
            self.provider.add_span_processor(processor)

    async def close(self) -> str | None:
        """Send what is left within a bounded time; gives what must be said if some was not sent."""
        failing = any(one.failed for one in self._exporters)
        waiting = asyncio.ensure_future(in_thread(self.provider.shutdown))
        waited, sent = 0.0, -1
        while not failing and not waiting.done() and waited < CLOSE_SECONDS:
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


def build_pipeline(environment: Mapping[str, str]) -> tuple[ExportPipeline | None, str | None]:
    """What the environment asks for, if it does; else, or if it cannot be had, why not."""
    names = list_exporters(environment)
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
        return ExportPipeline([known[name].load()() for name in names], environment), None
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


class Runner(Protocol):
    """What carries out a trial."""

    async def run(
        self, slot: Any, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult: ...


RunnerT = TypeVar("RunnerT", bound=Runner)


class Observed:
    """One run under observation, as long as the context lasts.

    Spans go to the tracer provider of the program if it has set one, or else where OpenTelemetry's
    environment variables say. With neither, everything is handed on as it is.
    """

    def __init__(self, run: RunMetadata, environment: Mapping[str, str], *, for_others: bool = False) -> None:
        self._run = run
        self._for_others = for_others
        self._environment = environment
        self._is_possible = False
        self._pipeline: ExportPipeline | None = None
        self._listener: SpanListener | None = None
        self._unheard = 0
        self._tracing: RunTracer | None = None
        self.late = 0
        self.unreadable = 0

    async def __aenter__(self) -> Self:
        self._is_possible = is_installed()
        self._look()
        if self._tracing is None:
            self._pipeline, problem = build_pipeline(self._environment)
            if problem is not None:
                sessions.warn(problem)
            if self._pipeline is not None:
                self._trace_with(self._pipeline.provider)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._tracing is not None:
            self._tracing.close()
        if self._listener is not None:
            self._listener.forget(self)
        if self._pipeline is not None:
            problem = await self._pipeline.close()
            if problem is not None:
                sessions.warn(problem)
        for text in self._warnings():
            sessions.warn(text)

    def runner(self, runner: RunnerT) -> RunnerT:
        """The same runner, its trials observed."""
        return cast("RunnerT", _Traced(runner, self)) if self._is_possible else runner

    def evaluators(self, evaluators: Sequence[AttachedEvaluator]) -> tuple[AttachedEvaluator, ...]:
        """The same evaluators, their verdicts observed."""
        if not self._is_possible:
            return tuple(evaluators)
        return tuple(_TracedEvaluator(evaluator) for evaluator in evaluators)

    def hear(self) -> tuple[TrialRecorder, RunTracer] | None:
        """A new trial begins: what hears and tells of it, or None if nobody wants to know."""
        if self._listener is None and "opentelemetry.trace" in sys.modules:
            self._look()
        if self._tracing is None:
            self._unheard += 1
            return None
        return TrialRecorder(self), self._tracing

    def _look(self) -> None:
        """The program may set its provider at any time, and in another place than before."""
        provider = get_program_provider()
        if provider is not None:
            self._listener = get_listener(provider)
            if self._tracing is None:
                self._trace_with(provider)

    def _trace_with(self, provider: Any) -> None:
        self._tracing = RunTracer(provider, self._run, self._environment, for_others=self._for_others)

    def _warnings(self) -> list[str]:
        told = []
        if self.late:
            told.append(
                f"OpenTelemetry: {self.late} spans of model or tool calls ended after their trial, "
                "so they are not in its session"
            )
        if self.unreadable:
            told.append(f"OpenTelemetry: {self.unreadable} spans could not be read")
        if self._unheard and self._listener is not None:
            told.append(
                f"OpenTelemetry was set up after {self._unheard} trials had begun, which were not "
                "observed; set it up when your module is imported"
            )
        return told


def observing(
    run: RunMetadata, environment: Mapping[str, str] = os.environ, *, for_others: bool = False
) -> Observed:
    """Observe a run: `async with observing(run) as observed`, then wrap what carries it out.

    With `for_others` the trials are those of runs elsewhere, which `belongs_to` names for each.

    >>> from datetime import UTC, datetime
    >>> run = RunMetadata("r1", "capitals", datetime(2026, 1, 1, tzinfo=UTC))
    >>> type(observing(run, {})).__name__
    'Observed'
    """
    return Observed(run, environment, for_others=for_others)


# What hears and tells of the trial that is running.
_watching: ContextVar[tuple[TrialRecorder, RunTracer] | None] = ContextVar("proctor_trial", default=None)


class _Traced:
    """A runner whose trials are observed; whatever else it offers is its own."""

    def __init__(self, runner: Runner, observed: Observed) -> None:
        self._runner = runner
        self._run = runner.run
        self._observed = observed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runner, name)

    def run(
        self, slot: Any, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> Awaitable[EvalResult]:
        # Not async itself: where nobody wants to know, a trial costs what it costs without us.
        watching = self._observed.hear()
        if watching is None:
            return self._run(slot, sample, configuration, epoch)
        return self._watched(watching, slot, sample, configuration, epoch)

    async def _watched(
        self,
        watching: tuple[TrialRecorder, RunTracer],
        slot: Any,
        sample: Sample[Any, Any],
        configuration: Configuration,
        epoch: int,
    ) -> EvalResult:
        heard, tracing = watching
        with tracing.trial(heard, sample, configuration.name, epoch) as results:
            # Not taken back if it fails: the next trial sets them anew, and a hearing that is over
            # takes nothing.
            current_recorder.set(heard)
            _watching.set(watching)
            try:
                results.append(await self._runner.run(slot, sample, configuration, epoch))
            finally:
                heard.over()
        current_recorder.set(None)
        _watching.set(None)
        return results[0]


class _TracedEvaluator:
    """An evaluator whose verdicts are observed, inside an observed trial."""

    def __init__(self, evaluator: AttachedEvaluator) -> None:
        self.spec = evaluator.spec
        self.mode = evaluator.mode
        self.needs = evaluator.needs
        self.group = evaluator.group
        self.is_own = evaluator.is_own
        self._score = evaluator.score
        if self.group is not None:
            parts = {name: _TracedEvaluator(part) for name, part in self.group.parts.items()}
            self.group = self.group._replace(parts=parts)

    def score(self, trial: Trial) -> Any:
        watching = _watching.get()
        if watching is None:
            return self._score(trial)
        if self.mode == "async":
            return self._score_later(trial, *watching)
        with _judging(self.spec, trial, *watching) as scores:
            scores.append(cast("Score", self._score(trial)))
        return scores[0]

    async def _score_later(self, trial: Trial, heard: TrialRecorder, tracing: RunTracer) -> Score:
        with _judging(self.spec, trial, heard, tracing) as scores:
            scores.append(await cast("Awaitable[Score]", self._score(trial)))
        return scores[0]


@contextmanager
def _judging(
    spec: EvaluatorSpec, trial: Trial, heard: TrialRecorder, tracing: RunTracer
) -> Iterator[list[Score]]:
    """While an evaluator is at work, what it asks goes into its session, if it has one."""
    session = sessions.current.get()
    own = None if session is trial.session else session
    heard.begin_judging(own)
    try:
        with tracing.evaluation(spec, heard, own) as scores:
            yield scores
    finally:
        heard.end_judging(own)
