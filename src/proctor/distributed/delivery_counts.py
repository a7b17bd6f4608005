"""Count the deliveries of a run, and turn its dead letters into errors of their samples."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from proctor.distributed.expected_results import failed_result
from proctor.distributed.notices import WorkerRegistry
from proctor.engine.ledger import trial_label as trial_label
from proctor.errors import MAX_ITEMS, MailboxError
from proctor.ports import Mailbox
from proctor.records.mail import DeadLetter, EvalRequest, decode_body
from proctor.records.trial import Delivery, EvalResult, Failure

DEAD_LETTER = "DeadLetter"
UNREADABLE_RESULT = "UnreadableResult"


class DeliveryCounts:
    """Counts unusual deliveries of a run, for the warnings of its report."""

    redelivered = duplicates = foreign = resent = unreadable = unreadable_results = 0

    def __init__(self) -> None:
        self.workers = WorkerRegistry()
        self._dead: list[str] = []
        self._lost_labels: list[str] = []

    def add(self, result: EvalResult) -> None:
        error_type = None if result.trial.error is None else result.trial.error.kind
        if error_type in (DEAD_LETTER, UNREADABLE_RESULT):
            trial = result.trial
            label = trial_label(trial.sample.id, trial.configuration, trial.epoch)
            (self._dead if error_type == DEAD_LETTER else self._lost_labels).append(label)
        elif result.delivery is not None:
            self.redelivered += result.delivery.count > 1

    def warnings(self) -> list[str]:
        """Return a warning for each unusual count."""
        dead = f"delivered too often, or rejected ({join_labels(self._dead)})"
        lost = f"no readable result ({join_labels(self._lost_labels)})"
        later = "came from a repeated delivery, because an earlier one was lost or returned"
        twice, vanished = "arrived twice and", "had disappeared from the mailbox and"
        unread = "could not be read and"
        texts = describe_counts(
            "workers",
            (self.redelivered, f"result {later}", f"results {later}"),
            (len(self._dead), f"request ended as a dead letter: {dead}", f"requests ended as dead letters: {dead}"),
            (len(self._lost_labels), f"request has {lost}", f"requests have {lost}"),
            (self.duplicates, f"result {twice} was not counted again", f"results {twice} were not counted again"),
            (self.resent, f"request {vanished} was sent again", f"requests {vanished} were sent again"),
            (
                self.foreign,
                "result belonged to another run or sample and was ignored",
                "results belonged to other runs or samples and were ignored",
            ),
            (
                self.unreadable,
                f"message in the mailbox {unread} became a dead letter",
                f"messages in the mailbox {unread} became dead letters",
            ),
            (self.unreadable_results, f"result {unread} became a dead letter", f"results {unread} became dead letters"),
        )
        return [*texts, *self.workers.warnings()]


def describe_counts(prefix: str, *counts: tuple[int, str, str]) -> list[str]:
    """Describe each count above 0, in the singular or plural."""
    return [f"{prefix}: {count} {singular if count == 1 else plural}" for count, singular, plural in counts if count]


def join_labels(labels: list[str]) -> str:
    """Join labels; shorten a long list."""
    more = len(labels) - MAX_ITEMS
    return ", ".join(labels[:MAX_ITEMS]) + (f", … and {more} more" if more > 0 else "")


FIRST_LIMIT, MAX_LIMIT = 100, 10_000


class UnreadableResult(NamedTuple):
    """A result that cannot be read, with its run and request if they are known."""

    run_id: str
    request_id: str
    reason: str


class UnreadableResultPoller:
    """Finds results that cannot be read, such as results of another version of Proctor."""

    def __init__(self, results: Mailbox[EvalResult]) -> None:
        self._results = results
        self._seen_ids: set[str] = set()

    def poll(self) -> list[UnreadableResult]:
        """Return the unreadable results since the last poll."""
        try:
            letters = self._results.dead_letters(FIRST_LIMIT)
        except MailboxError:
            return []
        new = [letter for letter in letters if letter.id not in self._seen_ids]
        self._seen_ids.update(letter.id for letter in new)
        return [_read_unreadable(letter) for letter in new]


class _ResultAddress(msgspec.Struct):
    """The part of a result that identifies its run and request."""

    delivery: Delivery


def _read_unreadable(letter: DeadLetter) -> UnreadableResult:
    result = decode_body(letter, _ResultAddress)
    if result is None:
        return UnreadableResult("", "", letter.reason)
    return UnreadableResult(result.delivery.run_id, result.delivery.request_id, letter.reason)


class DeadLetterPoller:
    """Polls for dead letters of the requests that `is_own` selects.

    A poll returns the letters that the previous poll found: the last worker may be about to send a
    result, and a result is better than an error.
    """

    def __init__(self, requests: Mailbox[Any], is_own: Callable[[EvalRequest[Any, Any]], bool]) -> None:
        self._requests = requests
        self._is_own = is_own
        self._since = datetime.now(UTC)
        self._seen_ids: set[str] = set()
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
        """Read new letters, and continue while all letters of a page are new."""
        limit = FIRST_LIMIT
        while True:
            try:
                letters = self._requests.dead_letters(limit)
            except MailboxError:
                return []
            new = [letter for letter in letters if letter.id not in self._seen_ids]
            if len(new) < limit or limit >= MAX_LIMIT:
                self._seen_ids.update(letter.id for letter in new)
                return new
            limit = min(10 * limit, MAX_LIMIT)
