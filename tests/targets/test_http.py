"""HTTP endpoints as targets, with a local server."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from proctor.core.http_status import parse_retry_after
from proctor.errors import CallFailed, TargetError
from proctor.records.sample import Sample
from proctor.records.session import Usage
from proctor.records.trial import Reply
from proctor.targets import wire
from proctor.targets.http import HttpTarget

SAMPLE: Sample[str, str] = Sample("1", "hello", "never sent")
NOON = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)


class Asked(NamedTuple):
    """What the server was asked."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Answered(NamedTuple):
    """What the server says."""

    body: bytes
    status: int = 200
    kind: str | None = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    after: float = 0


class Listener(ThreadingHTTPServer):
    request_queue_size = 128


class Server:
    """An endpoint whose answer each test writes."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer: Callable[[Asked], Answered] = lambda asked: Answered(b'{"output": "hi"}')
        self.http = Listener(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.http.server_port}/answer"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                asked = Asked(self.command, self.path, dict(self.headers), json.loads(body))
                server.asked.append(asked)
                said = server.answer(asked)
                time.sleep(said.after)
                self.send_response(said.status)
                kind = [("Content-Type", said.kind)] if said.kind else []
                for name, value in [*kind, *said.headers, ("Content-Length", str(len(said.body)))]:
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said.body)

            def do_PUT(self) -> None:
                self.do_POST()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        return Handler


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = Thread(target=made.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.http.shutdown()
    made.http.server_close()
    thread.join()


def ask(target: HttpTarget, times: int = 1) -> Reply:
    async def asked() -> Reply:
        try:
            replies = [await target.call(SAMPLE, {"model": "small"}) for _ in range(times)]
        finally:
            await target.close()
        return replies[-1]

    return asyncio.run(asked())


def failure(target: HttpTarget) -> CallFailed:
    with pytest.raises(CallFailed) as caught:
        ask(target)
    return caught.value


def test_the_endpoint_gets_the_question_and_gives_the_output(server: Server) -> None:
    """Id, input and options are posted as JSON; output and usage come back."""
    server.answer = lambda asked: Answered(b'{"output": "hi", "usage": {"output_tokens": 2}}')
    assert ask(HttpTarget(server.url)) == Reply("hi", Usage(output_tokens=2))
    (asked,) = server.asked
    assert asked.method == "POST"
    assert asked.path == "/answer"
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.body == {"id": "1", "input": "hello", "options": {"model": "small"}}


def test_another_method_may_be_used(server: Server) -> None:
    """Methods that carry a body are allowed, in any case."""
    ask(HttpTarget(server.url, method="put"))
    assert server.asked[0].method == "PUT"


def test_plain_text_is_the_output(server: Server) -> None:
    """A text/plain answer needs no JSON around it."""
    server.answer = lambda asked: Answered("café".encode("latin-1"), kind="text/plain; charset=latin-1")
    assert ask(HttpTarget(server.url)) == Reply("café")
    server.answer = lambda asked: Answered("café".encode(), kind="text/plain")
    assert ask(HttpTarget(server.url)) == Reply("café")


@pytest.mark.parametrize("kind", [None, "application/problem+json", "Application/JSON"])
def test_json_is_recognised_by_several_content_types(server: Server, kind: str | None) -> None:
    """A response without a content type, or with a JSON-like one, is read as JSON."""
    server.answer = lambda asked: Answered(b'{"output": 1}', kind=kind)
    assert ask(HttpTarget(server.url)) == Reply(1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answered(b'{"answer": 1}'), "without an 'output': {\"answer\": 1}"),
        (Answered(b"4"), "sent invalid JSON"),
        (Answered(b'{"error": "no such model"}'), "no such model"),
        (Answered(b"<html>", kind="text/html"), "answered with 'text/html'; expected JSON"),
        (Answered(b"zip", headers=(("Content-Encoding", "gzip"),)), "DecodingError"),
        (Answered(b"", 302, headers=(("Location", "/other"),)), "answered 302 Found"),
        (Answered(b'{"detail": "who?"}', 401), 'answered 401 Unauthorized: {"detail": "who?"}'),
    ],
)
def test_final_failures_quote_the_response(server: Server, answer: Answered, message: str) -> None:
    """An invalid response fails the call for good and shows its beginning."""
    server.answer = lambda asked: answer
    found = failure(HttpTarget(server.url))
    assert message in str(found)
    assert not found.retryable


def test_only_the_beginning_of_a_long_error_is_shown(server: Server) -> None:
    """200 characters of the body are enough."""
    server.answer = lambda asked: Answered(b"x" * 5000, 400)
    assert str(failure(HttpTarget(server.url, name="it"))) == ("it answered 400 Bad Request: " + "x" * 200 + "…")


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_transient_errors_are_retryable(server: Server, status: int) -> None:
    """429 and server errors, after the time that the server names."""
    server.answer = lambda asked: Answered(b"", status, headers=(("Retry-After", "7"),))
    found = failure(HttpTarget(server.url))
    assert found.retryable
    assert found.retry_after == 7.0


def test_retry_after_may_be_a_date(server: Server) -> None:
    """The wait is the time that is left until then."""
    until = (datetime.now(UTC) + timedelta(seconds=60)).strftime("%a, %d %b %Y %H:%M:%S GMT")
    server.answer = lambda asked: Answered(b"", 503, headers=(("Retry-After", until),))
    wait = failure(HttpTarget(server.url)).retry_after
    assert wait is not None
    assert 30 < wait <= 60


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("", None),
        ("soon", None),
        ("-3", None),
        (" 12 ", 12.0),
        ("Wed, 01 May 2024 12:01:00 GMT", 60.0),
        ("Wed, 01 May 2024 12:01:00", 60.0),
        ("Wed, 01 May 2024 11:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_read_or_unknown(header: str, seconds: float | None) -> None:
    """Seconds and dates are read, the past is no wait, and anything else is unknown."""
    assert parse_retry_after(header, NOON) == seconds


def test_a_lost_connection_is_retryable() -> None:
    """The call fails and may succeed later."""
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        found = failure(HttpTarget(f"http://127.0.0.1:{deaf.getsockname()[1]}", name="it"))
    assert str(found).startswith("it could not be reached: ConnectError")
    assert "Fix: is it running?" in str(found)
    assert found.retryable


def test_a_timeout_is_retryable(server: Server) -> None:
    """A response that takes longer than the timeout is a transient error."""
    server.answer = lambda asked: Answered(b"", after=0.3)
    found = failure(HttpTarget(server.url, timeout=0.05))
    assert "ReadTimeout" in str(found)
    assert found.retryable


def test_a_response_that_is_too_long_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decompressed size counts."""
    monkeypatch.setattr(wire, "MAX_BYTES", 100_000)
    bomb = gzip.compress(b" " * 1_000_000)
    server.answer = lambda asked: Answered(bomb, headers=(("Content-Encoding", "gzip"),))
    assert "answered with more than 100,000 bytes" in str(failure(HttpTarget(server.url)))


