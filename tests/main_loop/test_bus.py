"""The event bus: order, types, threads, and handlers that fail."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import pytest

from proctor.errors import UsageError
from proctor.sessions import current as sessions
from proctor.targets.main_loop.bus import EventBus


@dataclass
class Began:
    number: int


@dataclass
class Ended(Began):
    pass


def test_a_handler_receives_its_type_and_subtypes() -> None:
    """And no other events."""
    bus = EventBus()
    began: list[Began] = []
    ended: list[Ended] = []
    bus.subscribe(Began, began.append)
    bus.subscribe(Ended, ended.append)
    for event in (Began(1), Ended(2), "something else"):
        bus.publish(event)
    assert began == [Began(1), Ended(2)]
    assert ended == [Ended(2)]


def test_an_unsubscribed_handler_receives_nothing() -> None:
    """Unsubscribing twice is allowed; another subscription of the same handler stays."""
    bus = EventBus()
    heard: list[int] = []
    leave = bus.subscribe(int, heard.append)
    bus.subscribe(int, heard.append)
    leave()
    leave()
    bus.publish(1)
    assert heard == [1]


def test_an_event_published_by_a_handler_comes_next() -> None:
    """All handlers see the events in the same order."""
    bus = EventBus()
    seen: list[int] = []
    bus.subscribe(int, lambda number: bus.publish(number + 1) if number < 3 else None)
    bus.subscribe(int, seen.append)
    bus.publish(1)
    assert seen == [1, 2, 3]


def test_a_failing_handler_causes_a_warning() -> None:
    """The other handlers receive the event."""
    bus = EventBus()
    heard: list[int] = []
    bus.subscribe(int, lambda number: 1 // number)
    bus.subscribe(int, heard.append)
    with pytest.warns(RuntimeWarning, match="a handler of int failed: ZeroDivisionError"):
        bus.publish(0)
    assert heard == [0]


def test_a_warning_inside_a_run_is_in_its_report() -> None:
    """Once each."""
    bus = EventBus()
    bus.subscribe(int, lambda number: 1 // number)
    collected: list[str] = []
    before = sessions.warnings.set(collected)
    try:
        bus.publish(0)
        bus.publish(0)
    finally:
        sessions.warnings.reset(before)
    assert len(collected) == 1
    assert collected[0].startswith("a handler of int failed: ZeroDivisionError")


def test_ctrl_c_in_a_handler_is_raised() -> None:
    """The next event is delivered."""
    bus = EventBus()
    heard: list[int] = []

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    leave = bus.subscribe(int, interrupted)
    with pytest.raises(KeyboardInterrupt):
        bus.publish(1)
    leave()
    bus.subscribe(int, heard.append)
    bus.publish(2)
    assert heard == [2]


def test_an_async_handler_is_refused() -> None:
    """It would never be awaited."""

    async def later(_: Any) -> None: ...

    with pytest.raises(UsageError, match="not an async one"):
        EventBus().subscribe(int, later)


def test_threads_can_share_a_bus() -> None:
    """Both handlers receive all events of four threads in the same order."""
    bus = EventBus()
    first: list[tuple[int, int]] = []
    second: list[tuple[int, int]] = []
    bus.subscribe(tuple, first.append)
    bus.subscribe(tuple, second.append)

    def work(name: int) -> None:
        for number in range(250):
            bus.publish((name, number))

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert len(first) == 1000
    assert first == second
    for name in range(4):
        assert [number for who, number in first if who == name] == list(range(250))
