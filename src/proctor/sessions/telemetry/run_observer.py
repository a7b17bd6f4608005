"""Observe a run: emit its spans, and record the program's spans in its sessions."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import importlib.util
import logging
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeVar, cast

from proctor.core import optional as extras
from proctor.core.threads import run_in_thread
from proctor.ports import AttachedEvaluator, SampleEvaluators
from proctor.records.formatting import format_count
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Configuration, EvalResult, Trial
from proctor.sessions import current as sessions
from proctor.sessions.telemetry.evaluation_events import TOO_OLD, EvaluationEvents, get_program_logger_provider

# Most runs have no tracer provider, so the recorder and the tracer are imported on first use.
if TYPE_CHECKING:
    from proctor.sessions.telemetry.run_tracer import RunTracer
    from proctor.sessions.telemetry.trial_recorder import SpanListener, TrialRecorder

INSTALL = 'pip install "proctor[otel]"'
ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_OTLP_EXPORTERS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}

# The number of spans that may wait for export; more spans are dropped, so that the run does not wait.
QUEUE_SIZE = 65_536
# How long a run waits at its end for the next batch, and for all batches.
STALL_SECONDS = 3.0
CLOSE_SECONDS = 30.0


def get_program_provider() -> Any:
    """Return the tracer provider that the program has set, or None; do not import OpenTelemetry."""
    api = extras.loaded_module("opentelemetry.trace")
    provider = None if api is None else api.get_tracer_provider()
    return provider if callable(getattr(provider, "add_span_processor", None)) else None


class Signal(NamedTuple):
    """What is exported: spans, or log records."""

    noun: str
    module: str
    group: str
    variable: str
    endpoints: tuple[str, ...]
    protocols: tuple[str, ...]


SPANS = Signal(
    "spans", "opentelemetry.sdk.trace", "opentelemetry_traces_exporter", "OTEL_TRACES_EXPORTER", ENDPOINTS, PROTOCOLS
)
# The common endpoint is not enough: many backends of traces accept no log records.
LOGS = Signal(
    "evaluation events", "opentelemetry.sdk._logs", "opentelemetry_logs_exporter", "OTEL_LOGS_EXPORTER",
    ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",), ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", PROTOCOLS[1]),
)  # fmt: skip


def list_exporters(environment: Mapping[str, str], signal: Signal = SPANS) -> list[str]:
    """List the exporters in OpenTelemetry's environment variables."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return []
    configured = environment.get(signal.variable) or ""
    if not configured.strip():
        configured = "otlp" if _find_setting(environment, signal.endpoints) else ""
    names = [name.strip() for name in configured.split(",")]
    protocol = _find_setting(environment, signal.protocols) or "http/protobuf"
    otlp = _OTLP_EXPORTERS.get(protocol, f"otlp ({protocol})")
    return [otlp if name == "otlp" else name for name in names if name not in ("", "none")]


def _find_setting(environment: Mapping[str, str], names: Sequence[str]) -> str:
    return next((environment[name].strip() for name in names if environment.get(name)), "")


