"""The limits of an execution: turns, budget and deadline end it with an error."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from proctor import Budget, ModelResponse, Session, ToolCall, Usage, aask
from proctor.errors import LoopStopped, ModelError, StopRun, TargetError
from proctor.models.model_calls import CallContext, call_context
from proctor.models.spending import Spending
from proctor.records.run import Spent
from proctor.sessions import current as sessions
from proctor.targets.main_loop.bus import EventBus, LoopEnded
from proctor.targets.main_loop.loop import ExecutionBudget, seconds_to_deadline
from proctor.targets.main_loop.tools import tool
from proctor.testing import Fault
from tests.main_loop.scripted import WIRES, QALoop, by_rounds, calls, kinds, says, script
from tests.servers.model_server import ModelServer
from tests.support import ManualClock


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(script(calls(ToolCall("step", call_id="c")))) as running:
        yield running


steps: list[str] = []


@tool
def step() -> str:
    """Take a step."""
    steps.append("taken")
    return "one more"


@pytest.mark.parametrize("wire", list(WIRES))
def test_max_turns_stops_a_loop(wire: str, server: ModelServer) -> None:
    """After three turns; the tools of the last turn do not run."""
    steps.clear()
    loop = QALoop(adapter=WIRES[wire](server), tools=[step], max_turns=3)
    with pytest.raises(LoopStopped, match="still called tools in its last turn, number 3") as told:
        loop.execute("?")
    assert (told.value.limit, told.value.usage) == ("turns", Usage(30, 6))
    assert len(server.calls) == 3
    assert steps == 2 * ["taken"]


@pytest.mark.parametrize(
    ("budget", "spent", "asked"),
    [
        (Budget(calls=2), "2 of 2 calls", 2),
        (Budget(tokens=20), "24 of 20 tokens", 2),
        ({"tokens": 1}, "12 of 1 tokens", 1),
    ],
)
def test_a_budget_is_checked_before_each_call(server: ModelServer, budget: Any, spent: str, asked: int) -> None:
    """The next call is refused once the budget is spent."""
    loop = QALoop(adapter=WIRES["openai"](server), tools=[step])
    with pytest.raises(LoopStopped, match=f"the budget is spent: {spent}") as told:
        loop.execute("?", budget=budget)
    assert (told.value.limit, len(server.calls)) == ("budget", asked)
    assert told.value.usage == Usage(10 * asked, 2 * asked)
    with pytest.raises(LoopStopped):
        loop.execute("?", budget=budget)
    assert len(server.calls) == 2 * asked


def test_the_last_call_may_exceed_the_budget() -> None:
    """Its answer is used."""
    loop = QALoop(adapter=lambda messages: ModelResponse("x", usage=Usage(50, 50)))
    assert loop.execute("?", budget=Budget(tokens=10))[0].output == "x"


def test_an_unknown_price_ends_the_execution() -> None:
    """It does not stop the run."""
    loop = QALoop(adapter=lambda messages: ModelResponse("x", usage=Usage(1, 1)))
    with pytest.raises(LoopStopped, match="a budget in USD cannot be enforced") as told:
        loop.execute("?", budget=Budget(cost=1.0))
    assert told.value.limit == "budget"
    with pytest.raises(ModelError, match=r"budget\.calls must be an integer, 1 or more"):
        loop.execute("?", budget={"calls": 0})


def test_model_calls_of_tools_count_too(server: ModelServer) -> None:
    """They are refused like others; the model sees the error, then the loop ends."""
    server.answer = by_rounds(calls(ToolCall("helper", call_id="c")), says("never"))

    async def helper() -> str:
        await aask(lambda prompt: "one", "?")
        return (await aask(lambda prompt: "two", "?")).text

    session = Session()

    class Kept(QALoop):
        def initialize(self, request: str) -> Any:
            return super().initialize(request)[0], session

    with pytest.raises(LoopStopped, match="2 of 2 calls"):
        Kept(adapter=WIRES["openai"](server), tools=[helper]).execute("?", budget={"calls": 2})
    assert session[ToolCall][0].error == "LoopStopped: the budget is spent: 2 of 2 calls"


def test_the_budget_of_the_run_counts_too() -> None:
    """It ends the run; a cached answer uses neither budget."""
    run = Spending(Budget(calls=1))
    before = call_context.set(CallContext(run))
    try:
        loop = QALoop(adapter=lambda messages: ModelResponse("x", usage=Usage(1, 1)))
        loop.execute("?", budget=Budget(calls=5))
        with pytest.raises(StopRun):
            loop.execute("?", budget=Budget(calls=5))
    finally:
        call_context.reset(before)
    assert run.so_far == Spent(1, 2, 0.0)
    allowance = ExecutionBudget(Budget(calls=1), Spending(Budget(calls=3)))
    for _ in range(3):
        allowance.begin()
        allowance.take_back()
    alone = ExecutionBudget(Budget(calls=1), None)
    alone.begin()
    alone.take_back()
    assert allowance.so_far == alone.so_far == Spent()


@pytest.mark.parametrize("in_thread", [True, False])
def test_the_deadline_ends_a_tool(server: ModelServer, in_thread: bool) -> None:
    """It is cancelled and recorded as cancelled."""

    over = threading.Event()

    async def slow() -> None:
        await asyncio.sleep(60)

    def slow_plain() -> None:
        over.wait(60)

    server.answer = script(calls(ToolCall("step", call_id="c1"), ToolCall("slow", call_id="c2")))
    made = tool(name="slow")(slow_plain if in_thread else slow)
    bus, session = EventBus(), Session()
    ended: list[LoopEnded] = []
    bus.subscribe(LoopEnded, ended.append)

    class Kept(QALoop):
        def initialize(self, request: str) -> Any:
            return super().initialize(request)[0], session

    loop = Kept(adapter=WIRES["openai"](server), tools=[step, made], bus=bus)
    with pytest.raises(LoopStopped, match="the deadline has passed") as told:
        loop.execute("?", deadline=1.0)
    over.set()
    assert (told.value.limit, told.value.usage) == ("time", Usage(10, 2))
    assert [call.error for call in session[ToolCall]] == [None, "cancelled before it answered"]
    assert str(ended[0].error).startswith("LoopStopped: the deadline has passed")


def test_the_deadline_ends_a_model_call(server: ModelServer) -> None:
    """The call is recorded."""
    server.choose_fault = lambda asked: Fault.slow(3)
    session = Session()
    before = sessions.current.set(session)
    try:
        with pytest.raises(LoopStopped):
            QALoop(adapter=WIRES["openai"](server)).execute("?", deadline=0.1)
    finally:
        sessions.current.reset(before)
    assert kinds(session) == ["user", "ModelCall"]


def test_nothing_runs_after_the_deadline(server: ModelServer) -> None:
    """Neither the model nor `initialize` is called."""
    loop = QALoop(adapter=WIRES["openai"](server))
    for past in (0, -1.0, datetime.now(UTC) - timedelta(seconds=1)):
        with pytest.raises(LoopStopped, match="before the execution began"):
            loop.execute("?", deadline=past)
    assert server.calls == []


def test_a_deadline_is_a_time_or_seconds_from_now() -> None:
    """On the given clock; infinity is no limit."""
    clock = ManualClock()
    assert seconds_to_deadline(None, clock) is None
    assert seconds_to_deadline(3, clock) == 3.0
    assert seconds_to_deadline(clock.now() + timedelta(minutes=1), clock) == 60.0
    loop = QALoop(adapter=lambda prompt: "x", clock=clock)
    assert loop.execute("?", deadline=clock.now() + timedelta(minutes=1))[0].output == "x"
    assert loop.execute("?", deadline=float("inf"))[0].output == "x"


@pytest.mark.parametrize("deadline", [datetime(2026, 1, 1), True, float("nan"), "soon"])  # noqa: DTZ001
def test_an_invalid_deadline_is_refused(deadline: Any) -> None:
    """A time without a zone, a boolean, NaN, a word."""
    with pytest.raises(TargetError, match=r"time zone|is not a deadline"):
        QALoop(adapter=lambda prompt: "x").execute("?", deadline=deadline)


def test_a_timeout_error_of_the_user_is_not_the_deadline() -> None:
    """An error of `initialize` is raised unchanged."""

    class Late(QALoop):
        def initialize(self, request: str) -> Any:
            raise TimeoutError("of the database")

    with pytest.raises(TimeoutError, match="of the database"):
        Late(adapter=lambda prompt: "x").execute("?", deadline=5)


def test_stop_run_in_a_tool_ends_the_loop(server: ModelServer) -> None:
    """The other tools are cancelled, everything is recorded, and `StopRun` is raised."""
    server.answer = script(calls(ToolCall("slow", call_id="c1"), ToolCall("spends", call_id="c2")))

    async def slow() -> None:
        await asyncio.sleep(5)

    async def spends() -> None:
        raise StopRun("enough")

    session = Session()
    before = sessions.current.set(session)
    try:
        with pytest.raises(StopRun):
            QALoop(adapter=WIRES["openai"](server), tools=[slow, spends]).execute("?")
    finally:
        sessions.current.reset(before)
    assert [call.error for call in session[ToolCall]] == ["cancelled before it answered"] * 2


def test_a_cancelled_execution_is_recorded(server: ModelServer) -> None:
    """In the surrounding session and on the bus."""

    async def slow() -> None:
        started.set()
        await asyncio.sleep(600)

    started = asyncio.Event()
    bus = EventBus()
    ended: list[LoopEnded] = []
    bus.subscribe(LoopEnded, ended.append)
    server.answer = script(calls(ToolCall("slow", call_id="c1")))
    loop = QALoop(adapter=WIRES["openai"](server), tools=[slow], bus=bus)

    async def main() -> Session:
        around = Session()
        sessions.current.set(around)
        execution = asyncio.ensure_future(loop.aexecute("?"))
        await started.wait()
        execution.cancel()
        with pytest.raises(asyncio.CancelledError):
            await execution
        return around

    around = asyncio.run(main())
    assert kinds(around) == ["user", "assistant", "ModelCall", "slow"]
    assert ended[0].error == "CancelledError"
