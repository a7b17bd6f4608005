"""Receive the results of requests, and count each result once."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from proctor.core.clock import Clock
from proctor.distributed.batches import WAKE_SECONDS, Backoff, SupervisedThread, decode_body
from proctor.distributed.delivery_counts import DeadLetterPoller, DeliveryCounts, UnreadableResultPoller
from proctor.errors import MailboxClosed, MailboxError
from proctor.mailboxes.core import MAX_MESSAGES
from proctor.ports import Mailbox, Message
from proctor.records.trial import EvalResult

# Long enough to acknowledge a batch; the batch is redelivered if this process dies or the connection breaks first.
# Short, because the run may be waiting only for this.
RESULT_LEASE_SECONDS = 10
RECEIVE_SECONDS = 20

# Takes results; returns whether they may be acknowledged.
HandOver = Callable[[list[EvalResult]], bool]


class ResultReceiver:
    """Passes results on as they arrive, then acknowledges them.

    `on_failure` receives an unexpected error that ends the thread.
    """

    def __init__(
        self,
        results: Mailbox[EvalResult],
        hand_over: HandOver,
        show_notice: Callable[[str], object],
        on_failure: Callable[[Exception], object],
    ) -> None:
        self._results = results
        self._hand_over = hand_over
        self._show_notice = show_notice
        self._stopped = threading.Event()
        self._thread = SupervisedThread(self._work, "proctor-receiving", on_failure)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, even while waiting for messages."""
        self._stopped.set()
        while self._thread.is_alive():
            self._results.wake()
            time.sleep(WAKE_SECONDS)

    def drain(self) -> None:
        """Pass on all results that are in the mailbox now."""
        while messages := self._receive(0):
            self._process(messages)

    @staticmethod
    def count_messages(mailbox: Mailbox[Any]) -> int | None:
        """Count the messages in a mailbox; None if it cannot be reached."""
        try:
            return mailbox.approximate_count()
        except MailboxError:
            return None

    def _work(self) -> None:
        backoff = Backoff(self._stopped)
        while not self._stopped.is_set():
            try:
                messages = self._receive(RECEIVE_SECONDS)
            except MailboxClosed:
                return
            except MailboxError as error:
                self._show_notice(f"results cannot be received: {error.what}")
                backoff.pause()
                continue
            backoff.reset()
            self._process(messages)

    def _receive(self, wait: float) -> Sequence[Message[EvalResult]]:
        return self._results.receive(
            max_messages=MAX_MESSAGES, visibility_timeout=RESULT_LEASE_SECONDS, wait_time_seconds=wait
        )

    def _process(self, messages: Sequence[Message[EvalResult]]) -> None:
        results = [result for message in messages if (result := read_result(message)) is not None]
        if results and self._hand_over(results):
            # If it fails, the results are redelivered and recognized as duplicates.
            with contextlib.suppress(MailboxError):
                self._results.acknowledge_all(messages)


def read_result(message: Message[Any]) -> EvalResult | None:
    """Read the result in a message; reject a message without one."""
    try:
        return decode_body(message.body, EvalResult)
    except ValueError as error:
        with contextlib.suppress(MailboxError):
            message.reject(f"it is not a valid result: {error}")
        return None


LEASE_SECONDS = 10
# Waits are short, so that dead letters can be polled in between.
WAIT_SECONDS = 1.0
# The delay before a result of another run is visible again: short and random, so that two collectors of one mailbox do
# not block each other.
FOREIGN_SECONDS = (0.05, 0.5)
# The maximum number of results that are acknowledged together.
ACKNOWLEDGE_AT = 100


