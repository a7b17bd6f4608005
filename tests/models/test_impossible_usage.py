"""Impossible token counts are ignored, from any source."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import EvalReport, Reply, evaluate, exact_match, record
from proctor.errors import StopRun
from proctor.models.anthropic import AnthropicWire
from proctor.models.gemini import GeminiWire
from proctor.models.openai import OpenAIWire
from proctor.models.spending import Spending
from proctor.records.model import ModelRequest, ModelResponse
from proctor.records.run import Budget
from proctor.records.session import Message, ModelCall, Session, Usage, drop_impossible_counts
from proctor.sessions.current import warnings
from proctor.sessions.genai.spans import _read_count
from proctor.sessions.importers.json_values import as_count
from proctor.targets import wire
from tests.support import samples
from tests.tables import each_row

HELLO = ModelRequest((Message("user", "hello"),))
IMPOSSIBLE: list[Any] = [-1, -(10**9), 10**13, 10**30, 1.5, True, False, "12", "many", [], {}]


def openai(tokens: Any) -> Usage:
    answer = {
        "choices": [{"message": {"role": "assistant", "content": "hi"}}],
        "usage": {"prompt_tokens": tokens, "completion_tokens": 5},
    }
    return OpenAIWire(is_official=True).read(msgspec.json.encode(answer), HELLO).usage


def anthropic(tokens: Any) -> Usage:
    answer = {
        "content": [{"type": "text", "text": "hi"}],
        "usage": {"input_tokens": 7, "cache_read_input_tokens": tokens, "output_tokens": 5},
    }
    return AnthropicWire().read(msgspec.json.encode(answer), HELLO).usage


def gemini(tokens: Any) -> Usage:
    answer = {
        "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 7, "thoughtsTokenCount": tokens},
    }
    return GeminiWire().read(msgspec.json.encode(answer), HELLO).usage


def endpoint(tokens: Any) -> Usage:
    answer = {"output": "hi", "usage": {"input_tokens": 7, "output_tokens": tokens}}
    return wire.parse_response(msgspec.json.encode(answer), "the endpoint").usage or Usage()


@each_row("tokens", IMPOSSIBLE)
@each_row("read", [openai, anthropic, gemini, endpoint])
def test_a_servers_impossible_count_makes_its_usage_unknown(read: Any, tokens: Any) -> None:
    """The answer counts, the usage does not, and the run warns."""
    messages: list[str] = []
    token = warnings.set(messages)
    try:
        assert read(tokens) == Usage()
        assert read(12).total_tokens is not None
    finally:
        warnings.reset(token)
    assert len(messages) == 1
    assert "reported impossible token counts or costs" in messages[0]


@pytest.mark.parametrize("usage", ["none", 7, [1], {"prompt_tokens": None}, None], ids=repr)
def test_a_usage_in_another_format_is_unknown(usage: Any) -> None:
    """The answer is accepted."""
    answer = {"choices": [{"message": {"content": "hi"}}], "usage": usage}
    read = OpenAIWire(is_official=True).read(msgspec.json.encode(answer), HELLO)
    assert (read.text, read.usage) == ("hi", Usage())


@each_row("tokens", IMPOSSIBLE)
def test_logs_and_traces_have_no_impossible_counts(tokens: Any) -> None:
    """Importers leave such a count out; traces may write a number as text."""
    assert as_count(tokens) is None
    if tokens != "12":
        assert _read_count({"gen_ai.usage.input_tokens": tokens}, ["gen_ai.usage.input_tokens"]) is None


def reply(text: str) -> Reply:
    return Reply(text.upper(), Usage(-(10**9), 3))


def recorded(text: str) -> str:
    record(ModelCall("a model", Usage(-(10**9), 3)))
    return text.upper()


def run(target: Any) -> EvalReport:
    return evaluate(target, samples(2), exact_match, history=None, progress=False)


@pytest.mark.parametrize("target", [reply, recorded])
def test_a_target_with_an_impossible_usage_is_scored(target: Any) -> None:
    """Tokens are missing instead of negative, with one warning."""
    report = run(target)
    assert report.pass_rate == 1.0
    assert [result.trial.usage for result in report.results] == [None, None]
    assert report.metadata is not None
    (warning,) = report.metadata.warnings
    assert "reported impossible token counts or costs (input_tokens: -1000000000)" in warning


def test_a_negative_count_does_not_raise_a_budget() -> None:
    """A budget in tokens cannot be enforced with such a server."""
    spending = Spending(Budget(tokens=100, calls=50))
    spending.begin()
    spending.end("a model", Usage(60, 30))
    spending.begin()
    with pytest.raises(StopRun, match="does not report its usage"):
        spending.end("a model", Usage(-(10**9), 30))
    assert spending.so_far.tokens == 90


counts = st.one_of(st.none(), st.integers(), st.floats(), st.booleans(), st.text(max_size=5), st.just(10**12))


@given(st.lists(st.tuples(counts, counts, counts, counts), max_size=8))
def test_the_spent_amount_never_decreases(reports: list[tuple[Any, ...]]) -> None:
    """It is a number for any reported value."""
    spending, before = Spending(Budget(calls=1000)), (0, 0.0)
    for given_in, given_out, cached, cost in reports:
        spending.begin()
        spending.end("a model", Usage(given_in, given_out, cached, cost))
        spent = spending.so_far
        assert spent.tokens >= before[0]
        assert spent.cost >= before[1]
        assert type(spent.tokens) is int
        before = spent.tokens, spent.cost


@given(st.tuples(counts, counts, counts, counts, counts))
def test_a_checked_usage_is_possible(given_counts: tuple[Any, ...]) -> None:
    """Every field is None or a possible number; a second check changes nothing."""
    usage = drop_impossible_counts(Usage(*given_counts))
    for name in ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens"):
        value = getattr(usage, name)
        assert value is None or (type(value) is int and 0 <= value <= 10**12)
    assert usage.cost is None or 0 <= usage.cost <= 1e9
    assert drop_impossible_counts(usage) == usage


def test_the_usage_of_a_session_is_the_sum_of_possible_counts() -> None:
    """One call with a wrong count does not spoil the others."""
    session = Session([ModelCall("a", Usage(10, 5)), ModelCall("b", Usage(-99, 5))])
    assert session.usage == Usage(10, 5)


def test_a_users_adapter_is_checked_too() -> None:
    from proctor.models.model_calls import aask

    class Odd:
        model = "odd"
        supports_json_schema = False

        async def complete(self, request: ModelRequest, *, timeout: float | None = None) -> Any:
            return ModelResponse("hi", "odd", usage=Usage(-5, 2))

    response: Any = asyncio.run(aask(Odd(), "hello"))
    assert response.usage == Usage()
