"""Helpers for tests of workers: mailboxes that fail on demand, loops in threads."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from proctor import EvalLoop, EvalRequest, EvalResult, InMemoryMailbox, Sample, exact_match
from proctor.core.clock import Clock
from tests.support import ManualClock

T = TypeVar("T")

# Only a hang takes this long, even on a busy machine.
LONG = 120.0


class FailingMailbox:
    """A mailbox that raises errors on demand.

    `faults` lists for each method the errors of its next calls; None means no error, as does the end of
    the list. The methods of its messages fail in the same way.
    """

    def __init__(self, mailbox: Any, **faults: Iterator[Any] | list[Any]) -> None:
        self._mailbox = mailbox
        self._faults = {name: iter(raised) for name, raised in faults.items()}
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        result = getattr(self._mailbox, name)
        if name == "receive":
            return lambda **how: [FailingMessage(self, m) for m in self._called("receive", how)]
        if not callable(result):
            return result
        return lambda *args, **how: self._called(name, how, *args)

    def acknowledge_all(self, messages: Any) -> int:
        return int(self._called("acknowledge_all", {}, [message.inner for message in messages]))

    def _called(self, name: str, how: dict[str, Any], *args: Any) -> Any:
        self.stumble(name)
        return getattr(self._mailbox, name)(*args, **how)

    def stumble(self, name: str) -> None:
        self.calls.append(name)
        fault = next(self._faults.get(name, iter(())), None)
        if fault is not None:
            raise fault

    def after(self, name: str) -> None:
        """Called after a successful call of a method of a message."""


class SlowMailbox(FailingMailbox):
    """A mailbox whose calls take time on a manual clock, without really waiting.

    `waits` are the wait times of the receivers.
    """

    def __init__(self, mailbox: Any, clock: ManualClock, **seconds: float) -> None:
        super().__init__(mailbox)
        self._clock = clock
        self._seconds = seconds
        self.waits: list[float] = []

    def _called(self, name: str, how: dict[str, Any], *args: Any) -> Any:
        self._clock.seconds += self._seconds.get(name, 0.0)
        if name == "receive":
            self.waits.append(how["wait_time_seconds"])
            how = {**how, "wait_time_seconds": 0}
        return super()._called(name, how, *args)


class HeartbeatMailbox(FailingMailbox):
    """A mailbox of requests whose manual clock moves by two thirds of a lease after each extension.

    A lease that is not extended expires at the second extension of another; a pause of the machine costs no lease.
    """

    def __init__(self, mailbox: Any, clock: ManualClock, lease: float) -> None:
        super().__init__(mailbox)
        self._clock = clock
        self._lease = lease

    @property
    def extensions(self) -> int:
        return self.calls.count("extend_visibility")

    def after(self, name: str) -> None:
        if name == "extend_visibility":
            self._clock.seconds += self._lease * 2 / 3


class FailingMessage:
    def __init__(self, mailbox: FailingMailbox, inner: Any) -> None:
        self._mailbox = mailbox
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        result = getattr(self.inner, name)
        if not callable(result):
            return result

        def call(*args: Any, **how: Any) -> Any:
            self._mailbox.stumble(name)
            returned = result(*args, **how)
            self._mailbox.after(name)
            return returned

        return call


def boxes(
    *, max_deliveries: int | None = None, clock: Clock | None = None
) -> tuple[InMemoryMailbox[EvalRequest[Any, Any]], InMemoryMailbox[EvalResult]]:
    """A mailbox for requests and one for results, which encode their messages."""
    requests = InMemoryMailbox("requests", EvalRequest, max_deliveries=max_deliveries, clock=clock)
    return requests, requests.open_mailbox("results", EvalResult)


def loop_for(
    target: Any, requests: Any, results: Any = None, evaluator: Any = exact_match, **options: Any
) -> EvalLoop[Any, Any, Any]:
    """A loop with a short wait for requests."""
    how = {"wait_seconds": 0.05, "name": "w1", **options}
    return EvalLoop(loop=target, evaluator=evaluator, requests=requests, results=results, **how)


def recording_target(calls: list[str]) -> Callable[[str], str]:
    """A target that returns and records its input."""

    def target(text: str) -> str:
        calls.append(text)
        return text

    return target


def with_timeout(seconds: float, call: Callable[[], T]) -> T:
    """Return the result of a call, or raise an error if it hangs."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(call())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise TimeoutError(f"it is not done after {seconds:g} s")
    if failure:
        raise failure[0]
    return outcome[0]


@contextlib.contextmanager
def running(*loops: EvalLoop[Any, Any, Any]) -> Iterator[None]:
    """Run loops in threads during the block."""
    threads = [threading.Thread(target=loop.run, daemon=True) for loop in loops]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for loop in loops:
            loop.stop()
        for thread in threads:
            thread.join(LONG)
        assert not any(thread.is_alive() for thread in threads)


def eventually(is_true: Callable[[], object], seconds: float = LONG) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < ends, "it did not come true in time"
        time.sleep(0.005)


def request(number: int, run_id: str = "r1", **fields: Any) -> EvalRequest[str, str]:
    """A request for `word N`, whose expected output is in capitals."""
    sample = Sample(f"s{number}", f"word {number}", f"WORD {number}")
    return EvalRequest(sample, request_id=f"{run_id}-{number}", run_id=run_id, **fields)


def take_results(results: Any) -> list[EvalResult]:
    """Receive and acknowledge all results in a mailbox."""
    result: list[EvalResult] = []
    while messages := results.receive(max_messages=10):
        result += [message.body for message in messages]
        results.acknowledge_all(messages)
    return result
