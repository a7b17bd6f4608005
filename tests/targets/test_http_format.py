"""Endpoints with a format of their own: body template, response path, usage, streams."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Sample, evaluate
from proctor.errors import CallFailed, ProctorError, TargetError
from proctor.records.session import Usage
from proctor.records.trial import Reply
from proctor.targets.http import HttpTarget
from proctor.targets.http_format import BodyTemplate
from proctor.targets.resolve import as_target
from tests.support import run_command

OPENAI = {"messages": [{"role": "user", "content": "$input"}], "model": "small"}
SSE = "text/event-stream; charset=utf-8"
USAGE = {"input_tokens": "usage.prompt_tokens", "output_tokens": "usage.completion_tokens"}


class Endpoint:
    """A local server that keeps what it received and sends what a test sets, piece by piece."""

    def __init__(self) -> None:
        self.received: list[Any] = []
        self.pieces: list[bytes] = [b"{}"]
        self.content_type = "application/json"
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                endpoint.received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Type", endpoint.content_type)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in [*endpoint.pieces, b""]:
                    self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                    self.wfile.flush()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/chat"

    def send(self, *pieces: str | dict[str, Any], content_type: str = "application/json") -> None:
        self.pieces = [piece.encode() if isinstance(piece, str) else json.dumps(piece).encode() for piece in pieces]
        self.content_type = content_type


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    thread = Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join()


def ask(target: Any, sample_input: Any = "hello", **options: Any) -> Reply:
    async def call() -> Reply:
        try:
            reply: Reply = await target.call(Sample("s1", sample_input), options)
        finally:
            await target.close()
        return reply

    return asyncio.run(call())


def fail(target: Any, sample_input: Any = "hello") -> str:
    with pytest.raises(CallFailed) as caught:
        ask(target, sample_input)
    return str(caught.value)


def test_a_chat_endpoint_needs_only_a_body_and_a_path(endpoint: Endpoint) -> None:
    """The mapping of an eval file, nested or flat, sends the body and reads output and usage."""
    answer = {"choices": [{"message": {"content": "hi"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}
    endpoint.send(answer)
    options = {"body": OPENAI, "response": "choices[0].message.content", "usage": USAGE}
    for mapping in ({"http": {"url": endpoint.url, **options}}, {"http": endpoint.url, **options}):
        assert ask(as_target(mapping)) == Reply("hi", Usage(input_tokens=3, output_tokens=1))
    assert endpoint.received == [{"messages": [{"role": "user", "content": "hello"}], "model": "small"}] * 2


def test_placeholders_take_values_of_any_type_options_and_keys_of_the_input(endpoint: Endpoint) -> None:
    endpoint.send({"a": {"b": [5]}})
    body = {"all": "$input", "q": "Q: ${question}?", "t": "$temperature", "id": "$id", "price": "$$5", "n": [1, None]}
    target = HttpTarget(endpoint.url, body=body, response="a.b.0")
    assert ask(target, {"question": "why", "n": 2}, temperature=0.5).output == 5
    assert endpoint.received == [
        {"all": {"question": "why", "n": 2}, "q": "Q: why?", "t": 0.5, "id": "s1", "price": "$5", "n": [1, None]}
    ]
    assert target.check_options({"temperature": 1, "top_p": 1, "questions": 1}) == [
        "the body does not use the option 'top_p'; write $top_p where it belongs",
        "the body does not use the option 'questions'; write $questions instead of $question",
    ]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_a_value_is_inserted_as_it_is_and_never_parsed_again(value: Any) -> None:
    """A dollar sign or brace in an input stays as it is."""
    assert BodyTemplate({"a": ["$input"]}).fill(Sample("1", value), {}) == {"a": [value]}


def test_server_sent_events_and_json_lines_are_joined(endpoint: Endpoint) -> None:
    """Events without text are passed over, an event may arrive in pieces, and the last usage counts."""
    events = [
        'data: {"choices": [{"delta": {"role": "assistant"}}]}\n\n: a comment\n\nevent: message\r\nda',
        'ta: {"choices": [{"delta": {"content": "Pa"}}]}\r\n\r\ndata: {"choices": [{"delta": {"content": null}}]}\n\n',
        'data: {"choices": [{"delta": {"content": "ris é"}}]}\n\ndata: ',
        '{"usage": {"prompt_tokens": 9, "completion_tokens": 2}}',
        "\n\ndata: [DONE]\n\n",
    ]
    options: dict[str, Any] = {"body": OPENAI, "stream": True, "usage": USAGE}
    endpoint.send(*events, content_type=SSE)
    target = HttpTarget(endpoint.url, response="choices[0].delta.content", **options)
    assert ask(target) == Reply("Paris é", Usage(input_tokens=9, output_tokens=2))
    endpoint.send('{"token": "Pa"}\n{"tok', 'en": "ris"}\n\n{"end": true}\n', content_type="application/x-ndjson")
    assert ask(HttpTarget(endpoint.url, response="token", **options)).output == "Paris"
    endpoint.send("data: Pa\n\ndata: ris\ndata: !\n\n", content_type=SSE)
    assert ask(HttpTarget(endpoint.url, body=OPENAI, stream=True)).output == "Paris\n!"


def test_a_missing_path_shows_the_shape_of_the_response_without_its_contents(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and types only; the error of the endpoint is quoted without the secret that was sent."""
    monkeypatch.setenv("CHAT_TOKEN", "s3cr3t-t0k3n-value")
    headers = {"Authorization": "Bearer $CHAT_TOKEN"}
    target = HttpTarget(endpoint.url, body=OPENAI, response="reply.text", headers=headers, name="chat")
    endpoint.send({"choices": [{"text": "private"}], "n": 1, "error": {"message": "bad s3cr3t-t0k3n-value"}})
    assert fail(target) == (
        "chat sent no output at reply.text: the response has no field 'reply'; "
        'its error: {"message":"bad [hidden]"}\n'
        "The response has this shape: {choices: [{text: string}], n: number, error: {message: string}}\n"
        "Fix: in the target, write `response: choices[0].text`, if that is the output"
    )
    endpoint.send("<html>", content_type="text/html")
    assert fail(target).startswith("chat sent invalid JSON")
    stream = HttpTarget(endpoint.url, body=OPENAI, response="text", stream=True, name="chat")
    for body, message in {
        'data: {"delta": "x"}\n\n': "none of 1 events has text\nAn event has this shape: {delta: string}",
        "": "the stream has no events",
        "data: nope\n\n": "chat sent an event that is not JSON",
        'data: {"text": 3}\n\n': "chat: text in an event is not text but number",
        'data: {"text": "a"}\n\ndata: {"error": "overloaded"}\n\n': 'chat sent an error in its stream: "overloaded"',
        'data: {"text": "a"}\n\nevent: error\ndata: {"message": "late"}\n\n': "chat sent an error in its stream: {",
        'data: {"text": "a"}\n\ndata: {"type": "error", "message": "x"}\n\n': "chat sent an error in its stream: {",
        'data: {"text": "a"}\n\nevent: error\n\n': "chat sent an error in its stream",
        'data: {"text": "a"}\n\nevent: response.failed\ndata: {}\n\n': "chat sent an error in its stream",
        'data: {"text": "a"}\n\n<html>502 Bad Gateway</html>': "chat sent an error in its stream: <html>502",
    }.items():
        endpoint.send(body, content_type=SSE)
        assert message in fail(stream)


