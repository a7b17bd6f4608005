"""The main loop over the real wires: turns, tools, structured answers, sessions, events."""

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
from proctor.testing import ModelServer, ScriptedReply
from tests.mainloop.scripted import QUESTION, WIRES, QALoop, by_rounds, calls, kinds, says, script, told


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


def test_a_loop_without_tools_asks_once(wire: str, server: ModelServer) -> None:
    """The prompt is asked as it is, and the answer is the output."""
    server.answer = script(says("Paris"))
    response, session = QALoop(adapter=WIRES[wire](server)).execute("capital of France?")
    assert response == Response("Paris", "Paris", Usage(10, 2), 1)
    assert [each.content for each in session[Message]] == ["Answer: capital of France?", "Paris"]
    assert server.calls[0].tools == ()


def test_tools_are_called_until_the_model_answers(wire: str, server: ModelServer) -> None:
    """Three turns: each result is told to the model, and everything is in the session once."""
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


def test_several_tools_run_side_by_side_and_answer_in_order(wire: str, server: ModelServer) -> None:
    """Two tools that wait for each other both end; the slower one was asked first."""
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


def test_what_goes_wrong_is_told_and_mended(wire: str, server: ModelServer) -> None:
    """A wrong name, wrong arguments and a tool that fails: the model hears of each and goes on."""
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
        "there is no tool 'lokup': did you mean 'lookup'?",
        "the arguments do not fit: there is no parameter 'town': choose one of: city; city is missing",
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
    """Its prompt says nothing of a type, so that of the loop counts."""

    def initialize(self, request: str) -> tuple[Prompt[City], Session]:
        return Prompt(PromptTemplate("qa", "city", [QUESTION])).bind(question=request), Session()


def test_the_answer_is_read_into_the_type_of_the_loop(wire: str, server: ModelServer) -> None:
    """Without tools, the model is held to a schema."""
    server.answer = script(says('{"name": "Rome", "people": 4}'))
    response, _ = CityLoop(adapter=WIRES[wire](server)).execute("?")
    assert response.output == City("Rome", 4)
    assert response.text == '{"name": "Rome", "people": 4}'
    assert server.calls[0].schema is not None


def test_with_tools_the_form_is_told_in_words_with_the_question(wire: str, server: ModelServer) -> None:
    """No provider is asked for a schema beside tools; the instructions stay in one place."""
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


def test_an_answer_that_cannot_be_read_is_asked_for_once_more(wire: str, server: ModelServer) -> None:
    """One reminder, in which the model may also call a tool; then it is an error."""
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
    with pytest.raises(Unreadable, match="asked twice"):
        loop.execute("?")


def test_the_type_of_the_prompt_comes_first() -> None:
    """`PromptTemplate[Output]` is nearer to the question than the loop."""

    @dataclass
    class Count:
        n: int

    class Counting(CityLoop):
        def initialize(self, request: str) -> Any:
            return Prompt(PromptTemplate[Count]("qa", "n", [QUESTION])).bind(question="?"), Session()

    output: Any = Counting(adapter=lambda prompt: '{"n": 3}').execute("?")[0].output
    assert output == Count(3)


def test_a_loop_that_names_no_type_gives_text() -> None:
    """Neither brackets nor Any ask for more than text."""

    class Plain(MainLoop):  # type: ignore[type-arg]
        def initialize(self, request: str) -> Any:
            return Prompt(PromptTemplate("qa", "q", [QUESTION])).bind(question=request), Session()

    class Whatever(MainLoop[str, Any]):
        initialize = Plain.initialize

    for loop in (Plain(adapter=lambda prompt: "7"), Whatever(adapter=lambda prompt: "7")):
        assert loop.execute("?")[0].output == "7"


def test_what_a_model_refused_to_say_is_its_output(wire: str, server: ModelServer) -> None:
    """In plain text, a refusal is an answer; for a typed one it is an error."""
    server.answer = script(ScriptedReply(refusal="I will not."))
    assert QALoop(adapter=WIRES[wire](server)).execute("?")[0].output
    with pytest.raises(Unreadable, match="refused"):
        CityLoop(adapter=WIRES[wire](server)).execute("?")


def test_settings_reach_the_model(server: ModelServer) -> None:
    """Temperature, tokens and seed are those of the loop, in every turn."""
    server.answer = script(calls(ToolCall("add", {"a": 1, "b": 2}, call_id="c")), says("3"))
    adapter = WIRES["openai"](server)
    QALoop(adapter=adapter, tools=[add], temperature=0.5, max_tokens=99, seed=7).execute("?")
    for asked in server.calls:
        assert asked.settings == {"temperature": 0.5, "max_tokens": 99, "seed": 7}