class ExportPipeline:
    """A provider of tracers or loggers that exports in the background and counts what it exports.

    It is not the global provider, which only the program sets, and only once.
    """

    def __init__(self, exporters: Sequence[Any], environment: Mapping[str, str], signal: Signal = SPANS) -> None:
        sdk = importlib.import_module(signal.module)
        export = importlib.import_module(f"{signal.module}.export")
        resources = importlib.import_module("opentelemetry.sdk.resources")
        logger = logging.getLogger("opentelemetry")
        if not logger.handlers:
            # Without a handler, Python prints each failed attempt; the report has one warning instead.
            logger.addHandler(logging.NullHandler())
        attributes = environment.get("OTEL_RESOURCE_ATTRIBUTES", "").replace(" ", "")
        is_named = "OTEL_SERVICE_NAME" in environment or "service.name=" in attributes
        resource = resources.Resource.create({} if is_named else {"service.name": "proctor"})
        self._signal = signal
        self._created = 0
        if signal is SPANS:
            self.provider = sdk.TracerProvider(resource=resource, shutdown_on_exit=False)
            counter = sdk.SpanProcessor()
            counter.on_end = self._count_span
            self.provider.add_span_processor(counter)
            results, variable = export.SpanExportResult, "OTEL_BSP_MAX_QUEUE_SIZE"
            processor, add = export.BatchSpanProcessor, self.provider.add_span_processor
        else:
            self.provider = sdk.LoggerProvider(resource=resource, shutdown_on_exit=False)
            results = getattr(export, "LogRecordExportResult", None) or export.LogExportResult
            variable = "OTEL_BLRP_MAX_QUEUE_SIZE"
            processor, add = export.BatchLogRecordProcessor, self.provider.add_log_record_processor
        self._exporters = [_CountingExporter(exporter, results) for exporter in exporters]
        queue_size = None if variable in environment else QUEUE_SIZE
        for exporter in self._exporters:
            add(processor(exporter, max_queue_size=queue_size))

    async def close(self) -> str | None:
        """Export the remaining spans within a time limit; return a warning if some were not sent."""
        has_failed = any(exporter.failed for exporter in self._exporters)
        shutdown = asyncio.ensure_future(run_in_thread(self.provider.shutdown))
        waited, sent = 0.0, -1
        while not has_failed and not shutdown.done() and waited < CLOSE_SECONDS:
            previous, sent = sent, sum(item.sent for item in self._exporters)
            if previous == sent:
                break
            await asyncio.wait({shutdown}, timeout=STALL_SECONDS)
            waited += STALL_SECONDS
        if not shutdown.done():
            # Shutting down an exporter ends its retries; nothing waits for its thread.
            await asyncio.wait({asyncio.ensure_future(run_in_thread(self._shut_down_exporters))}, timeout=1.0)
            shutdown.cancel()
        await asyncio.gather(shutdown, return_exceptions=True)
        missing = self._created - min(exporter.sent for exporter in self._exporters)
        if missing <= 0:
            return None
        return (
            f"OpenTelemetry: {missing} of {self._created} {self._signal.noun} could not be exported. "
            "Fix: check that the collector is reachable"
        )

    def _count_span(self, span: Any) -> None:
        self._created += span.context.trace_flags.sampled

    def count_event(self) -> None:
        self._created += 1

    def _shut_down_exporters(self) -> None:
        for exporter in self._exporters:
            exporter.shutdown()


def build_pipeline(environment: Mapping[str, str], signal: Signal = SPANS) -> tuple[ExportPipeline | None, str | None]:
    """Build the pipeline that the environment configures; return a warning if that fails."""
    names = list_exporters(environment, signal)
    if not names:
        return None, None
    try:
        importlib.import_module(signal.module)
        entry_points = importlib.import_module("importlib.metadata").entry_points
        installed = {item.name: item for item in entry_points(group=signal.group)}
        missing = [name for name in names if name not in installed]
        if missing:
            return None, (
                f"OpenTelemetry exports no {signal.noun}: the exporter {missing[0]!r} is not installed "
                f"(installed: {', '.join(sorted(installed)) or 'none'}). Fix: for http/protobuf, {INSTALL}"
            )
        return ExportPipeline([installed[name].load()() for name in names], environment, signal), None
    except ImportError as error:
        return None, f"OpenTelemetry is configured but cannot be loaded ({error}). Fix: {INSTALL}"
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return None, f"OpenTelemetry exports no {signal.noun} because of its settings: {reason}"


class _CountingExporter:
    def __init__(self, exporter: Any, results: Any) -> None:
        self._exporter = exporter
        self._results = results
        self._is_shut_down = False
        self.sent = 0
        self.failed = 0

    def export(self, spans: Sequence[Any]) -> Any:
        result = self._results.FAILURE
        try:
            result = self._exporter.export(spans)
        finally:
            if result.name == "SUCCESS":
                self.sent += len(spans)
            else:
                self.failed += len(spans)
        return result

    def shutdown(self) -> None:
        if not self._is_shut_down:
            self._is_shut_down = True
            self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return bool(self._exporter.force_flush(timeout_millis))


