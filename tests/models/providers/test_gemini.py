"""Gemini: addresses, requests, responses."""

from __future__ import annotations

import asyncio
import http.server
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from proctor.errors import CallFailed, ModelError
from proctor.models import connect as connections
from proctor.models import gemini
from proctor.models.gemini import GeminiAdapter, GeminiWire, connect
from proctor.models.http.endpoint import UnexpectedBody
from proctor.models.model_calls import call_key
from proctor.records.model import ModelRequest, ModelResponse, TokenLogprobs, ToolSpec
from proctor.records.session import Message, ToolCall, Usage
from proctor.testing import Fault, ScriptedReply
from tests.servers.model_server import ModelServer

KEY = "key-only-for-tests-0123"
HELLO = ModelRequest((Message("user", "Hello"),))
NOTHING: frozenset[str] = frozenset()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_BASE_URL", "PROCTOR_PRICES"):
        monkeypatch.delenv(name, raising=False)


def adapter(server: ModelServer, **options: Any) -> GeminiAdapter:
    options = {"retries": 1, "retry_delay": 0.01, "timeout": 5.0, "api_key": KEY, **options}
    return GeminiAdapter("gemini-2.5-flash", base_url=server.url, **options)


def ask(model: GeminiAdapter, request: ModelRequest = HELLO) -> ModelResponse:
    return asyncio.run(model.complete(request, timeout=9.0))


def body(request: ModelRequest, without: frozenset[str] = NOTHING) -> Any:
    return msgspec.json.decode(GeminiWire().write("m", request, without))


def read(answer: Any) -> ModelResponse:
    return GeminiWire().read(msgspec.json.encode(answer), HELLO)


def candidate(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **more}]}


