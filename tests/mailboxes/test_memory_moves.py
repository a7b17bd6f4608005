"""Any sequence of moves on the mailbox in memory, with a clock that is set by hand."""

from __future__ import annotations

from hypothesis import settings

from proctor.mailboxes.memory import InMemoryMailbox
from proctor.testing import MailboxStateMachine
from tests.surroundings import ManualClock


class MemoryMachine(MailboxStateMachine):
    """The mailbox in memory against the model, to the moment."""

    EXACT = True

    def make(self, max_deliveries: int) -> InMemoryMailbox[int]:
        self.clock = ManualClock()
        return InMemoryMailbox("moves", int, max_deliveries=max_deliveries, clock=self.clock)

    def advance(self) -> None:
        self.clock.seconds += 2 * self.SECONDS["short"]


TestMoves = MemoryMachine.TestCase
TestMoves.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
