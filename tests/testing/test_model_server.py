"""The model server replies, injects faults, and releases everything when it closes."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest

import proctor.testing
from proctor.errors import UsageError
from proctor.testing import Fault, RecordedRequest, ScriptedReply
from proctor.testing.faults import RetryHeader
from proctor.testing.model_server import GREETING
from tests.servers.model_server import ModelServer, main

ROOT = Path(__file__).resolve().parents[2]
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def client(server: ModelServer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, timeout=10, trust_env=False) as client:
        yield client


def chat(client: httpx2.Client, **options: Any) -> httpx2.Response:
    return client.post("/v1/chat/completions", json=CHAT, **options)


def said(response: httpx2.Response) -> str:
    assert response.status_code == 200
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def test_requests_are_recorded(server: ModelServer, client: httpx2.Client) -> None:
    """Recorded requests have numbers, lower-case headers and the decoded body."""
    for number in range(3):
        chat(client, headers={"X-Number": str(number)})
    assert [asked.number for asked in server.calls] == [0, 1, 2]
    assert [asked.headers["x-number"] for asked in server.calls] == ["0", "1", "2"]
    assert server.calls[0].body == CHAT
    assert server.calls[0].text == "Hello"
    assert RecordedRequest("openai", "/").text == ""


def test_one_connection_serves_many_requests(server: ModelServer) -> None:
    """The connection is kept open between requests, and closed when the client asks for it."""
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), 10) as line:
        for _ in range(2):
            line.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
            assert line.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")
        line.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")
        assert line.recv(4096) == b""


@pytest.mark.parametrize("noise", [b"what?\r\n\r\n", b"GET / HTTP/1.1\r\ncontent-length: x\r\n\r\n"])
def test_a_connection_without_http_is_closed(server: ModelServer, noise: bytes) -> None:
    """Other connections still get responses."""
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), 10) as line:
        line.sendall(noise)
        assert line.recv(4096) == b""
    assert httpx2.get(f"{server.url}/v1/models", trust_env=False).status_code == 200


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/"), ("POST", "/v2/chat"), ("DELETE", "/v1/models"), ("POST", "/v1beta/models/m")]
)
def test_other_paths_are_not_found(client: httpx2.Client, method: str, path: str) -> None:
    """Paths that the real servers do not have are a 404."""
    assert client.request(method, path).status_code == 404


def test_faults_are_used_up_in_order(server: ModelServer, client: httpx2.Client) -> None:
    """Each request takes one fault; None is no fault; then `choose_fault` decides."""
    server.faults.extend([Fault.status(500), None, Fault.status(503)])
    server.choose_fault = lambda asked: Fault.status(418) if asked.number == 3 else None
    assert [chat(client).status_code for _ in range(5)] == [500, 200, 503, 418, 200]


def test_an_error_in_the_answer_function_is_reported(server: ModelServer, client: httpx2.Client) -> None:
    """It becomes a 400 with the error text, because clients do not retry a 400."""

    def answer(asked: RecordedRequest) -> str:
        raise KeyError(asked.text)

    server.answer = answer
    response = chat(client)
    assert response.status_code == 400
    assert "KeyError: 'Hello'" in response.json()["error"]["message"]


def test_models_can_be_limited() -> None:
    """A server with a list of models rejects other models."""
    with ModelServer(models=["one", "two"]) as server, httpx2.Client(base_url=server.url, trust_env=False) as client:
        listed = client.get("/v1/models").json()["data"]
        assert [model["id"] for model in listed] == ["one", "two"]
        assert chat(client).status_code == 404
        assert client.get("/v1beta/models").json()["models"][1]["name"] == "models/two"


def test_a_slow_answer_is_the_right_one(server: ModelServer, client: httpx2.Client) -> None:
    """`slow` and `drip` send the complete response later."""
    server.faults.extend([Fault.slow(0.1), Fault.drip(40, 0.01)])
    for _ in range(2):
        assert said(chat(client)) == GREETING
    assert not server.faults


def test_a_hanging_answer_never_comes(server: ModelServer, client: httpx2.Client) -> None:
    """`hang` sends nothing, then closes the connection."""
    server.faults.extend([Fault.hang(), Fault.hang(0.05)])
    with pytest.raises(httpx2.ReadTimeout):
        chat(client, timeout=0.1)
    with pytest.raises(httpx2.RemoteProtocolError):
        chat(client)


def test_a_connection_can_be_lost(server: ModelServer, client: httpx2.Client) -> None:
    """`close`, `reset_connection`, `truncate` and `wrong_length` are errors in the client."""
    server.faults.extend([Fault.close(), Fault.reset_connection(), Fault.truncate(30), Fault.wrong_length(5)])
    with pytest.raises(httpx2.RemoteProtocolError, match="without sending"):
        chat(client)
    with pytest.raises(httpx2.ReadError):
        chat(client)
    with pytest.raises(httpx2.RemoteProtocolError, match="received 30 bytes"):
        chat(client)
    with pytest.raises(httpx2.RemoteProtocolError, match="expected"):
        chat(client)
    assert said(chat(client)) == GREETING


def test_a_fault_can_replace_the_body(server: ModelServer, client: httpx2.Client) -> None:
    """`body` replaces it, `edit_json` edits it, `huge` makes it large."""
    server.faults.extend(
        [
            Fault.body("<p>no</p>", "text/html", 502),
            Fault.edit_json(lambda answer: answer.pop("usage")),
            Fault.huge(100_000),
            Fault(headers={"x-ratelimit-remaining-requests": "0"}),
        ]
    )
    page = chat(client)
    assert (page.status_code, page.text) == (502, "<p>no</p>")
    assert page.headers["content-type"] == "text/html"
    changed = chat(client)
    assert said(changed) == GREETING
    assert "usage" not in changed.json()
    assert len(chat(client).content) == 100_000
    assert chat(client).headers["x-ratelimit-remaining-requests"] == "0"


def test_rate_limits_use_the_headers_of_every_provider() -> None:
    """`rate_limit` and `status` write the headers as the providers do."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    told: dict[RetryHeader, dict[str, str]] = {
        "retry-after": {"retry-after": "1.5"},
        "date": {"retry-after": "Thu, 01 Jan 2026 12:00:01 GMT"},
        "milliseconds": {"retry-after-ms": "1500"},
        "openai": {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1.5s"},
        "anthropic": {
            "anthropic-ratelimit-requests-remaining": "0",
            "anthropic-ratelimit-requests-reset": "2026-01-01T12:00:01.500000Z",
        },
        "nothing": {},
    }
    for way, headers in told.items():
        assert Fault.rate_limit(1.5, way, noon) == Fault(code=429, headers=headers)
    resets = "x-ratelimit-reset-requests"
    written = [Fault.rate_limit(seconds, "openai").headers[resets] for seconds in (0.12, 1, 360)]
    assert written == ["120ms", "1s", "6m0s"]
    later = Fault.status(503, retry_after=noon + timedelta(seconds=9)).headers["retry-after"]
    assert parsedate_to_datetime(later) == noon + timedelta(seconds=9)
    assert Fault.status(429, retry_after="soon").headers == {"retry-after": "soon"}