def _write_events(*events: Any) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in (*events,)) + "data: [DONE]\n\n"


def test_a_wrong_path_of_a_stream_names_the_path_in_its_events(endpoint: Endpoint) -> None:
    """The suggestion is a path that the events have, and with it the call works; each format has its own."""
    head = {"id": "chatcmpl-a-long-name", "object": "chat.completion.chunk", "model": "gpt-4.1-mini-2025-04-14"}
    openai = [{**head, "choices": [{"delta": delta}]} for delta in ({"role": "assistant"}, {"content": "Pa"})]
    anthropic = [
        {"type": "message_start", "message": {"id": "m1", "role": "assistant", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Pa"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Pa"}},
    ]
    for events, path, shape, output in (
        (openai, "choices[0].delta.content", "choices: [{delta: {content: string}}]", "Pa"),
        (anthropic, "delta.text", "{type: string, delta: {type: string, text: string}}", "PaPa"),
        ([{"message": {"content": "Pa"}, "done": False}], "message.content", "{message: {content: string}", "Pa"),
    ):
        endpoint.send(_write_events(*events), content_type=SSE)
        for wrong in ("choices[0].message.txt", "nothing"):
            message = fail(HttpTarget(endpoint.url, body=OPENAI, response=wrong, stream=True, name="chat"))
            assert f"Fix: in the target, write `response: {path}`, if that is the output" in message
            assert shape in message
        assert ask(HttpTarget(endpoint.url, body=OPENAI, response=path, stream=True)).output == output
    endpoint.send(_write_events(*openai), content_type=SSE)
    message = fail(HttpTarget(endpoint.url, body=OPENAI, response="choices[0].delta", stream=True))
    assert "is not text but {role: string}\nFix: in the target, write `response: choices[0].delta.content`" in message


def test_wrong_settings_are_refused_before_the_run() -> None:
    cases: dict[str, dict[str, Any]] = {
        "no placeholder": {"body": {"message": "hello"}},
        "a $ is not followed by a name": {"body": {"price": "$5 $input"}},
        "stream must be true or false": {"stream": "sse"},
        "may have the keys input_tokens and output_tokens": {"usage": {"tokens": "a"}},
        "is not a path to a field": {"response": "a..b"},
    }
    for message, options in cases.items():
        with pytest.raises(ProctorError, match="Fix: ") as caught:
            HttpTarget("http://localhost:1/chat", **options)
        assert message in str(caught.value)
    with pytest.raises(TargetError, match=r"has the placeholder \$question.*\nFix: .*\$input is the whole input"):
        ask(HttpTarget("http://localhost:1/chat", body={"q": "$question"}))
    with pytest.raises(
        TargetError, match=r"placeholders \$a and \$stile.*\nFix: .* \$stile: did you mean 'style'\? \$input"
    ):
        ask(HttpTarget("http://localhost:1/chat", body=["$stile", "$a"]), {"style": "formal"})
    with pytest.raises(TargetError, match="some keys are unknown"):
        as_target({"http": {"url": "http://localhost:1/chat", "responce": "a"}})


