"""Results of requests sent before: each is counted once, until all are there or time is up."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from proctor.core.clock import Clock
from proctor.distributed.account import Account
from proctor.distributed.batches import WAKE_SECONDS, Aside, Backoff, as_record
from proctor.distributed.letters import Letters, LostResults
from proctor.errors import MailboxClosed, MailboxError
from proctor.mailboxes.limits import MOST_AT_ONCE
from proctor.ports import Mailbox, Message
from proctor.records.trial import EvalResult

# Long enough to acknowledge a batch; it comes again if this process dies before, or if the
# connection breaks while the batch is on its way: until then the run may wait for nothing else.
RESULT_LEASE_SECONDS = 10
RECEIVE_SECONDS = 20

# Says whether results were handed over to those who want them.
Arrive = Callable[[list[EvalResult]], bool]


class Receiving:
    """Hands results over as they come, then acknowledges them.

    `fail` is told what ends it against all expectation.
    """

    def __init__(
        self,
        results: Mailbox[EvalResult],
        arrive: Arrive,
        notice: Callable[[str], object],
        fail: Callable[[Exception], object],
    ) -> None:
        self._results = results
        self._arrive = arrive
        self._notice = notice
        self._over = threading.Event()
        self._thread = Aside(self._work, "proctor-receiving", fail)

    def start(self) -> None:
        """Begin to receive."""
        self._thread.start()

    def stop(self) -> None:
        """End, also in the middle of a wait."""
        self._over.set()
        while self._thread.is_alive():
            self._results.wake()
            time.sleep(WAKE_SECONDS)

    def drain(self, arrive: Arrive) -> None:
        """Hand over everything that is there now."""
        while messages := self._receive(0):
            self._hand_over(messages, arrive)

    @staticmethod
    def count_of(mailbox: Mailbox[Any]) -> int | None:
        """How many messages a mailbox holds, or None if it cannot be asked."""
        try:
            return mailbox.approximate_count()
        except MailboxError:
            return None

    def _work(self) -> None:
        backoff = Backoff(self._over)
        while not self._over.is_set():
            try:
                messages = self._receive(RECEIVE_SECONDS)
            except MailboxClosed:
                return
            except MailboxError as error:
                self._notice(f"results cannot be received: {error.what}")
                backoff.pause()
                continue
            backoff.reset()
            self._hand_over(messages, self._arrive)

    def _receive(self, wait: float) -> Sequence[Message[EvalResult]]:
        return self._results.receive(
            max_messages=MOST_AT_ONCE, visibility_timeout=RESULT_LEASE_SECONDS, wait_time_seconds=wait
        )

    def _hand_over(self, messages: Sequence[Message[EvalResult]], arrive: Arrive) -> None:
        found = [result for message in messages if (result := result_in(message)) is not None]
        if found and arrive(found):
            # If it fails they come again, and are recognised.
            with contextlib.suppress(MailboxError):
                self._results.acknowledge_all(messages)


def result_in(message: Message[Any]) -> EvalResult | None:
    """The result in a message; what is none is set aside."""
    try:
        return as_record(message.body, EvalResult)
    except ValueError as error:
        with contextlib.suppress(MailboxError):
            message.reject(f"it is no result: {error}")
        return None


LEASE_SECONDS = 10
# A wait is cut into pieces, to look for dead letters in between.
WAIT_SECONDS = 1.0
# For how long a result of another run is left to whoever collects that one: short, and by chance,
# so that two who collect from one mailbox do not keep each other waiting.
STRANGER_SECONDS = (0.05, 0.5)
# So many are acknowledged together where they come thick and fast.
SETTLED_AT = 100


class Gathering:
    """Takes results out of a mailbox until `expected` are there or the time is up.

    Of several results for one request one counts, and a success before an error. Those that are
    not `own` are left in the mailbox; `known` are requests whose results are there already.
    Successes are given as they come, errors at the end. What was given is acknowledged after
    `secure`, which sees to it that it is kept: if this process dies before, it is still in the
    mailbox. Without `secure` nothing outlives the process, so errors are acknowledged at once: else
    they would fill a small mailbox while further results wait for room.
    """

    def __init__(
        self,
        results: Mailbox[EvalResult],
        expected: int,
        clock: Clock,
        *,
        run_id: str | None = None,
        own: Callable[[EvalResult], bool] = lambda _: True,
        known: Iterable[str] = (),
        letters: Letters | None = None,
        told: Callable[[EvalResult], object] = lambda _: None,
        secure: Callable[[], object] | None = None,
    ) -> None:
        self._results = results
        self._expected = expected
        self._run_id = run_id
        self._clock = clock
        self._own = own
        self._letters = letters
        self._told = told
        self._secure = secure
        self._known = set(known)
        self._successes: set[Any] = set()
        self._errors: dict[Any, EvalResult] = {}
        # Messages whose result was given, and those of errors, by id: they may come again.
        self._given: list[Message[Any]] = []
        self._held: dict[str, Message[Any]] = {}
        self.account = Account()

    def __len__(self) -> int:
        return len(self._successes) + len(self._errors)

    def take(self, timeout: float) -> Iterator[EvalResult]:
        """Results, until all are there or `timeout` seconds have passed."""
        try:
            for result in self._take(timeout):
                self.account.count(result)
                yield result
        except BaseException:
            # Such as Ctrl-C: whoever collects next need not wait for a lease to run out.
            for message in (*self._given, *self._held.values()):
                with contextlib.suppress(MailboxError):
                    message.nack(reason="its collector was interrupted")
            raise

    def _take(self, timeout: float) -> Iterator[EvalResult]:
        monotonic = self._clock.monotonic
        deadline = monotonic() + timeout
        # How many are looked at when the time is up: those that are there at that moment.
        last: int | None = None
        while len(self) < self._expected:
            remaining = deadline - monotonic()
            if remaining <= 0 and last is None:
                last = self._there()
            messages = self._results.receive(
                max_messages=MOST_AT_ONCE,
                visibility_timeout=LEASE_SECONDS,
                wait_time_seconds=max(0.0, min(WAIT_SECONDS, remaining)),
            )
            found = [(message, result) for message in messages if (result := self._read(message))]
            for message, result in found:
                yield from self._taken(message, result)
            self._look_for_letters()
            if len(messages) < MOST_AT_ONCE or len(self._given) >= SETTLED_AT:
                self._settle()
            if last is not None:
                last -= len(messages)
                # Nothing of its own among them: what others left there is not searched any longer.
                if last <= 0 or not found:
                    # A letter is told at the second look.
                    self._look_for_letters()
                    break
        if len(self) < self._expected:
            self._look_for_lost_results()
        yield from self._errors.values()
        self._given += self._held.values()
        self._settle()

    def _there(self) -> int:
        """How many messages are there now."""
        try:
            return self._results.approximate_count()
        except MailboxError:
            return 0

    def _read(self, message: Message[Any]) -> EvalResult | None:
        """The result in a message if it is one's own; another's is left to them."""
        result = result_in(message)
        if result is None or self._own(result):
            return result
        if self._is_notice(result):
            self._given.append(message)
            return None
        with contextlib.suppress(MailboxError):
            message.nack(random.uniform(*STRANGER_SECONDS), counts=False)
        return None

    def _is_notice(self, result: EvalResult) -> bool:
        """Take note of a worker's notice, if it is one of this run's."""
        run_id = "" if result.delivery is None else result.delivery.run_id
        is_known = run_id == self._run_id or self._run_id is None
        return is_known and self.account.roster.hear(result)

    def _taken(self, message: Message[Any], result: EvalResult) -> Iterator[EvalResult]:
        if message.id in self._held:
            # Its lease was over before the end. It is no second result.
            self._held[message.id] = message
            return
        if self._count(result):
            yield result
        is_kept = self._secure is not None
        if is_kept and not result.success and _key(result) in self._errors:
            self._held[message.id] = message
        else:
            self._given.append(message)

    def _look_for_letters(self) -> None:
        if self._letters is not None:
            for result in self._letters.look():
                self._count(result)
            self.account.unreadable = self._letters.unreadable

    def _look_for_lost_results(self) -> None:
        """Count results that nobody can read: what is missing may be among them."""
        lost = LostResults(self._results).look()
        self.account.unreadable_results = sum(one.run_id in ("", self._run_id or one.run_id) for one in lost)

    def _settle(self) -> None:
        """Acknowledge what was given. If that fails it comes again, and is recognised."""
        if self._given:
            if self._secure is not None:
                self._secure()
            with contextlib.suppress(MailboxError):
                self._results.acknowledge_all(self._given)
            self._given = []

    def _count(self, result: EvalResult) -> bool:
        """Take note of a result; True for the first success of its request."""
        key = _key(result)
        again = key in self._errors and not result.success
        if again or key in self._known or key in self._successes:
            self.account.repeated += 1
            return False
        overruled = self._errors.pop(key, None)
        self.account.repeated += overruled is not None
        if overruled is None:
            self._told(result)
        if not result.success:
            self._errors[key] = result
            return False
        self._successes.add(key)
        return True


def _key(result: EvalResult) -> Any:
    """What tells one request from another."""
    trial = result.trial
    if result.delivery is not None:
        return result.delivery.request_id
    return trial.sample.id, trial.configuration, trial.epoch
