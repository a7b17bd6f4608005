"""Unmodified agents of LangGraph, OpenAI, Pydantic AI and smolagents as targets, with the real packages."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from typing import Any, ClassVar, cast

import agents
import pytest
import smolagents
from agents.usage import Usage as AgentsUsage
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole
from smolagents.monitoring import TokenUsage

from proctor import all_tools_succeeded, evaluate, exact_match, tool_called, tool_not_called
from proctor.records.session import CustomEvent, Message, ModelCall, ToolCall, Usage
from proctor.records.trial import EvalResult
from proctor.targets.resolve import as_target
from tests.importers.logs import DATA

QUESTION = "Weather in Rome?"
ANSWER = "It is sunny."
SAMPLES = [{"id": "1", "input": QUESTION, "expected": ANSWER}]
CHECKS = [exact_match, tool_called("weather"), tool_not_called("book"), all_tools_succeeded()]


@pytest.fixture(autouse=True)
def _no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")


def run(target: Any, checks: Any = CHECKS, **options: Any) -> EvalResult:
    (result,) = evaluate(target, SAMPLES, checks, history=None, **options).results
    return result


def verdicts(result: EvalResult) -> dict[str, bool | None]:
    return {name: score.passed for name, score in result.scores.items()}


def calls(result: EvalResult) -> list[tuple[str, Any, bool]]:
    assert result.trial.session is not None
    return [(call.name, call.arguments, call.success) for call in result.trial.session[ToolCall]]


ALL_PASS = {"exact_match": True, "tool_called": True, "tool_not_called": True, "all_tools_succeeded": True}


# LangGraph


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    if city == "Atlantis":
        raise ValueError("no such city")
    return f"sunny in {city}"


class ScriptedChat(GenericFakeChatModel):
    """The fake chat model of LangChain, which any tools may be bound to."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def make_graph(city: str = "Rome") -> Any:
    usage: Any = {"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}
    call: Any = {"name": "weather", "args": {"city": city}, "id": "c1"}
    replies = [AIMessage("", tool_calls=[call], usage_metadata=usage), AIMessage(ANSWER, usage_metadata=usage)]
    return create_agent(ScriptedChat(messages=iter(replies)), [weather], system_prompt="Be brief.")


def test_a_langgraph_agent_takes_a_question_and_gives_its_session() -> None:
    """`create_agent` expects messages; a text becomes one, and the state becomes the session."""
    result = run(make_graph())
    assert verdicts(result) == ALL_PASS
    assert result.output == ANSWER
    assert calls(result) == [("weather", {"city": "Rome"}, True)]
    assert result.trial.usage == Usage(18, 4)


def test_a_langgraph_agent_takes_messages_and_its_own_state() -> None:
    """A list of messages and a mapping reach the graph; calls of the history do not count."""
    messages = [{"role": "user", "content": QUESTION}]
    for value in (messages, {"messages": messages}):
        samples = [{"id": "1", "input": value, "expected": ANSWER}]
        (result,) = evaluate(make_graph(), samples, CHECKS, history=None).results
        assert verdicts(result) == ALL_PASS


def test_an_error_in_a_langgraph_tool_is_the_error_of_the_trial() -> None:
    """LangGraph raises it and gives no state, so the trial has an error and no verdicts."""
    result = run(make_graph("Atlantis"))
    assert result.trial.error is not None
    assert "no such city" in str(result.trial.error)
    assert verdicts(result) == {}


# OpenAI Agents SDK


class ScriptedAgentsModel(agents.Model):
    """A model of the Agents SDK that answers from a list."""

    def __init__(self, *outputs: list[Any]) -> None:
        self._outputs: Iterator[list[Any]] = iter(outputs)

    async def get_response(self, *_: Any, **__: Any) -> Any:
        usage = AgentsUsage(requests=1, input_tokens=9, output_tokens=2, total_tokens=11)
        return agents.ModelResponse(output=next(self._outputs), usage=usage, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def use(name: str, call_id: str, **arguments: Any) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(arguments=json.dumps(arguments), call_id=call_id, name=name, type="function_call")


def say(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(annotations=[], text=text, type="output_text")
    return ResponseOutputMessage(id="m1", content=[part], role="assistant", status="completed", type="message")


weather_function = agents.function_tool(cast(Any, weather).func, name_override="weather")


def make_openai_agent(*cities: str) -> Any:
    requests = [use("weather", f"c{number}", city=city) for number, city in enumerate(cities)]
    model = ScriptedAgentsModel(requests, [say(ANSWER)])
    return agents.Agent(name="Forecaster", instructions="Be brief.", model=model, tools=[weather_function])


def test_an_agent_of_openai_runs_with_its_calls_and_usage() -> None:
    """The agent itself is the target: the final output is the output, every response counts."""
    result = run(make_openai_agent("Rome"))
    assert verdicts(result) == ALL_PASS
    assert calls(result) == [("weather", {"city": "Rome"}, True)]
    assert result.trial.usage == Usage(18, 4, 0)
    spec = as_target(make_openai_agent("Rome")).spec
    assert (spec.name, spec.kind) == ("Forecaster", "agent")


def test_a_failed_tool_of_openai_is_a_failed_call() -> None:
    """The SDK tells the model about the error and goes on; `all_tools_succeeded` sees it."""
    result = run(make_openai_agent("Rome", "Atlantis"))
    assert verdicts(result) == {**ALL_PASS, "all_tools_succeeded": False}


def test_the_session_of_an_agent_of_openai_survives_its_exception() -> None:
    """After too many turns the trial has an error, and the calls until then."""
    target = make_openai_agent("Rome")
    options = {"short": {"max_turns": 1}}
    (result,) = evaluate(target, SAMPLES, CHECKS, configurations=options, history=None).results
    assert result.trial.error is not None
    assert "Max turns" in str(result.trial.error)
    assert calls(result) == [("weather", {"city": "Rome"}, True)]


def test_a_function_may_return_the_result_of_the_runner() -> None:
    """A function around the agent gives the same trial as the agent."""

    async def answer(question: str) -> Any:
        return await agents.Runner.run(make_openai_agent("Rome"), question)

    assert verdicts(run(answer)) == ALL_PASS


# Pydantic AI


class City(BaseModel):
    name: str
    size: int


def make_pydantic_agent(model: Any, **options: Any) -> Any:
    agent: Any = PydanticAgent(model, instructions="Be brief.", **options)

    @agent.tool_plain(name="weather")  # type: ignore[untyped-decorator]
    def tell_weather(city: str) -> str:
        if city == "Atlantis":
            raise ModelRetry("no such city")
        if city == "Nowhere":
            raise ValueError("the map is lost")
        return f"sunny in {city}"

    return agent


def scripted(*parts: Any) -> FunctionModel:
    replies = iter(parts)

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[next(replies)])

    return FunctionModel(reply)


def test_an_agent_of_pydantic_ai_runs_with_its_calls_and_usage() -> None:
    """With TestModel, which calls every tool, the session has the call and the tokens of both requests."""
    result = run(make_pydantic_agent(TestModel(custom_output_text=ANSWER)))
    assert verdicts(result) == ALL_PASS
    assert calls(result) == [("weather", {"city": "a"}, True)]
    session = result.trial.session
    assert session is not None
    assert [call.model for call in session[ModelCall]] == ["test", "test"]
    assert result.trial.usage is not None
    assert (result.trial.usage.total_tokens or 0) > 0


def test_a_retried_tool_of_pydantic_ai_failed_once() -> None:
    """The first call asked for a retry, the second succeeded."""
    model = scripted(
        ToolCallPart("weather", {"city": "Atlantis"}), ToolCallPart("weather", {"city": "Rome"}), TextPart(ANSWER)
    )
    result = run(make_pydantic_agent(model))
    assert [success for _, _, success in calls(result)] == [False, True]
    assert verdicts(result) == {**ALL_PASS, "all_tools_succeeded": False}


def test_a_structured_output_of_pydantic_ai_is_the_output() -> None:
    """The object is judged, and the call that carried it is in the session."""
    model = scripted(ToolCallPart("final_result", {"name": "Rome", "size": 3}))
    result = run(make_pydantic_agent(model, output_type=City), [tool_called("final_result")])
    assert verdicts(result) == {"tool_called": True}
    assert result.output == {"name": "Rome", "size": 3}


def test_the_session_of_an_agent_of_pydantic_ai_survives_its_exception() -> None:
    """An error in a tool is the error of the trial; the request of the call is in the session."""
    result = run(make_pydantic_agent(scripted(ToolCallPart("weather", {"city": "Nowhere"}))))
    assert result.trial.error is not None
    assert "the map is lost" in str(result.trial.error)
    assert result.trial.session is not None
    assert [call.name for item in result.trial.session[Message] for call in item.tool_calls] == ["weather"]


# smolagents


class ScriptedSmolModel(smolagents.Model):  # type: ignore[misc]
    """A model of smolagents that answers from a list of calls."""

    def __init__(self, *requests: tuple[str, dict[str, Any]]) -> None:
        super().__init__(model_id="scripted")
        self._requests = list(requests)

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        name, arguments = self._requests.pop(0)
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(id=f"c{len(self._requests)}", type="function", function=function)
        usage = TokenUsage(input_tokens=9, output_tokens=2)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call], token_usage=usage)


