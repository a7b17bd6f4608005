"""The SQS server for tests: separate queues, and nothing left behind."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from proctor.errors import UsageError
from tests.servers import SQSServer


def test_each_server_has_its_own_queues() -> None:
    """Servers do not see each other's queues, at the same time or later."""
    with SQSServer() as first, SQSServer() as second:
        first.client().create_queue(QueueName="letters")
        assert "QueueUrls" not in second.client().list_queues()
        assert first.calls == ["CreateQueue"]
        assert len(first.client().list_queues()["QueueUrls"]) == 1


def test_stopping_ends_waits_and_threads() -> None:
    """A long poll of 20 seconds ends at once, and no thread remains."""
    before = set(threading.enumerate())
    server = SQSServer().start()
    client = server.client()
    url = client.create_queue(QueueName="letters")["QueueUrl"]
    waiting = threading.Thread(target=client.receive_message, kwargs={"QueueUrl": url, "WaitTimeSeconds": 20})
    waiting.start()
    time.sleep(0.2)
    server.stop()
    waiting.join(15)
    assert not waiting.is_alive()
    assert set(threading.enumerate()) == before
    server.stop()
    with pytest.raises(UsageError, match="not running"):
        _ = server.url


def test_without_moto_it_says_what_to_install() -> None:
    """In a process where moto cannot be imported."""
    code = "import sys; sys.modules['moto'] = None\nfrom tests.servers import SQSServer\nSQSServer().start()\n"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "MissingExtra" in ended.stderr
    assert 'pip install "moto[server,sqs]"' in ended.stderr


def test_without_boto3_a_mailbox_says_what_to_install() -> None:
    """In a process where boto3 cannot be imported."""
    code = (
        "import sys; sys.modules['boto3'] = None\nfrom proctor.mailboxes.sqs import SQSMailbox\nSQSMailbox('letters')\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "MissingExtra" in ended.stderr
    assert 'pip install "proctor[sqs]"' in ended.stderr
