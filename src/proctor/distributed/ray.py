"""A run whose trials Ray actors carry out, on a cluster or on all cores of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from proctor.core import optional as extras
from proctor.core.clock import Clock, SystemClock
from proctor.distributed.arrival import describe_changes
from proctor.distributed.expected_results import (
    answered,
    describe_difference,
    expectation,
    failed,
    refuse_cache,
)
from proctor.distributed.ray_actor import Answer, Introduction, TrialActor
from proctor.distributed.remote_runner import request_id
from proctor.engine.limits import Slot
from proctor.engine.plan import Plan, Setup
from proctor.engine.progress import Progress
from proctor.engine.trial import Runner
from proctor.errors import ConfigError, StopRun, UsageError
from proctor.models.spending import Spending
from proctor.records import codec
from proctor.records.lossless import restored_result
from proctor.records.mail import EvalRequest
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import Configuration, Delivery, EvalResult, Failure
from proctor.sessions import current as sessions

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
        return f"{waiting} of {self._wanted.actors} Ray actors wait for resources: free are {figures}"


def cause(error: BaseException) -> str:
    """What Ray says of a failure, on one line."""
    return " ".join(str(error).split())[:CAUSE_LENGTH]


# A trial under which so many actors died is given up; the last of them ran nothing else.
LIVES = 3
REACH_SECONDS = 10.0
# Where Ray is told what not to print.
SILENCED = "RAY_DEDUP_LOGS_SKIP_REGEX"


@dataclass(frozen=True)
class OnRay:
    """Ray actors as the place where a run's trials are carried out.

    `build` makes what a recipe names ready, and must be a function of a module, for only its name
    travels. `address` is as for `ray.init`; without one Ray decides. There are as many `actors` as
    the cluster has CPUs, but no more than trials that may run at once; each has one CPU and `gpus`
    GPUs to itself. After `patience` seconds without any actor the run is stopped, to be resumed.
    """

    recipe: bytes
    build: Callable[[bytes], Setup]
    address: str | None = None
    actors: int | None = None
    gpus: float = 0.0
    patience: float | None = 3_600.0
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state

    def __post_init__(self) -> None:
        if self.actors is not None and self.actors < 1:
            raise ConfigError("there must be at least one actor", where="actors")
        if self.gpus < 0 or (self.gpus > 1 and self.gpus % 1):
            raise ConfigError("an actor has no GPU, a part of one, or several whole ones", where="gpus")
        module, name = self.build.__module__, self.build.__qualname__
        if module == "__main__" or getattr(sys.modules[module], name, None) is not self.build:
            raise ConfigError(
                f"{name} of {module} cannot be found by its name on another machine",
                where="build",
                fix="write it as a function of a module that can be imported",
            )

    @contextlib.asynccontextmanager
    async def runner(
        self, plan: Plan, run: RunMetadata, progress: Progress, spending: Spending | None
    ) -> AsyncIterator[Runner]:
        """Start actors, and end them with the run."""
        refuse_cache(run)
        ray = quiet_ray()
        with connected(ray, self.address):
            wanted = self._wanted(ray, plan, progress)
            pool = Pool(ray, wanted, self._maker(ray, wanted), _tell(progress), self.clock)
            trials = Trials(ray, pool, run, progress, spending, self.clock)
            try:
                async with pool:
                    yield trials
            finally:
                progress.notice = ""
                progress.warnings += trials.sentences()

    def _wanted(self, ray: ModuleType, plan: Plan, progress: Progress) -> Wanted:
        resources = {"CPU": 1.0} | ({"GPU": self.gpus} if self.gpus else {})
        there = ray.cluster_resources()
        fitting = int(min(there.get(name, 0.0) / each for name, each in resources.items()))
        limit = plan.options.concurrency
        if self.actors is None and fitting > limit:
            progress.warnings.append(
                f"ray: {limit} of {fitting} possible actors were used, for that many samples may "
                f"run at once; with concurrency={fitting} all are"
            )
        left = limit if progress.total is None else progress.total - progress.done
        # One that the cluster has no room for yet is waited for: it may grow.
        actors = max(1, min(self.actors or fitting, limit, left))
        room = -(-limit // actors)
        return Wanted(actors, room, resources, expectation(plan), self.patience)

    def _maker(self, ray: ModuleType, wanted: Wanted) -> Callable[[], Any]:
        # One call more than there are trials, so that an actor at work can be told to close.
        actor = ray.remote(TrialActor).options(
            num_cpus=1, num_gpus=self.gpus, max_concurrency=wanted.room + 1, max_restarts=0
        )
        address = f"{self.build.__module__}:{self.build.__qualname__}"
        return lambda: actor.remote(address, self.recipe)


def _tell(progress: Progress) -> Callable[[str], None]:
    def tell(text: str) -> None:
        progress.notice = text

    return tell


class Trials:
    """Gives each job to an actor, and to another one if that dies; each result is counted once."""

    # As many at once as the run's options say.
    hands = None

    def __init__(
        self,
        ray: ModuleType,
        pool: Pool,
        run: RunMetadata,
        progress: Progress,
        spending: Spending | None,
        clock: Clock,
    ) -> None:
        self._ray = ray
        self._pool = pool
        self._run_id = run.run_id
        self._progress = progress
        self._spending = spending
        self._clock = clock
        self._again = self._given_up = 0

    async def run(
        self, slot: Slot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult:
        """Let an actor run and score one sample."""
        assert slot.job is not None
        if self._spending is not None:
            self._spending.check()
        request: EvalRequest[Any, Any] = EvalRequest(
            sample,
            request_id=request_id(self._run_id, slot.job[0]),
            created_at=self._clock.now(),
            run_id=self._run_id,
            configuration=configuration,
            epoch=epoch,
        )
        return answered(await self._answer(slot, request), sample, self._progress)

    def sentences(self) -> list[str]:
        """What should be said in the report; nothing if all went straight."""
        told = (
            (self._pool.deaths, "actors died and were replaced"),
            (self._again, "trials were run again because their actor had died"),
            (self._given_up, f"trials were given up: {LIVES} actors had died under each"),
        )
        return [f"ray: {count} {what}" for count, what in told if count]

    async def _answer(self, slot: Slot, request: EvalRequest[Any, Any]) -> EvalResult:
        try:
            data = _written(request)
        except (*codec.UNWRITABLE, UsageError) as error:
            why = f"the sample cannot be sent as JSON: {error}"
            return failed(request, Failure("Unsendable", why))
        deaths = 0
        while True:
            # Ctrl-C need not wait for an actor to have room, only for what it runs.
            slot.resting = True
            async with self._pool.seat(alone=deaths == LIVES - 1) as seat:
                slot.resting = False
                if seat.dead:
                    continue
                try:
                    answer = codec.decode(await seat.actor.trial.remote(data), Answer)
                except self._ray.exceptions.RayError as error:
                    self._pool.bury(seat)
                    deaths += 1
                    died = cause(error)
                else:
                    return self._signed(answer, request, seat, deaths + 1)
            if deaths == LIVES:
                self._given_up += 1
                what = f"{LIVES} Ray actors died while they ran it; the last: {died}"
                return failed(request, Failure("ActorDied", what), deaths)
            self._again += deaths == 1

    def _signed(self, answer: Answer, request: EvalRequest[Any, Any], seat: Seat, count: int) -> EvalResult:
        if self._spending is not None and answer.spent is not None:
            self._spending.add(answer.spent)
        for warning in answer.warnings:
            sessions.warn(warning)
        if answer.result is None:
            raise StopRun(answer.stop, fix=answer.fix)
        delivery = Delivery(self._run_id, request.request_id, seat.name, count)
        return msgspec.structs.replace(restored_result(answer.result), delivery=delivery)


def _written(request: EvalRequest[Any, Any]) -> bytes:
    data = codec.encode(request)
    if change := describe_changes(request, codec.decode(data, EvalRequest)):
        raise TypeError(change)
    return data


def quiet_ray() -> ModuleType:
    """Ray, without its word on every actor that dies: it would stand amid what is printed here."""
    # Else it would put a function of its own in the place of `print`.
    os.environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")
    before = os.environ.get(SILENCED)
    # Ray reads it when it is imported, and never again.
    os.environ[SILENCED] = before or "A worker died or was killed"
    try:
        return extras.require("ray", extra="ray", why="running on Ray")
    finally:
        del os.environ[SILENCED]
        if before is not None:
            os.environ[SILENCED] = before


def _is_debugging() -> bool:
    return logging.getLogger("proctor").isEnabledFor(logging.DEBUG)


@contextlib.contextmanager
def connected(ray: ModuleType, address: str | None) -> Iterator[None]:
    """Be connected to Ray; what the program has connected already is left as it is."""
    if ray.is_initialized():
        yield
        return
    _connect(ray, address)
    try:
        yield
    finally:
        ray.shutdown()


def _connect(ray: ModuleType, address: str | None) -> None:
    debugging = _is_debugging()
    try:
        _reach(address or os.environ.get("RAY_ADDRESS", ""))
        with _same_sigterm():
            ray.init(
                address,
                include_dashboard=False,
                log_to_driver=debugging,
                logging_level=logging.DEBUG if debugging else logging.ERROR,
            )
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"Ray cannot be reached: {cause(error)}",
            where=address or "RAY_ADDRESS",
            fix="check the address, whether `ray status` answers there, and, where the cluster "
            "asks for a token, RAY_AUTH_MODE and the token",
        ) from error


def _reach(address: str) -> None:
    """Refuse an address where nobody listens; Ray itself would try for minutes."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.scheme in ("", "ray") and parts.hostname and parts.port:
        socket.create_connection((parts.hostname, parts.port), REACH_SECONDS).close()


@contextlib.contextmanager
def _same_sigterm() -> Iterator[None]:
    """Ray takes SIGTERM for itself when it starts; it is given back to whoever had it."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)
