"""Tool calls in a session of any source, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from proctor.evaluators.session import all_tools_succeeded
from proctor.evaluators.tool_calls import RecordedCall, read_calls
from proctor.records.session import Message, ModelCall, Session, ToolCall
from tests.tables import each_row


class State(Enum):
    DONE = "done"
    FAILED = "failed"


@dataclass
class Parameters:
    query: str


@dataclass
class Result:
    success: bool
    message: str = ""


@dataclass
class Invoked:
    name: str
    params: Any = field(default_factory=dict)
    result: Any = None


@dataclass
class Step:
    name: str
    status: str = "failed"


@dataclass
class Rank:
    error: float
    name: str = "rank"


def only(event: Any) -> RecordedCall | None:
    """The one call in a session of one event, or None."""
    session = Session()
    session.append(event)
    calls = read_calls(session.view())
    return calls[0] if calls else None


@each_row(
    ("event", "text"),
    [
        (ToolCall("search", {"q": "Paris", "n": 3}), "search(q='Paris', n=3)"),
        (Invoked("search", Parameters("Paris")), "search(query='Paris')"),
        ({"type": "tool_use", "name": "search", "input": {"q": 1}}, "search(q=1)"),
        ({"name": "search", "arguments": '{"q": 1}'}, "search(q=1)"),
        ({"name": "search", "arguments": "q = 1"}, "search('q = 1')"),
        ({"tool": "search", "tool_input": [1, 2]}, "search([1, 2])"),
        ({"tool_name": "search", "name": "step 3"}, "search()"),
        ({"name": "search", "success": True}, "search()"),
    ],
)
def test_calls_are_read_from_our_events_and_from_others(event: Any, text: str) -> None:
    """Arguments may be a mapping, an object, JSON, or one bare value."""
    assert str(only(event)) == text


@each_row(
    "event",
    [
        Message("user", "hi"),
        ModelCall("m"),
        Step("plan"),
        {"name": "Ada"},
        {"success": True},
        {"name": 7, "arguments": {}},
        {"tool": object()},
        "search",
        None,
    ],
)
def test_other_events_are_not_tool_calls(event: Any) -> None:
    """A name alone, or a name with a status, may be anything."""
    assert only(event) is None


@each_row(
    ("event", "outcome"),
    [
        (ToolCall("a"), (True, "")),
        (ToolCall("a", error="down"), (False, "'down'")),
        (ToolCall("a", error=""), (False, "''")),
        (ToolCall("a", result={"success": True}), (True, "")),
        (ToolCall("a", result={"success": False}), (False, "success is False")),
        (ToolCall("a", result=Result(False, "no such page")), (False, "'no such page'")),
        (ToolCall("a", result={"isError": True}), (False, "isError is True")),
        (ToolCall("a", result={"error": "no such page"}), (False, "'no such page'")),
        (ToolCall("a", result={"error": None}), (True, "")),
        (ToolCall("a", result={"error": 0.25}), (True, "")),
        (
            ToolCall("a", result={"status": "failed"}),
            (None, "its result has the status failed, of the call or of its data"),
        ),
        (Invoked("a", {}, Result(True)), (True, "")),
        (Invoked("a", {}, Result(False)), (False, "success is False")),
        (Invoked("a", {}, {"success": False}), (False, "success is False")),
        (Invoked("a"), (None, "")),
        (Rank(0.5), (None, "")),
        ({"tool": "a", "is_error": False}, (True, "")),
        ({"tool": "a", "is_error": True}, (False, "is_error is True")),
        ({"tool": "a", "error": True}, (False, "error is True")),
        ({"tool": "a", "error": {"code": 404}}, (False, "{'code': 404}")),
        ({"tool": "a", "error": ValueError("no")}, (False, "'no'")),
        ({"tool": "a", "error": ""}, (True, "")),
        ({"tool": "a", "status": "OK"}, (True, "")),
        ({"tool": "a", "status": "failed"}, (False, "status is failed")),
        ({"tool": "a", "status": State.DONE}, (True, "")),
        ({"tool": "a", "status": State.FAILED}, (False, "status is failed")),
        ({"tool": "a", "status": "pending"}, (None, "")),
        ({"tool": "a", "status": 200}, (None, "")),
        ({"tool": "a", "success": "yes"}, (None, "")),
        ({"tool": "a", "success": True, "error": "half of it"}, (False, "'half of it'")),
    ],
)
def test_one_sign_of_failure_decides(event: Any, outcome: tuple[bool | None, str]) -> None:
    """Ruling: for mappings and objects; without a sign the outcome is unknown."""
    call = only(event)
    assert call is not None
    assert (call.succeeded, call.reason) == outcome


def test_without_recorded_calls_the_requested_calls_count() -> None:
    """Only if no call was recorded."""
    asked = Message("assistant", "", tool_calls=(ToolCall("search", {"q": 1}), ToolCall("open")))
    session = Session([Message("user", "hi"), asked])
    assert [str(call) for call in read_calls(session.view())] == ["search(q=1)", "open()"]
    assert {call.succeeded for call in read_calls(session.view())} == {None}
    session.append(ToolCall("search", {"q": 1}, result="Paris"))
    assert [str(call) for call in read_calls(session.view())] == ["search(q=1)"]


def read_outcome(result: Any, *, words: bool = True) -> tuple[bool | None, str]:
    """How a call went that came back with this."""
    session = Session([ToolCall("a", result=result)])
    (call,) = read_calls(session.view(), read_error_texts=words)
    return call.succeeded, call.reason


@each_row(
    ("result", "outcome"),
    [
        ('{"error": "timeout"}', (False, "'timeout'")),
        (' {"error": {"code": 404}}', (False, "{'code': 404}")),
        ('{"isError": true, "content": []}', (False, "isError is True")),
        ('{"success": false, "rate": NaN}', (False, "success is False")),
        ('{"error": null, "rows": 3}', (True, "")),
        ('{"rows": [{"error": "in a row"}]}', (True, "")),
        ('[{"error": "in a list"}]', (True, "")),
        ('{"error": "cut off', (True, "")),
        ('{"error":' + "[" * 100_000, (True, "")),
        ([{"type": "text", "text": '{"error": "timeout"}'}], (False, "'timeout'")),
    ],
)
def test_json_in_a_text_is_looked_at_as_data_is(result: Any, outcome: tuple[bool, str]) -> None:
    """Logs of OpenAI's kind hold results as texts: a failure in one is as good as in a mapping."""
    assert read_outcome(result) == outcome
    assert read_outcome(result, words=False) == outcome


