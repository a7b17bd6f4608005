"""The output cache and rescoring: no output is paid for twice."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from pathlib import Path
from typing import Any

import pytest

from proctor import (
    ModelCall,
    Reply,
    Session,
    SQLiteHistory,
    ToolCall,
    Usage,
    contains,
    evaluate,
    exact_match,
    json_subset,
    record,
    rescore,
    tool_called,
)
from proctor.core.clock import SystemClock
from proctor.engine.cache import OutputCache
from proctor.errors import RunNotFound
from proctor.records.run import TargetSpec
from proctor.records.sample import Sample
from tests.support import samples

CALLS: list[str] = []


async def target(text: str, *, style: str = "upper") -> Reply:
    CALLS.append(text)
    if text == "word 2":
        raise ValueError("always")
    return Reply(getattr(text, style)(), usage=Usage(input_tokens=5))


@pytest.fixture
def history(tmp_path: Path) -> SQLiteHistory:
    CALLS.clear()
    return SQLiteHistory(tmp_path / "h.db")


def test_off_by_default(history: SQLiteHistory) -> None:
    """Without cache=True every run calls the target."""
    for _ in range(2):
        evaluate(target, samples(2), exact_match, history=history)
    assert len(CALLS) == 4


def test_equal_calls_are_reused_and_errors_are_not(history: SQLiteHistory) -> None:
    """The second run calls only the sample that failed; usage and latency are the first ones."""
    first = evaluate(target, samples(4), exact_match, history=history, cache=True)
    CALLS.clear()
    second = evaluate(target, samples(4), contains, history=history, cache=True)
    assert CALLS == ["word 2"]
    assert [r.trial.cached for r in second.results] == [True, True, False, True]
    assert second.results[0].latency_ms == first.results[0].latency_ms
    assert second.metrics["tokens.total"].value == 15
    assert second.pass_rate == 1.0


def test_another_option_input_or_target_is_another_call(history: SQLiteHistory) -> None:
    """The key is target, options and input; the order of options does not matter."""
    evaluate(target, samples(2), exact_match, history=history, cache=True)
    CALLS.clear()
    evaluate(
        target, samples(2), exact_match, configurations={"low": {"style": "lower"}},
        history=history, cache=True,
    )  # fmt: skip
    assert len(CALLS) == 2
    evaluate(
        functools.partial(target, style="title"), samples(2), exact_match, history=history,
        cache=True,
    )  # fmt: skip
    assert len(CALLS) == 4


def test_a_mapping_in_another_order_is_another_input(history: SQLiteHistory) -> None:
    """A target may render a mapping in its order, so the outputs differ."""

    def render(fields: dict[str, int]) -> str:
        return ", ".join(fields)

    rows = [{"id": "1", "input": {"b": 1, "a": 2}}, {"id": "2", "input": {"a": 2, "b": 1}}]
    for is_cached in (False, True):
        report = evaluate(render, rows, lambda output: True, history=history, cache=True)
        assert [(r.output, r.trial.cached) for r in report.results] == [("b, a", is_cached), ("a, b", is_cached)]


def test_epochs_are_distinct(history: SQLiteHistory) -> None:
    """Three epochs of one sample are three calls, and a second run reuses all three."""
    evaluate(target, samples(1), exact_match, history=history, cache=True, epochs=3)
    assert len(CALLS) == 3
    evaluate(target, samples(1), exact_match, history=history, cache=True, epochs=3)
    assert len(CALLS) == 3


def test_rescore_calls_nothing_and_keeps_the_old_run(history: SQLiteHistory) -> None:
    """Old outputs get new scores in a new run that says where it came from."""
    old = evaluate(
        target, samples(4), exact_match, history=history, tags={"a": "1"},
        configurations={"up": {"style": "upper"}, "low": {"style": "lower"}},
    )  # fmt: skip
    CALLS.clear()
    new = rescore("latest", ["contains", "exact_match"], history=history, tags={"b": "2"})
    assert CALLS == []
    assert new.metadata is not None
    assert new.metadata.rescored_from == old.run_id
    assert new.metadata.tags == {"a": "1", "b": "2"}
    assert [r.output for r in new.results] == [r.output for r in old.results]
    assert [r.outcome for r in new.results] == [r.outcome for r in old.results]
    assert list(new.results[0].scores) == ["contains", "exact_match"]
    assert (new.errors, new.total) == (2, 8)
    assert new.by_configuration["low"]["contains.mean"].value == 0.0
    assert list(history.report(old.run_id).results[0].scores) == ["exact_match"]


def test_rescoring_an_unknown_run(history: SQLiteHistory) -> None:
    """The error names it."""
    with pytest.raises(RunNotFound):
        rescore("nothing", exact_match, history=history)


def test_an_output_that_json_would_change_is_not_cached(history: SQLiteHistory) -> None:
    """The target is called again."""

    async def odd(text: str) -> object:
        CALLS.append(text)
        return object()

    for _ in range(2):
        evaluate(odd, samples(1), lambda output: True, history=history, cache=True)
    assert len(CALLS) == 2


def test_an_output_that_cannot_be_written_at_all_is_not_cached(history: SQLiteHistory) -> None:
    """An endless list is nothing for JSON: the trial is scored and kept, but asked for again."""

    async def endless(text: str) -> list[Any]:
        CALLS.append(text)
        answer: list[Any] = []
        answer.append(answer)
        return answer

    for _ in range(2):
        report = evaluate(endless, samples(1), lambda output: True, history=history, cache=True)
        assert report.pass_rate == 1.0
    assert len(CALLS) == 2


def test_the_first_time_is_judged_like_every_other_time(history: SQLiteHistory) -> None:
    """A tuple would be a list in JSON: it is a tuple from the cache, too."""

    async def pair(text: str) -> tuple[str, str]:
        CALLS.append(text)
        return text, text

    rates = [
        evaluate(
            pair, samples(1), lambda output: output == ("word 0", "word 0"), history=history,
            cache=True,
        ).pass_rate
        for _ in range(2)
    ]  # fmt: skip
    assert (rates, len(CALLS)) == ([1.0, 1.0], 1)


def test_recordings_are_not_cached(history: SQLiteHistory) -> None:
    """Another recording for the same input is another output, cache or not."""
    from proctor import RecordedTarget

    for output in ("WORD 0", "other"):
        report = evaluate(RecordedTarget({"s0": output}), samples(1), exact_match, history=history, cache=True)
        assert report.results[0].output == output


CHAT = [{"role": "user", "content": "word 0"}, {"role": "assistant", "content": "Hello!"}]
EXPECTED: dict[str, Any] = {
    "a text": "Hello!",
    "a conversation": {"messages": CHAT},
    "a mapping": {"category": "refund"},
    "nothing": None,
}


def _bare_state(text: str) -> Any:
    return {"messages": CHAT}


def _state(text: str) -> Any:
    return {"messages": CHAT, "category": "refund"}


def _recording_state(text: str) -> Any:
    record(ToolCall("search", {"q": text}, result="found"))
    record(ModelCall("m", Usage(3, 4)))
    return {"messages": CHAT, "category": "refund"}


def _reply(text: str) -> Any:
    return Reply({"messages": CHAT}, usage=Usage(1, 2))


def _own_session(text: str) -> Any:
    record(ToolCall("search"))
    return Reply({"messages": CHAT}, session=Session())


@dataclasses.dataclass
class _Hidden:
    category: str = "refund"

    @property
    def messages(self) -> Any:
        return CHAT


def _object(text: str) -> Any:
    return _Hidden()


def _judged(agent: Any, expected: str, **options: Any) -> tuple[Any, ...]:
    checks = {"same": exact_match, "part": json_subset, "searched": tool_called("search")}
    dataset = [{"id": "0", "input": "word 0", "expected": EXPECTED[expected]}]
    (result,) = evaluate(agent, dataset, checks, **options).results
    trial = result.trial
    scores = {name: (score.status, score.passed) for name, score in result.scores.items()}
    return trial.output, trial.raw_output, trial.session, trial.usage, scores, result.outcome


@functools.cache
def _judged_without_cache(agent: Any, expected: str) -> tuple[Any, ...]:
    return _judged(agent, expected, history=None)


@pytest.mark.parametrize("agent", [_bare_state, _state, _recording_state, _reply, _own_session, _object])
@pytest.mark.parametrize("first", EXPECTED)
def test_a_cached_run_judges_as_an_uncached_one(agent: Any, first: str, history: SQLiteHistory) -> None:
    """What one `expected` made of a reply is not what a run with another `expected` is given."""
    for expected in (first, *(other for other in EXPECTED if other != first)):
        with_cache = _judged(agent, expected, history=history, cache=True)
        assert with_cache == _judged_without_cache(agent, expected)


def test_the_cache_ignores_the_expected_output(history: SQLiteHistory) -> None:
    """A second run with another `expected` calls nothing."""
    for expected, is_cached in (("Hello!", False), ({"category": "refund"}, True), (None, True)):
        dataset = [{"id": "0", "input": "word 0", "expected": expected}]
        (result,) = evaluate(_state, dataset, contains, history=history, cache=True).results
        assert result.trial.cached is is_cached


def test_entries_of_earlier_versions(history: SQLiteHistory) -> None:
    """A plain one is used; a conversation was read for an `expected` unknown now: it is called."""
    stored: dict[str, bytes] = {}
    olds = (
        (b'{"output":"HI","latency_ms":1.0}', True),
        (b'{"output":"Hello!","session":{},"raw_output":{"messages":[]}}', False),
        (b'{"output":{"messages":[]},"session":{}}', False),
    )
    for data, is_used in olds:
        spec = TargetSpec("function", "t", "1")

        def find(key: str, data: bytes = data) -> bytes:
            return data

        cache = OutputCache(spec, find, lambda key, at, new: stored.update({key: new}))
        called: list[str] = []

        async def call(sample: Any, options: Any, epoch: int, called: Any = called) -> Any:
            called.append(sample.id)
            return "new"

        request: Any = cache.wrap(call, SystemClock())(Sample("1", "Hi"), {}, 0)
        asyncio.run(request)
        assert (called == []) is is_used
