"""A server on this machine that speaks SQS over HTTP, with the queues of moto."""

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
# Leases and delays end without a request, so long polls check again after this many seconds.
_POLL_SECONDS = 0.05

Answer = tuple[int, dict[str, Any]]
Forward = Callable[[dict[str, Any]], Answer]
Between = Callable[[str, dict[str, Any], Forward], Answer]


class SQSServer:
    """An SQS server on 127.0.0.1, without queues at first.

    `between` receives the action ("SendMessage"), the request and a function that forwards a request
    to the queues; it returns the status and the response. `calls` lists the actions so far.
    """

    def __init__(self, *, between: Between | None = None) -> None:
        self.between = between
        self.calls: list[str] = []
        self._server: Any = None
        self._thread: threading.Thread | None = None
        self._queues: _Queues | None = None

    @property
    def url(self) -> str:
        """The address of the server, such as "http://127.0.0.1:40123"."""
        if self._server is None:
            raise UsageError("the server is not running", fix="use it in `with SQSServer() as …`")
        return f"http://127.0.0.1:{self._server.server_port}"

    def client(self, **options: Any) -> Any:
        """Return a boto3 client for this server, with fake credentials."""
        boto3 = extras.require("boto3", extra="sqs", why="a client of SQS")
        options = {"region_name": REGION, **_CREDENTIALS, **options}
        return boto3.session.Session().client("sqs", endpoint_url=self.url, **options)

    def start(self) -> Self:
        """Start to listen."""
        app = _moto("moto.moto_server.werkzeug_app")
        serving = _moto("werkzeug.serving")

        class QuietHandler(app.MotoRequestHandler):  # type: ignore[name-defined,misc]
            def log(self, *_: Any) -> None:
                """Print nothing."""

        self._queues = _Queues(app.DomainDispatcherApplication(app.create_backend_app))
        self._server = serving.make_server("127.0.0.1", 0, self._respond, threaded=True, request_handler=QuietHandler)
        # Closing then waits for running requests.
        self._server.daemon_threads = False
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="proctor-sqs-server", daemon=True
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """End long polls, stop listening and delete the queues."""
        if self._server is None or self._thread is None or self._queues is None:
            return
        self._queues.stop()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._queues.delete()
        self._server = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _respond(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        action = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        request = json.loads(environ["wsgi.input"].read(length) or b"{}")
        self.calls.append(action)
        queues = self._queues
        assert queues is not None

        def forward(request: dict[str, Any]) -> Answer:
            return queues.send(environ, request)

        between = self.between
        code, answer = forward(request) if between is None else between(action, request, forward)
        headers = [("Content-Type", "application/x-amz-json-1.0")]
        start_response(f"{code} {'OK' if code < 400 else 'Refused'}", headers)
        return [json.dumps(answer).encode()]


class _Queues:
    """Moto's queues, one request at a time: moto loses messages of concurrent requests.

    So a long poll becomes repeated polls without a wait.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._changed = threading.Condition()
        self._stopped = False
        # Moto has one set of queues per account and process, so each server has its own account.
        self._account = str(random.SystemRandom().randrange(10**11, 10**12))

    def send(self, environ: dict[str, Any], request: dict[str, Any]) -> Answer:
        deadline = time.monotonic() + request.get("WaitTimeSeconds", 0)
        if "WaitTimeSeconds" in request:
            request = {**request, "WaitTimeSeconds": 0}
        with self._changed:
            code, answer = self._send_once(environ, request)
            while code == 200 and not answer.get("Messages") and not self._stopped:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    break
                self._changed.wait(min(remaining, _POLL_SECONDS))
                code, answer = self._send_once(environ, request)
            self._changed.notify_all()
        return code, answer

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def delete(self) -> None:
        _moto("moto.sqs.models").sqs_backends.pop(self._account, None)

    def _send_once(self, environ: dict[str, Any], request: dict[str, Any]) -> Answer:
        data = json.dumps(request).encode()
        forwarded = {
            **environ,
            "wsgi.input": io.BytesIO(data),
            "CONTENT_LENGTH": str(len(data)),
            "HTTP_X_MOTO_ACCOUNT_ID": self._account,
        }
        statuses: list[str] = []
        body = self._app(forwarded, lambda status, *_: statuses.append(status))
        try:
            text = b"".join(body)
        finally:
            body.close()
        return int(statuses[0].split(" ")[0]), json.loads(text or b"{}")


_CREDENTIALS = {"aws_access_key_id": "nobody", "aws_secret_access_key": "nothing"}


def _moto(module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        raise MissingExtra(
            "the SQS server for tests needs the package 'moto', which is not installed",
            fix='pip install "moto[server,sqs]"',
        ) from None
