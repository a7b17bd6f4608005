"""The official clients work with the model server, so it speaks the real wire formats."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pydantic
import pytest

from proctor.records.model import TokenLogprobs
from proctor.records.session import ToolCall, Usage
from proctor.testing import Fault, RecordedRequest, ScriptedReply
from tests.servers.model_server import ModelServer

KEY = "sk-loopback-test"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class City(pydantic.BaseModel):
    name: str
    people: int = pydantic.Field(ge=0)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(key=KEY) as server:
        yield server


@pytest.fixture
def gpt(server: ModelServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, timeout=10) as client:
        yield client


@pytest.fixture
def claude(server: ModelServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key=KEY, max_retries=0, timeout=10) as client:
        yield client


def calls_weather(asked: RecordedRequest) -> str | ScriptedReply:
    """A model that calls the weather tool and then reports its result."""
    if asked.messages[-1].role == "tool":
        return f"It is {asked.messages[-1].content}."
    return ScriptedReply(tool_calls=(ToolCall("weather", {"city": "Paris"}, call_id="c1"),))


def test_openai_chats(server: ModelServer, gpt: openai.OpenAI) -> None:
    """The client reads text, usage and finish reason, and its settings arrive."""
    server.answer = lambda _: ScriptedReply("Paris", usage=Usage(9, 1, 4))
    told = gpt.chat.completions.create(
        model="gpt-4o-mini",
        messages=[
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "Capital of France?"}]},
        ],
        temperature=0.0,
        max_completion_tokens=5,
        seed=3,
    )
    assert told.choices[0].message.content == "Paris"
    assert told.choices[0].finish_reason == "stop"
    assert told.usage is not None
    assert told.usage.prompt_tokens_details is not None
    assert (told.usage.prompt_tokens, told.usage.total_tokens) == (9, 10)
    assert told.usage.prompt_tokens_details.cached_tokens == 4
    asked = server.calls[0]
    assert [(m.role, m.content) for m in asked.messages] == [("system", "Be brief."), ("user", "Capital of France?")]
    assert asked.settings == {"temperature": 0.0, "max_tokens": 5, "seed": 3}
    assert asked.model == "gpt-4o-mini"


def test_openai_chats_asynchronously(server: ModelServer) -> None:
    """Each of many concurrent calls gets its own reply."""
    server.answer = lambda asked: asked.text.upper()

    async def main() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key=KEY) as client:
            told = await asyncio.gather(
                *(
                    client.chat.completions.create(model="m", messages=[{"role": "user", "content": f"word {n}"}])
                    for n in range(20)
                )
            )
        return [one.choices[0].message.content for one in told]

    assert asyncio.run(main()) == [f"WORD {n}" for n in range(20)]


def test_openai_parses_into_a_type(gpt: openai.OpenAI) -> None:
    """`parse` sends a strict schema, and the default reply is valid for it."""
    told = gpt.chat.completions.parse(
        model="m", messages=[{"role": "user", "content": "A city?"}], response_format=City
    )
    assert told.choices[0].message.parsed == City(name="", people=0)


def test_openai_reads_a_refusal(server: ModelServer, gpt: openai.OpenAI) -> None:
    """A refusal has its own field and no content."""
    server.answer = lambda _: ScriptedReply(refusal="No.")
    told = gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])
    assert told.choices[0].message.refusal == "No."
    assert told.choices[0].message.content is None


def test_openai_calls_tools(server: ModelServer, gpt: openai.OpenAI) -> None:
    """The client reads the call, sends its result and gets an answer."""
    server.answer = calls_weather
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
    talk: list[Any] = [{"role": "user", "content": "Weather in Paris?"}]
    first = gpt.chat.completions.create(model="m", messages=talk, tools=tools)
    assert first.choices[0].finish_reason == "tool_calls"
    talk.append(first.choices[0].message)
    talk.append({"role": "tool", "tool_call_id": "c1", "content": "18 degrees"})
    second = gpt.chat.completions.create(model="m", messages=talk, tools=tools)
    assert second.choices[0].message.content == "It is 18 degrees."
    assert server.calls[1].messages[1].tool_calls[0].arguments == {"city": "Paris"}


def test_openai_reads_logprobs(server: ModelServer, gpt: openai.OpenAI) -> None:
    """The most likely tokens come first, as many as requested."""
    others = {"No": -1.5, "Yes": -0.25, "Maybe": -4.0}
    server.answer = lambda _: ScriptedReply("Yes", logprobs=(TokenLogprobs("Yes", -0.25, others),))
    told = gpt.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "?"}], logprobs=True, top_logprobs=2
    )
    logprobs = told.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    token = logprobs.content[0]
    assert (token.token, token.logprob, token.bytes) == ("Yes", -0.25, [89, 101, 115])
    assert [(top.token, top.logprob) for top in token.top_logprobs] == [("Yes", -0.25), ("No", -1.5)]


@pytest.mark.parametrize("encoding", ["float", "base64", None])
def test_openai_embeds(server: ModelServer, gpt: openai.OpenAI, encoding: Any) -> None:
    """As numbers, and in base64 as the client requests by default."""
    server.embed = lambda text: [float(len(text)), 0.5]
    options = {} if encoding is None else {"encoding_format": encoding}
    told = gpt.embeddings.create(model="e", input=["a", "abc"], **options)
    if encoding == "base64":
        # RecordedRequest for by name, it is handed over as it came: little-endian floats 1.0 and 0.5.
        assert str(told.data[0].embedding) == "AACAPwAAAD8="
    else:
        assert [item.embedding for item in told.data] == [[1.0, 0.5], [3.0, 0.5]]
    assert server.calls[0].texts == ("a", "abc")


def test_openai_lists_models(gpt: openai.OpenAI) -> None:
    """Models are listed."""
    assert [model.id for model in gpt.models.list()] == ["loopback"]


def test_openai_raises_its_errors(server: ModelServer, gpt: openai.OpenAI) -> None:
    """Each status is the client's error for it, with the message."""
    kinds: dict[int, type[openai.APIStatusError]] = {
        400: openai.BadRequestError,
        401: openai.AuthenticationError,
        404: openai.NotFoundError,
        429: openai.RateLimitError,
        500: openai.InternalServerError,
    }
    for code, kind in kinds.items():
        server.faults.append(Fault.status(code))
        with pytest.raises(kind, match="an injected fault"):
            gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": "?"}])


