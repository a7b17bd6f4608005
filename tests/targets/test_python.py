"""Python callables as targets."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from proctor.core.callables import is_async_callable
from proctor.errors import TargetError
from proctor.records.sample import Sample
from proctor.records.trial import Reply
from proctor.targets.resolve import from_object

SAMPLE: Sample[str, str] = Sample("1", "hello", "never shown to the target")


def shout(text: str, *, mark: str = "!") -> str:
    return text.upper() + mark


async def whisper(text: str, *, mark: str = ".") -> str:
    return text.lower() + mark


class Shouter:
    def __init__(self, mark: str) -> None:
        self.mark = mark

    def __call__(self, text: str) -> str:
        return text.upper() + self.mark

    def say(self, text: str) -> str:
        return text + self.mark


class Whisperer:
    async def __call__(self, text: str) -> str:
        return text.lower()


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (shout, "HELLO!"),
        (lambda text: text[::-1], "olleh"),
        (functools.partial(shout, mark="?"), "HELLO?"),
        (Shouter("!!"), "HELLO!!"),
        (Shouter("!!").say, "hello!!"),
        (str.title, "Hello"),
        (len, 5),
    ],
    ids=["function", "lambda", "partial", "callable object", "method", "descriptor", "builtin"],
)
def test_sync_callables_are_called_with_the_input_and_block(function: Any, output: Any) -> None:
    """Whatever can be called gets the bare input, and is marked to run in a thread."""
    target = from_object(function, "it")
    assert target.blocking
    assert target.call(SAMPLE, {}) == output


@pytest.mark.parametrize(
    "function",
    [whisper, functools.partial(whisper, mark=""), Whisperer(), functools.partial(Whisperer())],
    ids=["function", "partial", "callable object", "partial of an object"],
)
def test_async_callables_give_something_to_await(function: Any) -> None:
    """An async callable is recognised through partials and objects, and does not block."""
    target = from_object(function, "it")
    assert not target.blocking
    assert asyncio.run(target.call(SAMPLE, {})).startswith("hello")


def test_a_call_is_the_functions_own_coroutine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without agent frameworks, nothing is wrapped around an async function: its coroutine is what comes back."""
    monkeypatch.setattr("proctor.targets.resolve.has_frameworks", lambda: False)
    coroutine = from_object(whisper, "it").call(SAMPLE, {})
    assert inspect.iscoroutine(coroutine)
    assert coroutine.cr_code is whisper.__code__
    coroutine.close()


def test_options_arrive_as_keyword_arguments() -> None:
    """A configuration's options reach the function by name."""
    target = from_object(shout, "it")
    assert target.call(SAMPLE, {"mark": "?!"}) == "HELLO?!"
    assert target.check_options({"mrak": "?"}) == ["unknown option 'mrak': did you mean 'mark'?"]


def test_a_reply_passes_through() -> None:
    """A function that returns a reply keeps what it says about usage and latency."""
    reply = Reply("hi", latency_ms=3.0)
    assert from_object(lambda text: reply, "it").call(SAMPLE, {}) is reply


def test_an_awaitable_is_not_an_output() -> None:
    """A plain function that returns an awaitable is an error that asks for `async def`."""
    for function in (lambda text: whisper(text), lambda text: Waiting()):
        with pytest.raises(TargetError, match="returned an awaitable") as caught:
            from_object(function, "it").call(SAMPLE, {})
        assert "async def" in caught.value.fix


class Waiting:
    def __await__(self) -> Iterator[None]:
        yield


def pieces(text: str) -> Iterator[str]:
    yield text


async def pieces_later(text: str) -> AsyncIterator[str]:
    yield text


@pytest.mark.parametrize("function", [pieces, pieces_later, functools.partial(pieces)])
def test_generators_are_refused(function: Any) -> None:
    """A target that yields has no single output to score, which is told when it is attached."""
    with pytest.raises(TargetError, match="the target is a generator"):
        from_object(function, "it")


def test_the_identity_follows_the_code_and_what_is_bound() -> None:
    """Two functions with other code or other bound values are told apart."""
    identities = [
        from_object(function, "it").spec.identity for function in (shout, whisper, Shouter("!"), Shouter("?"))
    ]
    assert len(set(identities)) == 4
    assert from_object(Shouter("!"), "it").spec.identity == identities[2]


def test_closing_does_nothing() -> None:
    """The callable belongs to the user; the representation shows kind and name."""
    target = from_object(shout, "shout")
    asyncio.run(target.close())
    assert repr(target) == "function target 'shout'"
    assert is_async_callable(whisper)
    assert not is_async_callable(shout)
