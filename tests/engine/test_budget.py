"""The budget of a run covers target and judges, and resumed runs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from proctor import EvalReport, Score, SQLiteHistory, aevaluate, evaluate, exact_match, rescore
from proctor.errors import ConfigError, RunStopped
from proctor.models.model_calls import aask
from proctor.records.model import ModelResponse
from proctor.records.session import Usage
from tests.models.providers.scripted import Scripted
from tests.support import samples

# Twelve tokens and 0.001 in money a call.
TARGET = Scripted(lambda request: request.messages[0].content.upper())
JUDGE = Scripted(lambda request: "yes", model="test:judge")


async def target(text: str) -> str:
    """Asks one model."""
    return (await aask(TARGET, text)).text


async def judged(output: Any, expected: Any) -> Score:
    """Asks another."""
    response = await aask(JUDGE, f"Is {output!r} the same as {expected!r}?")
    passed = response.text == "yes"
    return Score(1.0 if passed else 0.0, passed)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    TARGET.requests.clear()
    JUDGE.requests.clear()


def run(history: Any, budget: Any, **options: Any) -> EvalReport:
    options = {"concurrency": 1, "name": "exam", **options}
    return evaluate(options.pop("target", target), samples(6), judged, history=history, budget=budget, **options)


def calls() -> int:
    return len(TARGET.requests) + len(JUDGE.requests)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"calls": 5}, "the budget is spent: 5 of 5 calls"),
        ({"tokens": 50}, "the budget is spent: 60 of 50 tokens"),
        ({"cost": 0.005}, "the budget is spent: 0.0050 of 0.005 USD"),
    ],
)
def test_a_run_stops_when_its_budget_is_spent(tmp_path: Path, budget: dict[str, float], words: str) -> None:
    """Five calls are two trials and a half: two are kept, the one that hit the limit is not."""
    history = SQLiteHistory(tmp_path / "h.db")
    with pytest.raises(RunStopped, match=re.escape(words)) as caught:
        run(history, budget)
    assert "raise the budget and resume" in str(caught.value)
    assert calls() == 5
    report = history.report(caught.value.run_id)
    assert [result.sample_id for result in report.results] == ["s0", "s1"]
    assert (report.errors, report.pass_rate) == (0, 1.0)
    assert report.metadata is not None
    assert report.metadata.status == "failed"


def test_a_resumed_run_continues_its_budget(tmp_path: Path) -> None:
    """No call is counted twice."""
    history = SQLiteHistory(tmp_path / "h.db")
    with pytest.raises(RunStopped):
        run(history, {"calls": 5})
    with pytest.raises(RunStopped, match="8 of 8 calls"):
        run(history, {"calls": 8}, resume=True)
    assert calls() == 8
    report = run(history, {"calls": 14}, resume=True)
    assert (report.total, report.pass_rate, calls()) == (6, 1.0, 14)


def test_failed_samples_count_toward_the_budget(tmp_path: Path) -> None:
    """Running them again does not refund their calls."""
    history = SQLiteHistory(tmp_path / "h.db")

    async def asks_and_fails(text: str) -> str:
        await aask(TARGET, text)
        raise ValueError("no")

    report = run(history, {"calls": 6}, target=asks_and_fails)
    before = calls()
    again = {"resume": report.metadata.run_id, "retry_errors": True} if report.metadata else {}
    with pytest.raises(RunStopped, match="6 of 6 calls"):
        run(history, {"calls": 6}, target=asks_and_fails, **again)
    assert calls() == before == 6


def test_resuming_without_raising_it_stops_at_once(tmp_path: Path) -> None:
    """What the finished trials used is all there was."""
    history = SQLiteHistory(tmp_path / "h.db")
    with pytest.raises(RunStopped):
        run(history, {"tokens": 48})
    before = calls()
    with pytest.raises(RunStopped, match="48 of 48 tokens"):
        run(history, {"tokens": 48}, resume=True)
    assert calls() == before == 4


def test_many_workers_never_make_more_calls_than_allowed(tmp_path: Path) -> None:
    """With all trials at once the number of calls is still kept."""
    with pytest.raises(RunStopped):
        run(SQLiteHistory(tmp_path / "h.db"), {"calls": 7}, concurrency=6)
    assert calls() == 7


def test_an_unknown_price_ends_a_run_with_a_cost_budget(tmp_path: Path) -> None:
    """The error names the model and what could be limited instead."""
    unpriced = Scripted(lambda request: ModelResponse("X", usage=Usage(1, 1)), model="test:new")

    async def asks(text: str) -> str:
        return (await aask(unpriced, text)).text

    with pytest.raises(RunStopped, match="the price of test:new is unknown") as caught:
        run(SQLiteHistory(tmp_path / "h.db"), {"cost": 1.0}, target=asks)
    assert "in tokens or calls" in str(caught.value)


def test_cached_outputs_cost_nothing(tmp_path: Path) -> None:
    """A second run with `cache` needs no budget."""
    history = SQLiteHistory(tmp_path / "h.db")
    run(history, None, cache=True)
    assert calls() == 12
    report = run(history, {"calls": 1}, cache=True)
    assert (report.total, report.pass_rate, calls()) == (6, 1.0, 12)


def test_cached_trials_do_not_count_when_a_run_is_resumed(tmp_path: Path) -> None:
    """Four trials from the cache cost nothing: the two new ones fit four calls, over sittings."""
    history = SQLiteHistory(tmp_path / "h.db")
    run(history, None, cache=True, limit=4)
    with pytest.raises(RunStopped):
        run(history, {"calls": 3}, cache=True)
    assert calls() == 8 + 3
    report = run(history, {"calls": 4}, cache=True, resume=True)
    # The target's answer of the trial that hit the limit had been kept as well.
    assert (report.total, report.pass_rate) == (6, 1.0)
    assert calls() == 8 + 3 + 1


def test_a_rescoring_has_the_budget_of_its_run(tmp_path: Path) -> None:
    """A rescoring starts with the full budget: twelve calls are enough for six opinions, not for eighteen."""
    history = SQLiteHistory(tmp_path / "h.db")
    first = run(history, {"calls": 12})
    assert rescore(first.run_id, judged, history=history).total == 6

    async def thrice(output: Any, expected: Any) -> Score:
        for number in range(3):
            await aask(JUDGE, f"{number}: {output}")
        return Score(1.0, True)

    with pytest.raises(RunStopped, match="12 of 12 calls"):
        rescore(first.run_id, thrice, history=history)
    assert rescore(first.run_id, thrice, history=history, budget={"calls": 18}).total == 6


@pytest.mark.parametrize("budget", [{"calls": 0}, {"cals": 3}, 7])
def test_an_invalid_budget_is_refused(budget: Any) -> None:
    """Before anything runs."""
    with pytest.raises(ConfigError, match="budget"):
        run(False, budget)
    assert calls() == 0


def test_the_budget_ends_with_the_run() -> None:
    """In the caller's own event loop, what comes after the run is not held to its budget."""

    async def main() -> str:
        await aevaluate(target, samples(1), exact_match, history=False, budget={"calls": 1})
        return (await aask(TARGET, "after")).text

    assert asyncio.run(main()) == "AFTER"
