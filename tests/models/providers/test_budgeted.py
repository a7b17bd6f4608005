"""Budgeted: a model with a budget, which several models may share."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import CallFailed, ModelError, StopRun
from proctor.models.spending import Spending
from proctor.models.wrappers.cached import Cached, DiskCache
from proctor.models.wrappers.limits import Budgeted
from proctor.records.model import ModelResponse
from proctor.records.run import Budget
from proctor.records.session import Usage
from tests.models.providers.scripted import Scripted, asked


def ask(model: Any, *texts: str) -> list[str]:
    async def main() -> list[str]:
        return [(await model.complete(asked(text))).text for text in texts]

    return asyncio.run(main())


def test_the_number_of_calls_is_limited() -> None:
    """With two calls allowed, the third is refused without calling the model."""
    model = Scripted()
    with pytest.raises(StopRun, match="2 of 2 calls"):
        ask(Budgeted(model, Budget(calls=2)), "a", "b", "c")
    assert len(model.requests) == 2


def test_several_models_share_one_budget() -> None:
    """Twelve tokens a call from two models: 30 tokens are spent after the third."""
    spending = Spending(Budget(tokens=30))
    item, two = Budgeted(Scripted(), spending), Budgeted(Scripted(), spending)
    ask(item, "a", "b")
    ask(two, "c")
    with pytest.raises(StopRun, match="36 of 30 tokens"):
        ask(item, "d")


def test_cost_is_counted() -> None:
    """At 0.001 per call, 0.002 is spent after two."""
    with pytest.raises(StopRun, match=r"0\.0020 of 0\.002 USD"):
        ask(Budgeted(Scripted(), {"cost": 0.002}), "a", "b", "c")


def test_an_unknown_price_ends_the_run() -> None:
    """A budget in USD for a model without a known price is an error."""
    model = Scripted(lambda request: ModelResponse("x", usage=Usage(1, 1)), model="test:unpriced")
    with pytest.raises(StopRun, match="price of test:unpriced is unknown"):
        ask(Budgeted(model, Budget(cost=1.0)), "a")


def test_cached_responses_are_free(tmp_path: Path) -> None:
    """Four requests, two of them distinct, need two calls, with the cache inside or outside."""
    inside, outside = Scripted(), Scripted()
    ask(Budgeted(Cached(inside, DiskCache(tmp_path / "1")), Budget(calls=2)), *"aaab")
    ask(Cached(Budgeted(outside, Budget(calls=2)), DiskCache(tmp_path / "2")), *"aaabab")
    assert len(inside.requests) == len(outside.requests) == 2


def test_a_failed_call_counts_as_a_call() -> None:
    """A failure was sent too; it is passed on as it is."""
    model = Scripted(lambda request: CallFailed("down", retryable=True))
    budgeted = Budgeted(model, Budget(calls=1))
    with pytest.raises(CallFailed, match="down"):
        ask(budgeted, "a")
    with pytest.raises(StopRun):
        ask(budgeted, "a")


def test_it_has_the_properties_of_its_model() -> None:
    """Address, schema support and timeout are those of the wrapped model."""
    model = Scripted(supports_json_schema=True)
    budgeted = Budgeted(model, Budget())
    assert (budgeted.model, budgeted.supports_json_schema) == ("test:scripted", True)
    asyncio.run(budgeted.complete(asked(), timeout=3.0))
    assert model.timeouts == [3.0]


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ({"calls": 0}, r"budget\.calls must be an integer, 1 or more"),
        ({"cals": 1}, r"budget: unknown key 'cals'\nFix: did you mean 'calls'\?"),
        ({"cost": -1}, r"budget\.cost must be a number greater than 0"),
    ],
)
def test_an_invalid_budget_is_refused(budget: dict[str, Any], message: str) -> None:
    """Only numbers above 0 under known names."""
    with pytest.raises(ModelError, match=message):
        Budgeted(Scripted(), budget)
