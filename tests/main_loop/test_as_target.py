"""A main loop as a target: runs, session evaluators, threads, the cache."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from proctor import (
    Budget,
    MarkdownSection,
    ModelCall,
    Prompt,
    PromptTemplate,
    Sample,
    Session,
    ToolCall,
    Usage,
    all_of,
    all_tools_succeeded,
    contains,
    evaluate,
    exact_match,
    token_usage_under,
    tool_called,
    tool_sequence,
)
from proctor.errors import RunStopped
from proctor.targets.main_loop.bus import EventBus, LoopEnded, ToolInvoked
from proctor.targets.main_loop.loop import MainLoop
from proctor.targets.main_loop.tools import tool
from proctor.targets.resolve import as_target
from proctor.testing import Fault, RecordedRequest, ScriptedReply
from tests.main_loop.scripted import WIRES, QALoop, calls, says
from tests.servers.model_server import ModelServer


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def arithmetic(asked: RecordedRequest) -> ScriptedReply:
    """Call `add` for "What is 2 + 3?", then answer with its result."""
    results = [each.content for each in asked.messages if each.role == "tool"]
    if results:
        found = results[-1]
        return says(str(found["result"] if isinstance(found, dict) else found))
    words = next(each.content for each in asked.messages if each.role == "user").split()
    left, right = int(words[-3]), int(words[-1].rstrip("?"))
    return calls(ToolCall("add", {"a": left, "b": right}, call_id="c"))


SAMPLES = [Sample(str(i), f"What is {a} + {b}?", str(a + b)) for i, (a, b) in enumerate([(1, 1), (2, 3), (10, 20)])]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(arithmetic) as running:
        yield running


@pytest.mark.parametrize("wire", list(WIRES))
def test_evaluators_see_tools_and_usage_of_a_loop(wire: str, server: ModelServer) -> None:
    """24 tokens each; every event and all usage are counted once."""
    loop = QALoop(adapter=WIRES[wire](server), tools=[add])
    checks = {
        "right": exact_match,
        "by_tool": all_of(tool_called("add"), all_tools_succeeded()),
        "thrifty": token_usage_under(24),
        "too_thrifty": token_usage_under(23),
        "as_planned": tool_sequence(["add"], mode="exact"),
    }
    report = evaluate(loop, SAMPLES, checks)
    for result in report.results:
        passed = {name: score.passed for name, score in result.scores.items()}
        assert passed == {**dict.fromkeys(checks, True), "too_thrifty": False}
        session = result.trial.session
        assert session is not None
        assert [type(event).__name__ for event in session] == [
            "Message", "Message", "ModelCall", "ToolCall", "Message", "Message", "ModelCall",
        ]  # fmt: skip
        assert result.trial.usage == Usage(20, 4)


def test_the_engine_runs_a_loop_without_a_thread(server: ModelServer) -> None:
    """It calls `aexecute` with the options of the configuration."""
    target = as_target(QALoop(adapter=WIRES["openai"](server), tools=[add]))
    assert not target.blocking
    assert target.spec.kind == "execute"
    assert target.check_options({"budget": {"calls": 1}, "deadline": 5}) == []
    assert target.check_options({"budgte": 1}) == ["unknown option 'budgte': did you mean 'budget'?"]


def test_configurations_set_budget_and_deadline(server: ModelServer) -> None:
    """A budget of one call is an error of each trial and does not stop the run."""
    loop = QALoop(adapter=WIRES["openai"](server), tools=[add])
    report = evaluate(
        loop, SAMPLES, exact_match, configurations={"free": {"deadline": 20}, "tight": {"budget": {"calls": 1}}}
    )
    free = [each for each in report.results if each.trial.configuration == "free"]
    tight = [each for each in report.results if each.trial.configuration == "tight"]
    assert [each.passed for each in free] == [True] * 3
    assert [each.error for each in tight] == ["LoopStopped: the budget is spent: 1 of 1 calls"] * 3
    for each in tight:
        assert each.trial.session is not None
        assert [call.result for call in each.trial.session[ToolCall]] == [int(str(each.trial.sample.expected))]
        assert each.trial.usage == Usage(10, 2)


def test_usage_includes_failed_attempts(server: ModelServer) -> None:
    """The session contains only the last attempt."""
    server.faults.extend([None, Fault.status(503)])
    adapter = WIRES["openai"](server)
    adapter = type(adapter)("m", base_url=f"{server.url}/v1", api_key="k", retries=0)
    report = evaluate(QALoop(adapter=adapter, tools=[add]), SAMPLES[:1], exact_match, retries=1, retry_delay=0.01)
    (trial,) = [each.trial for each in report.results]
    assert (trial.error, trial.attempts) == (None, 2)
    assert trial.usage == Usage(30, 6)
    assert trial.session is not None
    assert len(trial.session[ModelCall]) == 2


def test_a_trial_with_a_timeout_has_its_events(server: ModelServer) -> None:
    """Up to the timeout."""

    async def add(a: int, b: int) -> int:
        await asyncio.sleep(600)
        return a + b

    loop = QALoop(adapter=WIRES["openai"](server), tools=[add])
    # Long enough for the answer of the model on a busy machine.
    report = evaluate(loop, SAMPLES[:1], exact_match, timeout=3.0)
    (trial,) = [each.trial for each in report.results]
    assert trial.error is not None
    assert trial.error.kind == "TimeoutError"
    assert trial.session is not None
    assert [call.error for call in trial.session[ToolCall]] == ["cancelled before it answered"]


def test_threads_can_share_a_loop(server: ModelServer) -> None:
    """Eight threads each have their own session and answer; the bus receives all events."""
    bus = EventBus()
    ended: list[LoopEnded] = []
    invoked: list[ToolInvoked] = []
    bus.subscribe(LoopEnded, ended.append)
    bus.subscribe(ToolInvoked, invoked.append)
    loop = QALoop(adapter=WIRES["anthropic"](server), tools=[add], bus=bus)
    found: dict[int, tuple[str, int]] = {}

    def work(n: int) -> None:
        response, session = loop.execute(f"What is {n} + {n}?")
        found[n] = (response.output, len(session))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert found == {n: (str(2 * n), 7) for n in range(8)}
    assert len(ended) == len(invoked) == 8
    assert len({id(event.session) for event in ended}) == 8


def test_a_cached_answer_is_scored_like_the_first(server: ModelServer, tmp_path: Path) -> None:
    """A second run with the cache calls nothing and sees the same session."""
    for _ in range(2):
        report = evaluate(
            QALoop(adapter=WIRES["openai"](server), tools=[add]),
            SAMPLES,
            {"right": exact_match, "by_tool": tool_called("add")},
            history=tmp_path / "history.db",
            cache=True,
        )
        assert report.pass_rate == 1.0
        assert [each.trial.usage for each in report.results] == [Usage(20, 4)] * 3
        assert len(server.calls) == 6


class Polite(QALoop):
    template = PromptTemplate[str]("qa", "answer", [MarkdownSection("", "Please answer: $question", key="q")])


class Overriding(QALoop):
    def execute(self, request: str, **options: Any) -> Any:
        response, session = super().execute(request, **options)
        return f"<{response.output}>", session


class Noting(QALoop):
    @property
    def tone(self) -> str:
        return "kind"


class NotingOtherwise(QALoop):
    @property
    def tone(self) -> str:
        return "unkind"


NotingOtherwise.__qualname__, NotingOtherwise.__module__ = "Noting", Noting.__module__
NotingOtherwise.tone.fget.__qualname__ = "Noting.tone"  # type: ignore[attr-defined]


def test_the_identity_of_a_loop() -> None:
    """Prompt, tools, model, settings and code belong to it; subscribers do not."""

    def model(prompt: str) -> str:
        return "x"

    def identity(loop: Any) -> str:
        return as_target(loop, name="same").spec.identity

    plain = identity(QALoop(adapter=model))
    listened = QALoop(adapter=model)
    listened.bus.subscribe(object, print)
    assert identity(listened) == plain
    others = [
        Polite(adapter=model),
        QALoop(adapter=model, tools=[add]),
        QALoop(adapter=model, temperature=1.0),
        QALoop(adapter=lambda prompt: "y"),
        Overriding(adapter=model),
        Noting(adapter=model),
        NotingOtherwise(adapter=model),
    ]
    assert len({plain, *map(identity, others)}) == 8


def test_an_overridden_execute_is_called() -> None:
    """Not the inherited `aexecute`."""
    target = as_target(Overriding(adapter=lambda prompt: "x"))
    assert target.blocking
    report = evaluate(target, [Sample("1", "?", "<x>")], exact_match)
    assert report.pass_rate == 1.0


def test_execute_of_an_instance_is_called() -> None:
    """Without a `__dict__`, and with an `aexecute` that is not async."""

    class Slotted:
        __slots__ = ()

        def aexecute(self, request: str) -> str:
            return "never"

        def execute(self, request: str) -> str:
            return request.upper()

    target = as_target(Slotted())
    assert target.call(Sample("1", "a"), {}).output == "A"
    assert target.spec.identity == as_target(Slotted()).spec.identity


@dataclass(slots=True, frozen=True)
class QAParams:
    """Parameters for the question."""

    question: str


class SpecLoop(MainLoop[str, str]):
    """The question-and-answer loop of the specification."""

    def __init__(self, *, adapter: Any, bus: EventBus) -> None:
        super().__init__(adapter=adapter, bus=bus)
        self._template = PromptTemplate[str](
            ns="qa",
            key="answer",
            name="qa",
            sections=[MarkdownSection[QAParams](title="Question", template="Answer concisely: $question", key="q")],
        )

    def initialize(self, question: str) -> tuple[Prompt[str], Session]:
        return Prompt(self._template).bind(QAParams(question=question)), Session()


def test_the_basic_example_of_the_specification_runs() -> None:
    """A typed section, a bus and a session; pass rate, mean score and failures as printed there."""
    with ModelServer(lambda asked: "Paris" if "France" in asked.text else "London") as server:
        loop = SpecLoop(adapter=WIRES["openai"](server), bus=EventBus())
        dataset = [
            Sample("1", "What is the capital of France?", "Paris"),
            Sample("2", "What is the capital of Spain?", "Madrid"),
        ]
        report = evaluate(loop, dataset, all_of(contains, exact_match))
        assert report.pass_rate == 0.5
        assert [each.sample_id for each in report.results if not each.passed] == ["2"]
        asked = {each.messages[0].content for each in server.calls}
        assert f"# Question\n\nAnswer concisely: {dataset[0].input}" in asked


def test_the_budget_of_the_run_ends_the_run(server: ModelServer) -> None:
    """A loop cannot bypass it."""
    with pytest.raises(RunStopped, match="the budget is spent: 2 of 2 calls"):
        evaluate(
            QALoop(adapter=WIRES["openai"](server), tools=[add]),
            SAMPLES,
            exact_match,
            budget=Budget(calls=2),
            concurrency=1,
        )
    assert len(server.calls) == 2
