"""A run, its trials, its evaluations and its calls as spans."""

from __future__ import annotations

import asyncio
import contextvars
import json
from typing import Any

import msgspec
import opentelemetry.trace as api
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from proctor import Sample, ask, record
from proctor.engine.rescore import RescorePlan
from proctor.errors import StopRun
from proctor.evaluators.bound_evaluator import attach
from proctor.records.run import EvaluatorSpec, RunOptions
from proctor.records.score import Score
from proctor.records.session import CustomEvent, Event, Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Configuration, Reply, Trial
from proctor.sessions.telemetry import observe_run
from proctor.sessions.telemetry.run_tracer import CAPTURE, CUT_MARK, MAX_LENGTH, as_text, build_call_spans
from proctor.testing import ModelServer
from tests.telemetry.observation import RUN, about, chat_span, id_of, named, observe, parent_of

OFF = {CAPTURE: "false"}


def same(output: Any, expected: Any) -> bool:
    return bool(output == expected)


async def slowly(output: Any, expected: Any) -> Score:
    await asyncio.sleep(0)
    return Score(0.5, False, "half of it")


def test_a_run_is_one_trace(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
    """The run above its trials, each above its evaluations."""
    watched = observe(lambda text: text.upper(), ["PARIS", "rome"], [same, slowly])
    (root,) = named(exported, "proctor run capitals")
    trials = named(exported, "proctor trial")
    assert [parent_of(trial) for trial in trials] == [id_of(root)] * 2
    assert parent_of(root) is None
    for name in ("evaluate same", "evaluate slowly"):
        assert {parent_of(span) for span in named(exported, name)} == {id_of(t) for t in trials}
    assert watched.warnings == []
    assert {about(span)["session.id"] for span in exported.get_finished_spans()} == {"run-1"}
    attributes = about(root)
    assert (attributes["proctor.run.id"], attributes["proctor.tag.team"]) == ("run-1", "blue")
    assert (attributes["proctor.trials"], attributes["proctor.outcome.failed"]) == (2, 2)
    assert "proctor.rescored_from" not in attributes


def test_the_span_of_a_trial_has_its_input_and_output(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
    """Input, output, outcome, score and latency, in attributes that backends read."""
    observe(lambda given: given["city"], [{"city": "Paris"}], [lambda output, _: output == "Paris"])
    (trial,) = named(exported, "proctor trial")
    attributes = about(trial)
    assert attributes.pop("proctor.latency_ms") >= 0
    assert attributes == {
        "openinference.span.kind": "CHAIN",
        "session.id": "run-1",
        "proctor.run.id": "run-1",
        "proctor.sample.id": "s0",
        "proctor.configuration": "default",
        "proctor.epoch": 0,
        "proctor.outcome": "passed",
        "proctor.score": 1.0,
        "proctor.attempts": 1,
        "proctor.cached": False,
        "input.value": '{"city":"Paris"}',
        "input.mime_type": "application/json",
        "output.value": "Paris",
        "output.mime_type": "text/plain",
    }
    assert trial.status.status_code is api.StatusCode.UNSET


def test_an_evaluation_follows_the_conventions(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
    """Name, value, label and explanation of a score; one that could not be given has no value."""

    def broken(output: Any, expected: Any) -> bool:
        raise ValueError("no idea")

    def silent(output: Any, expected: Any) -> Score:
        return Score.skipped("nothing to say")

    observe(lambda text: text, ["a"], [slowly, same, broken, silent])
    attributes = {span.name: about(span) for span in exported.get_finished_spans()}
    half = attributes["evaluate slowly"]
    assert half["gen_ai.evaluation.name"] == "slowly"
    assert half["gen_ai.evaluation.score.value"] == 0.5
    assert half["gen_ai.evaluation.score.label"] == "fail"
    assert half["gen_ai.evaluation.explanation"] == "half of it"
    assert half["openinference.span.kind"] == "EVALUATOR"
    assert attributes["evaluate same"]["gen_ai.evaluation.score.label"] == "pass"
    assert attributes["evaluate silent"]["gen_ai.evaluation.score.label"] == "skipped"
    failed = attributes["evaluate broken"]
    assert failed["gen_ai.evaluation.score.label"] == "error"
    assert failed["error.type"] == "evaluation_failed"
    assert "gen_ai.evaluation.score.value" not in failed
    (span,) = named(exported, "evaluate broken")
    assert span.status.status_code is api.StatusCode.ERROR
    assert "no idea" in str(span.status.description)
    assert named(exported, "evaluate silent")[0].status.status_code is api.StatusCode.UNSET


def test_a_failed_trial_has_an_error_and_its_exception(
    provider: TracerProvider, exported: InMemorySpanExporter
) -> None:
    """The status, the kind of the error, and where it was raised."""

    def agent(text: str) -> str:
        raise KeyError("city")

    observe(agent, ["a"], [same])
    (trial,) = named(exported, "proctor trial")
    assert trial.status.status_code is api.StatusCode.ERROR
    assert about(trial)["error.type"] == "KeyError"
    assert about(trial)["proctor.outcome"] == "error"
    assert "output.value" not in about(trial)
    (event,) = trial.events
    assert event.name == "exception"
    assert "agent" in str((event.attributes or {})["exception.stacktrace"])
    assert named(exported, "evaluate same") == []


def test_spans_of_the_program_are_children_of_their_trial_and_evaluation(
    provider: TracerProvider, exported: InMemorySpanExporter
) -> None:
    """Async targets, evaluators in threads and in tasks."""

    async def agent(text: str) -> str:
        with api.get_tracer("app").start_as_current_span("in target"):
            await asyncio.sleep(0)
        return text

    def blocking(output: Any, expected: Any) -> bool:
        with api.get_tracer("app").start_as_current_span("in thread"):
            return True

    async def waiting(output: Any, expected: Any) -> bool:
        with api.get_tracer("app").start_as_current_span("in task"):
            await asyncio.sleep(0)
        return True

    observe(agent, ["a", "b", "c"], [blocking, waiting])
    for inner, outer in (
        ("in target", "proctor trial"),
        ("in thread", "evaluate blocking"),
        ("in task", "evaluate waiting"),
    ):
        parents = sorted(parent_of(span) or 0 for span in named(exported, inner))
        assert parents == sorted(id_of(span) for span in named(exported, outer))


def test_a_run_is_a_child_of_its_callers_span(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
    """A pipeline that is traced shows its evaluations."""
    with api.get_tracer("pipeline").start_as_current_span("nightly") as nightly:
        observe(lambda text: text)
    (root,) = named(exported, "proctor run capitals")
    assert parent_of(root) == nightly.get_span_context().span_id


def test_contents_can_be_omitted(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
    """No input, output, explanation, argument, result or message leaves the program."""

    def agent(text: str) -> str:
        record(Message("user", "secret"))
        record(ModelCall("small"))
        record(ToolCall("search", {"q": "secret"}, "secret"))
        return text

    def judge(output: Any, expected: Any) -> Score:
        return Score(1.0, True, "secret")

    def broken(output: Any, expected: Any) -> Score:
        return Score.error("secret")

    observe(agent, ["secret"], [judge, broken], environment=OFF)
    spans = exported.get_finished_spans()
    assert len(spans) == 6
    assert "secret" not in "".join(span.to_json() for span in spans)


def test_long_contents_are_cut(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
    """Backends drop spans of megabytes."""
    observe(lambda text: text, ["x" * 100_000])
    value = about(named(exported, "proctor trial")[0])["input.value"]
    assert len(value) == MAX_LENGTH
    assert value.endswith(CUT_MARK)


def test_values_that_json_cannot_represent_are_described() -> None:
    """A span is no reason to fail."""
    endless: list[Any] = []
    endless.append(endless)
    assert as_text(endless) == '"(list, which cannot be written)"'


def test_model_calls_are_spans_of_the_trial(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
    """A call through our own adapter is a chat span with its messages and usage."""
    with ModelServer(answer=lambda asked: "Paris") as server:
        model = {"model": "openai:small", "base_url": server.url + "/v1", "api_key": "none"}

        def agent(question: str) -> str:
            return ask(model, question).text

        observe(agent, ["Capital of France?"])
    (call,) = [s for s in exported.get_finished_spans() if s.name.startswith("chat ")]
    (trial,) = named(exported, "proctor trial")
    attributes = about(call)
    assert parent_of(call) == id_of(trial)
    assert call.kind is api.SpanKind.CLIENT
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.request.model"].endswith("small")
    assert attributes["gen_ai.usage.input_tokens"] > 0
    assert json.loads(attributes["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Capital of France?"}]}
    ]
    assert json.loads(attributes["gen_ai.output.messages"])[0]["parts"][0]["content"] == "Paris"
    assert trial.start_time is not None
    assert call.start_time is not None
    assert abs(call.start_time - trial.start_time) < 1e9


def test_calls_recorded_from_spans_are_not_emitted_again(
    provider: TracerProvider, exported: InMemorySpanExporter
) -> None:
    """An instrumented call is in the trace already; one recorded by hand is not."""

    def agent(question: str) -> str:
        with chat_span(question, "yes"):
            pass
        record(ToolCall("by hand", {"n": 1}, "done", duration_ms=1.0, call_id="c1"))
        return question

    async def judge(output: Any, expected: Any) -> bool:
        with chat_span("Right?", "yes"):
            await asyncio.sleep(0)
        record(ModelCall("openai:judge", Usage(3, 1), 2.0))
        record(ModelCall("openai:judge", details={"error": "no route"}))
        return True

    observe(agent, ["a"], [judge])
    assert len(named(exported, "chat small")) == 2
    (tool,) = named(exported, "execute_tool by hand")
    assert about(tool)["gen_ai.tool.call.arguments"] == '{"n":1}'
    assert about(tool)["gen_ai.tool.call.result"] == '"done"'
    assert about(tool)["gen_ai.tool.call.id"] == "c1"
    own, failed = named(exported, "chat openai:judge")
    assert parent_of(own) == id_of(named(exported, "evaluate judge")[0])
    assert about(own)["gen_ai.provider.name"] == "openai"
    assert failed.status.description == "no route"
    assert about(own)["gen_ai.usage.output_tokens"] == 1


def test_our_own_spans_are_not_recorded(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
    """The span of a judge's call does not come back as another call."""

    async def judge(output: Any, expected: Any) -> bool:
        record(ModelCall("judge", Usage(3, 1)))
        return True

    watched = observe(lambda text: text, ["a"], [judge])
    assert list(watched.results[0].sessions["judge"]) == [ModelCall("judge", Usage(3, 1))]


def test_calls_of_an_earlier_run_are_not_emitted(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
    """Rescoring does not repeat the calls of its sessions."""

    def agent(text: str) -> Reply:
        return Reply(text, session=Session([ModelCall("small")]))

    observe(agent, run=msgspec.structs.replace(RUN, rescored_from="run-0"))
    assert named(exported, "chat small") == []
    assert about(named(exported, "proctor run capitals")[0])["proctor.rescored_from"] == "run-0"
    observe(agent)
    assert len(named(exported, "chat small")) == 1


def test_calls_follow_each_other_if_the_time_allows() -> None:
    """A session knows how long a call took, not when it began."""
    events: list[Event] = [
        Message("system", "Be brief."),
        ModelCall("small", latency_ms=2.0),
        CustomEvent("note", 1),
        ToolCall("search", duration_ms=3.0, error="down"),
        ModelCall("small", details={"error": "no route"}),
    ]
    in_turn = list(build_call_spans(events, 1_000, 10_000_000, with_content=False))
    assert [(call.start, call.end) for call in in_turn] == [
        (1_000, 2_001_000),
        (2_001_000, 5_001_000),
        (5_001_000, 5_001_000),
    ]
    assert [call.error for call in in_turn] == [None, "down", "no route"]
    assert [call.attributes.get("error.type") for call in in_turn] == [None, "tool_failed", "call_failed"]
    together = list(build_call_spans(events, 1_000, 4_000_000, with_content=False))
    assert [call.start for call in together] == [1_000, 1_000, 1_000]


def test_messages_are_emitted_by_the_conventions() -> None:
    """Tool calls and results are parts; a call has the messages since the one before."""
    asked = ToolCall("search", {"q": "Paris"}, call_id="c1")
    events: list[Event] = [
        Message("user", ["a", "picture"]),
        Message("assistant", "", tool_calls=(asked,)),
        ModelCall("small"),
        Message("tool", "found", call_id="c1"),
        ModelCall("small", details={"operation": "embeddings"}),
    ]
    first, second = build_call_spans(events, 0, 0, with_content=True)
    assert json.loads(first.attributes["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": '["a","picture"]'}]}
    ]
    call = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "Paris"}}
    assert json.loads(first.attributes["gen_ai.output.messages"]) == [{"role": "assistant", "parts": [call]}]
    result = {"type": "tool_call_response", "id": "c1", "response": "found"}
    assert json.loads(second.attributes["gen_ai.input.messages"]) == [{"role": "tool", "parts": [result]}]
    assert second.name == "embeddings small"
    endless: list[Any] = []
    endless.append(endless)
    (tool,) = build_call_spans([ToolCall("odd", result=endless)], 0, 0, with_content=True)
    assert tool.attributes["gen_ai.tool.call.result"] == '"(list, which cannot be written)"'


def test_an_exception_that_stops_a_run_is_recorded_and_raised(
    provider: TracerProvider, exported: InMemorySpanExporter
) -> None:
    """An exhausted budget is no result, but the span has its error."""

    def agent(text: str) -> str:
        raise StopRun("the budget is used up", fix="raise it")

    with pytest.raises(StopRun):
        observe(agent)
    (trial,) = named(exported, "proctor trial")
    assert trial.status.status_code is api.StatusCode.ERROR
    assert about(trial)["error.type"] == "StopRun"
    assert len(named(exported, "proctor run capitals")) == 1


def test_an_abandoned_trial_has_a_span(provider: TracerProvider, exported: InMemorySpanExporter) -> None:
    """A worker that never comes back ends with the run, as an error."""

    class Stuck:
        max_concurrency = 7

        async def run(self, *asked: Any) -> Any:
            await asyncio.Event().wait()

    async def work() -> None:
        async with observe_run(RUN, {}) as observed:
            runner = observed.make_runner(RescorePlan(()), lambda _setup: Stuck())
            assert runner.max_concurrency == 7
            stuck = asyncio.create_task(runner.run(None, Sample("s0", "a"), Configuration(), 0))
            await asyncio.sleep(0)
        stuck.cancel()
        await asyncio.wait({stuck})

    asyncio.run(work())
    (trial,) = named(exported, "proctor trial")
    assert about(trial)["error.type"] == "TimeoutError"


def test_a_trial_that_is_dropped_with_its_loop_ends_its_span(
    provider: TracerProvider, exported: InMemorySpanExporter
) -> None:
    """Dropping it in another context leaves that context unchanged."""

    class Waiting:
        max_concurrency = None

        async def run(self, *asked: Any) -> Any:
            await asyncio.sleep(30)

    async def work() -> None:
        async with observe_run(RUN, {}) as observed:
            runner = observed.make_runner(RescorePlan(()), lambda _setup: Waiting())
            dropped = runner.run(None, Sample("s0", "a"), Configuration(), 0)
            contextvars.copy_context().run(dropped.send, None)
            dropped.close()
            assert not api.get_current_span().get_span_context().is_valid

    asyncio.run(work())
    assert len(named(exported, "proctor trial")) == 1


def test_an_evaluator_that_is_cancelled_leaves_an_error(
    provider: TracerProvider, exported: InMemorySpanExporter
) -> None:
    """One that takes too long is cut off by the engine; its span is not left open."""

    async def endless(output: Any, expected: Any) -> bool:
        await asyncio.sleep(30)
        return True

    watched = observe(lambda text: text, ["a"], [endless], options=RunOptions(evaluator_timeout=0.05))
    assert watched.results[0].scores["endless"].status == "error"
    (span,) = named(exported, "evaluate endless")
    assert about(span)["error.type"] == "CancelledError"


def test_wrapped_evaluators_keep_their_attributes(provider: TracerProvider) -> None:
    """The engine sees the same name, parameters and mode; outside of a trial nothing is added."""

    async def work() -> None:
        async with observe_run(RUN, {}) as observed:
            (wrapped,) = observed.wrap_evaluators([attach(same)])
            assert isinstance(wrapped.spec, EvaluatorSpec)
            assert (wrapped.spec.name, wrapped.mode) == ("same", attach(same).mode)
            score = wrapped.score(Trial(Sample("s", "a", "a"), "a"))
            assert isinstance(score, Score)
            assert score.passed

    asyncio.run(work())


def test_unsampled_runs_cost_no_spans(exported: InMemorySpanExporter) -> None:
    """A program that samples away all its traces is left in peace."""
    api.set_tracer_provider(TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False))
    watched = observe(lambda text: text, ["a"] * 50, [same])
    assert all(result.passed for result in watched.results)
    assert watched.warnings == []
    assert exported.get_finished_spans() == ()
