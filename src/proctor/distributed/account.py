"""What happened on the way: what came late or twice, what was set aside."""

from __future__ import annotations

from proctor.distributed.notices import Roster
from proctor.errors import SHOWN_AT_MOST
from proctor.records.trial import DEFAULT_CONFIGURATION, EvalResult

DEAD = "DeadLetter"
UNREADABLE_RESULT = "UnreadableResult"


class Account:
    """Counts for the report of a run that others carried out."""

    def __init__(self) -> None:
        self.roster = Roster()
        self.redelivered = 0
        self.repeated = 0
        self.strangers = 0
        self.resent = 0
        self.unreadable = 0
        self.unreadable_results = 0
        self._dead: list[str] = []
        self._lost: list[str] = []

    def count(self, result: EvalResult) -> None:
        """A result that counts."""
        kind = None if result.trial.error is None else result.trial.error.kind
        if kind in (DEAD, UNREADABLE_RESULT):
            trial = result.trial
            label = trial_label(trial.sample.id, trial.configuration, trial.epoch)
            (self._dead if kind == DEAD else self._lost).append(label)
        elif result.delivery is not None:
            self.redelivered += result.delivery.count > 1

    def sentences(self) -> list[str]:
        """What should be said in the report; nothing if all went straight."""
        dead = "ended as a dead letter: given up after too many deliveries, or set aside"
        lost = "have no result that could be read"
        counts = (
            (self.redelivered, "came from a later delivery: an earlier one was lost or returned"),
            (len(self._dead), f"{dead} ({listed(self._dead)})"),
            (len(self._lost), f"{lost} ({listed(self._lost)})"),
            (self.repeated, "came a second time and were not counted again"),
            (self.resent, "requests had vanished from the mailbox and were sent again"),
            (self.strangers, "were of other runs or other samples and were left out"),
            (self.unreadable, "messages in the mailbox could not be read and were set aside"),
            (self.unreadable_results, "results could not be read and were set aside"),
        )
        said = [f"workers: {count} {what}" for count, what in counts if count]
        return [*said, *self.roster.sentences()]


def trial_label(sample_id: str, configuration: str, epoch: int) -> str:
    """A trial in words: its sample, and configuration and epoch where they are not the default.

    >>> trial_label("s1", "default", 0), trial_label("s1", "gpt", 2)
    ('s1', 's1 (gpt, epoch 2)')
    """
    parts = [] if configuration == DEFAULT_CONFIGURATION else [configuration]
    if epoch:
        parts.append(f"epoch {epoch}")
    return f"{sample_id} ({', '.join(parts)})" if parts else sample_id


def listed(labels: list[str]) -> str:
    """Labels in one line, the first ones if they are many.

    >>> listed([str(number) for number in range(22)])
    '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, … and 2 more'
    """
    more = len(labels) - SHOWN_AT_MOST
    return ", ".join(labels[:SHOWN_AT_MOST]) + (f", … and {more} more" if more > 0 else "")
