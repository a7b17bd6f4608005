"""Mailboxes: queues that carry requests to workers and results back, all with the same interface."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> the public names that it defines.
EXPORTS = {
    "mailboxes.memory": ("InMemoryMailbox",),
    "mailboxes.redis": ("RedisMailbox",),
    "mailboxes.sqs": ("SQSMailbox",),
    "ports": ("Mailbox",),
    "records.mail": ("DeadLetter", "EvalRequest"),
}

__getattr__, __dir__ = lazy_names("proctor.mailboxes", EXPORTS)
__all__ = __dir__()
