"""Cached: what was paid for once is found again, exactly, and a miss explains itself."""

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
from tests.providers.scripted import Scripted, asked


class Memory:
    """A store of the user's own, which can only find and keep."""

    def __init__(self) -> None:
        self.things: dict[str, bytes] = {}

    def find(self, key: str) -> bytes | None:
        return self.things.get(key)

    def keep(self, key: str, data: bytes) -> None:
        self.things[key] = data


def ask(model: Any, *requests: ModelRequest) -> list[ModelResponse]:
    async def main() -> list[ModelResponse]:
        return [await model.complete(request) for request in requests]

    return asyncio.run(main())


def test_the_same_question_is_asked_once(tmp_path: Path) -> None:
    """The second answer equals the first but for `cached`, also in another process's object."""
    model = Scripted()
    first, second = ask(Cached(model, DiskCache(tmp_path)), asked(), asked())
    (third,) = ask(Cached(model, DiskCache(tmp_path)), asked())
    assert (first.text, first.usage, first.cached) == (
        "answer to Capital of France?", Usage(10, 2, cost=0.001), False,
    )  # fmt: skip
    assert second == third
    assert (second.text, second.usage, second.cached) == (first.text, first.usage, True)
    assert len(model.requests) == 1


@pytest.mark.parametrize(
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
    """A request that differs in any field is another question."""
    model = Scripted()
    ask(Cached(model, Memory()), asked(), other)
    assert len(model.requests) == 2


def test_models_do_not_share_answers() -> None:
    """The address is part of the key; of a function its code is, too."""
    store = Memory()
    one, two = Scripted(model="test:one"), Scripted(model="test:two")
    ask(Cached(one, store), asked())
    ask(Cached(two, store), asked())
    assert (len(one.requests), len(two.requests)) == (1, 1)
    first = FunctionAdapter(lambda messages: "one", name="judge")
    changed = FunctionAdapter(lambda messages: "two", name="judge")
    assert [r.text for r in ask(Cached(first, store), asked())] == ["one"]
    assert [r.text for r in ask(Cached(changed, store), asked())] == ["two"]


def test_failures_are_never_kept() -> None:
    """A call that failed is made again."""
    answers: list[Any] = [CallFailed("down"), "up"]
    model = Scripted(lambda request: answers.pop(0))
    cached = Cached(model, Memory())
    with pytest.raises(CallFailed):
        ask(cached, asked())
    assert ask(cached, asked())[0].text == "up"


def test_same_questions_at_once_make_one_call() -> None:
    """Fifty at the same time: one is sent, one answer was paid for, all get it."""
    model = Scripted(seconds=0.05)
    cached = Cached(model, Memory())

    async def main() -> list[ModelResponse]:
        return await asyncio.gather(*(cached.complete(asked()) for _ in range(50)))

    responses = asyncio.run(main())
    assert len(model.requests) == 1
    assert {response.text for response in responses} == {"answer to Capital of France?"}
    assert sum(not response.cached for response in responses) == 1


def test_same_questions_from_several_threads_make_one_call() -> None:
    """Event loops on four threads share the call that is under way."""
    model = Scripted(seconds=0.1)
    cached = Cached(model, Memory())
    together = threading.Barrier(4)
    texts: list[str] = []

    def work() -> None:
        together.wait(5)
        texts.extend(response.text for response in ask(cached, asked()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert texts == ["answer to Capital of France?"] * 4
    assert len(model.requests) == 1


def test_those_who_wait_share_the_failure() -> None:
    """One call fails; all who asked the same get that error, and nothing hangs."""
    model = Scripted(lambda request: CallFailed("down", retryable=True), seconds=0.05)
    cached = Cached(model, Memory())

    async def main() -> list[Any]:
        calls = (cached.complete(asked()) for _ in range(5))
        return await asyncio.gather(*calls, return_exceptions=True)

    errors = asyncio.run(main())
    assert [str(error) for error in errors] == ["down"] * 5
    assert len(model.requests) == 1


def test_who_has_more_time_than_the_asker_asks_again() -> None:
    """The first has no time for the answer; the second, who waited for it, has."""
    model = Scripted(seconds=0.1)
    cached = Cached(model, Memory())

    async def main() -> list[Any]:
        calls = (cached.complete(asked(), timeout=t) for t in (0.02, 5.0, 5.0))
        return await asyncio.gather(*calls, return_exceptions=True)

    first, second, third = asyncio.run(main())
    assert str(first) == "too late"
    assert second.text == third.text == "answer to Capital of France?"
    assert len(model.requests) == 2


def test_those_with_about_the_same_time_share_a_failure() -> None:
    """A server that is down is not asked once for each of those who wait."""
    model = Scripted(lambda request: CallFailed("down", retryable=True), seconds=0.02)
    cached = Cached(model, Memory())

    async def main() -> list[Any]:
        calls = (cached.complete(asked(), timeout=5.0) for _ in range(20))
        return await asyncio.gather(*calls, return_exceptions=True)

    assert [str(error) for error in asyncio.run(main())] == ["down"] * 20
    assert len(model.requests) == 1


def test_who_is_to_ask_looks_once_more() -> None:
    """An answer that was kept since it was looked for is not paid for again."""
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


def test_if_the_asker_gives_up_another_asks() -> None:
    """The first is cancelled while its call is under way; the second makes the call itself."""
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


def test_who_waits_for_another_may_give_up_too() -> None:
    """A waiter that is cancelled, or out of time, does not disturb the call it waited for."""
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


def test_the_time_out_is_passed_on() -> None:
    """What is left of the time is what the model gets."""
    model = Scripted(fits_schema=True)
    cached = Cached(model, Memory())
    asyncio.run(cached.complete(asked(), timeout=2.0))
    assert model.timeouts[0] == pytest.approx(2.0, abs=0.1)
    assert cached.fits_schema


def test_an_answer_from_another_cache_is_not_kept_twice() -> None:
    """Of two caches around a model the inner one keeps."""
    model, inner, outer = Scripted(), Memory(), Memory()
    ask(Cached(model, inner), asked())
    assert ask(Cached(Cached(model, inner), outer), asked())[0].cached
    assert (len(model.requests), outer.things) == (1, {})


# explain


def test_explain_says_that_an_answer_is_kept(tmp_path: Path) -> None:
    """Nothing to explain."""
    cached = Cached(Scripted(), DiskCache(tmp_path))
    ask(cached, asked())
    assert cached.explain(asked()) == "the response is cached"


def test_explain_says_that_nothing_is_kept_for_the_model(tmp_path: Path) -> None:
    """Whose answers are kept is named."""
    kept = DiskCache(tmp_path)
    cached = Cached(Scripted(model="test:new"), kept)
    assert cached.explain(asked()) == "nothing is cached for test:new; cached: nothing at all"
    ask(Cached(Scripted(model="test:old"), kept), asked())
    assert cached.explain(asked()) == "nothing is cached for test:new; cached: test:old"


def test_explain_names_the_nearest_question_and_the_first_difference(tmp_path: Path) -> None:
    """Of three kept questions the one that differs least is named, with both values."""
    cached = Cached(Scripted(), DiskCache(tmp_path))
    ask(cached, asked(temperature=0.5), asked("Who wrote Faust?"), asked("Something else", seed=1))
    assert cached.explain(asked(temperature=0.7)) == (
        "3 cached for test:scripted; the nearest differs in temperature: asked 0.7, cached 0.5"
    )
    told = cached.explain(asked("Who wrote Fausto?"))
    assert "messages.0.content: asked 'Who wrote Fausto?', cached 'Who wrote Faust?'" in told


def test_explain_notices_changed_code(tmp_path: Path) -> None:
    """The same question to a function of the same name but other code."""
    kept = DiskCache(tmp_path)
    ask(Cached(FunctionAdapter(lambda messages: "one", name="judge"), kept), asked())
    changed = Cached(FunctionAdapter(lambda messages: "two", name="judge"), kept)
    assert changed.explain(asked()).endswith("its code has changed")


def test_explain_says_where_it_cannot_look() -> None:
    """A store that only finds and keeps cannot be searched."""
    assert "cannot be searched" in Cached(Scripted(), Memory()).explain(asked())


# The store


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.dictionaries(st.text("0123456789abcdef", min_size=3, max_size=8), st.binary()))
def test_the_store_gives_back_what_was_kept(
    tmp_path_factory: pytest.TempPathFactory, things: dict[str, bytes]
) -> None:
    """Whatever bytes under whatever keys; listing gives all of them."""
    kept = DiskCache(tmp_path_factory.mktemp("kept"))
    for key, data in things.items():
        kept.keep(key, data)
    assert {key: kept.find(key) for key in things} == things
    assert sorted(kept) == sorted(things.values())


def test_a_damaged_file_counts_as_not_kept(tmp_path: Path) -> None:
    """Bytes that are no call are asked for again and put right."""
    model, kept = Scripted(), DiskCache(tmp_path)
    kept.keep(call_key(model, asked()), b"{ half a rec")
    ask(Cached(model, kept), asked(), asked())
    assert len(model.requests) == 1


def test_no_unfinished_file_is_left_behind(tmp_path: Path) -> None:
    """Each key is one file in a folder named after its beginning."""
    DiskCache(tmp_path).keep("abcd", b"x")
    assert [file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*")] == [
        "ab", "ab/cd",
    ]  # fmt: skip


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error names the folder and what to do."""
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="file") as caught:
        DiskCache(tmp_path / "file").keep("abcd", b"x")
    assert "can write to" in str(caught.value)


def test_questions_that_json_cannot_hold_are_not_kept() -> None:
    """An object that only has a repr would be taken for another; it is asked anew each time."""
    model, store = Scripted(lambda request: "yes"), Memory()
    odd = ModelRequest((Message("user", object()),))
    ask(Cached(model, store), odd, odd)
    assert (len(model.requests), store.things) == (2, {})


def test_an_address_names_the_folder(tmp_path: Path) -> None:
    """{model: cached:FOLDER, of: …} keeps the answers of the model there."""
    model = Scripted()
    cached = provider({"model": f"cached:{tmp_path}", "of": model})
    ask(cached, asked(), asked())
    assert (cached.model, len(model.requests)) == ("test:scripted", 1)
    with pytest.raises(ModelError, match="the folder is missing"):
        provider("cached:", of=model)
