"""The limiter: the window, the queue, the pauses, across loops and threads."""

from __future__ import annotations

import asyncio
import random
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.models.http.rate_limits import MAX_SPREAD_SECONDS, Limiter, PauseTooLong
from tests.support import ManualClock


def enter(limiter: Limiter, **options: Any) -> int:
    return asyncio.run(limiter.acquire(**options))


def test_slots_are_given_in_order() -> None:
    """With one slot, ten calls get it one after the other."""

    async def main() -> list[int]:
        limiter, order = Limiter(window=1), []

        async def call(number: int) -> None:
            await limiter.acquire()
            order.append(number)
            await asyncio.sleep(0)
            limiter.release()

        await asyncio.gather(*(call(number) for number in range(10)))
        assert (limiter.in_flight, limiter.waiting) == (0, 0)
        return order

    assert asyncio.run(main()) == list(range(10))


def test_a_retry_goes_to_the_front() -> None:
    """It does not wait behind a long queue."""

    async def main() -> list[str]:
        limiter, order = Limiter(window=1), []
        await limiter.acquire()

        async def call(name: str, first: bool) -> None:
            await limiter.acquire(at_front=first)
            order.append(name)
            limiter.release()

        calls = [asyncio.create_task(call("new", False)), asyncio.create_task(call("again", True))]
        await asyncio.sleep(0)
        assert limiter.waiting == 2
        limiter.release()
        await asyncio.gather(*calls)
        return order

    assert asyncio.run(main()) == ["again", "new"]


def test_a_burst_of_rejections_halves_the_window_once() -> None:
    """Sixteen calls of one generation halve it once; a later one halves it again."""

    async def main() -> list[int]:
        limiter, seen = Limiter(window=16), []
        generations = [await limiter.acquire() for _ in range(16)]
        for generation in generations:
            limiter.record_overload(generation)
            limiter.release()
        seen.append(limiter.window)
        limiter.record_overload(await limiter.acquire())
        seen.append(limiter.window)
        return seen

    assert asyncio.run(main()) == [8, 4]


def test_the_window_never_falls_below_one() -> None:
    """However often the endpoint rejects calls."""
    limiter = Limiter(window=3)
    for _ in range(5):
        limiter.record_overload(enter(limiter))
        limiter.release()
    assert limiter.window == 1


def test_a_full_window_of_successes_adds_a_slot() -> None:
    """From 2: two successes give 3, three more give 4, up to the maximum."""
    limiter, seen = Limiter(window=2, max_window=4), []
    enter(limiter)
    enter(limiter)
    for _ in range(12):
        limiter.record_success()
        seen.append(limiter.window)
    assert seen == [2, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4]


def test_successes_in_an_almost_empty_window_do_not_count() -> None:
    """One call at a time does not show that the server accepts more."""
    limiter = Limiter(window=8)
    for _ in range(100):
        enter(limiter)
        limiter.record_success()
        limiter.release()
    assert limiter.window == 8


def test_a_slot_can_be_released_from_a_thread_without_a_loop() -> None:
    """A waiting call is woken from any thread."""

    async def main() -> int:
        limiter = Limiter(window=1)
        await limiter.acquire()
        waiting = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        await asyncio.to_thread(limiter.release)
        await asyncio.wait_for(waiting, 1)
        return limiter.in_flight

    assert asyncio.run(main()) == 1


def test_a_wider_window_wakes_a_waiting_call() -> None:
    """Without another call leaving."""

    async def main() -> int:
        limiter = Limiter(window=1)
        await limiter.acquire()
        waiting = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        limiter.record_success()
        await asyncio.wait_for(waiting, 1)
        return limiter.in_flight

    assert asyncio.run(main()) == 2


def test_no_call_starts_before_a_pause_is_over() -> None:
    """A pause of 10 s is respected, plus at most a tenth of it."""
    clock = ManualClock()
    limiter = Limiter(clock=clock, rng=random.Random(7))
    limiter.pause(10)
    assert limiter.remaining_pause() == 10
    enter(limiter)
    assert 10 <= clock.seconds <= 11
    assert limiter.remaining_pause() == 0


def test_calls_restart_at_different_times() -> None:
    """After a pause the calls are spread."""
    moments = set()
    for seed in range(20):
        clock = ManualClock()
        limiter = Limiter(clock=clock, rng=random.Random(seed))
        limiter.pause(600)
        enter(limiter)
        moments.add(clock.seconds)
        assert 600 <= clock.seconds <= 600 + MAX_SPREAD_SECONDS
    assert len(moments) == 20


def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    """The later end counts, in either order."""
    clock = ManualClock()
    limiter = Limiter(clock=clock)
    limiter.pause(10)
    limiter.pause(1)
    assert limiter.remaining_pause() == 10


def test_a_pause_longer_than_max_pause_is_an_error_at_once() -> None:
    """No time and no slot is lost."""
    clock = ManualClock()
    limiter = Limiter(clock=clock)
    limiter.pause(30)
    with pytest.raises(PauseTooLong, match="30 s") as caught:
        enter(limiter, max_pause=5)
    assert (caught.value.seconds, clock.slept, limiter.in_flight) == (30, [], 0)