def test_closing_releases_everything() -> None:
    """Closing drops hanging connections, ends the thread, and frees the address."""
    before = threading.active_count()
    with ModelServer() as server:
        server.faults.append(Fault.hang())
        url = server.url
        line = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 10)
        line.sendall(b"GET /v1/models HTTP/1.1\r\n\r\n")
        while not server.calls:
            time.sleep(0.01)
    with line:
        assert line.recv(10) == b""
    assert threading.active_count() == before
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{url}/v1/models", trust_env=False)
    server.close()


def test_a_disconnecting_client_does_not_disturb_others(server: ModelServer) -> None:
    server.faults.append(Fault(delay=0.05, content=b"x" * 5_000_000))
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), 10) as line:
        line.sendall(b"GET /v1/models HTTP/1.1\r\n\r\n")
    time.sleep(0.15)
    assert httpx2.get(f"{server.url}/v1/models", trust_env=False).status_code == 200


def test_a_stopped_server_has_no_url() -> None:
    """Starting on a port in use raises an error."""
    with pytest.raises(UsageError, match="not running"):
        _ = ModelServer().url
    with ModelServer() as first, pytest.raises(OSError, match="address already in use"):
        ModelServer(port=int(first.url.rpartition(":")[2])).__enter__()


def test_it_runs_as_a_process() -> None:
    """`python -m` prints the URL, injects faults at the given rates, and ends on SIGTERM."""
    command = [sys.executable, "-m", "tests.servers.model_server", "--delay", "0.001"]
    command += ["--limited", "0.3", "--broken", "0.3", "--seed", "1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with httpx2.Client(base_url=url, timeout=10, trust_env=False) as client:
                codes = [chat(client).status_code for _ in range(60)]
        finally:
            process.terminate()
        assert process.wait(10) == 0
    assert set(codes) == {200, 429, 500}


def test_its_command_line_can_be_interrupted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends the server quietly."""

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupted)
    main(["--port", "0"])
    assert capsys.readouterr().out.startswith("http://127.0.0.1:")


def test_public_names_can_be_imported() -> None:
    assert all(getattr(proctor.testing, name) for name in dir(proctor.testing))
    with pytest.raises(AttributeError, match="no attribute 'Sad'"):
        _ = getattr(proctor.testing, "Sad")  # noqa: B009


def test_the_finish_reason_is_inferred_unless_set() -> None:
    assert ScriptedReply("x").reason == "stop"
    assert ScriptedReply(refusal="no").reason == "refusal"
    assert ScriptedReply("x", finish_reason="length").reason == "length"
