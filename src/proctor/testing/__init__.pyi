# Written by tools/generate.py from EXPORTS in proctor.testing.
from proctor.testing.assertions import assert_passes as assert_passes
from proctor.testing.faults import Fault as Fault
from proctor.testing.mailbox_contract import MailboxContract as MailboxContract
from proctor.testing.model_server import ModelServer as ModelServer
from proctor.testing.provider_contract import EndpointContract as EndpointContract
from proctor.testing.provider_contract import ProviderContract as ProviderContract
from proctor.testing.wire_format import RecordedRequest as RecordedRequest
from proctor.testing.wire_format import ScriptedReply as ScriptedReply

__all__ = [
    "assert_passes",
    "Fault",
    "MailboxContract",
    "ModelServer",
    "EndpointContract",
    "ProviderContract",
    "RecordedRequest",
    "ScriptedReply",
]
EXPORTS: dict[str, tuple[str, ...]]
