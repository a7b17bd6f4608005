"""Requests on their way into a mailbox, in batches, on a thread of their own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from proctor.errors import MailboxError, MailboxFull, MessageRefused
from proctor.fleet.answered import failed
from proctor.fleet.arrival import check_arrival
from proctor.fleet.aside import Aside
from proctor.fleet.backoff import Backoff
from proctor.fleet.batches import BATCH
from proctor.ports import Mailbox
from proctor.records.mail import EvalRequest
from proctor.records.trial import EvalResult, Failure

# How long a request waits for company.
COMPANY_SECONDS = 0.004


class Sending:
    """Takes requests at once and sends them as the mailbox takes them.

    One that the mailbox can never take comes back through `refuse` as an error of its sample;
    `fail` is told what ends it against all expectation.
    """

    def __init__(
        self,
        requests: Mailbox[EvalRequest[Any, Any]],
        reply_to: str,
        refuse: Callable[[EvalResult], object],
        notice: Callable[[str], object],
        fail: Callable[[Exception], object],
    ) -> None:
        self._requests = requests
        self._reply_to = reply_to
        self._refuse = refuse
        self._notice = notice
        self._waiting: deque[EvalRequest[Any, Any]] = deque()
        self._wake = threading.Event()
        self._over = threading.Event()
        self._busy = False
        self._thread = Aside(self._work, "proctor-sending", fail)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def stop(self) -> None:
        """End: what was not sent yet is dropped."""
        self._over.set()
        self._wake.set()
        self._thread.join()

    def put(self, request: EvalRequest[Any, Any]) -> None:
        """Send a request soon."""
        self._waiting.append(request)
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """True if everything was sent."""
        return not self._waiting and not self._busy

    def _work(self) -> None:
        while not self._over.is_set():
            self._wake.wait()
            # One round trip for many: they come in as others are answered.
            self._over.wait(COMPANY_SECONDS)
            self._wake.clear()
            while self._waiting and not self._over.is_set():
                self._busy = True
                count = min(BATCH, len(self._waiting))
                self._send([self._waiting.popleft() for _ in range(count)])
                self._busy = False

    def _send(self, batch: list[EvalRequest[Any, Any]]) -> None:
        backoff = Backoff(self._over)
        while not self._over.is_set():
            try:
                check_arrival(self._requests, batch)
                self._requests.send_all(batch, reply_to=self._reply_to)
                return
            except MessageRefused as error:
                if len(batch) == 1:
                    what = "; ".join([error.what, *(problem.what for problem in error.problems)])
                    self._refuse(failed(batch[0], Failure(type(error).__name__, what)))
                    return
                for request in batch:
                    self._send([request])
                return
            except MailboxFull:
                if len(batch) > 1:
                    # It may be too small ever to take all at once.
                    half = len(batch) // 2
                    self._send(batch[:half])
                    self._send(batch[half:])
                    return
                self._notice("the mailbox is full: waiting for workers to make room")
            except MailboxError as error:
                self._notice(f"requests cannot be sent: {error.what}")
            backoff.pause()