def test_a_list_is_told_as_text_and_never_as_a_providers_parts(wire: str, server: ModelServer) -> None:
    """A tool's list of dicts with a `type` looks like parts of a message; it is sent as JSON."""

    def shelves() -> list[dict[str, str]]:
        return [{"type": "book"}]

    def nothing() -> None: ...

    server.answer = by_rounds(
        calls(ToolCall("shelves", call_id="c1"), ToolCall("nothing", call_id="c2")), says("ok")
    )
    _, session = QALoop(adapter=WIRES[wire](server), tools=[shelves, nothing]).execute("?")
    heard = [each.content for each in session[Message] if each.role == "tool"]
    assert heard == ['[{"type":"book"}]', "null"]
    assert session[ToolCall][0].result == [{"type": "book"}]


def test_the_bus_tells_what_happens_in_order(server: ModelServer) -> None:
    """Rendered, answered, invoked, answered, ended: each with the session of the execution."""
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


def test_the_bus_tells_of_a_bad_end(server: ModelServer) -> None:
    """An error is in the last event, in a word, and is raised as it was."""
    bus = EventBus()
    ended: list[LoopEnded] = []
    bus.subscribe(LoopEnded, ended.append)

    def broken(prompt: str) -> str:
        raise OSError("cable cut")

    with pytest.raises(CallFailed, match="cable cut"):
        QALoop(adapter=broken, bus=bus).execute("?")
    assert "cable cut" in str(ended[0].error)
    assert (ended[0].turns, ended[0].usage) == (0, Usage())


def test_what_tools_ask_and_record_is_in_the_session_of_the_loop(server: ModelServer) -> None:
    """A tool that asks a model itself, in a thread or not, adds to the same session and usage."""
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


def test_a_loop_inside_a_loop_is_heard_in_both(server: ModelServer) -> None:
    """What an agent that is a tool used counts for the one that called it."""
    server.answer = by_rounds(calls(ToolCall("expert", {"question": "x"}, call_id="c")), says("4"))
    inner = QALoop(adapter=lambda messages: ModelResponse("inner", usage=Usage(1, 1)))

    async def expert(question: str) -> str:
        response, own = await inner.aexecute(question)
        assert own.usage == Usage(1, 1)
        return str(response.output)

    response, session = QALoop(adapter=WIRES["openai"](server), tools=[expert]).execute("?")
    assert session[ToolCall][0].result == "inner"
    assert response.usage == Usage(21, 5)


def test_a_session_that_is_handed_in_is_gone_on_with() -> None:
    """Old events stay; usage is that of this execution; the trial around hears what is new."""
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


def test_the_current_session_may_be_the_one() -> None:
    """`initialize` may give the session it finds, inside a trial and outside of one."""

    class Here(QALoop):
        def initialize(self, request: str) -> Any:
            return super().initialize(request)[0], current_session()

    _, session = Here(adapter=lambda prompt: "x").execute("?")
    assert kinds(session) == ["user", "assistant", "ModelCall"]


def test_the_session_around_itself_is_not_told_twice() -> None:
    """A loop that keeps one session for all, the one around it, has every event once."""
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
    """It can look something up first."""

    class Waiting(QALoop):
        async def initialize(self, request: str) -> Any:  # type: ignore[override]
            await asyncio.sleep(0)
            return super().initialize(request)

    assert Waiting(adapter=lambda prompt: prompt).execute("a")[0].output == "Answer: a"


def test_a_context_goes_through_to_the_tools(server: ModelServer) -> None:
    """Context variables of the caller are there in async and in plain tools."""
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    def plain() -> str:
        return who.get()

    async def waiting() -> str:
        return who.get()

    server.answer = by_rounds(
        calls(ToolCall("plain", call_id="c1"), ToolCall("waiting", call_id="c2")), says("x")
    )
    who.set("me")
    _, session = QALoop(adapter=WIRES["openai"](server), tools=[plain, waiting]).execute("?")
    assert [call.result for call in session[ToolCall]] == ["me", "me"]


def test_a_loop_without_initialize_says_what_is_missing() -> None:
    """The base class alone asks nothing."""
    with pytest.raises(NotImplementedError, match="MainLoop has no initialize"):
        MainLoop[str, str](adapter=lambda prompt: "x").execute("?")


def test_what_initialize_must_give_is_said() -> None:
    """A text is no prompt, and a list no session."""

    class Wrong(MainLoop[str, str]):
        def initialize(self, request: str) -> Any:
            return request, []

    with pytest.raises(TargetError, match="not str and list"):
        Wrong(adapter=lambda prompt: "x").execute("?")


@pytest.mark.parametrize("turns", [0, True, 2.5])
def test_turns_are_counted_from_one(turns: Any) -> None:
    """A loop that may never ask is refused when it is made."""
    with pytest.raises(TargetError, match="max_turns must be 1 or more"):
        QALoop(adapter=lambda prompt: "x", max_turns=turns)
