"""Trials of one sample side by side: who waits for whom, who is given up, and what is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor import Configuration, RunOptions, Sample, Trial, attach, evaluator, exact_match
from proctor.engine.beside import Company, Together, alone, company_of, needs_of, together
from proctor.engine.plan import Plan, jobs
from proctor.records.fields.view import SeenTrial
from proctor.records.trial import Failure
from proctor.targets.resolve import as_target
from tests.surroundings import samples, shout


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


def test_only_who_looks_beside_a_trial_costs_anything() -> None:
    """Plain evaluators need nothing, a context the configuration, a baseline or repeats others."""
    assert alone([attach(exact_match)]) is None
    assert alone([attach(in_context)]) is not None
    assert together(plan(exact_match)) is None
    assert together(plan(in_context)) is None
    assert together(plan(exact_match, baseline="a")) is not None
    assert together(plan(steady)) is not None
    assert needs_of([attach(steady), attach(exact_match)]) == {"context", "epochs"}
    assert company_of([attach(steady)], "a", RunOptions(epochs=3)) == Company("a", 3)
    assert company_of([attach(exact_match)], "a", RunOptions(epochs=3)) == Company("a", 0)


def test_alone_a_trial_knows_its_configuration() -> None:
    """The options of its configuration, no baseline, no epochs."""

    async def main() -> Trial:
        beside = alone([attach(in_context)])
        assert beside is not None
        seat = beside.seat("s", Configuration("a", {"t": 1}), 0)
        seen = await seat.joined(left("a"))
        seat.leave()
        return seen

    seen = asyncio.run(main())
    assert isinstance(seen, SeenTrial)
    assert (seen.options, seen.is_compared, seen.epochs) == ({"t": 1}, False, ())


@given(st.permutations(["a", "b", "c"]), st.sampled_from("abc"), st.integers(1, 3))
def test_whatever_a_trial_waits_for_was_begun_before(names: list[str], baseline: str, epochs: int) -> None:
    """In the order of the plan every trial stands behind all that it is seen with: no deadlock."""
    company = Company(baseline, epochs)
    begun: set[tuple[str, str, int]] = set()
    for _, sample, configuration, epoch in jobs(
        plan(steady, baseline=baseline, epochs=epochs, names="".join(names))
    ):
        begun.add((sample.id, configuration.name, epoch))
        wanted = company.of(configuration.name, epoch)
        assert {(sample.id, *key) for key in wanted} <= begun
    assert len(begun) == 2 * 3 * epochs


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(main(), 10))


def room(baseline: str | None = "a", epochs: int = 0, names: str = "ab", **more: Any) -> Together:
    keys = [(name, at) for name in names for at in range(epochs or 1)]
    return Together(Company(baseline, epochs), keys, **more)


def held(room: Together) -> int:
    """How many samples a room still knows of."""
    return len(room._samples) + len(room._left)


def test_a_trial_waits_for_its_baseline() -> None:
    """It is scored only when the baseline is known, and sees it; the baseline waits for nobody."""

    async def main() -> None:
        beside = room()
        base = beside.seat("s", Configuration("a"), 0)
        other = beside.seat("s", Configuration("b", {"t": 1}), 0)
        waiting = asyncio.ensure_future(other.joined(left("b", output="y")))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        own = await base.joined(left("a"))
        assert isinstance(own, SeenTrial)
        assert (own.is_compared, own.baseline) == (True, None)
        seen = await waiting
        assert isinstance(seen, SeenTrial)
        assert (seen.is_compared, seen.baseline, seen.options) == (True, left("a"), {"t": 1})
        base.leave()
        other.leave()
        assert held(beside) == 0

    run(main)


def test_the_last_epoch_sees_all_others_of_both_sides() -> None:
    """In order; earlier epochs see none of them, but the baseline of their own epoch."""

    async def main() -> None:
        beside = room(epochs=2)
        seats = [(name, at, beside.seat("s", Configuration(name), at)) for name in "ab" for at in range(2)]
        joined = [asyncio.ensure_future(s.joined(left(n, at, at))) for n, at, s in reversed(seats)]
        last, first, base_last, _ = [await one for one in joined]
        assert [one.output for one in last.epochs] == [0, 1]  # type: ignore[attr-defined]
        assert [one.output for one in last.baseline_epochs] == [0, 1]  # type: ignore[attr-defined]
        assert (first.epochs, first.baseline.output) == (None, 0)  # type: ignore[attr-defined]
        assert len(base_last.epochs) == 2  # type: ignore[attr-defined]
        assert base_last.baseline_epochs == ()  # type: ignore[attr-defined]
        for _, _, seat in seats:
            seat.leave()
        assert held(beside) == 0

    run(main)


def test_a_baseline_that_was_dropped_takes_the_others_along() -> None:
    """They could not be scored as they should: a resumed run does all of them."""

    async def main() -> None:
        beside = room()
        base = beside.seat("s", Configuration("a"), 0)
        other = beside.seat("s", Configuration("b"), 0)
        waiting = asyncio.ensure_future(other.joined(left("b")))
        await asyncio.sleep(0)
        base.leave()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        other.leave()
        assert held(beside) == 0

    run(main)


def test_a_failed_trial_waits_for_nobody_and_is_told_to_the_others() -> None:
    """It is not scored, so it need not be seen with anything."""

    async def main() -> None:
        beside = room()
        base = beside.seat("s", Configuration("a"), 0)
        other = beside.seat("s", Configuration("b"), 0)
        failed = left("b", error=Failure("ValueError", "no"))
        assert await other.joined(failed) is failed
        broken = left("a", error=Failure("ValueError", "no"))
        await base.joined(broken)

    run(main)


def test_what_an_earlier_sitting_finished_is_known() -> None:
    """The baseline is not run again; the sample is forgotten after what was left of it."""

    async def main() -> None:
        beside = room(before=lambda sample_id: [left("a", output=sample_id)])
        other = beside.seat("s", Configuration("b"), 0)
        seen = await other.joined(left("b"))
        assert seen.baseline.output == "s"  # type: ignore[attr-defined]
        other.leave()
        assert held(beside) == 0

    run(main)


def test_finished_trials_that_left_the_plan_do_not_count() -> None:
    """Where a resumed run has other configurations, the sample is kept until its own are done."""

    async def main() -> None:
        beside = room(names="abc", before=lambda _: [left("gone"), left("b")])
        base = beside.seat("s", Configuration("a"), 0)
        await base.joined(left("a", output="base"))
        base.leave()
        other = beside.seat("s", Configuration("c"), 0)
        seen = await other.joined(left("c"))
        assert seen.baseline.output == "base"  # type: ignore[attr-defined]
        other.leave()
        assert held(beside) == 0

    run(main)


def test_a_baseline_that_is_not_in_the_run_is_none() -> None:
    """As where the plan was cut short before it: nobody waits for what never began."""

    async def main() -> None:
        other = room().seat("s", Configuration("b"), 0)
        seen = await other.joined(left("b"))
        assert seen.baseline is None  # type: ignore[attr-defined]

    run(main)
