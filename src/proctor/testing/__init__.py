"""Tools for your tests: loopback servers, and contract tests for providers, mailboxes and histories."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> its public names.
EXPORTS = {
    "testing.faults": ("Fault",),
    "testing.history_contract": ("HistoryContract",),
    "testing.mailbox_contract": ("MailboxContract",),
    "testing.mailbox_state_machine": ("MailboxStateMachine",),
    "testing.model_server": ("ModelServer",),
    "testing.postgres_server": ("PostgresServer",),
    "testing.provider_contract": ("EndpointContract", "ProviderContract"),
    "testing.redis_server": ("RedisServer",),
    "testing.sqs_server": ("SQSServer",),
    "testing.wire_format": ("RecordedRequest", "ScriptedReply"),
}

__all__ = [
    "RecordedRequest",
    "EndpointContract",
    "Fault",
    "HistoryContract",
    "MailboxContract",
    "MailboxStateMachine",
    "ModelServer",
    "PostgresServer",
    "ProviderContract",
    "RedisServer",
    "SQSServer",
    "ScriptedReply",
]

__getattr__, __dir__ = lazy_names("proctor.testing", EXPORTS)