class ResultCollector:
    """Collects results from a mailbox until `expected` results have arrived or the timeout expires.

    Only one result per request counts, and a success replaces an error. Results that `is_own` does not select stay in
    the mailbox; `known_ids` are requests that already have results. Successes are yielded as they arrive, errors at the
    end. `persist` stores the yielded results before they are acknowledged, so that they are not lost if this process
    dies. Without `persist`, errors are acknowledged immediately, so that they do not fill a small mailbox.
    """

    def __init__(
        self,
        results: Mailbox[EvalResult],
        expected: int,
        clock: Clock,
        *,
        run_id: str | None = None,
        is_own: Callable[[EvalResult], bool] = lambda _: True,
        known_ids: Iterable[str] = (),
        dead_letters: DeadLetterPoller | None = None,
        on_result: Callable[[EvalResult], object] = lambda _: None,
        persist: Callable[[], object] | None = None,
    ) -> None:
        self._results = results
        self._expected = expected
        self._run_id = run_id
        self._clock = clock
        self._is_own = is_own
        self._dead_letter_poller = dead_letters
        self._on_result = on_result
        self._persist = persist
        self._known_ids = set(known_ids)
        self._successes: set[Any] = set()
        self._errors: dict[Any, EvalResult] = {}
        # Messages of yielded results, and messages of errors by id, because they may be redelivered.
        self._yielded: list[Message[Any]] = []
        self._error_messages: dict[str, Message[Any]] = {}
        self.delivery_counts = DeliveryCounts()

    def __len__(self) -> int:
        return len(self._successes) + len(self._errors)

    def take(self, timeout: float) -> Iterator[EvalResult]:
        """Yield results until all have arrived or `timeout` seconds have passed."""
        try:
            for result in self._collect(timeout):
                self.delivery_counts.add(result)
                yield result
        except BaseException:
            # For example Ctrl-C: the next collector need not wait until the leases expire.
            for message in (*self._yielded, *self._error_messages.values()):
                with contextlib.suppress(MailboxError):
                    message.nack(reason="the collector was interrupted")
            raise

    def _collect(self, timeout: float) -> Iterator[EvalResult]:
        monotonic = self._clock.monotonic
        deadline = monotonic() + timeout
        # After the timeout, only the messages that are there at that moment are read.
        unread: int | None = None
        while len(self) < self._expected:
            remaining = deadline - monotonic()
            if remaining <= 0 and unread is None:
                unread = ResultReceiver.count_messages(self._results) or 0
            messages = self._results.receive(
                max_messages=MAX_MESSAGES,
                visibility_timeout=LEASE_SECONDS,
                wait_time_seconds=max(0.0, min(WAIT_SECONDS, remaining)),
            )
            pairs = [(message, result) for message in messages if (result := self._read(message))]
            for message, result in pairs:
                yield from self._accept(message, result)
            self._poll_dead_letters()
            if len(messages) < MAX_MESSAGES or len(self._yielded) >= ACKNOWLEDGE_AT:
                self._acknowledge()
            if unread is not None:
                unread -= len(messages)
                # If none of them belongs to this run, the rest is not searched.
                if unread <= 0 or not pairs:
                    # A dead letter is returned by the second poll.
                    self._poll_dead_letters()
                    break
        if len(self) < self._expected:
            unreadable = UnreadableResultPoller(self._results).poll()
            self.delivery_counts.unreadable_results = sum(
                result.run_id in ("", self._run_id or result.run_id) for result in unreadable
            )
        yield from self._errors.values()
        self._yielded += self._error_messages.values()
        self._acknowledge()

    def _read(self, message: Message[Any]) -> EvalResult | None:
        """Read the result in a message; return a result of another run to the mailbox."""
        result = read_result(message)
        if result is None or self._is_own(result):
            return result
        if self._is_notice(result):
            self._yielded.append(message)
            return None
        with contextlib.suppress(MailboxError):
            message.nack(random.uniform(*FOREIGN_SECONDS), counts=False)
        return None

    def _is_notice(self, result: EvalResult) -> bool:
        run_id = "" if result.delivery is None else result.delivery.run_id
        is_known = run_id == self._run_id or self._run_id is None
        return is_known and self.delivery_counts.workers.record(result)

    def _accept(self, message: Message[Any], result: EvalResult) -> Iterator[EvalResult]:
        if message.id in self._error_messages:
            # The same message was redelivered, because its lease expired.
            self._error_messages[message.id] = message
            return
        if self._count(result):
            yield result
        is_pending = not result.success and _key(result) in self._errors
        if self._persist is not None and is_pending:
            self._error_messages[message.id] = message
        else:
            self._yielded.append(message)

    def _poll_dead_letters(self) -> None:
        if self._dead_letter_poller is not None:
            for result in self._dead_letter_poller.poll():
                self._count(result)
            self.delivery_counts.unreadable = self._dead_letter_poller.unreadable

    def _acknowledge(self) -> None:
        """Acknowledge the yielded results. If that fails, they are redelivered and recognized as duplicates."""
        if self._yielded:
            if self._persist is not None:
                self._persist()
            with contextlib.suppress(MailboxError):
                self._results.acknowledge_all(self._yielded)
            self._yielded = []

    def _count(self, result: EvalResult) -> bool:
        """Count a result; return True for the first success of its request."""
        key = _key(result)
        is_repeated_error = key in self._errors and not result.success
        if is_repeated_error or key in self._known_ids or key in self._successes:
            self.delivery_counts.duplicates += 1
            return False
        earlier_error = self._errors.pop(key, None)
        self.delivery_counts.duplicates += earlier_error is not None
        if earlier_error is None:
            self._on_result(result)
        if not result.success:
            self._errors[key] = result
            return False
        self._successes.add(key)
        return True


def _key(result: EvalResult) -> Any:
    """Identify the request of a result."""
    trial = result.trial
    if result.delivery is not None:
        return result.delivery.request_id
    return trial.sample.id, trial.configuration, trial.epoch