@each_row(
    ("result", "why"),
    [
        ("Error: no seats\nTry again.", "its result starts with 'Error: no seats'"),
        ("\nERROR - no seats", "its result starts with 'ERROR - no seats'"),
        ([{"text": "Error: no seats"}], "its result starts with 'Error: no seats'"),
        ("Traceback (most recent call last):\n  …", "its result starts with 'Traceback (most recent call last):'"),
        ("Error executing tool a: no", "its result starts with 'Error executing tool a: no'"),
        ("Errors: none", ""),
        ("No seats. Error: 3", ""),
        ("", ""),
        ([], ""),
        ([{"type": "image"}], ""),
    ],
)
def test_a_result_that_starts_like_an_error_is_a_failure_if_words_count(result: Any, why: str) -> None:
    """A convention of tools without an error field, which can be turned off."""
    assert read_outcome(result) == (not why, why)
    assert read_outcome(result, words=False) == (True, "")


@each_row(("text", "succeeded"), [('{"q": ', None), ("[1, ", None), ("*** Begin patch", True)])
def test_a_call_with_broken_json_as_arguments_has_no_verdict(text: str, succeeded: bool | None) -> None:
    """The tool may have run with other arguments; a tool with a text as its input needs no JSON."""
    score = all_tools_succeeded()("x", None, Session([ToolCall("a", {"": text}, result="sunny")]))
    assert score.passed is succeeded
    assert ("its arguments are not valid JSON" in score.reason) is (succeeded is None)


