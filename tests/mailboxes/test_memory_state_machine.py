"""The in-memory mailbox matches the model under any sequence of calls, with a manual clock."""

from __future__ import annotations

from hypothesis import settings

from proctor.mailboxes.memory import InMemoryMailbox
from tests.mailboxes.mailbox_state_machine import MailboxStateMachine
from tests.support import ManualClock


class MemoryMachine(MailboxStateMachine):
    """Compare the in-memory mailbox with the model."""

    EXACT = True

    def make(self, max_deliveries: int) -> InMemoryMailbox[int]:
        self.clock = ManualClock()
        return InMemoryMailbox("machine", int, max_deliveries=max_deliveries, clock=self.clock)

    def advance(self) -> None:
        self.clock.seconds += 2 * self.SECONDS["short"]


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
