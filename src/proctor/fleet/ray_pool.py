"""Ray actors, kept at their number: one that dies is replaced, one that waits is told of."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from proctor import codec
from proctor.clock import Clock
from proctor.errors import StopRun
from proctor.fleet.expectation import describe_difference
from proctor.fleet.ray_actor import Introduction

# So many actors in a row that die before they are ready are enough.
STILLBORN = 3
WATCH_SECONDS = 1.0
# After so long without an actor people want to know why.
QUIET_SECONDS = 3.0
# How long actors have to give back what they hold before they are killed.
FAREWELL_SECONDS = 5.0
CAUSE_LENGTH = 400


class Seat:
    """An actor that is ready, how many trials it runs, and whether it is kept free for one."""

    def __init__(self, actor: Any, name: str) -> None:
        self.actor = actor
        self.name = name
        self.busy = 0
        self.reserved = False
        self.dead = False


@dataclass(frozen=True)
class Wanted:
    """How many actors there should be, of which resources, with room for how many trials each.

    `expects` is what they should run; after `patience` seconds without any the run is stopped.
    """

    actors: int
    room: int
    resources: Mapping[str, float]
    expects: str
    patience: float | None = None


class Pool:
    """The actors of a run, each made by `make`; `notice` is told when they are waited for."""

    def __init__(
        self,
        ray: ModuleType,
        wanted: Wanted,
        make: Callable[[], Any],
        notice: Callable[[str], object],
        clock: Clock,
    ) -> None:
        self.deaths = 0
        self._ray = ray
        self._wanted = wanted
        self._make = make
        self._notice = notice
        self._clock = clock
        self._seats: list[Seat] = []
        self._actors: list[Any] = []
        # Those that have their resources, but not yet what they need to run trials.
        self._starting: set[Any] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: list[asyncio.Future[None]] = []
        self._stop: StopRun | None = None
        self._stillborn = 0
        self._lacking_since = clock.monotonic()

    async def __aenter__(self) -> Pool:
        for _ in range(self._wanted.actors):
            self._begin(self._hire())
        self._begin(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FAREWELL_SECONDS):
                    await asyncio.gather(*map(self._farewell, self._seats))
        finally:
            for actor in self._actors:
                self._ray.kill(actor)

    @contextlib.asynccontextmanager
    async def seat(self, *, alone: bool = False) -> AsyncIterator[Seat]:
        """An actor with room for a trial, or one that runs nothing else meanwhile.

        One that is waited for until it runs nothing else may be dead by then.
        """
        seat = await self._found(sys.maxsize if alone else self._wanted.room)
        seat.reserved = alone
        try:
            while alone and seat.busy and not seat.dead:
                await self._change()
            seat.busy += 1
            try:
                yield seat
            finally:
                seat.busy -= 1
        finally:
            if alone:
                seat.reserved = False
            self._tell()

    def bury(self, seat: Seat) -> None:
        """An actor has died under its trials: another takes its place."""
        if seat.dead:
            return
        seat.dead = True
        self.deaths += 1
        self._seats.remove(seat)
        self._dismiss(seat.actor)
        self._lacking_since = self._clock.monotonic()
        self._begin(self._hire())

    async def _found(self, room: int) -> Seat:
        """The actor that runs the fewest trials, of those that are open and run fewer than that."""
        while self._stop is None:
            open_to_all = [seat for seat in self._seats if not seat.reserved and seat.busy < room]
            if open_to_all:
                return min(open_to_all, key=lambda seat: seat.busy)
            await self._change()
        raise StopRun(self._stop.what, fix=self._stop.fix)

    async def _change(self) -> None:
        """Wait until something about the seats is different."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _give_up(self, what: str, fix: str) -> None:
        """No trial can be run any more, or none rightly."""
        self._stop = self._stop or StopRun(what, fix=fix)
        self._tell()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._give_up(
                f"Ray does not answer: {type(error).__name__}: {cause(error)}",
                "see whether the cluster is still there, and resume the run",
            )

    async def _hire(self) -> None:
        """Start an actor; it takes trials once it runs what this run is about."""
        while self._stop is None:
            actor = self._make()
            self._actors.append(actor)
            try:
                await actor.arrive.remote()
                self._starting.add(actor)
                said = codec.decode(await actor.introduce.remote(), Introduction)
            except self._ray.exceptions.RayError as error:
                self._dismiss(actor)
                self._stillborn += 1
                if self._stillborn >= STILLBORN:
                    self._give_up(
                        f"Ray actors die before they are ready: {cause(error)}",
                        "see that every node can import proctor and what the target needs",
                    )
                continue
            finally:
                self._starting.discard(actor)
            self._stillborn = 0
            self._welcome(actor, said)
            return

    def _welcome(self, actor: Any, said: Introduction) -> None:
        expects = self._wanted.expects
        if said.problem:
            self._give_up(
                f"actor {said.name} cannot make the evaluation ready: {said.problem}",
                "see that the files and packages it needs are there on every node",
            )
        elif said.expects != expects:
            self._give_up(
                f"actor {said.name} runs {said.expects!r}, this run is of {expects!r}: "
                f"{describe_difference(expects, said.expects)}",
                "install the same code, on the same Python, on every node",
            )
        else:
            self._seats.append(Seat(actor, said.name))
            self._tell()

    def _dismiss(self, actor: Any) -> None:
        self._actors.remove(actor)
        self._ray.kill(actor)

    async def _farewell(self, seat: Seat) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            await seat.actor.close.remote()

    async def _watch(self) -> None:
        """Say when actors are waited for, and end the run when none comes for too long."""
        patience = self._wanted.patience
        told = False
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            missing = self._wanted.actors - len(self._seats)
            lacking = self._clock.monotonic() - self._lacking_since
            if told and not missing:
                self._notice("")
            told = missing > 0 and lacking > QUIET_SECONDS
            if told:
                self._notice(await asyncio.to_thread(self._short_of, missing))
            if not self._seats and patience is not None and lacking > patience:
                why = await asyncio.to_thread(self._short_of, missing)
                self._give_up(
                    f"no Ray actor could be started for {lacking:.0f} s: {why}",
                    "wait until the cluster has room, and resume the run",
                )

    def _short_of(self, missing: int) -> str:
        """What actors that are not there yet wait for."""
        waiting = missing - len(self._starting)
        if waiting <= 0:
            return f"{missing} of {self._wanted.actors} Ray actors are starting"
        free, all_there = self._ray.available_resources(), self._ray.cluster_resources()
        figures = " and ".join(
            f"{free.get(name, 0.0):g} of {all_there.get(name, 0.0):g} {name}"
            for name in self._wanted.resources
        )
        return (
            f"{waiting} of {self._wanted.actors} Ray actors wait for resources: free are {figures}"
        )


def cause(error: BaseException) -> str:
    """What Ray says of a failure, on one line."""
    return " ".join(str(error).split())[:CAUSE_LENGTH]
