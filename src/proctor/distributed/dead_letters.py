"""Turn the dead letters of a run into errors of their samples, so that the run does not hang."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from proctor.distributed.delivery_counts import DEAD_LETTER
from proctor.distributed.expected_results import failed_result
from proctor.errors import MailboxError
from proctor.ports import Mailbox
from proctor.records.mail import DeadLetter, EvalRequest, decode_body
from proctor.records.trial import Delivery, EvalResult, Failure

FIRST_LIMIT, MAX_LIMIT = 100, 10_000


class UnreadableResult(NamedTuple):
    """A result that cannot be read: its run and request, as far as they are known."""

    run_id: str
    request_id: str
    reason: str


class UnreadableResultPoller:
    """Finds results that cannot be read, such as those of another version."""

    def __init__(self, results: Mailbox[EvalResult]) -> None:
        self._results = results
        self._seen: set[str] = set()

    def poll(self) -> list[UnreadableResult]:
        """Return the new ones since the last poll."""
        try:
            letters = self._results.dead_letters(FIRST_LIMIT)
        except MailboxError:
            return []
        new = [letter for letter in letters if letter.id not in self._seen]
        self._seen.update(letter.id for letter in new)
        return [_read_unreadable(letter) for letter in new]


class _Addressed(msgspec.Struct):
    """The address of a result, without the rest."""

    delivery: Delivery


def _read_unreadable(letter: DeadLetter) -> UnreadableResult:
    result = decode_body(letter, _Addressed)
    if result is None:
        return UnreadableResult("", "", letter.reason)
    return UnreadableResult(result.delivery.run_id, result.delivery.request_id, letter.reason)


class DeadLetterPoller:
    """Polls for dead letters of the requests that `is_own` accepts.

    A poll returns the letters that the previous poll found: the last worker may be about to send a
    result, and a result is better than an error.
    """

    def __init__(self, requests: Mailbox[Any], is_own: Callable[[EvalRequest[Any, Any]], bool]) -> None:
        self._requests = requests
        self._is_own = is_own
        self._since = datetime.now(UTC)
        self._seen: set[str] = set()
        self._pending: list[EvalResult] = []
        self.unreadable = 0

    @property
    def has_pending(self) -> bool:
        """True if the next poll will return results."""
        return bool(self._pending)

    def poll(self) -> list[EvalResult]:
        """Return error results for the letters that the previous poll found."""
        results, self._pending = self._pending, []
        for letter in self._read_new():
            request = decode_body(letter, EvalRequest)
            if request is None:
                self.unreadable += letter.died_at >= self._since
            elif self._is_own(request):
                failure = Failure(DEAD_LETTER, "; ".join([letter.reason, *letter.history]))
                self._pending.append(failed_result(request, failure, letter.delivery_count))
        return results

    def _read_new(self) -> list[DeadLetter]:
        """Read unseen letters, and more of them as long as all are new."""
        limit = FIRST_LIMIT
        while True:
            try:
                letters = self._requests.dead_letters(limit)
            except MailboxError:
                return []
            new = [letter for letter in letters if letter.id not in self._seen]
            if len(new) < limit or limit >= MAX_LIMIT:
                self._seen.update(letter.id for letter in new)
                return new
            limit = min(10 * limit, MAX_LIMIT)