class Runner(Protocol):
    @property
    def max_concurrency(self) -> int | None: ...

    def run(
        self, slot: Any, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult | Awaitable[EvalResult]: ...


RunnerT = TypeVar("RunnerT", bound=Runner)
# A plan or setup of the engine: a dataclass with `evaluators` and `checks`.
SetupT = TypeVar("SetupT", bound=Any)


class RunObserver:
    """Observes one run inside its context.

    Spans go to the tracer provider of the program, or else to the exporters in OpenTelemetry's
    environment variables. Without either, nothing is observed.
    """

    def __init__(self, run: RunMetadata, environment: Mapping[str, str], *, for_other_runs: bool = False) -> None:
        self._run = run
        self._for_other_runs = for_other_runs
        self._environment = environment
        self._is_installed = False
        self._pipeline: ExportPipeline | None = None
        self._log_pipeline: ExportPipeline | None = None
        self._listener: SpanListener | None = None
        self._unobserved_trials = 0
        self._tracer: RunTracer | None = None
        self.late_spans = 0
        self.unreadable_spans = 0

    async def __aenter__(self) -> Self:
        self._is_installed = importlib.util.find_spec("opentelemetry") is not None
        self._find_provider()
        if self._tracer is None:
            self._pipeline, warning = build_pipeline(self._environment)
            if warning is not None:
                sessions.warn(warning)
            if self._pipeline is not None:
                self._start_tracer(self._pipeline.provider)
        self._find_events()
        return self

    def _find_events(self) -> None:
        """Look for the logger provider of the program, or else for exporters of log records in the environment."""
        provider = get_program_logger_provider()
        if provider is None and self._is_installed:
            self._log_pipeline, warning = build_pipeline(self._environment, LOGS)
            if warning is not None:
                sessions.warn(warning)
            provider = None if self._log_pipeline is None else self._log_pipeline.provider
        if provider is None:
            return
        if not EvaluationEvents.is_supported():
            sessions.warn(TOO_OLD)
            return
        if self._tracer is None:
            # Without a tracer provider, events have no span.
            self._start_tracer(importlib.import_module("opentelemetry.trace").NoOpTracerProvider())
        from proctor.sessions.telemetry.trial_recorder import SCOPE

        count = None if self._log_pipeline is None else self._log_pipeline.count_event
        cast("RunTracer", self._tracer).events = EvaluationEvents(provider, SCOPE, count)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._tracer is not None:
            self._tracer.close()
        if self._listener is not None:
            self._listener.drop_open_spans(self)
        for pipeline in (self._pipeline, self._log_pipeline):
            if pipeline is not None and (warning := await pipeline.close()) is not None:
                sessions.warn(warning)
        for warning in self._list_warnings():
            sessions.warn(warning)

    def make_runner(self, setup: SetupT, make: Callable[[SetupT], RunnerT]) -> RunnerT:
        """Make a runner for a plan or setup; it is observed as soon as there is something to report to."""
        unobserved = make(setup)
        if not self._is_installed:
            return unobserved
        return cast("RunnerT", _ObservedRunner(make(self.wrap_setup(setup)), unobserved, self))

    def wrap_evaluators(self, evaluators: Sequence[AttachedEvaluator]) -> tuple[AttachedEvaluator, ...]:
        return tuple(_ObservedEvaluator(item) if self._is_installed else item for item in evaluators)

    def wrap_setup(self, setup: SetupT) -> SetupT:
        """Return a plan or setup whose evaluators are observed, those of single samples included."""
        if not self._is_installed:
            return setup
        checks = setup.checks and _ObservedChecks(setup.checks, self)
        return dataclasses.replace(setup, evaluators=self.wrap_evaluators(setup.evaluators), checks=checks)

    def start_trial(self) -> tuple[TrialRecorder, RunTracer] | None:
        """Return the recorder and the tracer for a new trial; None if nothing is observed."""
        if self._listener is None and "opentelemetry.trace" in sys.modules:
            self._find_provider()
        if self._tracer is None:
            self._unobserved_trials += 1
            return None
        from proctor.sessions.telemetry.trial_recorder import TrialRecorder

        return TrialRecorder(self), self._tracer

    def _find_provider(self) -> None:
        """Look for the provider of the program, which may set it at any time."""
        provider = get_program_provider()
        if provider is not None:
            from proctor.sessions.telemetry.trial_recorder import get_listener

            self._listener = get_listener(provider)
            if self._tracer is None:
                self._start_tracer(provider)

    def _start_tracer(self, provider: Any) -> None:
        from proctor.sessions.telemetry.run_tracer import RunTracer

        self._tracer = RunTracer(provider, self._run, self._environment, for_other_runs=self._for_other_runs)

    def _list_warnings(self) -> Iterator[str]:
        if self.late_spans:
            spans = format_count(self.late_spans, "span")
            yield f"OpenTelemetry: sessions lack {spans} of model or tool calls that ended after the trial"
        if self.unreadable_spans:
            yield f"OpenTelemetry: {format_count(self.unreadable_spans, 'span')} could not be read"
        if self._unobserved_trials and self._listener is not None:
            trials = format_count(self._unobserved_trials, "trial")
            yield (
                f"OpenTelemetry was set up too late to observe {trials}. Fix: set it up when your module is imported"
            )


def observe_run(
    run: RunMetadata, environment: Mapping[str, str] = os.environ, *, for_other_runs: bool = False
) -> RunObserver:
    """Observe a run: `async with observe_run(run) as observer`, then wrap its runner and evaluators.

    With `for_other_runs` the trials belong to runs of other processes; `current_run_id` is the run of a trial.
    """
    return RunObserver(run, environment, for_other_runs=for_other_runs)


_current_trial: ContextVar[tuple[TrialRecorder, RunTracer] | None] = ContextVar("proctor_trial", default=None)


class _ObservedRunner:
    """Runs trials with observation, or with the unobserved runner until the program sets a provider."""

    def __init__(self, runner: Runner, unobserved: Runner, observer: RunObserver) -> None:
        self.max_concurrency = runner.max_concurrency
        self._run, self._run_unobserved = runner.run, unobserved.run
        self._observer = observer

    def run(
        self, slot: Any, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult | Awaitable[EvalResult]:
        # Not async: without observation a trial has no overhead.
        observation, run = self._observer.start_trial(), self._run_unobserved
        if observation is None:
            return run(slot, sample, configuration, epoch)
        return self._run_observed(observation, slot, sample, configuration, epoch)

    async def _run_observed(
        self,
        observation: tuple[TrialRecorder, RunTracer],
        slot: Any,
        sample: Sample[Any, Any],
        configuration: Configuration,
        epoch: int,
    ) -> EvalResult:
        from proctor.sessions.telemetry.trial_recorder import current_recorder

        recorder, tracer = observation
        with tracer.trace_trial(recorder, sample, configuration.name, epoch) as results:
            # No reset is needed after a failure: the next trial sets both, and a closed recorder ignores spans.
            current_recorder.set(recorder)
            _current_trial.set(observation)
            try:
                result = self._run(slot, sample, configuration, epoch)
                results.append(result if isinstance(result, EvalResult) else await result)
            finally:
                recorder.close()
        current_recorder.set(None)
        _current_trial.set(None)
        return results[0]


class _ObservedChecks:
    """The evaluators of single samples, observed."""

    def __init__(self, checks: SampleEvaluators, observer: RunObserver) -> None:
        self.specs, self.needs = checks.specs, checks.needs
        self._checks, self._observer = checks, observer

    def __call__(self, sample: Sample[Any, Any], /) -> tuple[AttachedEvaluator, ...]:
        return self._observer.wrap_evaluators(self._checks(sample))


class _ObservedEvaluator:
    """An evaluator whose scores are observed inside an observed trial."""

    def __init__(self, evaluator: AttachedEvaluator) -> None:
        self.spec = evaluator.spec
        self.mode = evaluator.mode
        self.needs = evaluator.needs
        self.group = evaluator.group
        self.is_builtin = evaluator.is_builtin
        self._score = evaluator.score
        if self.group is not None:
            parts = {name: _ObservedEvaluator(part) for name, part in self.group.parts.items()}
            self.group = self.group._replace(parts=parts)

    def score(self, trial: Trial) -> Any:
        observation, score = _current_trial.get(), self._score
        if observation is None:
            return score(trial)
        if self.mode == "async":
            return self._score_async(trial, *observation)
        with _observe_evaluation(self.spec, trial, *observation) as scores:
            scores.append(cast("Score", score(trial)))
        return scores[0]

    async def _score_async(self, trial: Trial, recorder: TrialRecorder, tracer: RunTracer) -> Score:
        with _observe_evaluation(self.spec, trial, recorder, tracer) as scores:
            scores.append(await cast("Awaitable[Score]", self._score(trial)))
        return scores[0]


@contextmanager
def _observe_evaluation(
    spec: EvaluatorSpec, trial: Trial, recorder: TrialRecorder, tracer: RunTracer
) -> Iterator[list[Score]]:
    """Record the calls of an evaluator in its separate session, if it has one."""
    session = sessions.current_session()
    if session is trial.session:
        session = None
    recorder.start_evaluation(session)
    try:
        with tracer.trace_evaluation(spec, recorder, session) as scores:
            yield scores
    finally:
        recorder.end_evaluation(session)
