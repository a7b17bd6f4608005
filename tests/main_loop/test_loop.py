"""The main loop with every wire format: turns, tools, typed answers, sessions, events."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from proctor import (
    Message,
    ModelCall,
    ModelResponse,
    Prompt,
    PromptTemplate,
    Session,
    ToolCall,
    Usage,
    aask,
    current_session,
    record,
)
from proctor.errors import CallFailed, TargetError, Unreadable
from proctor.sessions import current as sessions
from proctor.targets.main_loop.bus import EventBus, LoopEnded, ModelAnswered, PromptRendered, ToolInvoked
from proctor.targets.main_loop.loop import MainLoop, Response
from proctor.targets.main_loop.tools import tool
from proctor.testing import ScriptedReply
from tests.main_loop.scripted import QUESTION, WIRES, QALoop, by_rounds, calls, kinds, says, script, told
from tests.servers.model_server import ModelServer


@pytest.fixture(params=list(WIRES))
def wire(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
async def lookup(city: str) -> dict[str, Any]:
    """Look a city up."""
    if city == "Atlantis":
        raise KeyError("no such city")
    return {"city": city, "people": len(city)}


def test_a_loop_without_tools_makes_one_call(wire: str, server: ModelServer) -> None:
    """The prompt is sent unchanged, and the reply is the output."""
    server.answer = script(says("Paris"))
    response, session = QALoop(adapter=WIRES[wire](server)).execute("capital of France?")
    assert response == Response("Paris", "Paris", Usage(10, 2), 1)
    assert [each.content for each in session[Message]] == ["Answer: capital of France?", "Paris"]
    assert server.calls[0].tools == ()


def test_tools_are_called_until_the_model_answers(wire: str, server: ModelServer) -> None:
    """Three turns: the model sees each result, and the session has everything once."""
    server.answer = script(
        calls(ToolCall("add", {"a": 1, "b": 2}, call_id="c1")),
        calls(ToolCall("add", {"a": 3, "b": 4}, call_id="c2")),
        says("7"),
    )
    loop = QALoop(adapter=WIRES[wire](server), tools=[add])
    response, session = loop.execute("1 + 2 + 4?")
    assert response == Response("7", "7", Usage(30, 6), 3)
    assert [each.name for each in server.calls[0].tools] == ["add"]
    assert [len(told(asked)) for asked in server.calls] == [0, 1, 2]
    assert [(call.name, call.result) for call in session[ToolCall]] == [("add", 3), ("add", 7)]
    assert kinds(session) == [
        "user", "assistant", "ModelCall", "add",
        "tool", "assistant", "ModelCall", "add",
        "tool", "assistant", "ModelCall",
    ]  # fmt: skip
    assert session.usage == Usage(30, 6)


def test_tools_run_concurrently_and_results_keep_their_order(wire: str, server: ModelServer) -> None:
    """Two tools that wait for each other both end."""
    server.answer = by_rounds(
        calls(ToolCall("slow", {}, call_id="c1"), ToolCall("quick", {}, call_id="c2")), says("done")
    )
    met = threading.Event()

    def slow() -> str:
        assert met.wait(timeout=5)
        return "slow one"

    async def quick() -> str:
        met.set()
        return "quick one"

    _, session = QALoop(adapter=WIRES[wire](server), tools=[slow, quick]).execute("?")
    assert [call.result for call in session[ToolCall]] == ["slow one", "quick one"]
    assert [each.content for each in session[Message] if each.role == "tool"] == ["slow one", "quick one"]
    assert len(told(server.calls[1])) == 2


def test_the_model_sees_tool_errors(wire: str, server: ModelServer) -> None:
    """A wrong name, wrong arguments and a failing tool; then it continues."""
    server.answer = script(
        calls(
            ToolCall("lokup", {"city": "Rome"}, call_id="c1"),
            ToolCall("lookup", {"town": "Rome"}, call_id="c2"),
            ToolCall("lookup", {"city": "Atlantis"}, call_id="c3"),
        ),
        calls(ToolCall("lookup", {"city": "Rome"}, call_id="c4")),
        says("4"),
    )
    response, session = QALoop(adapter=WIRES[wire](server), tools=[lookup]).execute("people?")
    assert response.output == "4"
    errors = [call.error for call in session[ToolCall]]
    assert errors == [
        "unknown tool 'lokup': did you mean 'lookup'?",
        "the arguments are invalid: unknown parameter 'town': choose one of: city; city is missing",
        "KeyError: 'no such city'",
        None,
    ]
    heard = [each.content for each in session[Message] if each.role == "tool"]
    assert heard == [*(f"Error: {error}" for error in errors[:3]), {"city": "Rome", "people": 4}]
    assert "did you mean" in str(server.calls[1].body)


class City(msgspec.Struct):
    name: str
    people: int


class CityLoop(MainLoop[str, City]):
    """Its prompt has no type, so the type of the loop is used."""

    def initialize(self, request: str) -> tuple[Prompt[City], Session]:
        return Prompt(PromptTemplate("qa", "city", [QUESTION])).bind(question=request), Session()


def test_the_answer_has_the_type_of_the_loop(wire: str, server: ModelServer) -> None:
    """Without tools, the model gets a schema."""
    server.answer = script(says('{"name": "Rome", "people": 4}'))
    response, _ = CityLoop(adapter=WIRES[wire](server)).execute("?")
    assert response.output == City("Rome", 4)
    assert response.text == '{"name": "Rome", "people": 4}'
    assert server.calls[0].schema is not None


def test_with_tools_the_format_is_described_in_the_prompt(wire: str, server: ModelServer) -> None:
    """Providers do not combine a schema with tools."""
    server.answer = script(
        calls(ToolCall("lookup", {"city": "Rome"}, call_id="c1")),
        says('Here it is:\n```json\n{"name": "Rome", "people": 4}\n```'),
    )
    response, session = CityLoop(adapter=WIRES[wire](server), tools=[lookup]).execute("?")
    assert response.output == City("Rome", 4)
    assert [asked.schema for asked in server.calls] == [None, None]
    for asked in server.calls:
        (question,) = [each for each in asked.messages if each.role == "user"]
        assert "must fit this JSON Schema" in question.content
    assert kinds(session).count("user") == 1


def test_an_unreadable_answer_is_requested_again_once(wire: str, server: ModelServer) -> None:
    """The model may also call a tool; then it is an error."""
    server.answer = script(
        says("Rome has 4."),
        calls(ToolCall("lookup", {"city": "Rome"}, call_id="c1")),
        says("Four."),
        says('{"name": "Rome", "people": 4}'),
    )
    loop = CityLoop(adapter=WIRES[wire](server), tools=[lookup])
    response, session = loop.execute("?")
    assert response == Response(City("Rome", 4), response.text, Usage(40, 8), 2)
    assert [call.name for call in session[ToolCall]] == ["lookup"]
    server.answer = script(says("No."))
    with pytest.raises(Unreadable, match="not even after a reminder"):
        loop.execute("?")


def test_the_type_of_the_prompt_has_priority() -> None:
    """`PromptTemplate[Output]` overrides the type of the loop."""

    @dataclass
    class Count:
        n: int

    class Counting(CityLoop):
        def initialize(self, request: str) -> Any:
            return Prompt(PromptTemplate[Count]("qa", "n", [QUESTION])).bind(question="?"), Session()

    output: Any = Counting(adapter=lambda prompt: '{"n": 3}').execute("?")[0].output
    assert output == Count(3)


def test_a_loop_without_a_type_returns_text() -> None:
    """Also with `Any`."""

    class Plain(MainLoop):  # type: ignore[type-arg]
        def initialize(self, request: str) -> Any:
            return Prompt(PromptTemplate("qa", "q", [QUESTION])).bind(question=request), Session()

    class Whatever(MainLoop[str, Any]):
        initialize = Plain.initialize

    for loop in (Plain(adapter=lambda prompt: "7"), Whatever(adapter=lambda prompt: "7")):
        assert loop.execute("?")[0].output == "7"


def test_a_refusal_is_the_output(wire: str, server: ModelServer) -> None:
    """For a typed output it is an error."""
    server.answer = script(ScriptedReply(refusal="I will not."))
    assert QALoop(adapter=WIRES[wire](server)).execute("?")[0].output
    with pytest.raises(Unreadable, match="refused"):
        CityLoop(adapter=WIRES[wire](server)).execute("?")


def test_settings_reach_the_model(server: ModelServer) -> None:
    """Temperature, tokens and seed of the loop, in every turn."""
    server.answer = script(calls(ToolCall("add", {"a": 1, "b": 2}, call_id="c")), says("3"))
    adapter = WIRES["openai"](server)
    QALoop(adapter=adapter, tools=[add], temperature=0.5, max_tokens=99, seed=7).execute("?")
    for asked in server.calls:
        assert asked.settings == {"temperature": 0.5, "max_tokens": 99, "seed": 7}


def test_a_list_result_is_sent_as_json(wire: str, server: ModelServer) -> None:
    """Although a list of dicts with a `type` looks like the parts of a message."""

    def shelves() -> list[dict[str, str]]:
        return [{"type": "book"}]

    def nothing() -> None: ...

    server.answer = by_rounds(calls(ToolCall("shelves", call_id="c1"), ToolCall("nothing", call_id="c2")), says("ok"))
    _, session = QALoop(adapter=WIRES[wire](server), tools=[shelves, nothing]).execute("?")
    heard = [each.content for each in session[Message] if each.role == "tool"]
    assert heard == ['[{"type":"book"}]', "null"]
    assert session[ToolCall][0].result == [{"type": "book"}]


def test_the_bus_publishes_events_in_order(server: ModelServer) -> None:
    """Rendered, answered, invoked, answered, ended, each with its session."""
    server.answer = script(calls(ToolCall("add", {"a": 1, "b": 2}, call_id="c")), says("3"))
    bus = EventBus()
    heard: list[Any] = []
    bus.subscribe(object, heard.append)
    loop = QALoop(adapter=WIRES["openai"](server), tools=[add], bus=bus)
    _, session = loop.execute("?")
    rendered, first, invoked, second, ended = heard
    assert isinstance(rendered, PromptRendered)
    assert rendered.prompt == loop.template.id
    assert rendered.messages == (Message("user", "Answer: ?"),)
    assert isinstance(first, ModelAnswered)
    assert isinstance(second, ModelAnswered)
    assert (first.turn, second.turn, second.response.text) == (1, 2, "3")
    assert isinstance(invoked, ToolInvoked)
    assert (invoked.call.result, invoked.turn) == (3, 1)
    assert ended == LoopEnded(session, 2, Usage(20, 4))
    assert all(event.session is session for event in heard)


def test_the_bus_publishes_an_error(server: ModelServer) -> None:
    """In the last event; it is raised unchanged."""
    bus = EventBus()
    ended: list[LoopEnded] = []
    bus.subscribe(LoopEnded, ended.append)

    def broken(prompt: str) -> str:
        raise OSError("cable cut")

    with pytest.raises(CallFailed, match="cable cut"):
        QALoop(adapter=broken, bus=bus).execute("?")
    assert "cable cut" in str(ended[0].error)
    assert (ended[0].turns, ended[0].usage) == (0, Usage())


def test_tools_record_in_the_session_of_the_loop(server: ModelServer) -> None:
    """Their model calls too, in threads or not."""
    server.answer = lambda asked: (
        says("helped")
        if "help" in asked.text
        else by_rounds(calls(ToolCall("ask_around", call_id="c")), says("done"))(asked)
    )
    adapter = WIRES["openai"](server)

    async def ask_around() -> str:
        record("asking")
        return (await aask(adapter, "help")).text

    response, session = QALoop(adapter=adapter, tools=[ask_around]).execute("?")
    assert session[str] == ("asking",)
    assert len(session[ModelCall]) == 3
    assert response.usage == session.usage == Usage(30, 6)


def test_a_nested_loop_records_in_both_sessions(server: ModelServer) -> None:
    """Its usage counts for the outer loop."""
    server.answer = by_rounds(calls(ToolCall("expert", {"question": "x"}, call_id="c")), says("4"))
    inner = QALoop(adapter=lambda messages: ModelResponse("inner", usage=Usage(1, 1)))

    async def expert(question: str) -> str:
        response, own = await inner.aexecute(question)
        assert own.usage == Usage(1, 1)
        return str(response.output)

    response, session = QALoop(adapter=WIRES["openai"](server), tools=[expert]).execute("?")
    assert session[ToolCall][0].result == "inner"
    assert response.usage == Usage(21, 5)


def test_a_given_session_is_continued() -> None:
    """Old events stay; usage covers this execution only."""
    kept = Session([ModelCall("before", Usage(100, 100))])

    class Going(QALoop):
        def initialize(self, request: str) -> Any:
            record("on the way")
            return super().initialize(request)[0], kept

    def model(prompt: str) -> ModelResponse:
        return ModelResponse("x", usage=Usage(3, 1))

    around = Session()
    before = sessions.current.set(around)
    try:
        response, session = Going(adapter=model).execute("?")
        assert current_session() is around
    finally:
        sessions.current.reset(before)
    assert session is kept
    assert response.usage == Usage(3, 1)
    assert kinds(session) == ["ModelCall", "CustomEvent", "user", "assistant", "ModelCall"]
    assert around.events == session.events[1:]


def test_initialize_may_return_the_current_session() -> None:
    """Inside and outside of a trial."""

    class Here(QALoop):
        def initialize(self, request: str) -> Any:
            return super().initialize(request)[0], current_session()

    _, session = Here(adapter=lambda prompt: "x").execute("?")
    assert kinds(session) == ["user", "assistant", "ModelCall"]


def test_a_shared_session_has_every_event_once() -> None:
    """A loop that uses the surrounding session does not record twice."""
    around = Session()

    class Shared(QALoop):
        def initialize(self, request: str) -> Any:
            return super().initialize(request)[0], around

    before = sessions.current.set(around)
    try:
        Shared(adapter=lambda prompt: "x").execute("?")
    finally:
        sessions.current.reset(before)
    assert kinds(around) == ["user", "assistant", "ModelCall"]


def test_initialize_may_be_async() -> None:
    """For example to look something up."""

    class Waiting(QALoop):
        async def initialize(self, request: str) -> Any:  # type: ignore[override]
            await asyncio.sleep(0)
            return super().initialize(request)

    assert Waiting(adapter=lambda prompt: prompt).execute("a")[0].output == "Answer: a"


def test_tools_see_context_variables(server: ModelServer) -> None:
    """In async and sync tools."""
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    def plain() -> str:
        return who.get()

    async def waiting() -> str:
        return who.get()

    server.answer = by_rounds(calls(ToolCall("plain", call_id="c1"), ToolCall("waiting", call_id="c2")), says("x"))
    who.set("me")
    _, session = QALoop(adapter=WIRES["openai"](server), tools=[plain, waiting]).execute("?")
    assert [call.result for call in session[ToolCall]] == ["me", "me"]


def test_a_loop_without_initialize_is_an_error() -> None:
    """The base class cannot run."""
    with pytest.raises(NotImplementedError, match="MainLoop has no initialize"):
        MainLoop[str, str](adapter=lambda prompt: "x").execute("?")


def test_an_invalid_result_of_initialize_is_an_error() -> None:
    """A text is not a prompt, and a list is not a session."""

    class Wrong(MainLoop[str, str]):
        def initialize(self, request: str) -> Any:
            return request, []

    with pytest.raises(TargetError, match="not str and list"):
        Wrong(adapter=lambda prompt: "x").execute("?")


@pytest.mark.parametrize("turns", [0, True, 2.5])
def test_max_turns_must_be_positive(turns: Any) -> None:
    """The loop is refused when it is created."""
    with pytest.raises(TargetError, match=f"max_turns must be an integer, 1 or more, got {turns}"):
        QALoop(adapter=lambda prompt: "x", max_turns=turns)