def test_claude_chats(server: ModelServer, claude: anthropic.Anthropic) -> None:
    """The client reads text, usage and stop reason; cached tokens are not counted twice."""
    server.answer = lambda _: ScriptedReply("Paris", usage=Usage(9, 1, 4))
    told = claude.messages.create(
        model="claude-x", max_tokens=5, system="Be brief.", messages=[{"role": "user", "content": "Capital of France?"}]
    )
    assert told.content[0].type == "text"
    assert told.content[0].text == "Paris"
    assert told.stop_reason == "end_turn"
    assert (told.usage.input_tokens, told.usage.cache_read_input_tokens) == (5, 4)
    assert [(m.role, m.content) for m in server.calls[0].messages] == [
        ("system", "Be brief."),
        ("user", "Capital of France?"),
    ]


def test_claude_chats_asynchronously(server: ModelServer) -> None:
    """The asynchronous client works too."""

    async def main() -> str:
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key=KEY) as client:
            told = await client.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "?"}])
        assert told.content[0].type == "text"
        return told.content[0].text

    assert asyncio.run(main()) == "This is the loopback model."


def test_claude_parses_into_a_type(claude: anthropic.Anthropic) -> None:
    """`parse` sends the schema for structured outputs and reads the reply."""
    told = claude.messages.parse(
        model="m", max_tokens=50, messages=[{"role": "user", "content": "A city?"}], output_format=City
    )
    assert told.parsed_output == City(name="", people=0)


def test_claude_calls_tools(server: ModelServer, claude: anthropic.Anthropic) -> None:
    """The client reads the call, sends its result and gets an answer."""
    server.answer = calls_weather
    tools: Any = [{"name": "weather", "input_schema": PARAMETERS}]
    talk: list[Any] = [{"role": "user", "content": "Weather in Paris?"}]
    first = claude.messages.create(model="m", max_tokens=50, messages=talk, tools=tools)
    assert first.stop_reason == "tool_use"
    talk.append({"role": "assistant", "content": first.content})
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "18 degrees"}
    talk.append({"role": "user", "content": [result]})
    second = claude.messages.create(model="m", max_tokens=50, messages=talk, tools=tools)
    assert second.content[0].type == "text"
    assert second.content[0].text == "It is 18 degrees."


def test_claude_reads_a_refusal(server: ModelServer, claude: anthropic.Anthropic) -> None:
    """A refusal is a stop reason, with an explanation and no content."""
    server.answer = lambda _: ScriptedReply(refusal="No.")
    told = claude.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "?"}])
    assert told.stop_reason == "refusal"
    assert told.content == []
    assert told.stop_details is not None
    assert told.stop_details.explanation == "No."


def test_claude_lists_models(claude: anthropic.Anthropic) -> None:
    """In Anthropic's format, at the same path."""
    assert [model.id for model in claude.models.list()] == ["loopback"]


def test_claude_raises_its_errors(server: ModelServer, claude: anthropic.Anthropic) -> None:
    """Each status is the client's error for it."""
    kinds: dict[int, type[anthropic.APIStatusError]] = {
        401: anthropic.AuthenticationError,
        429: anthropic.RateLimitError,
        529: anthropic.APIStatusError,
    }
    for code, kind in kinds.items():
        server.faults.append(Fault.status(code))
        with pytest.raises(kind, match="an injected fault"):
            claude.messages.create(model="m", max_tokens=5, messages=[{"role": "user", "content": "?"}])


def test_another_key_is_refused(server: ModelServer) -> None:
    """The request is not recorded."""
    with (
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="wrong", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError),
    ):
        client.models.list()
    assert server.calls == []
