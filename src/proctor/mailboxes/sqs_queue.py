"""One queue of SQS, in the few moves that a mailbox is made of."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from proctor.core import optional as extras
from proctor.errors import ConfigError, MailboxError, MailboxGone, Problem
from proctor.mailboxes import limits

_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, for an account that may use the queue"
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


def translate_error(error: Exception, where: str) -> MailboxError:
    """The error of ours for one of boto3.

    >>> print(explained(ValueError("Invalid endpoint: nowhere"), "queue 'a'"))
    queue 'a': Invalid endpoint: nowhere
    Fix: write the endpoint as in AWS_ENDPOINT_URL_SQS=http://localhost:9324
    """
    answer: Mapping[str, Any] = getattr(error, "response", None) or {}
    told = answer.get("Error")
    if not told:
        fix = _FIXES.get(type(error).__name__, _NETWORK)
        return MailboxError(str(error) or type(error).__name__, where=where, fix=fix)
    code, what = told.get("Code", ""), told.get("Message", "")
    if is_stale(code, what):
        return limits.expired_error(where)
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


BATCH = 10
MAX_POLL_SECONDS = 20
MAX_DELAY_SECONDS = 900
MAX_DELIVERIES = 1000
# The longest that SQS keeps what nobody takes: unread work should not vanish.
_RETENTION = 14 * 24 * 3600
# A queue that was just made may be unknown to some of SQS for a moment.
_APPEARING = (0.2, 0.4, 0.8, 1.6)
# How long to wait before what failed of a batch is asked again.
_PAUSES = (0.05, 0.2)
_COUNTS = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
)

Entry = dict[str, Any]
RawMessage = Mapping[str, Any]


class QueueAttributes(msgspec.Struct, frozen=True):
    """What a mailbox must know of its queue; `deliveries` is None if SQS sets nothing aside.

    `dead` is the name of the queue where SQS puts what came so often.
    """

    arn: str
    largest: int
    deliveries: int | None
    dead: str


class SqsClient:
    """SQS at one endpoint, with everything that goes wrong told in our words."""

    def __init__(self, client: Any, endpoint_url: str | None, region: str | None) -> None:
        if client is not None and (endpoint_url or region):
            raise ConfigError(
                "a client of SQS has its endpoint and region already",
                fix="give either client=, or endpoint_url= and region=",
            )
        self._client = _client(endpoint_url, region) if client is None else client
        self._errors = _botocore_errors()

    @property
    def endpoint(self) -> str:
        return str(self._client.meta.endpoint_url)

    def call(self, operation: str, where: str, **asked: Any) -> Mapping[str, Any]:
        """Ask once, retries by botocore included."""
        answer = self.find(operation, where, **asked)
        if answer is None:
            raise MailboxError(
                "there is no such queue",
                where=f"{where} at {self.endpoint}",
                fix="look for it in this account and region; or it was removed, so open it anew",
            )
        return answer

    def find(self, operation: str, where: str, **asked: Any) -> Mapping[str, Any] | None:
        """Ask once; None if there is no such queue."""
        try:
            answer: Mapping[str, Any] = getattr(self._client, operation)(**asked)
        except (self._errors.ClientError, self._errors.BotoCoreError) as error:
            if is_gone(error):
                return None
            raise translate_error(error, f"{where} at {self.endpoint}") from error
        return answer


class Queue:
    """A queue by its name, made when it is first needed; or one that is there, by its URL."""

    def __init__(self, access: SqsClient, name: str, url: str | None = None) -> None:
        self._access = access
        self._name = name
        self._url = url
        self._pauses: tuple[float, ...] = ()
        self._lock = threading.Lock()
        self.where = f"queue {name!r}"

    def is_there(self) -> bool:
        """True if it can be found; nothing is made for the look."""
        with self._lock:
            if self._url is None:
                found = self._access.find("get_queue_url", self.where, QueueName=self._name)
                self._url = None if found is None else found["QueueUrl"]
            return self._url is not None

    def facts(self) -> QueueAttributes:
        """What it can take, and after how many deliveries SQS sets a message aside."""
        wanted = ["QueueArn", "MaximumMessageSize", "RedrivePolicy"]
        told = self._told(wanted)
        policy = msgspec.json.decode(told.get("RedrivePolicy") or "{}")
        deliveries = policy.get("maxReceiveCount")
        return QueueAttributes(
            told["QueueArn"],
            int(told["MaximumMessageSize"]),
            None if deliveries is None else int(deliveries),
            policy.get("deadLetterTargetArn", "").rpartition(":")[2],
        )

    def set_aside_after(self, deliveries: int, dead_arn: str) -> None:
        """Have SQS move what was received so often to another queue."""
        policy = {"deadLetterTargetArn": dead_arn, "maxReceiveCount": str(deliveries)}
        text = msgspec.json.encode(policy).decode()
        self._ask("set_queue_attributes", Attributes={"RedrivePolicy": text})

    def send(self, entry: Entry) -> str:
        """Put one message in; gives its id."""
        return str(self._ask("send_message", **entry)["MessageId"])

    def send_all(self, entries: Sequence[Entry]) -> list[str]:
        """Put up to ten messages in; all of them are in, or it is an error."""
        done, refused = self._in_a_batch("send_message_batch", entries)
        if refused:
            raise self._not_done(refused, len(entries), "sent")
        return [str(done[str(place)]["MessageId"]) for place in range(len(entries))]

    def receive(self, most: int, lease: int, wait: int = 0) -> list[RawMessage]:
        """Lease messages as SQS gives them."""
        answer = self._ask(
            "receive_message",
            # An old word for MessageSystemAttributeNames, which older boto3 does not know.
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
            MaxNumberOfMessages=most,
            VisibilityTimeout=lease,
            WaitTimeSeconds=wait,
        )
        return list(answer.get("Messages", ()))

    def delete(self, receipt: str) -> None:
        """Delete one message; raises `ReceiptExpired` if SQS says so."""
        self._ask("delete_message", ReceiptHandle=receipt)

    def delete_all(self, receipts: Sequence[str]) -> list[bool]:
        """Delete up to ten messages; says of each whether it was still the caller's."""
        entries = [{"ReceiptHandle": receipt} for receipt in receipts]
        done, refused = self._in_a_batch("delete_message_batch", entries)
        failed = {place: one for place, one in refused.items() if not _is_stale(one)}
        if failed:
            raise self._not_done(failed, len(entries), "deleted")
        return [str(place) in done for place in range(len(entries))]

    def hide(self, receipt: str, seconds: int) -> None:
        """Let a message be seen again after so many seconds from now."""
        self._ask("change_message_visibility", ReceiptHandle=receipt, VisibilityTimeout=seconds)

    def give_back(self, receipts: Iterable[str]) -> None:
        """Let messages be seen again at once, as far as that is still possible."""
        entries = [{"ReceiptHandle": receipt, "VisibilityTimeout": 0} for receipt in receipts]
        for start in range(0, len(entries), BATCH):
            self._in_a_batch("change_message_visibility_batch", entries[start : start + BATCH])

    def count(self) -> int:
        """How many messages there are: waiting, in flight and delayed."""
        told = self._told(_COUNTS)
        return sum(int(told[name]) for name in _COUNTS)

    def purge(self) -> None:
        """Drop every message."""
        self._ask("purge_queue")

    def remove(self) -> None:
        """Take it from SQS, if it is there."""
        if self.is_there():
            self._access.find("delete_queue", self.where, QueueUrl=self._url)

    def _told(self, attributes: Sequence[str]) -> Mapping[str, str]:
        asked = {"QueueUrl": self._found(), "AttributeNames": list(attributes)}
        for pause in self._pauses:
            if self._access.find("get_queue_attributes", self.where, **asked) is not None:
                break
            time.sleep(pause)
        self._pauses = ()
        told = self._access.call("get_queue_attributes", self.where, **asked)["Attributes"]
        return cast("Mapping[str, str]", told)

    def _ask(self, operation: str, **asked: Any) -> Mapping[str, Any]:
        return self._access.call(operation, self.where, QueueUrl=self._found(), **asked)

    def _found(self) -> str:
        if not self.is_there():
            kept = {"MessageRetentionPeriod": str(_RETENTION)}
            made = self._access.call("create_queue", self.where, QueueName=self._name, Attributes=kept)
            self._url, self._pauses = str(made["QueueUrl"]), _APPEARING
        assert self._url is not None
        return self._url

    def _in_a_batch(
        self, operation: str, entries: Sequence[Entry]
    ) -> tuple[dict[str, Entry], dict[str, Entry]]:
        """What was done and what was not, by place; what SQS itself failed at is asked again."""
        left = {str(place): {"Id": str(place), **one} for place, one in enumerate(entries)}
        done: dict[str, Entry] = {}
        refused: dict[str, Entry] = {}
        pauses = iter(_PAUSES)
        while left:
            answer = self._ask(operation, Entries=list(left.values()))
            done.update({one["Id"]: one for one in answer.get("Successful", ())})
            # What SQS says nothing about was not done.
            failed: dict[str, Entry] = {place: {} for place in left if place not in done}
            failed.update({one["Id"]: one for one in answer.get("Failed", ())})
            pause = next(pauses, None)
            final = {p: one for p, one in failed.items() if pause is None or one.get("SenderFault")}
            refused.update(final)
            left = {place: left[place] for place in failed if place not in final}
            if left and pause is not None:
                time.sleep(pause)
        return done, refused

    def _not_done(self, refused: Mapping[str, Entry], asked: int, what: str) -> MailboxError:
        problems = [
            Problem(f"message {int(place) + 1}", f"{one.get('Message', '')} ({one.get('Code', '')})")
            for place, one in sorted(refused.items())
        ]
        return MailboxError(
            f"{len(refused)} of {asked} messages were not {what}",
            where=f"{self.where} at {self._access.endpoint}",
            problems=problems,
            fix=f"the others were {what}; do it again for these",
        )


