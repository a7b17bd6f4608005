"""The JSON protocol of programs and endpoints."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import CallFailed
from proctor.records import codec
from proctor.records.sample import Sample
from proctor.records.session import Session, ToolCall, Usage
from proctor.records.trial import Reply
from proctor.targets.wire import encode_call, excerpt, find_failure, parse_response

texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(values, values)
def test_inputs_and_outputs_survive_the_wire(asked: Any, answered: Any) -> None:
    """Any JSON value is sent as the input and returned as the output unchanged."""
    sent = codec.decode(encode_call(Sample("1", asked), {"a": 1}), dict)
    assert sent == {"id": "1", "input": asked, "options": {"a": 1}}
    assert parse_response(codec.encode({"output": answered}), "it") == Reply(answered)


def test_the_expected_value_is_never_sent() -> None:
    """A program under test must not see what it should answer."""
    assert b"secret" not in encode_call(Sample("1", "?", "secret", {"note": "secret"}), {})


def test_usage_and_session_come_along() -> None:
    """An answer may tell what it cost and what happened; unknown fields are ignored."""
    answer = b"""{"output": null, "usage": {"input_tokens": 2}, "trace": 7,
                  "session": {"events": [{"type": "tool_call", "name": "search"}]}}"""
    assert parse_response(answer, "it") == Reply(None, Usage(2), Session([ToolCall("search")]))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"  \n", "it sent an empty response; expected JSON with an 'output'"),
        (b"{}", "it sent a response without an 'output': {}"),
        (b'{"error": ""}', 'it sent a response without an \'output\': {"error": ""}'),
        (b'{"error": "too tired"}', "too tired"),
        (b'{"error": {"code": 7}, "output": 1}', '{"code":7}'),
    ],
)
def test_a_bad_answer_says_what_is_wrong(answer: bytes, message: str) -> None:
    """An answer without an output fails with a reason, and an error in it is that reason."""
    with pytest.raises(CallFailed) as caught:
        parse_response(answer, "it")
    assert str(caught.value) == message
    assert not caught.value.retryable


@pytest.mark.parametrize(
    "answer", [b"Traceback", b"[1]", b'{"output": 1, "usage": {"inputs": 2}}', b'{"output": "\xff"}']
)
def test_a_response_of_another_shape_is_refused(answer: bytes) -> None:
    """Text, other JSON and unknown fields of usage are errors."""
    with pytest.raises(CallFailed, match=r"it sent (invalid JSON|an invalid usage)"):
        parse_response(answer, "it")


def test_an_error_may_be_marked_as_retryable() -> None:
    """A program can say that its error is transient."""
    failure = find_failure(b'{"error": "busy", "retryable": true}')
    assert failure is not None
    assert failure.retryable
    assert find_failure(b"Traceback") is None
    assert find_failure(b'{"output": 1}') is None


def test_secrets_are_hidden_before_a_text_is_cut() -> None:
    """No beginning of a secret is left at the edge of a shortened text."""
    text = ("x" * 5 + "secret").encode()
    assert excerpt(text, lambda message: message.replace("secret", "-"), length=8) == "xxxxx-"
    assert excerpt(text, length=8) == "xxxxxsec…"
