"""An SQS queue: the operations that a mailbox needs, and the translation of boto3 errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from proctor.core import optional as extras
from proctor.errors import ConfigError, MailboxError, MailboxGone, Problem
from proctor.mailboxes import core

_CREDENTIALS = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, for an account that may use the queue"
_CREDENTIAL_ERRORS = (
    "InvalidClientTokenId", "UnrecognizedClientException", "SignatureDoesNotMatch", "ExpiredToken",
    "NoCredentialsError", "PartialCredentialsError", "ProfileNotFound",
)  # fmt: skip
_NETWORK = "check the network, the region and the endpoint (AWS_ENDPOINT_URL_SQS)"
_GONE_CODES = frozenset({"NonExistentQueue", "QueueDoesNotExist"})
_STALE_CODES = frozenset({"ReceiptHandleIsInvalid", "MessageNotInflight", "InvalidIdFormat"})
_FIXES = {
    "PurgeQueueInProgress": "SQS purges a queue at most once a minute: wait and try again",
    "QueueDeletedRecently": "wait a minute after a queue was removed, or use another name",
    "OverLimit": "acknowledge some messages first, or use another queue",
    "RequestThrottled": "send fewer requests, or use fewer workers",
    "AccessDenied": "allow these credentials the sqs: actions on the queue and on its -dead queue",
    **dict.fromkeys(_CREDENTIAL_ERRORS, _CREDENTIALS),
    "NoRegionError": "set AWS_DEFAULT_REGION=eu-central-1 or another region (in Python: region=)",
    "InvalidRegionError": "set AWS_DEFAULT_REGION=eu-central-1 or another region",
    "ValueError": "set the endpoint as a URL, such as AWS_ENDPOINT_URL_SQS=http://localhost:9324",
}


def translate_error(error: Exception, where: str) -> MailboxError:
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    details = response.get("Error")
    if not details:
        fix = _FIXES.get(type(error).__name__, _NETWORK)
        return MailboxError(str(error) or type(error).__name__, where=where, fix=fix)
    code, what = details.get("Code", ""), details.get("Message", "")
    if is_stale(code, what):
        return core.expired_error(where)
    if is_gone(error):
        return MailboxGone(
            what or "the queue does not exist", where=where, fix="if it was removed, open a mailbox of another name"
        )
    return MailboxError(f"{what} ({code})" if what else code, where=where, fix=_find_fix(code))


def is_stale(code: str, what: str) -> bool:
    about_receipt = code == "InvalidParameterValue" and "ReceiptHandle" in what
    return _strip_prefix(code) in _STALE_CODES or about_receipt


def is_gone(error: Exception) -> bool:
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    return _strip_prefix(response.get("Error", {}).get("Code", "")) in _GONE_CODES


def _find_fix(code: str) -> str:
    bare = _strip_prefix(code)
    return _FIXES.get(bare, _FIXES["AccessDenied"] if bare.startswith("AccessDenied") else "")


def _strip_prefix(code: str) -> str:
    # Older services return AWS.SimpleQueueService.NonExistentQueue, newer services QueueDoesNotExist.
    return code.rpartition(".")[2]


BATCH = 10
MAX_POLL_SECONDS = 20
MAX_DELAY_SECONDS = 900
MAX_DELIVERIES = 1000
# The maximum that SQS allows, so that unread messages do not disappear.
_RETENTION = 14 * 24 * 3600
# A new queue is not immediately visible on all servers of SQS.
_NEW_QUEUE_PAUSES = (0.2, 0.4, 0.8, 1.6)
# Pauses before the failed part of a batch is sent again.
_RETRY_PAUSES = (0.05, 0.2)
_COUNTS = ("ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed")

Entry = dict[str, Any]
RawMessage = Mapping[str, Any]


class QueueAttributes(msgspec.Struct, frozen=True):
    """Attributes of a queue; `deliveries` is None if SQS moves no messages to dead letters.

    `dead` is the name of the queue to which SQS then moves messages.
    """

    arn: str
    max_bytes: int
    deliveries: int | None
    dead: str


class SqsClient:
    """An SQS client that translates errors."""

    def __init__(self, client: Any, endpoint_url: str | None, region: str | None) -> None:
        if client is not None and (endpoint_url or region):
            raise ConfigError(
                "endpoint_url and region cannot be combined with a client, which already has both",
                fix="pass either client=, or endpoint_url= and region=",
            )
        self._client = _create_client(endpoint_url, region) if client is None else client
        self._errors = _botocore_errors()

    @property
    def endpoint(self) -> str:
        return str(self._client.meta.endpoint_url)

    def call(self, operation: str, where: str, **parameters: Any) -> Mapping[str, Any]:
        """Send one request, with the retries of botocore."""
        response = self.find(operation, where, **parameters)
        if response is None:
            raise MailboxError(
                "the queue does not exist",
                where=f"{where} at {self.endpoint}",
                fix="check the account and region; if it was removed, open it again",
            )
        return response

    def find(self, operation: str, where: str, **parameters: Any) -> Mapping[str, Any] | None:
        """Send one request; return None if the queue does not exist."""
        try:
            response: Mapping[str, Any] = getattr(self._client, operation)(**parameters)
        except (self._errors.ClientError, self._errors.BotoCoreError) as error:
            if is_gone(error):
                return None
            raise translate_error(error, f"{where} at {self.endpoint}") from error
        return response


class Queue:
    """A queue by its name, created when it is first needed, or an existing queue by its URL."""

    def __init__(self, client: SqsClient, name: str, url: str | None = None) -> None:
        self._client = client
        self._name = name
        self._url = url
        self._pauses: tuple[float, ...] = ()
        self._lock = threading.Lock()
        self.where = f"queue {name!r}"

    def exists(self) -> bool:
        with self._lock:
            if self._url is None:
                response = self._client.find("get_queue_url", self.where, QueueName=self._name)
                self._url = None if response is None else response["QueueUrl"]
            return self._url is not None

    def read_attributes(self) -> QueueAttributes:
        attributes = self._get_attributes(["QueueArn", "MaximumMessageSize", "RedrivePolicy"])
        policy = msgspec.json.decode(attributes.get("RedrivePolicy") or "{}")
        deliveries = policy.get("maxReceiveCount")
        return QueueAttributes(
            attributes["QueueArn"],
            int(attributes["MaximumMessageSize"]),
            None if deliveries is None else int(deliveries),
            policy.get("deadLetterTargetArn", "").rpartition(":")[2],
        )

    def set_redrive_policy(self, deliveries: int, dead_arn: str) -> None:
        """Make SQS move messages to another queue after this many deliveries."""
        policy = {"deadLetterTargetArn": dead_arn, "maxReceiveCount": str(deliveries)}
        text = msgspec.json.encode(policy).decode()
        self._call("set_queue_attributes", Attributes={"RedrivePolicy": text})

    def send(self, entry: Entry) -> str:
        return str(self._call("send_message", **entry)["MessageId"])

    def send_all(self, entries: Sequence[Entry]) -> list[str]:
        """Send up to ten messages; raise an error unless all were sent."""
        if len(entries) == 1:
            return [self.send(entries[0])]
        done, refused = self._run_batch("send_message_batch", entries)
        if refused:
            raise self._batch_error(refused, len(entries), "sent")
        return [str(done[str(index)]["MessageId"]) for index in range(len(entries))]

    def receive(self, limit: int, lease: int, wait: int = 0) -> list[RawMessage]:
        response = self._call(
            "receive_message",
            # The old name of MessageSystemAttributeNames, for older versions of boto3.
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
            MaxNumberOfMessages=limit,
            VisibilityTimeout=lease,
            WaitTimeSeconds=wait,
        )
        return list(response.get("Messages", ()))

    def delete(self, receipt: str) -> None:
        """Delete one message; raise `ReceiptExpired` if its receipt is stale."""
        self._call("delete_message", ReceiptHandle=receipt)

    def delete_all(self, receipts: Sequence[str]) -> list[bool]:
        """Delete up to ten messages; return for each whether its receipt was valid."""
        entries = [{"ReceiptHandle": receipt} for receipt in receipts]
        done, refused = self._run_batch("delete_message_batch", entries)
        failed = {
            index: entry
            for index, entry in refused.items()
            if not is_stale(entry.get("Code", ""), entry.get("Message", ""))
        }
        if failed:
            raise self._batch_error(failed, len(entries), "deleted")
        return [str(index) in done for index in range(len(entries))]

    def set_visibility(self, receipt: str, seconds: int) -> None:
        """Make a message visible again in `seconds`."""
        self._call("change_message_visibility", ReceiptHandle=receipt, VisibilityTimeout=seconds)

    def release(self, receipts: Iterable[str]) -> None:
        """Make messages visible again immediately, as far as possible."""
        entries = [{"ReceiptHandle": receipt, "VisibilityTimeout": 0} for receipt in receipts]
        for start in range(0, len(entries), BATCH):
            self._run_batch("change_message_visibility_batch", entries[start : start + BATCH])

    def count(self) -> int:
        attributes = self._get_attributes(_COUNTS)
        return sum(int(attributes[name]) for name in _COUNTS)

    def purge(self) -> None:
        self._call("purge_queue")

    def remove(self) -> None:
        if self.exists():
            self._client.find("delete_queue", self.where, QueueUrl=self._url)

    def _get_attributes(self, names: Sequence[str]) -> Mapping[str, str]:
        parameters = {"QueueUrl": self._get_url(), "AttributeNames": list(names)}
        for pause in self._pauses:
            if self._client.find("get_queue_attributes", self.where, **parameters) is not None:
                break
            time.sleep(pause)
        self._pauses = ()
        response = self._client.call("get_queue_attributes", self.where, **parameters)
        return cast("Mapping[str, str]", response["Attributes"])

    def _call(self, operation: str, **parameters: Any) -> Mapping[str, Any]:
        return self._client.call(operation, self.where, QueueUrl=self._get_url(), **parameters)

    def _get_url(self) -> str:
        if not self.exists():
            attributes = {"MessageRetentionPeriod": str(_RETENTION)}
            response = self._client.call("create_queue", self.where, QueueName=self._name, Attributes=attributes)
            self._url, self._pauses = str(response["QueueUrl"]), _NEW_QUEUE_PAUSES
        assert self._url is not None
        return self._url

    def _run_batch(self, operation: str, entries: Sequence[Entry]) -> tuple[dict[str, Entry], dict[str, Entry]]:
        """Return the successful and the refused entries by index; retry internal errors of SQS."""
        remaining = {str(index): {"Id": str(index), **entry} for index, entry in enumerate(entries)}
        done: dict[str, Entry] = {}
        refused: dict[str, Entry] = {}
        pauses = iter(_RETRY_PAUSES)
        while remaining:
            response = self._call(operation, Entries=list(remaining.values()))
            done.update({entry["Id"]: entry for entry in response.get("Successful", ())})
            # Entries that the response does not mention have failed.
            failed: dict[str, Entry] = {index: {} for index in remaining if index not in done}
            failed.update({entry["Id"]: entry for entry in response.get("Failed", ())})
            pause = next(pauses, None)
            final = {i: entry for i, entry in failed.items() if pause is None or entry.get("SenderFault")}
            refused.update(final)
            remaining = {index: remaining[index] for index in failed if index not in final}
            if remaining and pause is not None:
                time.sleep(pause)
        return done, refused

    def _batch_error(self, refused: Mapping[str, Entry], total: int, action: str) -> MailboxError:
        problems = [
            Problem(f"message {int(index) + 1}", f"{entry.get('Message', '')} ({entry.get('Code', '')})")
            for index, entry in sorted(refused.items())
        ]
        return MailboxError(
            f"{len(refused)} of {total} messages were not {action}",
            where=f"{self.where} at {self._client.endpoint}",
            problems=problems,
            fix=f"try again with these messages; the others were {action}",
        )


def encode_entry(body: str, attributes: Mapping[str, str]) -> tuple[Entry, int]:
    """Build the entry of a message, and its size in bytes as SQS counts it."""
    entry: Entry = {"MessageBody": body}
    if attributes:
        entry["MessageAttributes"] = {
            name: {"DataType": "String", "StringValue": text} for name, text in attributes.items()
        }
    parts = [body, *(part for name, text in attributes.items() for part in (name, "String", text))]
    return entry, sum(len(part.encode()) for part in parts)


def _create_client(endpoint_url: str | None, region: str | None) -> Any:
    boto3 = extras.require("boto3", extra="sqs", why="an SQS mailbox")
    config = extras.require("botocore.config", extra="sqs", why="an SQS mailbox").Config(
        retries={"mode": "standard", "total_max_attempts": 3},
        connect_timeout=5,
        read_timeout=MAX_POLL_SECONDS + 10,
        max_pool_connections=32,
    )
    errors = _botocore_errors()
    try:
        # A new session, because two threads must not share boto3's default session.
        return boto3.session.Session().client("sqs", region_name=region, endpoint_url=endpoint_url, config=config)
    except (errors.BotoCoreError, ValueError) as error:
        raise translate_error(error, "SQS") from error


def _botocore_errors() -> Any:
    return extras.require("botocore.exceptions", extra="sqs", why="an SQS mailbox")