def split_batches(entries: Iterable[tuple[Entry, int]], largest: int) -> Iterator[list[Entry]]:
    """Messages in as few batches as SQS takes, in order; each comes with its size in bytes.

    >>> [len(one) for one in batches([({}, 4), ({}, 4), ({}, 4)], largest=10)]
    [2, 1]
    """
    batch: list[Entry] = []
    size = 0
    for entry, bytes_ in entries:
        if batch and (len(batch) == BATCH or size + bytes_ > largest):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += bytes_
    if batch:
        yield batch


def encode_entry(body: str, attributes: Mapping[str, str]) -> tuple[Entry, int]:
    """A message as SQS is given it, with its size in bytes as SQS counts it.

    >>> written('"hi"', {"reply_to": "results"})[1]
    25
    """
    kind = "String"
    told = {name: {"DataType": kind, "StringValue": text} for name, text in attributes.items()}
    parts = [body, *(part for name, text in attributes.items() for part in (name, kind, text))]
    entry: Entry = {"MessageBody": body}
    if told:
        entry["MessageAttributes"] = told
    return entry, sum(len(part.encode()) for part in parts)


def _is_stale(refused: Entry) -> bool:
    return is_stale(refused.get("Code", ""), refused.get("Message", ""))


def _client(endpoint_url: str | None, region: str | None) -> Any:
    boto3 = extras.require("boto3", extra="sqs", why="a mailbox on SQS")
    config = extras.require("botocore.config", extra="sqs", why="a mailbox on SQS").Config(
        retries={"mode": "standard", "total_max_attempts": 3},
        connect_timeout=5,
        read_timeout=MAX_POLL_SECONDS + 10,
        max_pool_connections=32,
    )
    errors = _botocore_errors()
    try:
        # A session of one's own, for boto3's default one may not be used by two threads.
        return boto3.session.Session().client(
            "sqs", region_name=region, endpoint_url=endpoint_url, config=config
        )
    except (errors.BotoCoreError, ValueError) as error:
        raise translate_error(error, "SQS") from error


def _botocore_errors() -> Any:
    return extras.require("botocore.exceptions", extra="sqs", why="a mailbox on SQS")
