"""Budgets: calls, tokens and money, counted from any thread."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import ModelError, StopRun
from proctor.models.spending import Spending
from proctor.records.run import Budget, Spent
from proctor.records.session import Usage


def test_the_number_of_calls_is_never_exceeded() -> None:
    """Eight threads that take as many as they can get exactly the hundred there are."""
    spending = Spending(Budget(calls=100))
    taken: list[int] = []

    def work() -> None:
        while True:
            try:
                spending.begin()
            except StopRun:
                return
            taken.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(taken) == 100


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 500))
def test_tokens_stop_at_the_first_call_after_the_budget(used: list[int], limit: int) -> None:
    """As long as less than the limit is used, there is leave; then none."""
    spending = Spending(Budget(tokens=limit))
    total = 0
    for tokens in used:
        if total >= limit:
            with pytest.raises(StopRun):
                spending.begin()
            return
        spending.begin()
        spending.end("m", Usage(tokens, 0))
        total += tokens


def test_the_usage_of_earlier_attempts_counts() -> None:
    """Calls, tokens and money of before."""
    before = Spent(3, 100, 1.0)
    for budget in (Budget(calls=3), Budget(tokens=100), Budget(cost=1.0)):
        with pytest.raises(StopRun, match="the budget is spent"):
            Spending(budget, before).begin()
    Spending(Budget(calls=4, tokens=101, cost=1.01), before).begin()


def test_a_call_that_was_none_is_given_back() -> None:
    """A cached answer leaves its leave to another."""
    spending = Spending(Budget(calls=1))
    spending.begin()
    spending.take_back()
    spending.begin()
    with pytest.raises(StopRun):
        spending.begin()


@pytest.mark.parametrize(
    ("budget", "usage", "words"),
    [
        (Budget(cost=1.0), Usage(1, 1), "the price of m is unknown"),
        (Budget(tokens=9), Usage(cost=0.1), "m does not report its usage"),
    ],
)
def test_unknown_usage_has_a_reason(budget: Budget, usage: Usage, words: str) -> None:
    """With another budget that would work."""
    with pytest.raises(StopRun, match=words) as caught:
        Spending(budget).end("m", usage)
    assert "set the budget in" in str(caught.value)


def test_without_limits_everything_may_be_spent() -> None:
    """An empty budget never stops a call and needs no prices."""
    spending = Spending(Budget())
    for _ in range(10):
        spending.begin()
        spending.end("m", Usage())


def test_a_budget_made_by_hand_is_held_to_its_types() -> None:
    """Python takes Budget(cost="5"); it is refused where it is used first."""
    with pytest.raises(ModelError, match=r"budget\.cost must be a number, got a string"):
        Spending(Budget(cost="5"))  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"budget\.calls must be an integer, 1 or more"):
        Spending({"calls": 0})


def test_an_unknown_price_says_what_to_write_and_where() -> None:
    """The key of the table, the variable that names the file, and the currency."""
    spending = Spending(Budget(cost=1.0))
    spending.begin()
    with pytest.raises(StopRun, match="the price of http://h/v1#m is unknown") as caught:
        spending.end("http://h/v1#m", Usage(1, 1))
    assert '"http://h/v1#m": {input: …, output: …}, in USD per million tokens' in caught.value.fix
    assert "PROCTOR_PRICES" in caught.value.fix


def test_an_unknown_key_of_a_budget_is_named() -> None:
    with pytest.raises(ModelError, match="unknown key 'usd'") as caught:
        Spending({"usd": 3})
    assert caught.value.fix == "choose one of: calls, cost, tokens"
