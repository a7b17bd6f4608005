"""Small functions of the models, the mailboxes and the targets, one example each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from proctor.core.clock import SystemClock
from proctor.mailboxes import core, redis_connection, sqs, sqs_queue
from proctor.models import connect, weights, wire
from proctor.models import prompts as template
from proctor.models.answer_format import JsonFormat, is_json
from proctor.models.clients.langchain import is_chat_model
from proctor.models.clients.python import join_messages
from proctor.models.clients.sdk import to_call_failed
from proctor.models.http.access import ApiKey, parse_server_url
from proctor.models.http.endpoint import Endpoint
from proctor.models.http.errors import MAX_REJECTIONS, ErrorBody, KeyRejections, read_error_body, to_short_line
from proctor.models.prices import Price, Prices
from proctor.models.spending import parse_budget
from proctor.records.session import Message, Usage
from proctor.targets import http, replies, resolve
from proctor.targets import wire as target_wire
from proctor.targets.main_loop import tools
from proctor.targets.main_loop.loop import seconds_to_deadline
from tests.tables import each_row

PRICES = Prices({"gpt-4o-mini": Price(input=0.15, output=0.60)})
USAGE = Usage(input_tokens=1000, output_tokens=100)


def answer(question: str, model: str, *, temperature: float = 0.0) -> None: ...


def add(a: int, b: int = 1) -> None: ...


CASES: dict[str, tuple[Callable[[], Any], Any]] = {
    "JSON": (lambda: (is_json('{"a": 1}'), is_json("So: 4")), (True, False)),
    "an answer": (lambda: JsonFormat(list[int]).read("[1, 2]", structured=True), [1, 2]),
    "not LangChain": (lambda: is_chat_model(len), False),
    "one prompt": (lambda: join_messages([Message("system", "a"), Message("user", "b")]), "a\n\nb"),
    "a lost connection": (lambda: to_call_failed("x", ConnectionResetError("gone")).retryable, True),
    "a misplaced option": (
        lambda: str(connect.unknown_options_error(["temperature"], ["retries"], "openai:gpt-4o")),
        (
            "openai:gpt-4o: unknown option 'temperature'\n"
            "Fix: set temperature in the judge or target that uses the model"
        ),
    ),
    "a known name": (lambda: connect.suggest_address("gpt-4o").split()[-1], "openai:gpt-4o"),
    "an unknown name": (lambda: connect.suggest_address("mistral-7b").split()[-1], "openai:gpt-4o-mini"),
    "a typo": (lambda: connect.suggest_address("opnai:gpt-4o-mini"), "did you mean 'openai'?"),
    "no credentials": (
        lambda: connect.hide_credentials("redis://:secret@localhost:6379/0/requests?password=secret"),
        "redis://localhost:6379/0/requests",
    ),
    "a server": (lambda: parse_server_url("http://a:80/v1/", where=""), ("http://a:80/v1", "http://a:80")),
    "an endpoint": (
        lambda: repr(Endpoint("https://a", ApiKey("sk-0123", "MY_KEY"), {})),
        "Endpoint('https://a', ApiKey(MY_KEY))",
    ),
    "an error": (lambda: read_error_body(b'{"error": {"code": "no_model"}}').code, "no_model"),
    "an error page": (lambda: read_error_body(b"<h1>Bad gateway</h1>").message, "<h1>Bad gateway</h1>"),
    "one line": (lambda: to_short_line("not\n  found", 5), "not f…"),
    "a dated name": (lambda: PRICES.cost("openai:gpt-4o-mini-2024-07-18", USAGE), 0.00021),
    "no price": (lambda: PRICES.cost("openai:gpt-4o", USAGE), None),
    "the built-in prices": (lambda: Prices.standard({}).find("openai:gpt-4o"), Price(2.5, 10.0, 1.25)),
    "a free model": (lambda: Prices.free().cost("local:smollm2", USAGE), 0.0),
    "a value as text": (lambda: template.render_value({"a": True}), '{\n  "a": true\n}'),
    "types": (
        lambda: [template.is_of_type(*pair) for pair in ((3, float), (True, int), ([1], list[str]))],
        [True, False, False],
    ),
    "a budget": (lambda: parse_budget({"cost": 5}).cost, 5.0),
    "pip without a password": (lambda: weights.pip_error("ERROR: no x at https://me:pw@a/b\n"), "no x at …"),
    "the folder": (lambda: weights.folder({"PROCTOR_MODELS": "/srv/models"}).as_posix(), "/srv/models"),
    "content as text": (
        lambda: [wire.content_text(content) for content in ("Paris", {"city": "Paris"}, None)],
        ["Paris", '{"city":"Paris"}', ""],
    ),
    "bad arguments": (
        lambda: wire.parse_tool_call("search", "{q", "c1").error,
        "the model's arguments are not a JSON object: '{q'",
    ),
    "a history line": (lambda: redis_connection.to_one_line("first\n  second"), "first second"),
    "milliseconds": (lambda: core.to_datetime(1735689600250), datetime(2025, 1, 1, microsecond=250_000, tzinfo=UTC)),
    "many": (lambda: [len(batch) for batch in core.split_batches([("a", 1)] * 12, 10, 100)], [10, 2]),
    "junk in the dead letters": (
        lambda: redis_connection.read_dead_letter(b"1735689600000-0", [b"letter", b"junk", b"id", b"7f"]).reason,
        "unreadable: its record has no valid header",
    ),
    "a stored message": (
        lambda: redis_connection.StoredMessage.read(b"7f 1735689600000 results\n[1]"),
        ("7f", 1735689600000, "results", b"[1]"),
    ),
    "a region": (lambda: sqs._parse_url("https://sqs.eu-west-1.amazonaws.com/1/a"), (None, "eu-west-1")),
    "a size": (lambda: sqs_queue.encode_entry('"hi"', {"reply_to": "results"})[1], 25),
    "batches": (lambda: [len(batch) for batch in core.split_batches([("a", 4)] * 3, 10, 10)], [2, 1]),
    "a stale receipt": (lambda: sqs_queue.is_stale("InvalidParameterValue", "for ReceiptHandle"), True),
    "secret names": (lambda: [http.is_secret(n) for n in ("X-API-Key", "Accept-Language")], [True, False]),
    "seconds": (lambda: seconds_to_deadline(2.5, SystemClock()), 2.5),
    "a tool's arguments": (lambda: tools.make_function_arguments(add, "add").parse({"a": 2}), ((), {"a": 2})),
    "required options": (lambda: resolve.read_parameters(answer, "answer").required, ("model",)),
    "an output and no session": (lambda: replies.convert_execute_result(("Paris", None)).output, "Paris"),
    "a pair as output": (lambda: replies.convert_execute_result((48.9, 2.4)).output, (48.9, 2.4)),
    "an excerpt": (lambda: target_wire.excerpt(b"abcdef", length=3), "abc…"),
    "an error in a reply": (lambda: str(target_wire.find_failure(b'{"error": "no model"}')), "no model"),
}


@each_row("name", CASES)
def test_it_returns(name: str) -> None:
    """Each function returns what the table says."""
    call, expected = CASES[name]
    assert call() == expected


def test_a_key_is_blocked_only_where_it_is_rejected() -> None:
    """Another URL of the same server may accept it."""
    rejections = KeyRejections(SystemClock())
    for _ in range(MAX_REJECTIONS):
        rejections.add("/v1/models", "answered 401", ErrorBody())
    rejection = rejections.find("/v1/models")
    assert rejection is not None
    assert rejection.times == MAX_REJECTIONS
    assert rejections.find("/v1/chat/completions") is None