def test_the_address_connects_with_the_environments_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either of two variables has the key; the error names both."""
    with pytest.raises(ModelError, match="GEMINI_API_KEY or GOOGLE_API_KEY is not set"):
        connections.provider("gemini:gemini-2.5-flash")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    result = connections.provider("gemini:gemini-2.5-flash")
    assert repr(result) == "GeminiAdapter('gemini:gemini-2.5-flash')"


@pytest.mark.parametrize("end", ["", "/v1beta", "/v1beta/"])
def test_the_model_is_in_the_path_and_the_key_in_a_header(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """The key is never part of the URL, which servers and proxies log."""
    monkeypatch.setenv("GEMINI_BASE_URL", server.url + end)
    ask(GeminiAdapter("models/gemini-2.5-flash", api_key=KEY))
    call = server.calls[0]
    assert call.path == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert call.headers["x-goog-api-key"] == KEY


def test_list_models_returns_sorted_names() -> None:
    """Without the folder that Google adds to them."""
    with ModelServer(models=["gemini-b", "gemini-a"], key=KEY) as server:
        result = asyncio.run(gemini.list_models(base_url=server.url, api_key=KEY))
    assert result == ["gemini-a", "gemini-b"]


class Pages(http.server.BaseHTTPRequestHandler):
    """A list of models in two pages; one of them cannot be asked for text."""

    def do_GET(self) -> None:
        able = {"supportedGenerationMethods": ["generateContent"]}
        page: dict[str, Any] = {"models": [{"name": "models/z", **able}, {"name": "models/embed"}]}
        if "pageToken=p%2F2" in self.path:
            page = {"models": [{"name": "models/a", **able}]}
        else:
            page["nextPageToken"] = "p/2"
        data = msgspec.json.encode(page)
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""


def test_list_models_reads_all_pages() -> None:
    """Only models that generate content are listed."""
    with http.server.HTTPServer(("127.0.0.1", 0), Pages) as pages:
        thread = threading.Thread(target=pages.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{pages.server_port}"
            result = asyncio.run(gemini.list_models(base_url=url, api_key=KEY))
        finally:
            pages.shutdown()
            thread.join()
    assert result == ["a", "z"]


def test_a_conversation_with_tools_is_written() -> None:
    """System messages are separate; a tool result names its tool, even if only the call did."""
    request = ModelRequest(
        (
            Message("system", "Be brief."),
            Message("user", "Weather?"),
            Message("user", [{"type": "text", "text": "Today."}, {"type": "x", "inlineData": 1}]),
            Message("assistant", "", tool_calls=(ToolCall("look", {"at": "sky"}),)),
            Message("tool", {"sun": True}),
            Message("tool", "fresh", name="smell"),
            Message("assistant", "Fine."),
        ),
        tools=(ToolSpec("look", "Look somewhere.", {"type": "object"}), ToolSpec("smell")),
    )
    written = body(request)
    assert written["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert written["contents"] == [
        {"role": "user", "parts": [{"text": "Weather?"}, {"text": "Today."}, {"type": "x", "inlineData": 1}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"at": "sky"}}}]},
        {
            "role": "user",
            "parts": [
                {"functionResponse": {"name": "look", "response": {"sun": True}}},
                {"functionResponse": {"name": "smell", "response": {"result": "fresh"}}},
            ],
        },
        {"role": "model", "parts": [{"text": "Fine."}]},
    ]
    assert written["tools"] == [
        {
            "functionDeclarations": [
                {"name": "look", "description": "Look somewhere.", "parametersJsonSchema": {"type": "object"}},
                {"name": "smell"},
            ]
        }
    ]


def test_only_given_settings_are_written() -> None:
    """None leaves a setting to the provider."""
    assert set(body(HELLO)) == {"contents"}
    request = ModelRequest(
        HELLO.messages,
        temperature=0.0,
        max_tokens=9,
        seed=4,
        top_logprobs=5,
        schema={"type": "array", "items": {"const": 1}},
    )
    settings = {
        "temperature": 0.0,
        "maxOutputTokens": 9,
        "seed": 4,
        "responseLogprobs": True,
        "logprobs": 5,
        "responseMimeType": "application/json",
        "responseJsonSchema": {"type": "array", "items": {"enum": [1]}},
    }
    assert body(request)["generationConfig"] == settings
    del settings["responseLogprobs"], settings["logprobs"]
    assert body(request, frozenset({"top_logprobs"}))["generationConfig"] == settings


def test_a_response_is_read_completely(server: ModelServer) -> None:
    """100 input tokens, of which 60 cached, 7 output, at 0.30, 0.03 and 2.50 per million."""
    server.answer = lambda asked: ScriptedReply("Paris", usage=Usage(100, 7, cached_tokens=60))
    result = ask(adapter(server))
    assert (result.text, result.model, result.finish_reason) == ("Paris", "gemini-2.5-flash", "stop")
    assert msgspec.structs.replace(result.usage, cost=None) == Usage(100, 7, 60)
    assert result.cost == pytest.approx((40 * 0.30 + 60 * 0.03 + 7 * 2.5) / 1e6)
    assert result.raw["candidates"]


def test_thoughts_cost_but_are_not_in_the_text() -> None:
    """They are charged as output."""
    answer = candidate({"text": "hm", "thought": True}, {"text": "Paris"}, finishReason="STOP")
    counts = {"promptTokenCount": 5, "candidatesTokenCount": 1, "thoughtsTokenCount": 30}
    parsed = read({**answer, "usageMetadata": counts})
    assert (parsed.text, parsed.usage) == ("Paris", Usage(5, 31))


def test_thought_signatures_are_sent_back() -> None:
    """Newer models reject a tool call that returns without its signature."""
    part = {"functionCall": {"name": "look", "args": {"at": 1}}, "thoughtSignature": "c2ln"}
    (call,) = read(candidate(part, finishReason="STOP")).tool_calls
    again = body(
        ModelRequest(
            (Message("user", "Weather?"), Message("assistant", "", tool_calls=(call,)), Message("tool", "rain")),
            tools=(ToolSpec("look"),),
        )
    )
    assert again["contents"][1]["parts"] == [part]


def test_tool_calls_are_read() -> None:
    """The finish reason is then "tool_calls", whatever the provider says."""
    parsed = read(candidate({"functionCall": {"name": "look", "args": {"at": 1}}}, finishReason="STOP"))
    assert parsed.tool_calls == (ToolCall("look", {"at": 1}),)
    assert parsed.finish_reason == "tool_calls"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"promptFeedback": {"blockReason": "SAFETY"}}, "the prompt was blocked: SAFETY"),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "the answer was withheld: SAFETY"),
        (candidate({"text": "Take"}, finishReason="RECITATION"), "Take"),
        (candidate(finishReason="SPII", finishMessage="Too personal."), "Too personal."),
    ],
)
def test_refusals_are_responses(answer: dict[str, Any], expected: str) -> None:
    """Blocked prompts and withheld answers."""
    parsed = read(answer)
    assert (parsed.refusal, parsed.finish_reason) == (expected, "refusal")


@pytest.mark.parametrize(
    ("finished", "reason"), [("STOP", "stop"), ("MAX_TOKENS", "length"), ("OTHER", "other"), (None, None)]
)
def test_finish_reasons_are_mapped(finished: str | None, reason: str | None) -> None:
    """The common reasons have one name; others keep theirs."""
    assert read(candidate({"text": "x"}, finishReason=finished)).finish_reason == reason


def test_an_empty_answer_is_valid() -> None:
    """A candidate without content is not a failure."""
    parsed = read({"candidates": [{"finishReason": "STOP"}]})
    assert (parsed.text, parsed.refusal, parsed.usage) == ("", None, Usage())


def test_logprobs_are_read() -> None:
    """Each token with its alternatives, if there are any."""
    chosen = [{"token": "A", "logProbability": -0.1}, {"token": "B", "logProbability": -2.0}]
    top = [{"candidates": [{"token": "C", "logProbability": -3.0}]}]
    result = {"chosenCandidates": chosen, "topCandidates": top}
    parsed = read(candidate({"text": "AB"}, logprobsResult=result))
    assert parsed.logprobs == (TokenLogprobs("A", -0.1, {"C": -3.0}), TokenLogprobs("B", -2.0))


@pytest.mark.parametrize("answer", [{}, {"candidates": []}, {"candidates": [7]}, []])
def test_an_unexpected_body_is_an_error(answer: Any) -> None:
    """It is never an empty text."""
    with pytest.raises(UnexpectedBody):
        read(answer)


def complaint(message: str) -> Fault:
    error = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
    return Fault.status(400, body=msgspec.json.encode(error))


def test_rejected_logprobs_are_left_out(server: ModelServer) -> None:
    """From then on; the response has none."""
    server.faults.append(complaint("Logprobs is not enabled for this model"))
    model = adapter(server)
    request = ModelRequest(HELLO.messages, top_logprobs=3)
    result = ask(model, request)
    assert (result.attempts, result.logprobs) == (2, ())
    assert ask(model, request).attempts == 1
    with_it = ["logprobs" in call.body.get("generationConfig", {}) for call in server.calls]
    assert with_it == [True, False, False]


def test_other_rejections_are_errors(server: ModelServer) -> None:
    """Nothing is left out that the server did not name."""
    server.faults.append(complaint("the request is too long"))
    with pytest.raises(CallFailed, match="the request is too long"):
        ask(adapter(server), ModelRequest(HELLO.messages, top_logprobs=3))


def test_another_server_never_gets_the_providers_key(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name stays, the identity names the server; its key is PROCTOR_API_KEY or passed."""
    monkeypatch.delenv("PROCTOR_API_KEY", raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", "sk-not-for-others")
    official = connect("gemini:gemini-2.5-flash")
    other = connect("gemini:gemini-2.5-flash", base_url=server.url)
    assert (official.model, official.identity) == ("gemini:gemini-2.5-flash", "")
    assert (other.model, other.identity) == ("gemini:gemini-2.5-flash", server.url)
    assert call_key(official, HELLO) != call_key(other, HELLO)
    asyncio.run(other.complete(HELLO, timeout=9.0))
    monkeypatch.setenv("PROCTOR_API_KEY", "sk-for-others")
    asyncio.run(connect("gemini:gemini-2.5-flash", base_url=server.url).complete(HELLO, timeout=9.0))
    monkeypatch.setenv("GEMINI_BASE_URL", server.url)
    gateway = connect("gemini:gemini-2.5-flash")
    assert gateway.identity == server.url
    asyncio.run(gateway.complete(HELLO, timeout=9.0))
    sent = [call.headers.get("x-goog-api-key") for call in server.calls]
    assert sent == [None, "sk-for-others", "sk-not-for-others"]
