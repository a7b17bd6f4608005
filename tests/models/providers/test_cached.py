"""Cached: equal requests are paid for once, and a cache miss is explained."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from proctor.errors import CallFailed, ModelError
from proctor.models.clients.python import FunctionAdapter
from proctor.models.connect import provider
from proctor.models.model_calls import call_key
from proctor.models.wrappers.cached import Cached, DiskCache
from proctor.records.model import ModelRequest, ModelResponse, ToolSpec
from proctor.records.session import Message, Usage
from tests.models.providers.scripted import Scripted, asked
from tests.tables import each_row


class Memory:
    """A store of the user's own, which can only find and keep."""

    def __init__(self) -> None:
        self.things: dict[str, bytes] = {}

    def find(self, key: str) -> bytes | None:
        return self.things.get(key)

    def put(self, key: str, data: bytes) -> None:
        self.things[key] = data


def ask(model: Any, *requests: ModelRequest) -> list[ModelResponse]:
    async def main() -> list[ModelResponse]:
        return [await model.complete(request) for request in requests]

    return asyncio.run(main())


def test_an_equal_request_is_sent_once(tmp_path: Path) -> None:
    """The second response equals the first except for `cached`, also in another object."""
    model = Scripted()
    first, second = ask(Cached(model, DiskCache(tmp_path)), asked(), asked())
    (third,) = ask(Cached(model, DiskCache(tmp_path)), asked())
    assert (first.text, first.usage, first.cached) == (
        "answer to Capital of France?", Usage(10, 2, cost=0.001), False,
    )  # fmt: skip
    assert second == third
    assert (second.text, second.usage, second.cached) == (first.text, first.usage, True)
    assert len(model.requests) == 1


@each_row(
    "other",
    [
        asked("Capital of Spain?"),
        asked(temperature=0.0),
        asked(max_tokens=5),
        asked(seed=1),
        asked(schema={"type": "object"}),
        asked(tools=(ToolSpec("search"),)),
        asked(top_logprobs=3),
        asked(opinion=1),
        ModelRequest((Message("system", "Capital of France?"),)),
    ],
)
def test_every_field_of_a_request_counts(other: ModelRequest) -> None:
    """A request that differs in any field is another request."""
    model = Scripted()
    ask(Cached(model, Memory()), asked(), other)
    assert len(model.requests) == 2


def test_models_do_not_share_responses() -> None:
    """The address is part of the key; for a function, its code too."""
    store = Memory()
    item, two = Scripted(model="test:one"), Scripted(model="test:two")
    ask(Cached(item, store), asked())
    ask(Cached(two, store), asked())
    assert (len(item.requests), len(two.requests)) == (1, 1)
    first = FunctionAdapter(lambda messages: "one", name="judge")
    changed = FunctionAdapter(lambda messages: "two", name="judge")
    assert [r.text for r in ask(Cached(first, store), asked())] == ["one"]
    assert [r.text for r in ask(Cached(changed, store), asked())] == ["two"]


def test_failures_are_not_cached() -> None:
    """A failed call is made again."""
    answers: list[Any] = [CallFailed("down"), "up"]
    model = Scripted(lambda request: answers.pop(0))
    cached = Cached(model, Memory())
    with pytest.raises(CallFailed):
        ask(cached, asked())
    assert ask(cached, asked())[0].text == "up"


def test_equal_concurrent_requests_make_one_call() -> None:
    """Of fifty one is sent, and all get its response."""
    model = Scripted(seconds=0.05)
    cached = Cached(model, Memory())

    async def main() -> list[ModelResponse]:
        return await asyncio.gather(*(cached.complete(asked()) for _ in range(50)))

    responses = asyncio.run(main())
    assert len(model.requests) == 1
    assert {response.text for response in responses} == {"answer to Capital of France?"}
    assert sum(not response.cached for response in responses) == 1