def test_results_of_other_types_of_calls_are_read_alike() -> None:
    """A text without a failure says nothing about success."""
    found = []
    for result in ('{"error": "down"}', "Error: down", "sunny"):
        session = Session()
        session.append({"tool": "a", "result": result})
        found += [call.succeeded for call in read_calls(session.view(), read_error_texts=True)]
    assert found == [False, False, None]


@each_row(
    ("result", "succeeded"),
    [
        *((result, False) for result in (
            '{"status": "error", "message": "bad"}', '{"status": "error"}', {"status": "FAILED", "reason": "x"},
            '{"ok": false, "reason": "x"}', {"ok": False}, '{"is_error": true}', "ValueError: bad city",
            "requests.exceptions.HTTPError: 404 Client Error", "ConnectionError('down')", "Exception: x",
            "HTTP 500 Internal Server Error", "HTTP/1.1 404 Not Found", "HTTP 503", "Error calling tool 'weather': bad",
            "Error 404: no such page", "Error fetching https://example.org: timed out", "Tool execution failed: x",
            "<tool_use_error>bad</tool_use_error>", "Traceback:", "error: x", "[ERROR]: x",
            "HTTP 500 Internal", "HTTP 502: upstream is down", "HTTP 500 error", "HTTP 405 Method Not Allowed",
            "HTTP 500, see the log", "HTTP 404 (Not Found)", "HTTP 404 Not Found for url: https://a.org",
            "https error: 422 Unprocessable Entity",
            '{"statusCode": 502, "message": "Bad Gateway"}', '{"errors": [{"message": "no such field"}], "data": null}',
            '{"status": 500, "body": "Internal Server Error"}', '{"status_code": 500}', '{"statusCode": 404}',
            '{"status": 500}', '{"code": 500, "message": "Internal Server Error"}', '{"success": "false"}',
            "404 Not Found", "500 Internal Server Error", "Permission denied", "Unauthorized: invalid API key",
            "Connection refused", "Timeout", "Timed out after 30 seconds", "Rate limit exceeded. Try again in 20s",
            "Tool not found: search", "Invalid arguments: q is required", "[error] disk full",
            "Command exited with code 127", "sh: 1: jq: command not found", "cat: notes.txt: No such file or directory",
            "curl: (7) Failed to connect to localhost port 80", "npm ERR! code ENOENT\nnpm ERR! syscall open",
            "make: *** [x] Error 2", "ssh: connect to host a port 22: Connection refused",
            "error[E0382]: borrow of x\n --> a",
            "E: Unable to locate package x", "ERROR: Could not find a version that satisfies the requirement a",
            "Killed", "Segmentation fault (core dumped)", "Invalid API key provided.", "API key is invalid",
            "Incorrect API key provided: sk-1. You can find it in your account.", "fatal: not a git repository",
            "bash: line 1:   123 Killed                  python train.py", "zsh: command not found: jq",
            "thread 'main' panicked at src/main.rs:2:5:", 'Exception in thread "main" java.lang.Error',
            "Error response from daemon: no such container", "psql: error: connection to server failed",
            '{"exit_code": 2, "stdout": ""}', {"returncode": -9}, '{"exit_code": 1, "stderr": "bad"}',
            '{"returncode": "127"}', '{"exitCode": 1, "output": "2 tests failed"}',
            "404 Not Found: /docs/index.html", "403 Forbidden: /blog/why", "Permission denied: /home/me/docs/x",
            "Missing argument: question", "Stack overflow", "Connection error: no route to host", "No API key provided",
            "fatal: Authentication failed for 'https://a.org/'", "fatal: pathspec 'x' did not match any files",
            "E: Package 'x' has no installation candidate", "git: 'psh' is not a git command.",
            "Error from server (NotFound): pods not found", "zsh: killed     python train.py",
        )),
        *((result, None) for result in (
            '{"order": 17, "status": "failed"}', '{"status": "failed"}', {"service": "db", "status": "error"},
            "Failed to fetch", "ERROR x",
            "HTTP 404 is what servers answer if a page is missing", "Error in the tool",
            "HTTP 500 internal errors explained", "HTTP 404 Not Found is a status code", "HTTP 410 pages",
            "HTTP 500, 502 and 503 are server errors.", "HTTP 404 (Not Found) is a status code.",
            "HTTP 404. A page about it follows.", "HTTP 423 locked rooms", "HTTP 500 internal memo of the firm",
            "HTTP 500 error pages that people remember",
            '{"status_code": 404, "url": "https://example.org"}', '{"exit_code": 1, "stdout": "", "stderr": ""}',
            '{"errors": ["one row was left out"], "data": [1, 2]}', "sh: 1: jq: command not found\nresult: 3",
            "cat: notes.txt: No such file or directory\nother notes", "gcc -c x.c\nmake: *** [x] Error 2",
            "Starting\nTraceback (most recent call last):\n  File x\nValueError: y", "npm ERR! explained",
            "curl: (7) Failed to connect: how to fix it", "Segmentation fault: causes and fixes",
            "Collecting a\nERROR: Could not find a version that satisfies the requirement a",
            "Error 404 is the HTTP status for a missing page. It was defined in RFC 2616.", "Unauthorized: A Life",
            "Permission denied\n1. How to change the rights of a file", "Connection refused - questions and answers",
            "[error] disk full\n[info] retried", "404 Not Found: the story of a page\nBy A. Smith", "Could not connect",
            '{"status": 404, "url": "https://example.org", "links": 3}', "The tool crashed.", "exit status 1",
            '{"exit_code": 1, "output": ""}', '{"exit_code": 1}', "fatal: attraction (film, 1987)",
            "Error from server logs", "connection error: retried, then OK",
            "404 Not Found: what it is and how to fix it",
        )),
        *((result, True) for result in (
            "Error handling guide: use try and except", "Errors: none", "Error messages of Python", "sunny",
            '{"status": "ok", "temperature": 3}', '{"ok": true}', "Exception handling in Python",
            "The HTTP 500 page", "Failed banks of 2008", "null", "Failure is an option", "TypeErrors explained",
            '{"status_code": 200}', '{"exit_code": 0}', '{"errors": [], "data": 1}', "command not found means that",
            '{"success": true, "error": "none"}', "Timeout is set to 30 seconds.", "404 rooms are available.",
            '{"exit_code": 0, "stdout": "hi", "stderr": ""}',
            '{"exit_code": false}', '{"exitCode": null, "stdout": "x"}',
            "Killed in action: a list of soldiers", "3 people were killed in 1912.", "Error rates fell in 2020",
            "Search results:\n1. curl: (7) Failed to connect - Stack Overflow\n2. other",
            "make: Nothing to be done for 'all'.",
            "app.log:12: make: *** [x] Error 2", "def f():\n    raise ValueError('x')", "E: the base of logarithms",
            "npm WARN deprecated x\nadded 3 packages", "src/main.rs:3: error[E0382] in a comment", "Invalid entries: 0",
            "12:01 GET /a 200\n12:02 GET /b 500\n12:03 GET /c 200", "No credentials are needed; it is public.",
            "E: The package manager for Emacs", "git: could not be simpler", "killed  bill",
            "no api key: this endpoint is public",
            "500 Internal Medicine residents were surveyed.", '{"code": 500, "name": "bolt"}', "No results found.",
        )),
    ],
)  # fmt: skip
def test_results_that_report_errors_fail_and_results_about_errors_do_not(result: Any, succeeded: bool | None) -> None:
    """A result that may be either has no verdict."""
    assert read_outcome(result)[0] is succeeded
    score = all_tools_succeeded()("x", None, Session([ToolCall("a", result=result)]))
    assert score.passed is succeeded
    assert score.reason
