"""Spans of the program land in the session of the trial in which they began."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import openai
import opentelemetry.trace as api
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from proctor import record, token_usage_under, tool_called
from proctor.records.run import RunOptions
from proctor.records.score import Score
from proctor.records.session import Message, ModelCall, SessionView, ToolCall, Usage
from proctor.sessions.telemetry.trial_recorder import get_listener
from proctor.testing import ModelServer
from tests.telemetry.conftest import provider_to
from tests.telemetry.observation import chat_span, observe, tool_span


def durationless(events: list[Any]) -> list[Any]:
    """The same without durations."""
    clocks = {"ModelCall": "latency_ms", "ToolCall": "duration_ms"}
    return [
        msgspec.structs.replace(event, **{clocks[name]: None}) if name in clocks else event
        for event in events
        for name in [type(event).__name__]
    ]


def test_an_instrumented_agent_needs_no_change(provider: TracerProvider) -> None:
    """A chat, a tool, and a chat that repeats the first: each message is there once."""

    def agent(question: str) -> str:
        with chat_span(question, "Let me look."):
            pass
        with tool_span("search", {"q": question}, {"found": 3}):
            pass
        history = [
            {"role": "user", "parts": [{"type": "text", "content": question}]},
            {"role": "assistant", "parts": [{"type": "text", "content": "Let me look."}]},
        ]
        with chat_span("Found it?", "Yes.", history=history):
            pass
        return "Yes."

    watched = observe(agent, ["Paris?"], [tool_called("search"), token_usage_under(30)])
    called = ModelCall("small", Usage(10, 2), None, "stop")
    assert durationless(watched.events) == [
        Message("user", "Paris?"),
        Message("assistant", "Let me look."),
        called,
        ToolCall("search", {"q": "Paris?"}, {"found": 3}),
        Message("user", "Found it?"),
        Message("assistant", "Yes."),
        called,
    ]
    (result,) = watched.results
    assert result.trial.usage == Usage(20, 4)
    assert all(score.passed for score in result.scores.values())
    assert watched.warnings == []
    calls = [event for event in watched.events if isinstance(event, ModelCall)]
    assert all(call.latency_ms is not None and call.latency_ms >= 0 for call in calls)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(answer=lambda asked: f"You said {asked.messages[-1].content}") as running:
        yield running


def test_the_openai_sdk_with_an_instrumentation(provider: TracerProvider, server: ModelServer) -> None:
    """The real client against a server, in the spans that its instrumentation makes of a call."""
    client = openai.OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)

    def agent(question: str) -> str:
        with api.get_tracer("instrumented").start_as_current_span("chat small") as span:
            answer = client.chat.completions.create(model="small", messages=[{"role": "user", "content": question}])
            text = answer.choices[0].message.content or ""
            assert answer.usage is not None
            span.set_attributes(
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.request.model": "small",
                    "gen_ai.response.model": answer.model,
                    "gen_ai.usage.input_tokens": answer.usage.prompt_tokens,
                    "gen_ai.usage.output_tokens": answer.usage.completion_tokens,
                }
            )
            span.add_event("gen_ai.user.message", {"content": question})
            message = json.dumps({"role": "assistant", "content": text})
            span.add_event("gen_ai.choice", {"index": 0, "message": message})
        return text

    with client:
        watched = observe(agent, [f"number {i}" for i in range(6)])
    for number, result in enumerate(watched.results):
        assert result.trial.session is not None
        assert result.trial.session[Message] == (
            Message("user", f"number {number}"),
            Message("assistant", f"You said number {number}"),
        )
        assert result.trial.session.usage.total_tokens


async def in_a_task(question: str) -> None:
    async def ask() -> None:
        with chat_span(question, "yes"):
            await asyncio.sleep(0)

    await asyncio.gather(ask(), asyncio.create_task(ask()))


async def in_a_thread(question: str) -> None:
    def ask() -> None:
        with chat_span(question, "yes"):
            pass

    await asyncio.gather(asyncio.to_thread(ask), asyncio.to_thread(ask))


def in_an_executor(question: str) -> None:
    """A blocking target, which the engine calls in a thread, and threads that it starts."""

    def ask() -> None:
        with chat_span(question, "yes"):
            pass

    with ThreadPoolExecutor(2) as pool:
        for _ in range(2):
            pool.submit(contextvars.copy_context().run, ask)


@pytest.mark.parametrize("target", [in_a_task, in_a_thread, in_an_executor])
def test_each_span_is_recorded_in_its_trial(provider: TracerProvider, target: Any) -> None:
    """Tasks and threads of concurrent trials: each session has its own two calls."""
    watched = observe(target, [f"question {number}" for number in range(24)])
    for number, result in enumerate(watched.results):
        assert result.trial.session is not None
        assert len(result.trial.session[ModelCall]) == 2
        asked = {m.content for m in result.trial.session[Message] if m.role == "user"}
        assert asked == {f"question {number}"}


@given(st.lists(st.integers(0, 2), min_size=1, max_size=30))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_spans_of_concurrent_trials_are_not_mixed(provider: TracerProvider, turns: list[int]) -> None:
    """Three trials open and close spans in any order: each session has its own, in order."""
    calls = {number: turns.count(number) for number in range(3)}
    order = iter(turns)
    turn: dict[str, Any] = {"next": next(order, None)}

    async def agent(mine: int, gate: asyncio.Condition) -> None:
        for call in range(calls[mine]):
            async with gate:
                await gate.wait_for(lambda: turn["next"] == mine)
            with chat_span(f"{mine}.{call}", "yes"):
                async with gate:
                    turn["next"] = next(order, None)
                    gate.notify_all()
                # Others begin and end theirs meanwhile.
                await asyncio.sleep(0)

    gates: list[asyncio.Condition] = []

    async def target(mine: int) -> None:
        if not gates:
            gates.append(asyncio.Condition())
        await agent(mine, gates[0])

    watched = observe(target, [0, 1, 2])
    for number, result in enumerate(watched.results):
        events = [] if result.trial.session is None else list(result.trial.session)
        asked = [e.content for e in events if isinstance(e, Message) and e.role == "user"]
        assert sorted(asked) == sorted(f"{number}.{call}" for call in range(calls[number]))


def test_a_failed_call_is_in_the_session(provider: TracerProvider) -> None:
    """With the message of the exception, and the trial fails as usual."""

    def agent(question: str) -> str:
        with chat_span(question, ""):
            raise ConnectionError("no route")

    watched = observe(agent)
    (call,) = watched.events
    assert isinstance(call, ModelCall)
    assert "no route" in call.details["error"]
    assert watched.results[0].error == "ConnectionError: no route"


def test_an_error_without_a_message_has_that_of_its_exception(provider: TracerProvider) -> None:
    """A status without a description uses the exception event."""

    def agent(question: str) -> str:
        with tool_span("search", {}) as span:
            span.record_exception(OSError("disk"))
            span.set_status(api.StatusCode.ERROR)
        return question

    (call,) = observe(agent).events
    assert isinstance(call, ToolCall)
    assert call.error == "disk"


def test_a_span_that_ends_after_its_trial_is_counted_and_not_recorded(provider: TracerProvider) -> None:
    """A scored session does not change; the report has one warning."""
    lingering: list[api.Span] = []

    def agent(question: str) -> str:
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "small"}
        lingering.append(api.get_tracer("x").start_span("chat small", attributes=attributes))
        return question

    def end_them(output: Any, expected: Any) -> bool:
        lingering.pop().end()
        return True

    watched = observe(agent, ["a", "b"], [end_them], concurrency=1)
    assert [result.trial.session for result in watched.results] == [None, None]
    assert all(result.passed for result in watched.results)
    (warning,) = watched.warnings
    assert warning == "OpenTelemetry: sessions lack 2 spans of model or tool calls that ended after the trial"


def test_a_thread_that_outlives_its_trial_is_not_recorded(provider: TracerProvider) -> None:
    """A target that was given up goes on in its thread; what it does then is too late."""
    go_on, done = threading.Event(), threading.Event()

    def agent(question: str) -> str:
        go_on.wait(10)
        with chat_span(question, "too late"):
            pass
        done.set()
        return question

    async def quick(question: str) -> str:
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(agent, question), daemon=True).start()
        return question

    def release(output: Any, expected: Any) -> bool:
        go_on.set()
        return done.wait(10)

    watched = observe(quick, ["a"], [release])
    assert watched.results[0].trial.session is None
    assert "sessions lack 1 span of model or tool calls" in watched.warnings[0]


def test_calls_of_a_judge_are_in_its_own_session(provider: TracerProvider) -> None:
    """An instrumented evaluator has its own session."""

    async def judge(output: Any, expected: Any) -> bool:
        with chat_span("Is it right?", "yes"):
            await asyncio.sleep(0)
        return True

    watched = observe(lambda question: question, ["a"], [judge])
    (result,) = watched.results
    assert result.trial.session is None
    assert result.sessions["judge"][Message][0] == Message("user", "Is it right?")
    assert result.judging == Usage(10, 2)


def test_a_framework_around_a_client_does_not_count_twice(provider: TracerProvider) -> None:
    """Two instrumentations describe one call: the inner span is recorded."""

    def agent(question: str) -> str:
        with chat_span(question, "yes", scope="framework"), chat_span(question, "yes"):
            pass
        outer, inner = tool_span("search", {"q": 1}, "x"), tool_span("search", {"q": 1}, "x")
        with outer, inner, tool_span("open", {}, "y"):
            pass
        return question

    events = observe(agent).events
    assert [type(event).__name__ for event in events].count("ModelCall") == 1
    tools = [event.name for event in events if isinstance(event, ToolCall)]
    assert tools == ["open", "search"]


def test_the_outer_span_adds_messages_that_the_inner_one_lacks(provider: TracerProvider) -> None:
    """Contents may be captured by only one of two instrumentations."""

    def agent(question: str) -> str:
        client = api.get_tracer("client")
        with chat_span(question, "yes"), client.start_as_current_span("chat small") as inner:
            inner.set_attribute("gen_ai.operation.name", "chat")
            inner.set_attribute("gen_ai.usage.input_tokens", 7)
        return question

    events = observe(agent).events
    assert [type(event).__name__ for event in events] == ["ModelCall", "Message", "Message"]
    assert isinstance(events[0], ModelCall)
    assert events[0].usage == Usage(7)


def test_agents_and_requests_are_not_events(provider: TracerProvider) -> None:
    """Only calls of models and tools are; what is around them would count them twice."""

    def agent(question: str) -> str:
        tracer = api.get_tracer("framework")
        with tracer.start_as_current_span("invoke_agent") as span:
            span.set_attribute("gen_ai.operation.name", "invoke_agent")
            span.set_attribute("gen_ai.usage.input_tokens", 99)
            with tracer.start_as_current_span("POST"):
                pass
        return question

    watched = observe(agent)
    assert (watched.events, watched.warnings) == ([], [])


def test_recorded_events_and_spans_are_in_order(provider: TracerProvider) -> None:
    """A program may record by hand and be instrumented too."""

    def agent(question: str) -> str:
        record(ToolCall("by hand"))
        with tool_span("by span", {}):
            pass
        record(ToolCall("by hand again"))
        return question

    names = [event.name for event in observe(agent).events if isinstance(event, ToolCall)]
    assert names == ["by hand", "by span", "by hand again"]


def test_spans_outside_of_a_run_are_ignored(provider: TracerProvider) -> None:
    """The provider keeps one processor, which does nothing between runs."""
    observe(lambda question: question)
    with chat_span("hello", "hi"):
        pass
    observe(lambda question: question)
    assert get_listener(provider) is get_listener(provider)
    processors = provider._active_span_processor._span_processors
    assert sum(type(processor).__name__ == "SpanListener" for processor in processors) == 1
    assert provider.force_flush()


def test_open_spans_are_dropped_with_the_run(provider: TracerProvider) -> None:
    """A program that leaks spans does not make ours leak."""

    def agent(question: str) -> str:
        api.get_tracer("leaky").start_span("never ended")
        return question

    observe(agent, list("abc"))
    assert get_listener(provider)._open == {}


def test_a_provider_may_be_set_by_the_first_call(exported: InMemorySpanExporter) -> None:
    """Later trials are observed, and the report says how many were not."""

    def agent(question: str) -> str:
        if not isinstance(api.get_tracer_provider(), TracerProvider):
            api.set_tracer_provider(provider_to(exported))
        with chat_span(question, "yes"):
            pass
        return question

    watched = observe(agent, list("abc"), concurrency=1)
    recorded = [result.trial.session is not None for result in watched.results]
    assert recorded == [False, True, True]
    (warning,) = watched.warnings
    assert warning == (
        "OpenTelemetry was set up too late to observe 1 trial. Fix: set it up when your module is imported"
    )


def test_an_unreadable_span_is_counted(provider: TracerProvider) -> None:
    """An error while reading a span does not reach the program."""

    def agent(question: str) -> str:
        with chat_span(question, "yes") as span:
            # Not what the SDK promises: a status that is none.
            span._status = None  # type: ignore[attr-defined]
        return question

    watched = observe(agent)
    assert watched.results[0].success
    assert watched.warnings == ["OpenTelemetry: 1 span could not be read"]


def test_usage_includes_all_attempts(provider: TracerProvider) -> None:
    """A trial that was tried again has paid for both."""
    tries: list[str] = []

    def agent(question: str) -> str:
        tries.append(question)
        with chat_span(question, "yes"):
            pass
        if len(tries) == 1:
            raise ConnectionResetError("again")
        return question

    watched = observe(agent, options=RunOptions(retries=1, retry_delay=0.0))
    assert watched.results[0].trial.usage == Usage(20, 4)
    assert len([event for event in watched.events if isinstance(event, ModelCall)]) == 1


def test_evaluators_see_the_recorded_spans(provider: TracerProvider) -> None:
    """The session is complete when the first evaluator runs."""

    def agent(question: str) -> str:
        with chat_span(question, "yes"):
            pass
        return question

    def counts(output: Any, expected: Any, session: SessionView) -> Score:
        return Score(1.0, len(session[ModelCall]) == 1 and len(session[Message]) == 2)

    assert observe(agent, list("abc"), [counts]).results[2].passed