def test_equal_requests_of_several_threads_make_one_call() -> None:
    """Event loops on four threads share the running call."""
    model = Scripted(seconds=0.1)
    cached = Cached(model, Memory())
    together = threading.Barrier(4)
    texts: list[str] = []

    def work() -> None:
        together.wait(120)
        texts.extend(response.text for response in ask(cached, asked()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert texts == ["answer to Capital of France?"] * 4
    assert len(model.requests) == 1


def test_waiting_callers_share_the_failure() -> None:
    """One call fails, all callers get that error, and nothing hangs."""
    model = Scripted(lambda request: CallFailed("down", retryable=True), seconds=0.05)
    cached = Cached(model, Memory())

    async def main() -> list[Any]:
        calls = (cached.complete(asked()) for _ in range(5))
        return await asyncio.gather(*calls, return_exceptions=True)

    errors = asyncio.run(main())
    assert [str(error) for error in errors] == ["down"] * 5
    assert len(model.requests) == 1


def test_a_caller_with_more_time_retries() -> None:
    """The first has no time for the response; the second, who waited for it, has."""
    model = Scripted(seconds=0.1)
    cached = Cached(model, Memory())

    async def main() -> list[Any]:
        calls = (cached.complete(asked(), timeout=t) for t in (0.02, 5.0, 5.0))
        return await asyncio.gather(*calls, return_exceptions=True)

    first, second, third = asyncio.run(main())
    assert str(first) == "too late"
    assert second.text == third.text == "answer to Capital of France?"
    assert len(model.requests) == 2


def test_callers_with_similar_deadlines_share_a_failure() -> None:
    """A server that is down is not called once for each of them."""
    model = Scripted(lambda request: CallFailed("down", retryable=True), seconds=0.02)
    cached = Cached(model, Memory())

    async def main() -> list[Any]:
        calls = (cached.complete(asked(), timeout=5.0) for _ in range(20))
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [str(error) for error in asyncio.run(main())] == ["down"] * 20
    assert len(model.requests) == 1


def test_the_cache_is_checked_again_before_sending() -> None:
    """A response that was stored meanwhile is not paid for again."""
    model, other = Scripted(), Memory()
    ask(Cached(model, other), asked())

    class Late(Memory):
        """The answer of another comes between the first look and the second."""

        def find(self, key: str) -> bytes | None:
            found = super().find(key)
            self.things.update(other.things)
            return found

    (response,) = ask(Cached(model, Late()), asked())
    assert response.cached
    assert len(model.requests) == 1


def test_a_cancelled_call_is_taken_over() -> None:
    """The first is cancelled while its call runs; the second makes the call itself."""
    model = Scripted(seconds=0.05)
    cached = Cached(model, Memory())

    async def main() -> ModelResponse:
        first = asyncio.create_task(cached.complete(asked()))
        second = asyncio.create_task(cached.complete(asked()))
        await asyncio.sleep(0.01)
        first.cancel()
        async with asyncio.timeout(5):
            return await second

    assert asyncio.run(main()).text == "answer to Capital of France?"
    assert len(model.requests) == 2


def test_a_waiting_caller_may_be_cancelled() -> None:
    """It does not disturb the call that it waits for."""
    model = Scripted(seconds=0.1)
    cached = Cached(model, Memory())

    async def main() -> list[Any]:
        first = asyncio.create_task(cached.complete(asked()))
        await asyncio.sleep(0)
        second = asyncio.create_task(cached.complete(asked()))
        third = asyncio.create_task(cached.complete(asked(), timeout=0.02))
        await asyncio.sleep(0.01)
        second.cancel()
        return list(await asyncio.gather(first, second, third, return_exceptions=True))

    first, second, third = asyncio.run(main())
    assert first.text == "answer to Capital of France?"
    assert isinstance(second, asyncio.CancelledError)
    assert isinstance(third, CallFailed)
    assert third.retryable
    assert "did not finish within" in str(third)
    assert len(model.requests) == 1


def test_the_timeout_is_passed_on() -> None:
    """The model gets the remaining time."""
    model = Scripted(supports_json_schema=True)
    cached = Cached(model, Memory())
    asyncio.run(cached.complete(asked(), timeout=2.0))
    assert model.timeouts[0] == pytest.approx(2.0, abs=0.1)
    assert cached.supports_json_schema


def test_a_cached_response_is_not_stored_twice() -> None:
    """Of two nested caches the inner one stores it."""
    model, inner, outer = Scripted(), Memory(), Memory()
    ask(Cached(model, inner), asked())
    assert ask(Cached(Cached(model, inner), outer), asked())[0].cached
    assert (len(model.requests), outer.things) == (1, {})


# explain


def test_explain_a_cached_response(tmp_path: Path) -> None:
    """It says that the response is cached."""
    cached = Cached(Scripted(), DiskCache(tmp_path))
    ask(cached, asked())
    assert cached.explain(asked()) == "the response is cached"


def test_explain_a_model_without_responses(tmp_path: Path) -> None:
    """It names the models that have some."""
    cache = DiskCache(tmp_path)
    cached = Cached(Scripted(model="test:new"), cache)
    assert cached.explain(asked()) == "nothing is cached for test:new; cached models: none"
    ask(Cached(Scripted(model="test:old"), cache), asked())
    assert cached.explain(asked()) == "nothing is cached for test:new; cached models: test:old"


def test_explain_names_the_nearest_request_and_the_difference(tmp_path: Path) -> None:
    """Of three cached requests the most similar one is named, with both values."""
    cached = Cached(Scripted(), DiskCache(tmp_path))
    ask(cached, asked(temperature=0.5), asked("Who wrote Faust?"), asked("Something else", seed=1))
    assert cached.explain(asked(temperature=0.7)) == (
        "3 cached for test:scripted; the nearest differs in temperature: requested 0.7, cached 0.5"
    )
    message = cached.explain(asked("Who wrote Fausto?"))
    assert "messages.0.content: requested 'Who wrote Fausto?', cached 'Who wrote Faust?'" in message


def test_explain_detects_changed_code(tmp_path: Path) -> None:
    """The same request to a function of the same name with other code."""
    cache = DiskCache(tmp_path)
    ask(Cached(FunctionAdapter(lambda messages: "one", name="judge"), cache), asked())
    changed = Cached(FunctionAdapter(lambda messages: "two", name="judge"), cache)
    assert changed.explain(asked()).endswith("its code has changed")


def test_explain_a_store_without_search() -> None:
    """A store with only `find` and `put` cannot be searched."""
    assert "cannot be searched" in Cached(Scripted(), Memory()).explain(asked())


# The store


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text("0123456789abcdef", min_size=3, max_size=8), st.binary()))
def test_the_store_returns_what_was_stored(tmp_path_factory: pytest.TempPathFactory, things: dict[str, bytes]) -> None:
    """Any bytes under any keys; iterating returns all of them."""
    cache = DiskCache(tmp_path_factory.mktemp("kept"))
    for key, data in things.items():
        cache.put(key, data)
    assert {key: cache.find(key) for key in things} == things
    assert sorted(cache) == sorted(things.values())


