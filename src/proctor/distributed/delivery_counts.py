"""Count what happened to requests and results on the way between a run and its workers."""

from __future__ import annotations

from proctor.distributed.notices import WorkerRegistry
from proctor.engine.ledger import trial_label as trial_label
from proctor.errors import MAX_ITEMS
from proctor.records.trial import EvalResult

DEAD_LETTER = "DeadLetter"
UNREADABLE_RESULT = "UnreadableResult"


class DeliveryCounts:
    """Delivery counts for the report of a run with remote workers."""

    redelivered = repeated = strangers = resent = unreadable = unreadable_results = 0

    def __init__(self) -> None:
        self.workers = WorkerRegistry()
        self._dead: list[str] = []
        self._lost: list[str] = []

    def add(self, result: EvalResult) -> None:
        error_type = None if result.trial.error is None else result.trial.error.kind
        if error_type in (DEAD_LETTER, UNREADABLE_RESULT):
            trial = result.trial
            label = trial_label(trial.sample.id, trial.configuration, trial.epoch)
            (self._dead if error_type == DEAD_LETTER else self._lost).append(label)
        elif result.delivery is not None:
            self.redelivered += result.delivery.count > 1

    def warnings(self) -> list[str]:
        """Describe everything unusual for the report."""
        dead = f"delivered too often, or rejected ({join_labels(self._dead)})"
        lost = f"no readable result ({join_labels(self._lost)})"
        later = "came from a later delivery: an earlier one was lost or returned"
        again, vanished = "came a second time and", "had vanished from the mailbox and"
        unread = "could not be read and"
        texts = describe_counts(
            "workers",
            (self.redelivered, f"result {later}", f"results {later}"),
            (
                len(self._dead),
                f"request ended as a dead letter: {dead}",
                f"requests ended as dead letters: {dead}",
            ),
            (len(self._lost), f"request has {lost}", f"requests have {lost}"),
            (
                self.repeated,
                f"result {again} was not counted again",
                f"results {again} were not counted again",
            ),
            (self.resent, f"request {vanished} was sent again", f"requests {vanished} were sent again"),
            (
                self.strangers,
                "result belonged to another run or sample and was ignored",
                "results belonged to other runs or samples and were ignored",
            ),
            (
                self.unreadable,
                f"message in the mailbox {unread} was set aside",
                f"messages in the mailbox {unread} were set aside",
            ),
            (self.unreadable_results, f"result {unread} was set aside", f"results {unread} were set aside"),
        )
        return [*texts, *self.workers.warnings()]


def describe_counts(prefix: str, *counts: tuple[int, str, str]) -> list[str]:
    """Describe each count above 0 by its text for one or for several."""
    return [
        f"{prefix}: {count} {single if count == 1 else plural}" for count, single, plural in counts if count
    ]


def join_labels(labels: list[str]) -> str:
    """Join labels; shorten a long list."""
    more = len(labels) - MAX_ITEMS
    return ", ".join(labels[:MAX_ITEMS]) + (f", … and {more} more" if more > 0 else "")