class WeatherTool(smolagents.Tool):  # type: ignore[misc]
    name = "weather"
    description = "Tell the weather."
    inputs: ClassVar[dict[str, Any]] = {"city": {"type": "string", "description": "the city"}}
    output_type = "string"

    def forward(self, city: str) -> str:
        return str(cast(Any, weather).func(city))


def make_smolagent(*cities: str, answer: str = ANSWER) -> Any:
    requests = [("weather", {"city": city}) for city in cities]
    model = ScriptedSmolModel(*requests, *([("final_answer", {"answer": answer})] if answer else []))
    return smolagents.ToolCallingAgent(tools=[WeatherTool()], model=model, verbosity_level=0)


def test_an_agent_of_smolagents_runs_with_its_calls_and_usage() -> None:
    """`run` is called and not the agent itself, which would answer as a managed agent."""
    result = run(make_smolagent("Rome"))
    assert verdicts(result) == ALL_PASS
    assert [name for name, _, _ in calls(result)] == ["weather", "final_answer"]
    assert result.trial.usage == Usage(18, 4)
    assert result.trial.session is not None
    assert {call.model for call in result.trial.session[ModelCall]} == {"scripted"}


def test_a_failed_tool_of_smolagents_is_a_failed_call() -> None:
    """The step of the failure lists no call; it is recovered."""
    result = run(make_smolagent("Atlantis"))
    assert [(name, success) for name, _, success in calls(result)] == [("weather", False), ("final_answer", True)]
    assert verdicts(result) == {**ALL_PASS, "all_tools_succeeded": False}


