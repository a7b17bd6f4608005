"""For your own tests: loopback servers, and contracts for providers, mailboxes and histories."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> the public names that it defines.
EXPORTS = {
    "testing.exchange": ("Asked", "Fault", "Said"),
    "testing.history_contract": ("HistoryContract",),
    "testing.mailbox_contract": ("MailboxContract",),
    "testing.mailbox_moves": ("MailboxMoves",),
    "testing.model_server": ("ModelServer",),
    "testing.postgres_server": ("PostgresServer",),
    "testing.provider_contract": ("EndpointContract", "ProviderContract"),
    "testing.redis_server": ("RedisServer",),
    "testing.sqs_server": ("SQSServer",),
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

__getattr__, __dir__ = lazy_names("proctor.testing", EXPORTS)