def test_the_identity_covers_body_and_paths() -> None:
    url = "http://localhost:1/chat"
    targets = [
        HttpTarget(url),
        HttpTarget(url, body={"a": "$input"}),
        HttpTarget(url, body={"b": "$input"}),
        HttpTarget(url, body={"a": "$input"}, response="x"),
        HttpTarget(url, body={"a": "$input"}, response="x", stream=True),
    ]
    assert len({target.spec.identity for target in targets}) == len(targets)


def test_the_command_line_takes_a_mapping(endpoint: Endpoint, tmp_path: Path) -> None:
    endpoint.send({"reply": "HEY"})
    (tmp_path / "d.jsonl").write_text('{"id": "1", "input": "hey", "expected": "HEY"}\n')
    target = f"{{http: '{endpoint.url}', body: {{message: $input}}, response: reply}}"
    arguments = ["run", "--dataset", "d.jsonl", "--evaluator", "exact_match", "--json", "--target"]
    result = run_command(*arguments, target, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert endpoint.received == [{"message": "hey"}]
    broken = run_command(*arguments, "{http: [", cwd=tmp_path)
    assert broken.returncode == 2
    assert "--target must be an address or a YAML mapping" in broken.stderr


def test_a_half_wrong_usage_is_unknown_and_warns_once(endpoint: Endpoint) -> None:
    """With one of two paths wrong, nothing is counted: a part of the tokens would look like all of them."""
    endpoint.send({"text": "hi", "usage": {"prompt_tokens": 30, "completion_tokens": 9}})
    paths = {"input_tokens": "usage.prompt", "output_tokens": "usage.completion_tokens"}
    target = HttpTarget(endpoint.url, body={"q": "$input"}, response="text", usage=paths)
    report = evaluate(target, [Sample("1", "a", "hi"), Sample("2", "b", "hi")], ["exact_match"])
    assert [result.trial.usage for result in report.results] == [None, None]
    assert report.metadata is not None
    [warning] = [text for text in report.metadata.warnings if "usage" in text]
    assert "no number at usage.prompt; its shape is {text: string, usage: {prompt_tokens: number" in warning


def test_messages_of_endpoints_have_the_line_to_type(endpoint: Endpoint) -> None:
    """A stream needs `stream`, another JSON needs `response`, and a path is shown as it was written."""
    endpoint.send('data: {"t": "a"}\n\n', content_type=SSE)
    assert fail(HttpTarget(endpoint.url, response="t")).endswith("Fix: add `stream: true` to the target")
    endpoint.send({"answer": "x", "model": "m"})
    assert "Fix: add `response: answer` to the target, if that is the output" in fail(HttpTarget(endpoint.url))
    endpoint.send({"score": 3, "ok": True})
    assert "Fix: add `response: PATH` to the target, where PATH is one of its keys: score, ok" in fail(
        HttpTarget(endpoint.url)
    )
    endpoint.send({"a": {"b": {"c": {"d": {"parts": [{"text": "x"}]}}}}})
    message = fail(HttpTarget(endpoint.url, response="a.b.c.d.parts[0].txt"))
    assert "no output at a.b.c.d.parts[0].txt: 'a.b.c.d.parts[0]' has no field 'txt'" in message
    assert "{a: {b: {c: {d: {parts: [{text: string}]}}}}}" in message


def test_mistakes_in_the_target_are_reported_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path with an open bracket, a misspelled key and an unset variable need no call."""
    with pytest.raises(TargetError, match=r"'a\[0.text' is not a path"):
        HttpTarget("http://127.0.0.1/", response="a[0.text")
    with pytest.raises(TargetError, match="ulr: did you mean 'url'"):
        as_target({"http": {"ulr": "http://127.0.0.1/"}})
    monkeypatch.delenv("NOPE_TOKEN", raising=False)
    with pytest.raises(TargetError) as error:
        HttpTarget("http://127.0.0.1/", headers={"Authorization": "Bearer $NOPE_TOKEN"})
    assert error.value.fix == "export NOPE_TOKEN=…"


def test_the_first_call_imports_nothing() -> None:
    """The client's modules and certificates are loaded with the target, so that the first latency is like the next."""
    script = """
import asyncio, sys
from proctor import Sample, evaluate
from proctor.models.http import endpoint
from proctor.targets.http import HttpTarget
HttpTarget("https://127.0.0.1:1/")
target = HttpTarget("http://127.0.0.1:1/")
loaded, certificates = set(sys.modules), dict(endpoint._certificates)
try:
    asyncio.run(target.call(Sample("1", "a"), {}))
except Exception as error:
    assert "could not be reached" in str(error), error
new = {name for name in sys.modules if name not in loaded and name.split(".")[0] in {"httpx2", "httpcore2", "anyio"}}
assert not new, new
assert len(certificates) == 1 and endpoint._certificates == certificates
"""
    subprocess.run([sys.executable, "-c", script], check=True)
