"""The mailbox on SQS passes the contract."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar
from uuid import uuid4

import pytest

from proctor.mailboxes.sqs import SQSMailbox
from proctor.testing import MailboxContract
from tests.servers import SQSServer


@pytest.fixture(scope="module", autouse=True)
def _server() -> Iterator[None]:
    with SQSServer() as server:
        TestSQS.client = server.client()
        yield


class TestSQS(MailboxContract):
    """SQS counts whole seconds, promises no order, and knows neither capacity nor history."""

    SHORT = 1
    IN_ORDER = False
    HAS_CAPACITY = False
    HAS_DELIVERY_HISTORY = False
    HAS_UNCOUNTED_DELIVERIES = False
    REMEMBERS_REMOVAL = False
    MESSAGE_COUNT = 60
    client: ClassVar[Any]

    def make(
        self, body_type: Any, *, capacity: int | None = None, max_deliveries: int | None = None
    ) -> SQSMailbox[Any]:
        assert capacity is None
        name = f"contract-{uuid4().hex}"
        return SQSMailbox(name, self.client, body_type, max_deliveries=max_deliveries)