def test_the_session_of_an_agent_of_smolagents_survives_its_exception() -> None:
    """If the model fails, the trial has an error and the calls until then."""
    result = run(make_smolagent("Rome", answer=""))
    assert result.trial.error is not None
    assert "pop from empty list" in str(result.trial.error)
    assert calls(result) == [("weather", {"city": "Rome"}, True)]


def test_runs_of_one_smolagents_agent_do_not_mix() -> None:
    """The agent keeps its steps in itself, so concurrent samples wait for each other."""
    requests = [("final_answer", {"answer": ANSWER})] * 6
    agent = smolagents.ToolCallingAgent(tools=[], model=ScriptedSmolModel(*requests), verbosity_level=0)
    samples = [{"id": str(number), "input": f"Question {number}"} for number in range(6)]
    report = evaluate(agent, samples, tool_called("final_answer"), concurrency=6, history=None)
    assert report.pass_rate == 1.0
    for result in report.results:
        assert result.trial.session is not None
        (question,) = (item for item in result.trial.session[Message] if item.role == "user")
        assert question.content == f"Question {result.sample_id}"
        assert len(result.trial.session[ToolCall]) == 1


# Identities


def reply_always(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart(ANSWER)])


class AlwaysAnswers(agents.Model):
    async def get_response(self, *_: Any, **__: Any) -> Any:
        return agents.ModelResponse(output=[say(ANSWER)], usage=AgentsUsage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


class FinalAnswers(smolagents.Model):  # type: ignore[misc]
    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        function = ChatMessageToolCallFunction(name="final_answer", arguments={"answer": ANSWER})
        call = ChatMessageToolCall(id="c1", type="function", function=function)
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


class OtherWeatherTool(WeatherTool):
    def forward(self, city: str) -> str:
        return "rain"


AGENTS: dict[str, tuple[Any, Any]] = {
    "openai": (
        lambda: agents.Agent(name="A", model=AlwaysAnswers(), instructions="Be brief."),
        lambda: agents.Agent(name="A", model=AlwaysAnswers(), instructions="Be long."),
    ),
    "pydantic-ai": (
        lambda: PydanticAgent(FunctionModel(reply_always), instructions="Be brief."),
        lambda: PydanticAgent(FunctionModel(reply_always), instructions="Be long."),
    ),
    "smolagents": (
        lambda: smolagents.ToolCallingAgent(tools=[WeatherTool()], model=FinalAnswers(), verbosity_level=0),
        lambda: smolagents.ToolCallingAgent(tools=[OtherWeatherTool()], model=FinalAnswers(), verbosity_level=0),
    ),
}


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_keeps_its_identity_when_it_runs(name: str) -> None:
    """A run does not change the identity, so results can be cached; other instructions or tools do."""
    make, make_other = AGENTS[name]
    agent = make()
    identity = as_target(agent).spec.identity
    assert run(agent, [exact_match]).passed
    assert as_target(agent).spec.identity == identity
    assert as_target(make()).spec.identity == identity
    assert as_target(make_other()).spec.identity != identity


# Claude Agent SDK and CrewAI: objects of the same shape; test_agent_packages.py uses the packages.


def make_object(value: Any) -> Any:
    """An object of the class that a record names under `_class`."""
    if isinstance(value, list):
        return [make_object(item) for item in value]
    if not isinstance(value, dict) or "_class" not in value:
        return value
    item = type(value["_class"], (), {})()
    for key, entry in value.items():
        if key != "_class":
            setattr(item, key, make_object(entry))
    return item


@pytest.fixture
def _claude_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", types.ModuleType("claude_agent_sdk"))


CLAUDE_MESSAGES: list[Any] = [
    {"_class": "SystemMessage", "subtype": "init", "data": {"session_id": "s1", "model": "large"}},
    {"_class": "AssistantMessage", "model": "large", "message_id": "m1", "content": [
        {"_class": "ThinkingBlock", "thinking": "Look.", "signature": "x"},
        {"_class": "ToolUseBlock", "id": "t1", "name": "weather", "input": {"city": "Rome"}}],
     "usage": {"input_tokens": 3, "output_tokens": 1}, "parent_tool_use_id": None},
    {"_class": "UserMessage", "parent_tool_use_id": None, "content": [
        {"_class": "ToolResultBlock", "tool_use_id": "t1", "content": "sunny", "is_error": None}]},
    {"_class": "AssistantMessage", "model": "large", "message_id": "m2", "parent_tool_use_id": None, "content": [
        {"_class": "TextBlock", "text": ANSWER}], "usage": {"input_tokens": 4, "output_tokens": 1}},
    {"_class": "ResultMessage", "subtype": "success", "is_error": False, "session_id": "s1", "result": ANSWER,
     "total_cost_usd": 0.5, "usage": {"input_tokens": 7, "output_tokens": 20}, "model_usage": {
         "large": {"inputTokens": 7, "outputTokens": 20, "costUSD": 0.5}}},
]  # fmt: skip


@pytest.mark.usefixtures("_claude_sdk")
def test_messages_of_the_claude_agent_sdk_are_a_session() -> None:
    """A function that collects the messages of `query` gives output, calls, tokens and cost."""
    result = run(lambda question: make_object(CLAUDE_MESSAGES))
    assert verdicts(result) == ALL_PASS
    assert result.trial.usage == Usage(7, 20, None, 0.5)


@pytest.mark.usefixtures("_claude_sdk")
def test_the_last_message_of_the_claude_agent_sdk_has_no_calls() -> None:
    """A function that returns only the result gives output, tokens and cost; evaluators of tool calls skip."""
    ending = make_object(CLAUDE_MESSAGES[-1])
    type(ending).__module__ = "claude_agent_sdk.types"
    result = run(lambda question: ending, [exact_match, tool_not_called("book")])
    assert verdicts(result) == {"exact_match": True, "tool_not_called": None}
    assert result.trial.usage == Usage(7, 20, None, 0.5)


@pytest.mark.usefixtures("_claude_sdk")
def test_an_error_of_the_claude_agent_sdk_is_the_error_of_the_trial() -> None:
    """A run that ended without an answer failed; its calls are in the session."""
    ending = {"_class": "ResultMessage", "subtype": "error_max_turns", "is_error": True, "session_id": "s1",
              "errors": ["Reached maximum number of turns (1)"]}  # fmt: skip
    result = run(lambda question: make_object([*CLAUDE_MESSAGES[:3], ending]))
    assert result.trial.error is not None
    assert "error_max_turns: Reached maximum number of turns (1)" in str(result.trial.error)
    assert calls(result) == [("weather", {"city": "Rome"}, True)]


@pytest.mark.usefixtures("_claude_sdk")
def test_real_messages_of_the_claude_agent_sdk_are_read() -> None:
    """The messages that the SDK's parser wrote have 4 calls, 1 failure and the totals of the result."""
    path = DATA / "11_formats" / "claude" / "sdk_messages.json"
    if not path.exists():
        pytest.skip(f"there are no real messages at {path} (set PROCTOR_DATA)")
    messages = json.loads(path.read_text(encoding="utf-8"))
    result = run(lambda question: make_object(messages), [tool_called("Read")])
    assert result.output == "b.py prints one line."
    assert sorted(name for name, _, _ in calls(result)) == ["Bash", "Read", "Read", "Task"]
    assert [success for _, _, success in calls(result)].count(False) == 1
    assert result.trial.usage == Usage(4270, 117, 3700, 0.0123, 250)
    assert result.trial.session is not None
    assert not [event for event in result.trial.session if isinstance(event, CustomEvent) and event.kind == "Message"]


def make_crew_output(*messages: dict[str, Any], requests: int) -> Any:
    """Two requests of CrewAI 1.15 cost 40 and 4 tokens here."""
    output = type("CrewOutput", (), {"__module__": "crewai.crews.crew_output"})()
    output.raw, output.pydantic, output.json_dict = ANSWER, None, None
    output.token_usage = {"prompt_tokens": 20 * requests, "completion_tokens": 2 * requests,
                          "successful_requests": requests}  # fmt: skip
    output.tasks_output = [make_object({"_class": "TaskOutput", "messages": list(messages)})]
    return output


CREW_MESSAGES: tuple[dict[str, Any], ...] = (
    {"role": "system", "content": "You are a forecaster."},
    {"role": "user", "content": "Current Task: Weather in Rome?"},
    {"role": "assistant", "content": "", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}]},
    {"role": "tool", "content": "sunny", "tool_call_id": "c1", "name": "weather"},
    {"role": "assistant", "content": ANSWER},
)  # fmt: skip
WRITTEN_CALL = {"role": "assistant", "content": 'Thought: look\nAction: weather\nAction Input: {"city": "Rome"}'}


