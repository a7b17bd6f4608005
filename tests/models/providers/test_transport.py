"""One endpoint: retries, pauses, deadlines, connections and error messages."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from proctor.core.retry_policy import MAX_BACKOFF_SECONDS, RetryPolicy, backoff_seconds, make_retry_policy
from proctor.errors import CallFailed, ModelError
from proctor.models.http import endpoint as transport
from proctor.models.http.access import ApiKey
from proctor.models.http.endpoint import Endpoint, HttpCall, HttpResult, decode_body, shared_endpoint
from proctor.models.http.errors import MAX_QUOTE, read_error_body
from proctor.models.http.rate_limits import Limiter
from proctor.testing import Fault
from tests.servers.model_server import ModelServer
from tests.support import ManualClock
from tests.tables import each_row

QUICK = RetryPolicy(retries=2, retry_delay=0.01, timeout=5.0)
SECRET = "sk-test-0123456789abcdef"
BODY = msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": "hi"}]})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


def make_endpoint(server: ModelServer, clock: ManualClock | None = None, **options: Any) -> Endpoint:
    """Create a separate endpoint, whose window other calls do not change."""
    return Endpoint(server.url, ApiKey(SECRET, "MY_KEY"), {}, clock=clock, rng=random.Random(3), **options)


def http_call(server: ModelServer, path: str = "/v1/chat/completions") -> HttpCall:
    return HttpCall("the model", server.url + path, BODY, "m")


def read(body: bytes) -> Any:
    return decode_body(dict, body)[0]


def ask(
    server: ModelServer,
    at: Endpoint,
    policy: RetryPolicy = QUICK,
    timeout: float | None = None,
    path: str = "/v1/chat/completions",
) -> HttpResult[Any]:
    async def main() -> HttpResult[Any]:
        async with asyncio.timeout(120):
            return await at.send(http_call(server, path), read, policy, timeout)

    return asyncio.run(main())


def test_a_result_has_its_attempts_and_the_last_duration(server: ModelServer) -> None:
    """Two transient errors and a response are three requests."""
    server.faults.extend([Fault.status(500), Fault.close(), Fault.slow(0.05)])
    answer = ask(server, make_endpoint(server))
    assert answer.attempts == 3
    assert answer.seconds >= 0.05
    assert len(server.calls) == 3


def test_retry_after_is_respected(server: ModelServer) -> None:
    """Retry-After: 7 is waited for, plus at most a tenth of it; nothing is sent before."""
    server.faults.append(Fault.status(429, retry_after=7))
    clock = ManualClock()
    assert ask(server, make_endpoint(server, clock), RetryPolicy()).attempts == 2
    assert len(clock.slept) == 1
    assert 7 <= clock.slept[0] <= 7.7


def test_a_delay_in_the_body_is_respected(server: ModelServer) -> None:
    """Gemini puts it there and not in a header."""
    error = {"error": {"code": 429, "details": [{"@type": "x/RetryInfo", "retryDelay": "12s"}]}}
    server.faults.append(Fault.status(429, body=msgspec.json.encode(error)))
    clock = ManualClock()
    ask(server, make_endpoint(server, clock), RetryPolicy())
    assert 12 <= clock.slept[0] <= 13.2


def test_an_exhausted_limit_delays_the_next_call(server: ModelServer) -> None:
    """Nothing failed, but no request is left until the limit is renewed."""
    left = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20s"}
    server.faults.append(Fault(headers=left))
    clock = ManualClock()
    at = make_endpoint(server, clock)
    assert ask(server, at, RetryPolicy()).attempts == 1
    assert clock.slept == []
    assert ask(server, at, RetryPolicy()).attempts == 1
    assert 20 <= clock.slept[0] <= 22


def test_without_retry_after_delays_double_with_jitter(server: ModelServer) -> None:
    """At most 0.5, 1, 2, 4 seconds, and at least half of that."""
    server.faults.extend([Fault.status(500)] * 4)
    clock = ManualClock()
    assert ask(server, make_endpoint(server, clock), RetryPolicy()).attempts == 5
    longest = [0.5, 1.0, 2.0, 4.0]
    assert all(most / 2 <= slept <= most for slept, most in zip(clock.slept, longest, strict=True))


def test_overload_halves_the_window(server: ModelServer) -> None:
    """429, 503 and 529 do, 500 does not."""
    at = make_endpoint(server, limiter=Limiter(window=16))
    windows = []
    for code in (500, 429, 503, 529):
        server.faults.append(Fault.status(code))
        ask(server, at)
        windows.append(at.limiter.window)
    assert windows == [16, 8, 4, 2]


def test_a_pause_longer_than_the_timeout_fails_at_once(server: ModelServer) -> None:
    """Retry-After: 30 with 10 s left is a retryable error, without waiting."""
    server.faults.append(Fault.status(429, retry_after=30))
    clock = ManualClock()
    with pytest.raises(CallFailed, match=r"asks for a pause of 30 s, which is longer") as caught:
        ask(server, make_endpoint(server, clock), timeout=10.0)
    assert clock.slept == []
    assert (caught.value.retryable, caught.value.retry_after) == (True, 30.0)
    assert len(server.calls) == 1


def test_other_calls_do_not_wait_for_a_pause_that_is_too_long(server: ModelServer) -> None:
    """A call that starts during such a pause sends nothing and says why."""
    at = make_endpoint(server)
    at.limiter.pause(60)
    with pytest.raises(CallFailed, match=r"the model asks for a pause of 60 s") as caught:
        ask(server, at, RetryPolicy(timeout=1.0))
    assert caught.value.retryable
    assert caught.value.retry_after == pytest.approx(60, abs=1)
    assert server.calls == []


def test_the_deadline_covers_the_wait_for_a_slot(server: ModelServer) -> None:
    """A call that gets no slot in its time fails and leaves the queue."""
    at = make_endpoint(server, limiter=Limiter(window=1))
    server.faults.append(Fault.slow(1.5))

    async def main() -> tuple[float, str]:
        async with asyncio.timeout(120):
            slow = asyncio.create_task(at.send(http_call(server), read, QUICK))
            await asyncio.sleep(0.1)
            began = time.perf_counter()
            with pytest.raises(CallFailed) as caught:
                await at.send(http_call(server), read, QUICK, 0.2)
            took = time.perf_counter() - began
            assert not slow.done()
            await slow
            return took, str(caught.value)

    took, message = asyncio.run(main())
    assert took >= 0.19
    assert "did not answer within 0.2 s in all" in message
    assert (at.limiter.in_flight, at.limiter.waiting) == (0, 0)


def test_the_deadline_covers_all_requests_and_pauses(server: ModelServer) -> None:
    """A hanging server times out, even if each request might take longer."""
    server.choose_fault = lambda asked: Fault.hang(20)
    with pytest.raises(CallFailed, match=r"did not answer within 0\.5 s in all") as caught:
        ask(server, make_endpoint(server), RetryPolicy(retries=9, retry_delay=0.01, timeout=0.2), timeout=0.5)
    assert caught.value.retryable


def test_a_timeout_names_the_failure_before_it(server: ModelServer) -> None:
    """The server failed, and then it hung."""
    server.faults += [Fault.status(500), Fault.hang(20)]
    message = r"did not answer within 0\.5 s in all; before that it answered 500"
    with pytest.raises(CallFailed, match=message):
        ask(server, make_endpoint(server), timeout=0.5)


def test_without_time_nothing_is_sent(server: ModelServer) -> None:
    """A timeout of 0 fails before the request."""
    with pytest.raises(CallFailed, match="within 0 s"):
        ask(server, make_endpoint(server), timeout=0.0)
    assert server.calls == []


def test_no_pause_outlasts_the_deadline(server: ModelServer) -> None:
    """With five seconds left, a pause of half a minute is not started."""
    server.faults.append(Fault.status(500))
    clock = ManualClock()
    with pytest.raises(CallFailed, match="no time was left for a retry") as caught:
        ask(server, make_endpoint(server, clock), RetryPolicy(retry_delay=60.0), timeout=5.0)
    assert clock.slept == []
    assert caught.value.retryable


def test_a_request_that_times_out_is_retried(server: ModelServer) -> None:
    """The first request hangs, the second is answered."""
    server.faults.append(Fault.hang(20))
    # A busy machine may need more than 0.3 s for an answer, too.
    answer = ask(server, make_endpoint(server), RetryPolicy(retries=50, retry_delay=0.01, timeout=0.3))
    assert answer.attempts >= 2


@pytest.mark.parametrize("body", [b'{"half": ', b"<html>", b"", b'{"text": "\xff"}'])
def test_an_unreadable_body_is_retried(server: ModelServer, body: bytes) -> None:
    """Cut off or not JSON: the transfer failed."""
    server.faults.append(Fault.body(body))
    assert ask(server, make_endpoint(server)).attempts == 2


def test_a_cancelled_call_frees_its_slot_and_connection(server: ModelServer) -> None:
    """With one slot, the next call is answered."""
    server.faults.append(Fault.hang(20))
    at = make_endpoint(server, limiter=Limiter(window=1))

    async def main() -> int:
        async with asyncio.timeout(120):
            call = asyncio.create_task(at.send(http_call(server), read, QUICK))
            while not server.calls:
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert at.limiter.in_flight == 0
            return (await at.send(http_call(server), read, QUICK)).attempts

    assert asyncio.run(main()) == 1


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.status(400), "answered 400 Bad Request: "),
        (Fault.status(401), "check the key in MY_KEY"),
        (Fault.status(403), "check the key in MY_KEY"),
        (Fault.status(404), "check the model name 'm'"),
        (Fault.status(501), "answered 501 Not Implemented"),
        (Fault.status(505), "answered 505"),
        (Fault.status(307, headers={"location": "/elsewhere"}), "answered 307"),
        (Fault.status(503, headers={"x-should-retry": "false"}), "answered 503"),
        (
            Fault.status(429, body=b'{"error":{"code":"insufficient_quota","message":"pay"}}'),
            "answered 429 Too Many Requests: pay",
        ),
        (Fault.body(b"[1]"), "unexpected format: Expected `object`, got `array`"),
    ],
)
def test_final_errors_are_not_retried(server: ModelServer, fault: Fault, expected: str) -> None:
    """Wrong keys, unknown models, exceeded quotas and unexpected bodies."""
    server.choose_fault = lambda asked: fault
    with pytest.raises(CallFailed) as caught:
        ask(server, make_endpoint(server))
    assert expected in str(caught.value)
    assert str(caught.value).startswith("the model ")
    assert "attempts" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(server.calls) == 1


def test_the_error_counts_the_attempts(server: ModelServer) -> None:
    """Three requests, then one line with the model, the failure and the number."""
    server.choose_fault = lambda asked: Fault.status(502, body=b"<h1>Bad\n gateway</h1>")
    with pytest.raises(CallFailed) as caught:
        ask(server, make_endpoint(server))
    assert str(caught.value) == ("the model answered 502 Bad Gateway: <h1>Bad gateway</h1> (3 attempts)")
    assert caught.value.retryable


def test_a_status_without_a_phrase_is_shown_by_number(server: ModelServer) -> None:
    """529 has no phrase, and here no body."""
    server.choose_fault = lambda asked: Fault.status(529, body=b"")
    with pytest.raises(CallFailed, match=r"^the model answered 529 \(3 attempts\)$"):
        ask(server, make_endpoint(server))


def test_an_unreachable_server_is_a_transient_error(server: ModelServer) -> None:
    """The message has the name of the exception."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    nobody = HttpCall("the model", f"http://127.0.0.1:{port}/v1", BODY)

    async def main() -> None:
        await make_endpoint(server).send(nobody, read, QUICK)

    with pytest.raises(CallFailed, match=r"could not be reached: ConnectError.*3 attempts") as caught:
        asyncio.run(main())
    assert caught.value.retryable