def test_a_pause_that_starts_while_a_call_waits_is_an_error_too() -> None:
    """The call returns its slot."""

    async def main() -> tuple[int, int]:
        limiter = Limiter(window=1, clock=ManualClock())
        await limiter.acquire()
        waiting = asyncio.create_task(limiter.acquire(max_pause=5))
        await asyncio.sleep(0)
        limiter.pause(30)
        limiter.release()
        with pytest.raises(PauseTooLong):
            await waiting
        return limiter.in_flight, limiter.waiting

    assert asyncio.run(main()) == (0, 0)


def test_a_call_cancelled_with_its_slot_passes_it_on() -> None:
    """A slot that was granted at the moment of the cancellation is not lost."""

    async def main() -> int:
        limiter = Limiter(window=1)
        await limiter.acquire()
        first = asyncio.create_task(limiter.acquire())
        second = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        limiter.release()
        first.cancel()
        await asyncio.wait_for(second, 1)
        assert first.cancelled()
        limiter.release()
        return limiter.in_flight

    assert asyncio.run(main()) == 0


def test_slots_of_closed_loops_are_passed_on() -> None:
    """Two thousand waiting calls of a closed loop do not block the next one."""
    limiter = Limiter(window=1)
    enter(limiter)
    loop = asyncio.new_event_loop()
    for _ in range(2000):
        task = loop.create_task(limiter.acquire())
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    loop.run_until_complete(asyncio.sleep(0))
    # Kept alive, so that nothing but the closed loop tells that nobody is there.
    stored = asyncio.all_tasks(loop)
    loop.close()
    assert limiter.waiting == 2000

    async def main() -> None:
        living = asyncio.create_task(limiter.acquire())
        await asyncio.sleep(0)
        limiter.release()
        await asyncio.wait_for(living, 1)

    asyncio.run(main())
    assert (limiter.in_flight, limiter.waiting, len(stored)) == (1, 0, 2000)


def test_one_limiter_works_across_threads_and_loops() -> None:
    """Four loops in four threads never exceed the window together."""
    limiter, lock = Limiter(window=3), threading.Lock()
    under_way, most, done = 0, 0, 0

    async def call() -> None:
        nonlocal under_way, most, done
        await limiter.acquire()
        with lock:
            under_way += 1
            most = max(most, under_way)
        await asyncio.sleep(0.001)
        with lock:
            under_way -= 1
            done += 1
        limiter.release()

    async def main() -> None:
        async with asyncio.timeout(120):
            await asyncio.gather(*(call() for _ in range(25)))

    threads = [threading.Thread(target=asyncio.run, args=(main(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (done, most, limiter.in_flight, limiter.waiting) == (100, 3, 0, 0)


class Schedule:
    """A limiter, the calls that were begun on it, and which of them are inside or have left."""

    def __init__(self, window: int) -> None:
        self.limiter = Limiter(window=window, clock=ManualClock())
        self.calls: list[asyncio.Task[int]] = []
        self.left: set[asyncio.Task[int]] = set()

    def enter(self, number: int) -> None:
        self.calls.append(asyncio.create_task(self.limiter.acquire(at_front=number % 2 == 0)))

    def cancel(self, number: int) -> None:
        waiting = [call for call in self.calls if not call.done()]
        if waiting:
            waiting[number % len(waiting)].cancel()

    def leave(self, number: int) -> None:
        inside = [call for call in self.calls if call.done() and not call.cancelled() and call not in self.left]
        if inside:
            self.left.add(inside[number % len(inside)])
            self.limiter.release()

    def too_much(self, number: int) -> None:
        self.limiter.record_overload(number)

    def went_well(self, number: int) -> None:
        for _ in range(number):
            self.limiter.record_success()

    def pause(self, number: int) -> None:
        self.limiter.pause(number)


# Some more often than others, so that there is somebody to cancel.
MOVES = ["enter", "enter", "tick", "tick", "leave", "leave", "cancel"]
MOVES += ["too_much", "went_well", "pause"]


@given(window=st.integers(1, 3), moves=st.lists(st.tuples(st.sampled_from(MOVES), st.integers(0, 9)), max_size=60))
def test_no_sequence_loses_a_slot(window: int, moves: list[tuple[str, int]]) -> None:
    """In any order of entering, leaving, cancelling and rejecting: no call waits while there is a free slot,
    and in the end all slots are free.
    """

    async def main() -> None:
        schedule = Schedule(window)
        limiter = schedule.limiter
        for move, number in moves:
            if move == "tick":
                await asyncio.sleep(0)
            else:
                getattr(schedule, move)(number)
            assert not limiter.waiting or limiter.in_flight >= limiter.window
        for _ in range(4 * len(moves) + 4):
            await asyncio.sleep(0)
            schedule.leave(0)
        assert all(call.done() for call in schedule.calls)
        assert (limiter.in_flight, limiter.waiting) == (0, 0)

    asyncio.run(main())


def test_no_pause_is_longer_than_an_hour() -> None:
    """One wrong header must not block an endpoint for days."""
    limiter = Limiter(clock=ManualClock())
    limiter.pause(1e9)
    assert limiter.remaining_pause() == 3600.0
