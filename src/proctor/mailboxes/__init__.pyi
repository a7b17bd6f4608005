# Written by tools/generate.py from EXPORTS in proctor.mailboxes.
from proctor.mailboxes.memory import InMemoryMailbox as InMemoryMailbox
from proctor.mailboxes.redis import RedisMailbox as RedisMailbox
from proctor.mailboxes.sqs import SQSMailbox as SQSMailbox
from proctor.ports import Mailbox as Mailbox
from proctor.records.mail import DeadLetter as DeadLetter
from proctor.records.mail import EvalRequest as EvalRequest

__all__ = [
    "DeadLetter",
    "EvalRequest",
    "InMemoryMailbox",
    "Mailbox",
    "RedisMailbox",
    "SQSMailbox",
]
EXPORTS: dict[str, tuple[str, ...]]
