"""A second process for pages that compute for seconds, so that scrolling and searching never wait for statistics.

The process reads one request a line from its standard input, and ends with it. It writes one answer a line: the status,
a space, and the page as JSON, which has no line breaks.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from proctor.records import codec

if TYPE_CHECKING:
    from proctor.web.pages import Answer

STARTED_BY = "from proctor.web.background import main; main()"


class BackgroundPages:
    """Answers pages of a history in a process that starts with the first request and again after it has ended."""

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def answer(self, path: str, query: Mapping[str, str]) -> Answer:
        """Return status and JSON of a page; the process answers one request at a time."""
        with self._lock:
            try:
                line = b"" if self._is_closed else self._ask(path, query)
            except OSError:
                line = b""
            if not line.endswith(b"\n"):
                self._stop()
                error = {"error": "the process that computes this page has ended", "fix": "reload the page"}
                return 500, codec.encode_any_text(error)
        status, _, body = line.rstrip(b"\n").partition(b" ")
        return int(status), body

    def _ask(self, path: str, query: Mapping[str, str]) -> bytes:
        if self._process is None:
            self._process = subprocess.Popen(
                # -P, because a module in the current folder must not hide one of the standard library.
                [sys.executable, "-P", "-c", STARTED_BY],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            # Not an argument, because an address may contain a password.
            self._write({"history": self._address})
        self._write({"path": path, "query": dict(query)})
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def _write(self, request: object) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(codec.encode_any_text(request) + b"\n")
        self._process.stdin.flush()

    def close(self) -> None:
        """End the process, also in the middle of a page, and start no other one."""
        self._is_closed = True
        process = self._process
        if process is not None:
            process.kill()
        with self._lock:
            self._stop()

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]


def main() -> None:
    """Answer requests until the input ends."""
    # Ctrl-C in a terminal reaches this process too; the viewer ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(AttributeError, OSError):
        os.nice(5)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What a plugin prints must not end up among the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests: SimpleQueue[dict[str, Any]] = SimpleQueue()
    threading.Thread(target=_read_requests, args=[requests], daemon=True).start()
    address = requests.get()["history"]
    from proctor.web.pages import Pages
    from proctor.wiring.open_history import open_history

    pages = Pages(open_history(address))
    while True:
        request = requests.get()
        try:
            status, body = pages.answer_json(request["path"], request["query"])
        except Exception as error:
            traceback.print_exc()
            content = {"error": f"this page cannot be computed: {type(error).__name__}: {error}", "fix": ""}
            status, body = 500, codec.encode_any_text(content)
        answers.write(b"%d %b\n" % (status, body))
        answers.flush()


def _read_requests(requests: SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin.buffer:
        requests.put(json.loads(line))
    # The viewer has ended, perhaps by a signal: nobody waits for the page that is being computed.
    os._exit(0)
