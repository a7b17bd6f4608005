"""Trials of one sample that wait for each other: timeouts, errors and memory."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Configuration, RunOptions, Sample, Trial, attach, evaluator, exact_match
from proctor.engine.peer_trials import (
    PeerSelection,
    SharedPeers,
    configuration_only,
    evaluator_needs,
    select_peers,
    shared_peers,
)
from proctor.engine.plan import Plan, plan_jobs
from proctor.records.fields.view import TrialView
from proctor.records.trial import Failure
from proctor.targets.resolve import as_target
from tests.support import samples, shout


@evaluator(needs=("epochs",))
def steady(field_context: Any) -> bool:
    return len(set(field_context.epochs)) == 1


def in_context(field_context: Any) -> bool:
    return True


def left(configuration: str, epoch: int = 0, output: Any = "x", **held: Any) -> Trial:
    return Trial(Sample("s", "q"), output, configuration=configuration, epoch=epoch, **held)


def plan(*evaluators: Any, baseline: str | None = None, epochs: int = 1, names: str = "ab") -> Plan:
    return Plan(
        name="p",
        target=as_target(shout),
        evaluators=tuple(map(attach, evaluators)),
        dataset=samples(2),  # type: ignore[arg-type]
        configurations=tuple(map(Configuration, names)),
        options=RunOptions(epochs=epochs),
        baseline=baseline,
    )


def test_only_evaluators_that_need_peers_wait_for_them() -> None:
    """Plain evaluators need nothing."""
    assert configuration_only([attach(exact_match)]) is None
    assert configuration_only([attach(in_context)]) is not None
    assert shared_peers(plan(exact_match)) is None
    assert shared_peers(plan(in_context)) is None
    assert shared_peers(plan(exact_match, baseline="a")) is not None
    assert shared_peers(plan(steady)) is not None
    assert evaluator_needs([attach(steady), attach(exact_match)]) == {"context", "epochs"}
    assert select_peers(evaluator_needs([attach(steady)]), "a", RunOptions(epochs=3)) == PeerSelection("a", 3)
    assert select_peers(evaluator_needs([attach(exact_match)]), "a", RunOptions(epochs=3)) == PeerSelection("a", 0)


def test_alone_a_trial_knows_its_configuration() -> None:
    """The options of its configuration, no baseline, no epochs."""

    async def main() -> Trial:
        beside = configuration_only([attach(in_context)])
        assert beside is not None
        seat = beside.open_slot("s", Configuration("a", {"t": 1}), 0)
        seen = await seat.add_peers(left("a"))
        seat.close()
        return seen

    seen = asyncio.run(main())
    assert isinstance(seen, TrialView)
    assert (seen.options, seen.is_compared, seen.epochs) == ({"t": 1}, False, ())


@given(st.permutations(["a", "b", "c"]), st.sampled_from("abc"), st.integers(1, 3))
def test_a_trial_waits_only_for_earlier_trials(names: list[str], baseline: str, epochs: int) -> None:
    """In the order of the plan, so there is no deadlock."""
    company = PeerSelection(baseline, epochs)
    begun: set[tuple[str, str, int]] = set()
    for _, sample, configuration, epoch in plan_jobs(
        plan(steady, baseline=baseline, epochs=epochs, names="".join(names))
    ):
        begun.add((sample.id, configuration.name, epoch))
        wanted = company.keys_for(configuration.name, epoch)
        assert {(sample.id, *key) for key in wanted} <= begun
    assert len(begun) == 2 * 3 * epochs


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(main(), 10))


def room(baseline: str | None = "a", epochs: int = 0, names: str = "ab", **more: Any) -> SharedPeers:
    keys = [(name, at) for name in names for at in range(epochs or 1)]
    return SharedPeers(PeerSelection(baseline, epochs), keys, **more)


def held(room: SharedPeers) -> int:
    """How many samples a room still knows of."""
    return len(room._samples) + len(room._remaining)


def test_a_trial_waits_for_its_baseline() -> None:
    """It is scored when the baseline is known, and sees it; the baseline does not wait."""

    async def main() -> None:
        beside = room()
        base = beside.open_slot("s", Configuration("a"), 0)
        other = beside.open_slot("s", Configuration("b", {"t": 1}), 0)
        waiting = asyncio.ensure_future(other.add_peers(left("b", output="y")))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        own = await base.add_peers(left("a"))
        assert isinstance(own, TrialView)
        assert (own.is_compared, own.baseline) == (True, None)
        seen = await waiting
        assert isinstance(seen, TrialView)
        assert (seen.is_compared, seen.baseline, seen.options) == (True, left("a"), {"t": 1})
        base.close()
        other.close()
        assert held(beside) == 0

    run(main)


def test_the_last_epoch_sees_all_others_of_both_sides() -> None:
    """In order; earlier epochs see none of them, but the baseline of their own epoch."""

    async def main() -> None:
        beside = room(epochs=2)
        seats = [(name, at, beside.open_slot("s", Configuration(name), at)) for name in "ab" for at in range(2)]
        joined = [asyncio.ensure_future(s.add_peers(left(n, at, at))) for n, at, s in reversed(seats)]
        last, first, base_last, _ = [await epoch for epoch in joined]
        assert [epoch.output for epoch in last.epochs] == [0, 1]  # type: ignore[attr-defined]
        assert [epoch.output for epoch in last.baseline_epochs] == [0, 1]  # type: ignore[attr-defined]
        assert (first.epochs, first.baseline.output) == (None, 0)  # type: ignore[attr-defined]
        assert len(base_last.epochs) == 2  # type: ignore[attr-defined]
        assert base_last.baseline_epochs == ()  # type: ignore[attr-defined]
        for _, _, seat in seats:
            seat.close()
        assert held(beside) == 0

    run(main)


def test_a_baseline_that_was_dropped_takes_the_others_along() -> None:
    """They could not be scored as they should: a resumed run does all of them."""

    async def main() -> None:
        beside = room()
        base = beside.open_slot("s", Configuration("a"), 0)
        other = beside.open_slot("s", Configuration("b"), 0)
        waiting = asyncio.ensure_future(other.add_peers(left("b")))
        await asyncio.sleep(0)
        base.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        other.close()
        assert held(beside) == 0

    run(main)


def test_a_failed_trial_does_not_wait() -> None:
    """It is not scored."""

    async def main() -> None:
        beside = room()
        base = beside.open_slot("s", Configuration("a"), 0)
        other = beside.open_slot("s", Configuration("b"), 0)
        failed = left("b", error=Failure("ValueError", "no"))
        assert await other.add_peers(failed) is failed
        broken = left("a", error=Failure("ValueError", "no"))
        await base.add_peers(broken)

    run(main)


def test_trials_from_before_a_resume_are_known() -> None:
    """The baseline does not run again."""

    async def main() -> None:
        beside = room(load_finished=lambda sample_id: [left("a", output=sample_id)])
        other = beside.open_slot("s", Configuration("b"), 0)
        seen = await other.add_peers(left("b"))
        assert seen.baseline.output == "s"  # type: ignore[attr-defined]
        other.close()
        assert held(beside) == 0

    run(main)


def test_finished_trials_that_left_the_plan_do_not_count() -> None:
    """Where a resumed run has other configurations, the sample is kept until its own are done."""

    async def main() -> None:
        beside = room(names="abc", load_finished=lambda _: [left("gone"), left("b")])
        base = beside.open_slot("s", Configuration("a"), 0)
        await base.add_peers(left("a", output="base"))
        base.close()
        other = beside.open_slot("s", Configuration("c"), 0)
        seen = await other.add_peers(left("c"))
        assert seen.baseline.output == "base"  # type: ignore[attr-defined]
        other.close()
        assert held(beside) == 0

    run(main)


def test_a_baseline_that_is_not_in_the_run_is_none() -> None:
    """If the plan was cut before the baseline, no trial waits for it."""

    async def main() -> None:
        other = room().open_slot("s", Configuration("b"), 0)
        seen = await other.add_peers(left("b"))
        assert seen.baseline is None  # type: ignore[attr-defined]

    run(main)