def test_header_values_are_sent_and_never_shown(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token from the environment reaches the server and no error, spec or representation."""
    monkeypatch.setenv("TOKEN", "sk-12345")
    target = HttpTarget(server.url, headers={"Authorization": "Bearer $TOKEN"})
    for status, body in ((401, b"sk-12345 is no good"), (200, b'{"error": "sk-12345"}')):
        server.answer = lambda asked, say=(body, status): Answered(*say)  # type: ignore[misc]
        assert "sk-12345" not in str(failure(target))
    assert server.asked[0].headers["Authorization"] == "Bearer sk-12345"
    assert "sk-12345" not in repr(target) + repr(target.spec)


def test_secrets_in_the_address_are_never_shown(server: Server) -> None:
    """Neither a password, in any form, nor the values of a query, though a server quotes them."""
    url = server.url.replace("http://", "http://me:pass%20word@") + "?api_key=SECRETQUERY"
    quoted = b"bWU6cGFzcyB3b3Jk pass word pass%20word SECRETQUERY"
    server.answer = lambda asked: Answered(quoted, 401)
    assert "[hidden] [hidden] [hidden] [hidden]" in str(failure(HttpTarget(url)))


@pytest.mark.parametrize("written", ["{}", "{dashes}", "{json}", "{url}", "{base64}"])
def test_echoed_header_secrets_are_removed_from_outputs(
    server: Server, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """As plain text, escaped as in JSON or a URL, or in base64."""
    token = "tok/en-0123456789"
    monkeypatch.setenv("SERVICE_TOKEN", token)
    forms = {
        "dashes": token.replace("-", "\\u002d").replace("/", "\\/"),
        "json": json.dumps(json.dumps({"Authorization": token}))[1:-1],
        "url": quote(token, safe=""),
        "base64": b64encode(f"Bearer {token}".encode()).decode(),
    }
    result = written.format(token, **forms)
    headers = {"Authorization": "Bearer $SERVICE_TOKEN", "X-Tenant": "production"}
    target = HttpTarget(server.url, headers=headers)
    for kind in ("application/json", "text/plain"):
        body = f'{{"output": "production {result}"}}'.encode()
        server.answer = lambda asked, body=body, kind=kind: Answered(body, kind=kind)  # type: ignore[misc]
        output = str(ask(target).output)
        assert "[hidden]" in output
        assert token not in output
        assert result not in output
        assert "production" in output


def test_a_new_key_does_not_change_the_identity() -> None:
    """Secrets in headers and parameters are not part of it."""
    url = "https://example.com/answer"
    one, other = (
        HttpTarget(f"{url}?model=b&api_key={key}", headers={"X-Api-Key": key}).spec.identity
        for key in ("first-key", "second-key")
    )
    assert one == other != HttpTarget(f"{url}?model=c&api_key=x").spec.identity


def test_a_proxy_is_not_used_for_this_machine(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local endpoint is reached although the environment names a proxy."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert ask(HttpTarget(server.url)) == Reply("hi")


def test_cookies_are_not_stored(server: Server) -> None:
    """One call leaves nothing for the next."""
    server.answer = lambda asked: Answered(b'{"output": 1}', headers=(("Set-Cookie", "who=me"),))
    ask(HttpTarget(server.url), times=2)
    assert ["Cookie" in asked.headers for asked in server.asked] == [False, False]


def test_a_closed_target_can_be_used_again(server: Server) -> None:
    """Closing gives back the connections; the next run, in another loop, opens its own."""
    target = HttpTarget(server.url)
    asyncio.run(target.close())
    assert [ask(target), ask(target)] == [Reply("hi"), Reply("hi")]


def test_many_calls_run_at_once(server: Server) -> None:
    """Calls do not wait for each other."""
    server.answer = lambda asked: Answered(json.dumps({"output": asked.body["id"]}).encode())
    target = HttpTarget(server.url)

    async def all_of_them() -> list[Any]:
        samples = [Sample[str, str](str(number), "hello") for number in range(30)]
        replies = await asyncio.gather(*(target.call(sample, {}) for sample in samples))
        await target.close()
        return [reply.output for reply in replies]

    assert asyncio.run(all_of_them()) == [str(number) for number in range(30)]


def test_the_name_has_no_passwords() -> None:
    """User, password and query are in neither the name nor the representation."""
    target = HttpTarget("https://me:secret@example.com:8443/v1/answer?key=secret")
    assert target.spec.name == "example.com:8443/v1/answer"
    assert target.spec.kind == "http"
    assert "secret" not in repr(target) + repr(target.spec)
    assert HttpTarget("https://example.com", name="atlas").spec.name == "atlas"


def test_the_identity_covers_the_request_without_showing_headers() -> None:
    """Another path, query, method or header is another target; only a digest is stored."""
    url = "https://example.com/answer"
    identities = [
        HttpTarget(url).spec.identity,
        HttpTarget(url, method="PUT").spec.identity,
        HttpTarget(url + "?model=b").spec.identity,
        HttpTarget(url + "/b").spec.identity,
    ]
    assert len(set(identities)) == 4
    tenant = HttpTarget(url, headers={"X-Tenant": "abc"}).spec
    assert tenant.identity not in identities
    assert "abc" not in repr(tenant)


@pytest.mark.parametrize("url", ["example.com", "ftp://example.com", "http://", "http://[", 7])
def test_an_invalid_url_is_refused(url: Any) -> None:
    """Only http and https URLs with a host are valid."""
    with pytest.raises(TargetError, match="not an http or https URL"):
        HttpTarget(url)


def test_other_invalid_arguments_are_refused_on_creation() -> None:
    """A method without a body and an invalid timeout."""
    with pytest.raises(TargetError, match="the method 'GET' is not supported") as caught:
        HttpTarget("https://example.com", method="GET")
    assert caught.value.fix == "choose one of: PATCH, POST, PUT"
    for timeout in (0, -1, True, "5"):
        with pytest.raises(TargetError, match="number of seconds"):
            HttpTarget("https://example.com", timeout=timeout)  # type: ignore[arg-type]


def test_all_options_are_accepted() -> None:
    """Only the endpoint knows which ones are valid."""
    target = HttpTarget("https://example.com")
    assert target.check_options({"anything": 1}) == []
    assert not target.blocking


def test_a_closed_connection_is_not_an_unreachable_host() -> None:
    """The server was reached, so the fix is about its load."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            connection, _ = server.accept()
            connection.recv(1)
            connection.close()

        thread = Thread(target=hang_up)
        thread.start()
        error = failure(HttpTarget(f"http://127.0.0.1:{server.getsockname()[1]}", name="it"))
        thread.join()
    assert error.retryable
    assert str(error).startswith("it closed the connection before it sent a response (")
    assert "add --retries 2 or lower --concurrency" in str(error)
