"""Dead letters of a run: each becomes an error of its sample, not a hang."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from proctor.distributed.account import DEAD
from proctor.distributed.expected_results import failed
from proctor.errors import MailboxError
from proctor.ports import Mailbox
from proctor.records.mail import DeadLetter, EvalRequest, body_of
from proctor.records.trial import Delivery, EvalResult, Failure

FIRST_LOOK, FARTHEST_LOOK = 100, 10_000


def result_of(letter: DeadLetter, request: EvalRequest[Any, Any]) -> EvalResult:
    """A dead letter as the result of its sample: an error that says why, and what went before."""
    said = "; ".join([letter.reason, *letter.history])
    return failed(request, Failure(DEAD, said), letter.delivery_count)


class LostResult(NamedTuple):
    """A result that nobody could read: of which run and request, as far as that can be seen."""

    run_id: str
    request_id: str
    reason: str


class LostResults:
    """Results that were set aside because they cannot be read, such as those of another version."""

    def __init__(self, results: Mailbox[EvalResult]) -> None:
        self._results = results
        self._seen: set[str] = set()

    def look(self) -> list[LostResult]:
        """Those that were not seen before."""
        try:
            letters = self._results.dead_letters(FIRST_LOOK)
        except MailboxError:
            return []
        new = [letter for letter in letters if letter.id not in self._seen]
        self._seen.update(letter.id for letter in new)
        return [_lost_result(letter) for letter in new]


class _Addressed(msgspec.Struct):
    """A result as far as its address."""

    delivery: Delivery


def _lost_result(letter: DeadLetter) -> LostResult:
    found = body_of(letter, _Addressed)
    if found is None:
        return LostResult("", "", letter.reason)
    return LostResult(found.delivery.run_id, found.delivery.request_id, letter.reason)


class Letters:
    """What was set aside of one's `own` requests, looked for now and then.

    A letter is told on the look after the one that found it: the worker that had it last may be
    about to answer, and an answer is better.
    """

    def __init__(self, requests: Mailbox[Any], own: Callable[[EvalRequest[Any, Any]], bool]) -> None:
        self._requests = requests
        self._own = own
        self._since = datetime.now(UTC)
        self._seen: set[str] = set()
        self._found: list[EvalResult] = []
        self.unreadable = 0

    @property
    def has_found(self) -> bool:
        """True if the next look will tell something."""
        return bool(self._found)

    def look(self) -> list[EvalResult]:
        """The results of letters that were found the last time."""
        ripe, self._found = self._found, []
        for letter in self._new():
            request = body_of(letter, EvalRequest)
            if request is None:
                self.unreadable += letter.died_at >= self._since
            elif self._own(request):
                self._found.append(result_of(letter, request))
        return ripe

    def _new(self) -> list[DeadLetter]:
        """Letters that were not seen before: looks deeper while all that it sees is new."""
        depth = FIRST_LOOK
        while True:
            try:
                letters = self._requests.dead_letters(depth)
            except MailboxError:
                return []
            new = [letter for letter in letters if letter.id not in self._seen]
            if len(new) < depth or depth >= FARTHEST_LOOK:
                self._seen.update(letter.id for letter in new)
                return new
            depth = min(10 * depth, FARTHEST_LOOK)
