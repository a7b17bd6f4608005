"""The protocol: versions, broken messages, cancelled requests, batches, and the end of the input."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proctor.mcp.server import MAX_MESSAGE, McpServer
from proctor.mcp.toolbox import Toolbox
from tests.support import proctor

STATELESS = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}


def request(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def exchange(*messages: Any, toolbox: Toolbox | None = None) -> list[Any]:
    """Return what the server answers to messages: objects, or bytes that are sent as they are."""
    lines = [message if isinstance(message, bytes) else json.dumps(message).encode() for message in messages]
    output = io.BytesIO()
    McpServer(toolbox or Toolbox("no-history.db"), io.BytesIO(b"\n".join([*lines, b""])), output).serve()
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_initialize_accepts_a_known_version_and_offers_the_newest_for_another() -> None:
    for requested, agreed in (("2024-11-05", "2024-11-05"), ("2025-06-18", "2025-06-18"), ("1999-01-01", "2025-11-25")):
        [answer] = exchange(request("initialize", protocolVersion=requested, capabilities={}, clientInfo={}))
        assert answer["result"]["protocolVersion"] == agreed
        assert answer["result"]["capabilities"] == {"tools": {}}


def test_a_stateless_request_names_its_version() -> None:
    """Results say that they are complete; a version that we do not speak is an error with the versions that we do."""
    answer, refusal = exchange(
        request("tools/list", **STATELESS),
        request("tools/list", _meta={"io.modelcontextprotocol/protocolVersion": "2031-01-01"}),
    )
    assert answer["result"]["resultType"] == "complete"
    assert answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "proctor"
    assert refusal["error"]["code"] == -32022
    assert "2026-07-28" in refusal["error"]["data"]["supported"]


def test_broken_messages_are_answered_and_the_next_request_still_works() -> None:
    cases: dict[bytes, int] = {
        b"{not json": -32700,
        b"\xff\xfe": -32700,
        b"[" * 100_000: -32700,
        b'"text"': -32600,
        b"[]": -32600,
        b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}': -32600,
        b'{"jsonrpc": "2.0", "id": 1}': -32600,
        b'{"jsonrpc": "2.0", "id": null, "method": "ping"}': -32600,
        b'{"jsonrpc": "2.0", "id": true, "method": "tools/call"}': -32600,
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}': -32602,
        b'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}': -32601,
        b'{"jsonrpc": "2.0", "id": 1, "method": "initialize"}': -32602,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "x"}}': -32602,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rm"}}': -32602,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "show_run", "arguments": 3}}': -32602,
        b"x" * (2 * MAX_MESSAGE + 5): -32600,
    }
    for message, code in cases.items():
        first, second = sorted(exchange(message, request("ping", "after")), key=lambda answer: "result" in answer)
        assert first["error"]["code"] == code, message[:80]
        assert second == {"jsonrpc": "2.0", "id": "after", "result": {}}


def test_notifications_answers_and_empty_lines_get_no_answer() -> None:
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert exchange(notification, {"jsonrpc": "2.0", "id": 4, "result": {}}, b"", b"  ", [notification]) == []


def test_a_batch_is_answered_by_one_message() -> None:
    [answers] = exchange([request("ping", 1), {"jsonrpc": "2.0", "method": "notifications/initialized"}, 5])
    assert [answer["id"] for answer in answers] == [1, None]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "x"]), x),
    )
)
def test_any_json_leaves_the_server_able_to_answer(message: Any) -> None:
    assert exchange(message, request("ping", "last"))[-1] == {"jsonrpc": "2.0", "id": "last", "result": {}}


class SlowToolbox(Toolbox):
    """A toolbox whose first call waits for the test."""

    def __init__(self) -> None:
        super().__init__("no-history.db")
        self.started, self.go_on = threading.Event(), threading.Event()
        self.calls: list[str] = []

    def call(self, name: str, arguments: Any) -> str:
        self.calls.append(name)
        self.started.set()
        assert self.go_on.wait(30)
        return name


class Script(io.BytesIO):
    """An input that calls a function before it gives the line with the same number."""

    def __init__(self, lines: list[Any], steps: dict[int, Any]) -> None:
        super().__init__()
        self._lines, self._steps, self._number = lines, steps, 0

    def readline(self, size: int | None = -1) -> bytes:
        self._steps.get(self._number, lambda: None)()
        self._number += 1
        return json.dumps(self._lines.pop(0)).encode() + b"\n" if self._lines else b""


def test_a_cancelled_request_gets_no_answer_and_pings_are_answered_while_a_tool_runs() -> None:
    """The running call and the waiting call 2 are cancelled, call 3 is not; the ping does not wait for them."""
    toolbox, output = SlowToolbox(), io.BytesIO()

    def cancel(request_id: int) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}

    calls = [request("tools/call", number, name=name) for number, name in ((1, "list_runs"), (2, "show_run"))]
    lines = [*calls, request("tools/call", 3, name="compare_runs"), request("ping", 4), cancel(1), cancel(2)]
    McpServer(toolbox, Script(lines, {1: toolbox.started.wait, 6: toolbox.go_on.set}), output).serve()
    answers = [json.loads(line) for line in output.getvalue().splitlines()]
    assert [answer["id"] for answer in answers] == [4, 3]
    assert toolbox.calls == ["list_runs", "compare_runs"]


def test_stdout_carries_only_the_protocol_and_the_end_of_the_input_ends_the_server(tmp_path: Path) -> None:
    """A module that prints when it is imported cannot break the protocol; the exit code is 0 without any message."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys, os\n"
        "def noisy(event, args):\n"
        "    if event == 'import' and args[0] == 'proctor.mcp.answers':\n"
        "        print('noise'); os.write(1, b'more noise\\n')\n"
        "sys.addaudithook(noisy)\n"
    )
    line = json.dumps(request("tools/call", name="list_runs")) + "\n"
    finished = subprocess.run(
        [sys.executable, "-m", "proctor", "mcp", "--history", "h.db"],
        cwd=tmp_path,
        input=line,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    [answer] = finished.stdout.splitlines()
    assert json.loads(answer)["id"] == 1
    assert "noise" in finished.stderr
    assert finished.returncode == 0
    assert proctor("mcp", "--contents", "maybe", cwd=tmp_path).returncode == 2
