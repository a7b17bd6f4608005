"""Waiting that can be called off, although boto3 cannot be interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Bell:
    """Calls off whoever waits.

    A receiver takes the `turn` when it comes; when the bell rings, everybody's turn is over.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._turn = 0

    @property
    def turn(self) -> int:
        with self._condition:
            return self._turn

    def ring(self) -> None:
        """Let everybody who waits go on at once."""
        with self._condition:
            self._turn += 1
            self._condition.notify_all()

    def sleep(self, turn: int, seconds: float) -> bool:
        """Wait so long; True if the bell rang."""
        with self._condition:
            return self._condition.wait_for(lambda: self._turn != turn, timeout=seconds)

    def run(self, turn: int, call: Callable[[], T], too_late: Callable[[T], object]) -> T | None:
        """What a call gives; or None if the bell rings first, and `too_late` gets it later."""
        task = _Task(call)
        thread = threading.Thread(
            target=self._work, args=(task, too_late), name="proctor-sqs-wait", daemon=True
        )
        thread.start()
        with self._condition:
            try:
                self._condition.wait_for(lambda: task.done or self._turn != turn)
            finally:
                # Also when the wait itself is interrupted, by Ctrl-C.
                task.left = not task.done
        if task.error is not None:
            raise task.error
        return task.result

    def _work(self, task: _Task[T], too_late: Callable[[T], object]) -> None:
        result, error = None, None
        try:
            result = task.call()
        except Exception as raised:
            error = raised
        with self._condition:
            task.done = True
            if not task.left:
                task.result, task.error = result, error
                self._condition.notify_all()
                return
        if result is not None:
            too_late(result)


class _Task(Generic[T]):
    """A call on its way."""

    __slots__ = ("call", "done", "error", "left", "result")

    def __init__(self, call: Callable[[], T]) -> None:
        self.call = call
        self.done = False
        self.left = False
        self.result: T | None = None
        self.error: Exception | None = None
