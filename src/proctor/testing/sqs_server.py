"""A server on this machine that speaks SQS over HTTP; moto keeps its queues."""

from __future__ import annotations

import importlib
import io
import json
import random
import threading
import time
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Self

from proctor.core import optional as extras
from proctor.errors import MissingExtra, UsageError

REGION = "us-east-1"
# Leases and delays run out without a request, so those who wait look again after so many seconds.
_LOOK_AGAIN = 0.05

Answer = tuple[int, dict[str, Any]]
Forward = Callable[[dict[str, Any]], Answer]
Between = Callable[[str, dict[str, Any], Forward], Answer]


class SQSServer:
    """An SQS of one's own on 127.0.0.1, with no queue in it at first.

    `between` may stand between the callers and the queues: it gets the action ("SendMessage"), what
    is asked and a function that asks the queues, and gives the status and the answer. What was
    asked stands in `calls`, by action.

    >>> with SQSServer() as server:
    ...     made = server.client().create_queue(QueueName="letters")
    ...     made["QueueUrl"].startswith(server.url)
    True
    """

    def __init__(self, *, between: Between | None = None) -> None:
        self.between = between
        self.calls: list[str] = []
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._queues: _Queues | None = None

    @property
    def url(self) -> str:
        """Where it listens, such as "http://127.0.0.1:40123"."""
        if self._server is None:
            raise UsageError("the server is not running", fix="use it in `with SQSServer() as …`")
        return f"http://127.0.0.1:{self._server.server_port}"

    def client(self, **options: Any) -> Any:
        """A client of boto3 for this server, with credentials that mean nothing."""
        boto3 = extras.require("boto3", extra="sqs", why="a client of SQS")
        given = {"region_name": REGION, **_NOBODY, **options}
        return boto3.session.Session().client("sqs", endpoint_url=self.url, **given)

    def start(self) -> Self:
        """Listen, and return as soon as it does."""
        app = _moto("moto.moto_server.werkzeug_app")
        serving = _moto("werkzeug.serving")

        class Quiet(app.MotoRequestHandler):  # type: ignore[name-defined,misc]
            def log(self, *_: Any) -> None:
                """What is asked is not printed."""

        self._queues = _Queues(app.DomainDispatcherApplication(app.create_backend_app))
        self._server = serving.make_server(
            "127.0.0.1", 0, self._answered, threaded=True, request_handler=Quiet
        )
        # So that closing waits for the requests that are being answered.
        self._server.daemon_threads = False
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="proctor-sqs-server", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Let those who wait go, and listen no more; the queues are gone."""
        if self._server is None or self._thread is None or self._queues is None:
            return
        self._queues.stop()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._queues.forget()
        self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _answered(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        action = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        asked = json.loads(environ["wsgi.input"].read(length) or b"{}")
        self.calls.append(action)
        queues = self._queues
        assert queues is not None

        def forward(changed: dict[str, Any]) -> Answer:
            return queues.ask(environ, changed)

        between = self.between
        code, answer = forward(asked) if between is None else between(action, asked, forward)
        kind = [("Content-Type", "application/x-amz-json-1.0")]
        start_response(f"{code} {'OK' if code < 400 else 'Refused'}", kind)
        return [json.dumps(answer).encode()]


class _Queues:
    """Moto's queues, asked by one at a time, for moto itself loses messages when two ask at once.

    A long poll is therefore asked again and again without a wait.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._changed = threading.Condition()
        self._stopped = False
        # Moto keeps queues for the whole process, by account: each server has its own.
        self._account = str(random.SystemRandom().randrange(10**11, 10**12))

    def ask(self, environ: dict[str, Any], asked: dict[str, Any]) -> Answer:
        until = time.monotonic() + asked.get("WaitTimeSeconds", 0)
        if "WaitTimeSeconds" in asked:
            asked = {**asked, "WaitTimeSeconds": 0}
        with self._changed:
            code, answer = self._once(environ, asked)
            while code == 200 and not answer.get("Messages") and not self._stopped:
                left = until - time.monotonic()
                if left <= 0:
                    break
                self._changed.wait(min(left, _LOOK_AGAIN))
                code, answer = self._once(environ, asked)
            self._changed.notify_all()
        return code, answer

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def forget(self) -> None:
        _moto("moto.sqs.models").sqs_backends.pop(self._account, None)

    def _once(self, environ: dict[str, Any], asked: dict[str, Any]) -> Answer:
        data = json.dumps(asked).encode()
        own = {
            **environ,
            "wsgi.input": io.BytesIO(data),
            "CONTENT_LENGTH": str(len(data)),
            "HTTP_X_MOTO_ACCOUNT_ID": self._account,
        }
        told: list[str] = []
        body = self._app(own, lambda status, *_: told.append(status))
        try:
            text = b"".join(body)
        finally:
            body.close()
        return int(told[0].split(" ")[0]), json.loads(text or b"{}")


_NOBODY = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nothing"}


def _moto(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise MissingExtra(
            "the SQS server for tests needs the package 'moto', which is not installed",
            fix='pip install "moto[server,sqs]"',
        ) from None
