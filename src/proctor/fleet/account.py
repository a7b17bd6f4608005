"""What happened on the way: what came late or twice, what was set aside."""

from __future__ import annotations

from proctor.records.trial import EvalResult

DEAD = "DeadLetter"


class Account:
    """Counts for the report of a run that others carried out."""

    def __init__(self) -> None:
        self.redelivered = 0
        self.dead = 0
        self.repeated = 0
        self.strangers = 0
        self.resent = 0
        self.unreadable = 0

    def count(self, result: EvalResult) -> None:
        """A result that counts."""
        if result.trial.error is not None and result.trial.error.kind == DEAD:
            self.dead += 1
        elif result.delivery is not None:
            self.redelivered += result.delivery.count > 1

    def sentences(self) -> list[str]:
        """What should be said in the report; nothing if all went straight."""
        told = (
            (self.redelivered, "came from a later delivery: an earlier one was lost or returned"),
            (self.dead, "ended as a dead letter: given up after too many deliveries, or set aside"),
            (self.repeated, "came a second time and were not counted again"),
            (self.resent, "requests had vanished from the mailbox and were sent again"),
            (self.strangers, "were of other runs or other samples and were left out"),
            (self.unreadable, "messages in the mailbox could not be read and were set aside"),
        )
        return [f"workers: {count} {what}" for count, what in told if count]
