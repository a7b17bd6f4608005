"""For your own tests: servers on this machine, and what providers, mailboxes and histories must do.

from proctor.testing import Fault, ModelServer

with ModelServer(lambda asked: "Paris") as server:
    server.faults.append(Fault.status(429, retry_after=1))
    ...  # ask `server.url` as if it were OpenAI, Anthropic or Gemini
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from proctor.testing.exchange import Asked, Said
    from proctor.testing.fault import Fault
    from proctor.testing.history_contract import HistoryContract
    from proctor.testing.mailbox_contract import MailboxContract
    from proctor.testing.mailbox_moves import MailboxMoves
    from proctor.testing.model_server import ModelServer
    from proctor.testing.postgres_server import PostgresServer
    from proctor.testing.provider_contract import EndpointContract, ProviderContract
    from proctor.testing.redis_server import RedisServer
    from proctor.testing.sqs_server import SQSServer

_HOMES = {
    "Asked": "exchange",
    "EndpointContract": "provider_contract",
    "Fault": "fault",
    "HistoryContract": "history_contract",
    "MailboxContract": "mailbox_contract",
    "MailboxMoves": "mailbox_moves",
    "ModelServer": "model_server",
    "PostgresServer": "postgres_server",
    "ProviderContract": "provider_contract",
    "RedisServer": "redis_server",
    "SQSServer": "sqs_server",
    "Said": "exchange",
}

__all__ = [
    "Asked",
    "EndpointContract",
    "Fault",
    "HistoryContract",
    "MailboxContract",
    "MailboxMoves",
    "ModelServer",
    "PostgresServer",
    "ProviderContract",
    "RedisServer",
    "SQSServer",
    "Said",
]


def __getattr__(name: str) -> object:
    """Load a public name from its home the first time it is used."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'proctor.testing' has no attribute {name!r}")
    found: object = getattr(importlib.import_module(f"proctor.testing.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
