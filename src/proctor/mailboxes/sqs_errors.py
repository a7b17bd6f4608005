"""What SQS, boto3 and the network refuse, in our words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.errors import MailboxError, MailboxGone
from proctor.mailboxes import limits

_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, for an account that may use "
    "the queue"
)
_NETWORK = "check the network, the region and the endpoint (AWS_ENDPOINT_URL_SQS)"
_GONE = frozenset({"NonExistentQueue", "QueueDoesNotExist"})
_STALE = frozenset({"ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidIdFormat"})
_FIXES = {
    "PurgeQueueInProgress": "SQS empties a queue once a minute at most: wait and do it again",
    "QueueDeletedRecently": "wait a minute after a queue was removed, or take another name",
    "OverLimit": "too many messages are in flight: acknowledge some, or use another queue",
    "RequestThrottled": "ask less often, or with fewer workers",
    "AccessDenied": "allow these credentials the sqs: actions on the queue and on its -dead queue",
    "InvalidClientTokenId": _CREDENTIALS,
    "UnrecognizedClientException": _CREDENTIALS,
    "SignatureDoesNotMatch": _CREDENTIALS,
    "ExpiredToken": _CREDENTIALS,
    "NoCredentialsError": _CREDENTIALS,
    "PartialCredentialsError": _CREDENTIALS,
    "ProfileNotFound": _CREDENTIALS,
    "NoRegionError": "set AWS_DEFAULT_REGION, or give region=",
    "InvalidRegionError": "write the region as in AWS_DEFAULT_REGION=eu-central-1",
    "ValueError": "write the endpoint as in AWS_ENDPOINT_URL_SQS=http://localhost:9324",
}


def explained(error: Exception, where: str) -> MailboxError:
    """The error of ours for one of boto3.

    >>> print(explained(ValueError("Invalid endpoint: nowhere"), "queue 'a'"))
    queue 'a': Invalid endpoint: nowhere
    To mend it: write the endpoint as in AWS_ENDPOINT_URL_SQS=http://localhost:9324
    """
    answer: Mapping[str, Any] = getattr(error, "response", None) or {}
    told = answer.get("Error")
    if not told:
        fix = _FIXES.get(type(error).__name__, _NETWORK)
        return MailboxError(str(error) or type(error).__name__, where=where, fix=fix)
    code, what = told.get("Code", ""), told.get("Message", "")
    if is_stale(code, what):
        return limits.not_ones_own(where)
    if is_gone(error):
        return MailboxGone(
            what or "there is no such queue",
            where=where,
            fix="it was removed; open a mailbox of another name",
        )
    return MailboxError(f"{what} ({code})" if what else code, where=where, fix=_fix(code))


def is_stale(code: str, what: str) -> bool:
    """True if SQS says that a receipt handle is no longer good.

    >>> is_stale("InvalidParameterValue", "Value x for parameter ReceiptHandle is invalid.")
    True
    """
    about_receipt = code == "InvalidParameterValue" and "ReceiptHandle" in what
    return _bare(code) in _STALE or about_receipt


def is_gone(error: Exception) -> bool:
    """True if SQS says that there is no such queue."""
    answer: Mapping[str, Any] = getattr(error, "response", None) or {}
    return _bare(answer.get("Error", {}).get("Code", "")) in _GONE


def _fix(code: str) -> str:
    bare = _bare(code)
    return _FIXES.get(bare, _FIXES["AccessDenied"] if bare.startswith("AccessDenied") else "")


def _bare(code: str) -> str:
    # Older services say AWS.SimpleQueueService.NonExistentQueue, newer ones QueueDoesNotExist.
    return code.rpartition(".")[2]
