"""Runs under observation, with the engine's own trials, and what instrumented clients emit."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import opentelemetry.trace as api
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from proctor import Sample
from proctor.core.clock import SystemClock
from proctor.core.threads import CallThreads
from proctor.engine.plan import Setup
from proctor.engine.progress import Progress
from proctor.engine.timeouts import WorkerSlot
from proctor.engine.trial import TrialRunner
from proctor.evaluators.bound_evaluator import attach
from proctor.records.run import RunMetadata, RunOptions
from proctor.records.session import Event
from proctor.records.trial import Configuration, EvalResult
from proctor.sessions import current as sessions
from proctor.sessions.telemetry import observe_run
from proctor.targets.resolve import as_target

RUN = RunMetadata("run-1", "capitals", datetime(2026, 1, 1, tzinfo=UTC), tags={"team": "blue"})

OPTIONS = RunOptions()


class Watched(NamedTuple):
    """What came of a run, and what it had to warn of."""

    results: list[EvalResult]
    warnings: list[str]

    @property
    def events(self) -> list[Event]:
        """The session of the only trial."""
        (result,) = self.results
        return [] if result.trial.session is None else list(result.trial.session)


def observe(
    target: Any,
    inputs: Sequence[Any] = ("Paris",),
    evaluators: Sequence[Any] = (),
    *,
    environment: Mapping[str, str] | None = None,
    concurrency: int = 8,
    options: RunOptions = OPTIONS,
    run: RunMetadata = RUN,
) -> Watched:
    """Run a target on inputs and score it, with the trials of the engine."""
    samples = [Sample(f"s{number}", value, value) for number, value in enumerate(inputs)]
    attached = tuple(attach(evaluator) for evaluator in evaluators)
    warnings: list[str] = []

    async def work() -> list[EvalResult]:
        sessions.warnings.set(warnings)
        clock, threads = SystemClock(), CallThreads()
        progress = Progress(run.run_id, clock, total=None)
        limit = asyncio.Semaphore(concurrency)
        async with observe_run(run, environment or {}) as observed:
            setup = Setup(target=as_target(target), evaluators=attached, options=options)
            runner = observed.make_runner(setup, lambda setup: TrialRunner(setup, clock, threads, progress))
            assert runner.max_concurrency is None

            async def run_one(sample: Sample[Any, Any]) -> EvalResult:
                async with limit:
                    slot = WorkerSlot()
                    slot.task = asyncio.current_task()
                    result = runner.run(slot, sample, Configuration(), 0)
                    return result if isinstance(result, EvalResult) else await result

            results = await asyncio.gather(*map(run_one, samples))
        threads.close()
        return results

    return Watched(asyncio.run(asyncio.wait_for(work(), 30)), warnings)


@contextlib.contextmanager
def chat_span(
    question: Any,
    answer: str,
    *,
    history: Sequence[dict[str, Any]] = (),
    tokens: tuple[int, int] = (10, 2),
    scope: str = "an.instrumentation",
) -> Iterator[api.Span]:
    """What an instrumented client of a model emits around a call."""
    asked = [*history, {"role": "user", "parts": [{"type": "text", "content": question}]}]
    messages = [{"role": "assistant", "parts": [{"type": "text", "content": answer}]}]
    with api.get_tracer(scope).start_as_current_span("chat small", kind=api.SpanKind.CLIENT) as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.provider.name", "openai")
        span.set_attribute("gen_ai.request.model", "small")
        yield span
        span.set_attribute("gen_ai.usage.input_tokens", tokens[0])
        span.set_attribute("gen_ai.usage.output_tokens", tokens[1])
        span.set_attribute("gen_ai.input.messages", json.dumps(asked))
        span.set_attribute("gen_ai.output.messages", json.dumps(messages))
        span.set_attribute("gen_ai.response.finish_reasons", ["stop"])


@contextlib.contextmanager
def tool_span(name: str, arguments: Mapping[str, Any], result: Any = None) -> Iterator[api.Span]:
    """What an instrumented framework emits around a tool."""
    with api.get_tracer("a.framework").start_as_current_span(f"execute_tool {name}") as span:
        span.set_attribute("gen_ai.operation.name", "execute_tool")
        span.set_attribute("gen_ai.tool.name", name)
        span.set_attribute("gen_ai.tool.call.arguments", json.dumps(arguments))
        yield span
        span.set_attribute("gen_ai.tool.call.result", json.dumps(result))


def named(exported: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    """The spans of a name that have left the program."""
    return [span for span in exported.get_finished_spans() if span.name == name]


def about(span: ReadableSpan) -> dict[str, Any]:
    """The attributes of a span."""
    return dict(span.attributes or {})


def parent_of(span: ReadableSpan) -> int | None:
    """The id of the span above."""
    return None if span.parent is None else span.parent.span_id


def id_of(span: ReadableSpan) -> int:
    """The id of a span."""
    context = span.get_span_context()
    assert context is not None
    return context.span_id
