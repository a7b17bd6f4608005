"""The web server of the viewer: whom it answers, and with which headers."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor.cli.view import _listen, make_server
from proctor.errors import UsageError
from proctor.ports import History
from proctor.web.server import list_hosts, make_app
from tests.web.example import make_history


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    return make_history(tmp_path_factory.mktemp("server") / "h.db")


@contextmanager
def serving(history: History, token: str | None = None) -> Iterator[int]:
    """The port of a server on loopback."""
    with _listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        app = make_app(history, hosts=list_hosts("127.0.0.1", port), token=token)
        server = make_server(app)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def port(history: History) -> Iterator[int]:
    with serving(history) as port:
        yield port


def ask(
    port: int, path: str, method: str = "GET", body: Any = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
    finally:
        connection.close()


def test_pages_are_json_and_files_are_the_client(port: int) -> None:
    """Nothing outside the client's folder is served."""
    status, headers, body = ask(port, "/api/runs")
    assert (status, headers["content-type"], len(json.loads(body)["runs"])) == (200, "application/json", 3)
    status, headers, body = ask(port, "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert body.startswith(b"<!doctype html>")
    for path in ("/runs", "/../../etc/passwd", "/%2e%2e/server.py", "/%2e%2e%2fserver.py", "/."):
        assert ask(port, path)[0] == 404
    assert ask(port, "/app.js")[1]["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("path", ["/", "/api/runs", "/api/nothing", "/app.js"])
def test_every_answer_has_security_headers(port: int, path: str) -> None:
    """Scripts only from the client, no sniffing, no referrer, no frames."""
    _, headers, _ = ask(port, path)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:{port}"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_other_hosts_and_origins_are_rejected(port: int, headers: dict[str, str], status: int) -> None:
    """A page in the same browser cannot read the history, also not by DNS rebinding."""
    filled = {name: value.format(port=port) for name, value in headers.items()}
    assert ask(port, "/api/runs", **filled)[0] == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(port: int, method: str) -> None:
    """The viewer only reads, except for labels."""
    assert ask(port, "/api/runs", method)[0] == 405


def test_a_token_moves_from_the_address_to_a_cookie(history: History) -> None:
    """So that it is not copied with a link."""
    with serving(history, token="secret") as port:
        assert ask(port, "/")[0] == 403
        assert ask(port, "/?token=wrong")[0] == 403
        status, headers, _ = ask(port, "/runs?token=secret")
        assert (status, headers["location"]) == (303, "/runs")
        assert "HttpOnly" in headers["set-cookie"]
        assert ask(port, "/api/runs", Cookie=headers["set-cookie"].partition(";")[0])[0] == 200


def test_a_port_in_use_is_reported(port: int) -> None:
    """With what to do; without --port another one is chosen."""
    with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1:{port}"):
        _listen("127.0.0.1", port)
    with pytest.raises(UsageError, match="from 0 to 65535"):
        _listen("127.0.0.1", 99_999)


def test_errors_have_a_message_and_a_fix(port: int) -> None:
    """In words, with the status that fits."""
    status, _, body = ask(port, "/api/runs/unknown")
    assert (status, json.loads(body)["error"]) == (404, "unknown run 'unknown'")
    status, _, body = ask(port, "/api/compare?a=latest")
    assert (status, json.loads(body)) == (400, {"error": "the query has no 'b'", "fix": "add b=…"})


def test_a_damaged_history_is_an_answer_in_words(tmp_path: Path) -> None:
    """The server goes on."""
    path = tmp_path / "h.db"
    path.write_bytes(b"this is no database" * 100)
    from proctor import SQLiteHistory

    with serving(SQLiteHistory(path)) as port:
        status, _, body = ask(port, "/api/runs")
        assert status == 500
        assert "error" in json.loads(body)