def test_the_messages_of_a_crew_are_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its tool calls and tokens are those of CrewAI; calls that are only in a text are unknown, not absent."""
    monkeypatch.setitem(sys.modules, "crewai", types.ModuleType("crewai"))
    result = run(lambda question: make_crew_output(*CREW_MESSAGES, requests=2))
    assert verdicts(result) == ALL_PASS
    assert result.trial.usage == Usage(40, 4)
    written = make_crew_output(WRITTEN_CALL, CREW_MESSAGES[-1], requests=2)
    result = run(lambda question: written, [exact_match, tool_not_called("weather")])
    assert verdicts(result) == {"exact_match": True, "tool_not_called": None}
    assert result.trial.usage == Usage(40, 4)


def test_tokens_of_earlier_kickoffs_are_not_those_of_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """CrewAI adds up the tokens of a crew; a total of more requests than answers is left out with a warning."""
    monkeypatch.setitem(sys.modules, "crewai", types.ModuleType("crewai"))
    report = evaluate(lambda q: make_crew_output(*CREW_MESSAGES, requests=4), SAMPLES, exact_match, history=None)
    assert [result.trial.usage for result in report.results] == [None]
    assert report.metadata is not None
    assert any("CrewAI reports the sum of all kickoffs" in warning for warning in report.metadata.warnings)


def test_an_agent_of_the_users_own_package_is_not_taken_for_another() -> None:
    """A class `Agent` in a package called `agents` that is not the SDK is refused like any object."""
    own = type("Agent", (), {"__module__": "agents.mine"})()
    with pytest.raises(Exception, match="is not a target"):
        as_target(own)
