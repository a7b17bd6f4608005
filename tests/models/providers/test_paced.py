"""Paced: evenly spaced calls, shared by all users."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import CallFailed, ModelError
from proctor.models.connect import provider
from proctor.models.wrappers.limits import Paced
from tests.models.providers.scripted import Scripted, asked
from tests.support import ManualClock


class Starts(Scripted):
    """Notes when each call began on a clock that is set by hand."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.clock = clock
        self.began: list[float] = []

    async def complete(self, request: Any, *, timeout: float | None = None) -> Any:
        self.began.append(self.clock.seconds)
        return await super().complete(request, timeout=timeout)


def test_calls_in_a_row_start_at_even_distances() -> None:
    """Five calls at four a second start at 0, 0.25, 0.5, 0.75 and 1 second."""
    clock = ManualClock()
    model = Starts(clock)
    paced = Paced(model, per_second=4, clock=clock)

    async def main() -> None:
        for _ in range(5):
            await paced.complete(asked())

    asyncio.run(main())
    assert model.began == [0.0, 0.25, 0.5, 0.75, 1.0]


def test_unused_turns_are_not_saved() -> None:
    """After a long pause the next calls are spaced like any others."""
    clock = ManualClock()
    model = Starts(clock)
    paced = Paced(model, per_minute=60, clock=clock)

    async def main() -> None:
        await paced.complete(asked())
        clock.seconds = 100.0
        await paced.complete(asked())
        await paced.complete(asked())

    asyncio.run(main())
    assert model.began == [0.0, 100.0, 101.0]


def test_users_on_several_threads_share_one_pace() -> None:
    """Twelve calls from three event loops at 100 a second take at least 0.11 s, evenly spaced."""
    model = Scripted()
    paced = Paced(model, per_second=100)
    moments: list[float] = []

    async def one() -> None:
        await paced.complete(asked())
        moments.append(asyncio.get_running_loop().time())

    async def four() -> None:
        await asyncio.gather(*(one() for _ in range(4)))

    async def main() -> None:
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, four()) for _ in range(3)))

    asyncio.run(main())
    assert len(model.requests) == 12
    assert max(moments) - min(moments) >= 0.105


def test_a_turn_after_the_timeout_fails_at_once() -> None:
    """The error says how long to wait, the model is not called, and the turn is free."""
    clock = ManualClock()
    model = Starts(clock)
    paced = Paced(model, per_second=0.5, clock=clock)

    async def main() -> CallFailed:
        await paced.complete(asked())
        with pytest.raises(CallFailed, match=r"next call can start in 2\.0 s") as caught:
            await paced.complete(asked(), timeout=1.5)
        await paced.complete(asked(), timeout=5.0)
        return caught.value

    error = asyncio.run(main())
    assert (error.retryable, error.retry_after) == (True, 2.0)
    assert model.began == [0.0, 2.0]
    assert model.timeouts == [None, 3.0]


def test_a_cancelled_call_leaves_its_turn_to_others() -> None:
    """Of two waiting calls the first is cancelled; a later call takes its turn, before the second."""
    model = Scripted()
    paced = Paced(model, per_second=3)

    async def main() -> None:
        await paced.complete(asked("now"))
        first, second = (asyncio.create_task(paced.complete(asked(text))) for text in ("first", "second"))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.gather(paced.complete(asked("later")), second)

    asyncio.run(main())
    assert [request.messages[0].content for request in model.requests] == ["now", "later", "second"]


def test_a_returned_turn_in_the_past_is_lost() -> None:
    """The next call takes the next turn."""
    clock = ManualClock()
    model = Starts(clock)
    paced = Paced(model, per_second=1, clock=clock)

    async def main() -> None:
        await paced.complete(asked())
        with pytest.raises(CallFailed):
            await paced.complete(asked(), timeout=0.5)
        clock.seconds = 1.5
        await paced.complete(asked())

    asyncio.run(main())
    assert model.began == [0.0, 2.0]


@given(st.lists(st.floats(0, 3), max_size=20), st.floats(0.1, 50))
def test_no_two_starts_are_ever_closer_than_the_interval(rests: list[float], rate: float) -> None:
    """Whatever the pauses between calls, starts keep their distance."""
    clock = ManualClock()
    model = Starts(clock)
    paced = Paced(model, per_second=rate, clock=clock)

    async def main() -> None:
        for rest in rests:
            clock.seconds += rest
            await paced.complete(asked())

    asyncio.run(main())
    assert all(two - item >= paced.interval * 0.999 for item, two in pairwise(model.began))


def test_a_rate_is_part_of_the_address() -> None:
    """paced:5/s and paced:300/min are equal; the wrapped model keeps its address."""
    model = Scripted(supports_json_schema=True)
    for pace in ("paced:5/s", "paced:300/min"):
        paced = provider({"model": pace, "of": model})
        assert isinstance(paced, Paced)
        assert (paced.interval, paced.model, paced.supports_json_schema) == (0.2, "test:scripted", True)


@pytest.mark.parametrize("pace", ["paced:", "paced:fast", "paced:5", "paced:0/s", "paced:5/h"])
def test_an_invalid_rate_is_refused(pace: str) -> None:
    """The error shows the format."""
    with pytest.raises(ModelError) as caught:
        provider(pace, of=Scripted())
    assert "rate" in str(caught.value)


def test_two_rates_are_refused() -> None:
    """per_second and per_minute exclude each other."""
    with pytest.raises(ModelError, match="a number greater than 0"):
        Paced(Scripted(), per_second=1, per_minute=1)


def test_the_model_must_be_named() -> None:
    """An address without a source model says what is missing; `of` is accepted as another name for it."""
    with pytest.raises(ModelError, match="'source_model'") as caught:
        provider("paced:5/s")
    assert "choose from the options source_model" in str(caught.value)
    assert (
        provider({"model": "paced:5/s", "of": lambda messages: ""}).model
        == "python:test_the_model_must_be_named.<locals>.<lambda>"
    )