def test_an_unsupported_protocol_is_not_retried(server: ModelServer) -> None:
    """It is a mistake, not a transient error."""

    async def main() -> None:
        await make_endpoint(server).send(HttpCall("the model", "gopher://x/", BODY), read, QUICK)

    with pytest.raises(CallFailed, match="UnsupportedProtocol") as caught:
        asyncio.run(main())
    assert not caught.value.retryable


def test_a_body_that_is_too_long_is_refused(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not read to its end, and not retried."""
    monkeypatch.setattr(transport, "MAX_RESPONSE_BYTES", 1_000_000)
    server.faults.append(Fault.huge(4_000_000))
    with pytest.raises(CallFailed, match="more than 1,000,000 bytes"):
        ask(server, make_endpoint(server), timeout=600.0)
    assert len(server.calls) == 1


def test_a_quoted_key_is_hidden(server: ModelServer) -> None:
    """Neither in the error nor in a response that is stored."""
    at = make_endpoint(server)
    server.faults.append(Fault.status(400, body=f"key {SECRET} is bad".encode()))
    with pytest.raises(CallFailed) as caught:
        ask(server, at)
    assert SECRET not in str(caught.value)
    assert "key [hidden] is bad" in str(caught.value)
    server.faults.append(Fault.body(msgspec.json.encode({"echo": SECRET})))
    assert ask(server, at).value == {"echo": "[hidden]"}


def test_users_of_a_server_and_a_key_share_an_endpoint() -> None:
    """Equal origin and headers are one endpoint, as long as it is used."""
    headers = {"Authorization": "Bearer x"}
    first = shared_endpoint("https://a.example", ApiKey("x"), headers)
    assert shared_endpoint("https://a.example", ApiKey("x"), dict(headers)) is first
    assert shared_endpoint("https://b.example", ApiKey("x"), headers) is not first
    assert shared_endpoint("https://a.example", ApiKey("y"), {"Authorization": "Bearer y"}) is not first
    first.limiter.pause(1000)
    del first
    gc.collect()
    assert shared_endpoint("https://a.example", ApiKey("x"), headers).limiter.remaining_pause() == 0


def test_one_endpoint_serves_several_loops_in_several_threads(server: ModelServer) -> None:
    """Each loop has its own connections; the limiter is one, and at the end it is empty."""
    at = make_endpoint(server, limiter=Limiter(window=2))
    answered: list[int] = []

    async def main() -> None:
        async with asyncio.timeout(120):
            calls = (at.send(http_call(server), read, QUICK) for _ in range(10))
            answered.extend(answer.attempts for answer in await asyncio.gather(*calls))

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answered == [1] * 30
    assert (at.limiter.in_flight, at.limiter.waiting) == (0, 0)


def test_many_calls_use_several_clients(server: ModelServer) -> None:
    """Twenty concurrent calls need three clients of eight; afterwards all are closed."""

    async def main() -> tuple[int, int]:
        opened = transport.ClientPool(server.url, {})
        taken = []
        for _ in range(20):
            pooled = opened.choose()
            pooled.running += 1
            taken.append(pooled)
        different = len({id(pooled) for pooled in taken})
        for pooled in taken:
            pooled.running -= 1
        again = opened.choose()
        await opened.close()
        return different, taken.index(again)

    assert asyncio.run(main()) == (3, 0)


def test_proxies_are_not_used_for_this_machine(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment that does not exist does not matter."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert ask(server, make_endpoint(server)).attempts == 1


def test_certificates_are_checked_on_other_machines() -> None:
    """Only plain HTTP on this machine does without them."""

    async def main() -> None:
        opened = transport.ClientPool("https://model.example", {})
        assert opened.choose() is opened.choose()
        await opened.close()

    asyncio.run(main())


def test_pauses_are_limited() -> None:
    """The hundredth pause is at most half a minute."""
    assert backoff_seconds(100, 0.5, random.Random(1)) <= MAX_BACKOFF_SECONDS
    assert backoff_seconds(1, 0.0, random.Random(1)) == 0.0


def test_all_invalid_options_are_reported_at_once() -> None:
    """Three wrong options are three problems."""
    for wrong in ((-1, -1, 0), (True, True, True), (1.5, "x", float("nan"))):
        with pytest.raises(ModelError) as caught:
            make_retry_policy(*wrong, where="openai:x")
        names = [problem.where for problem in caught.value.problems]
        assert names == ["retries", "retry_delay", "timeout"]


@each_row(
    ("body", "message"),
    [
        (b'{"error":"overloaded"}', "overloaded"),
        (b'{"message":"no such route"}', "no such route"),
        (b'{"detail":[{"loc":["body"]}]}', '[{"loc":["body"]}]'),
        (b'[{"error":{"message":"in a list"}}]', "in a list"),
        (b'{"error":null}', ""),
        (b'{"error":{"code":7}}', '{"code":7}'),
        (b"7", "7"),
        (b"\xff\xfe", "��"),
        (b"", ""),
        (b"x" * 1000, "x" * MAX_QUOTE + "…"),
    ],
)
def test_an_error_body_is_read_in_every_format(body: bytes, message: str) -> None:
    """The provider's message, or the beginning of the body."""
    assert read_error_body(body).message == message


def test_an_error_body_has_type_code_parameter_and_delay() -> None:
    """As far as the provider sends them."""
    openai = read_error_body(b'{"error":{"message":"m","type":"invalid","param":"seed","code":"unsupported_value"}}')
    assert openai == ("m", "invalid", "unsupported_value", "seed", None)
    gemini = read_error_body(
        b'{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m",'
        b'"details":[7,{"retryDelay":3},{"retryDelay":"2s"}]}}'
    )
    assert gemini == ("m", "RESOURCE_EXHAUSTED", "429", "", 2.0)


@each_row("before", range(MAX_QUOTE - len(SECRET) - 1, MAX_QUOTE + 2))
def test_a_key_at_the_cut_of_a_message_is_hidden(before: int) -> None:
    """It is removed before the message is shortened."""
    body = msgspec.json.encode({"error": {"message": "x" * before + SECRET + "y" * 50}})
    for quoted in (body, b"x" * before + SECRET.encode(), msgspec.json.encode("x" * before + SECRET)):
        message = read_error_body(quoted, ApiKey(SECRET).redact).message
        assert SECRET[:4] not in message
        assert len(message) <= MAX_QUOTE + 1


def test_an_endpoint_hides_its_key_before_it_shortens_a_message(server: ModelServer) -> None:
    """End to end: half a key is not in the error either."""
    quoted = b'{"error": {"message": "' + b"x" * (MAX_QUOTE - 9) + SECRET.encode() + b'"}}'
    server.faults.append(Fault.status(401, body=quoted))
    with pytest.raises(CallFailed) as caught:
        asyncio.run(make_endpoint(server).send(http_call(server), read, QUICK, 5.0))
    assert SECRET[:6] not in str(caught.value)
    assert "[hidden]" in str(caught.value)
