"""Tools for your tests: assertions, a loopback model server, and contract tests for providers and mailboxes."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> its public names.
EXPORTS = {
    "testing.assertions": ("assert_passes",),
    "testing.faults": ("Fault",),
    "testing.mailbox_contract": ("MailboxContract",),
    "testing.model_server": ("ModelServer",),
    "testing.provider_contract": ("EndpointContract", "ProviderContract"),
    "testing.wire_format": ("RecordedRequest", "ScriptedReply"),
}

__all__ = [name for names in EXPORTS.values() for name in names]

__getattr__, __dir__ = lazy_names("proctor.testing", EXPORTS)