def test_a_damaged_file_counts_as_missing(tmp_path: Path) -> None:
    """The call is made again, and the file is replaced."""
    model, stored = Scripted(), DiskCache(tmp_path)
    stored.put(call_key(model, asked()), b"{ half a rec")
    ask(Cached(model, stored), asked(), asked())
    assert len(model.requests) == 1


def test_no_unfinished_file_is_left_behind(tmp_path: Path) -> None:
    """Each key is one file in a folder named after its beginning."""
    DiskCache(tmp_path).put("abcd", b"x")
    assert [file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*")] == [
        "ab", "ab/cd",
    ]  # fmt: skip


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error names the folder and what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="file") as caught:
        DiskCache(tmp_path / "file").put("abcd", b"x")
    assert "can write to" in str(caught.value)


def test_requests_that_json_cannot_hold_are_not_cached() -> None:
    """An object with only a repr could be mistaken for another."""
    model, store = Scripted(lambda request: "yes"), Memory()
    odd = ModelRequest((Message("user", object()),))
    ask(Cached(model, store), odd, odd)
    assert (len(model.requests), store.things) == (2, {})


def test_an_address_names_the_folder(tmp_path: Path) -> None:
    """{model: cached:FOLDER, of: …} stores the responses there."""
    model = Scripted()
    cached = provider({"model": f"cached:{tmp_path}", "of": model})
    ask(cached, asked(), asked())
    assert (cached.model, len(model.requests)) == ("test:scripted", 1)
    with pytest.raises(ModelError, match="the folder is missing"):
        provider("cached:", of=model)
