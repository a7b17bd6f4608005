"""A run whose trials Ray actors carry out, on a cluster or on all cores of this machine."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import msgspec

from proctor import codec, extras, sessions
from proctor.asking.spending import Spending
from proctor.clock import Clock, SystemClock
from proctor.engine.limits import Slot
from proctor.engine.plan import Plan, Setup
from proctor.engine.progress import Progress
from proctor.engine.trial import Runner
from proctor.errors import ConfigError, StopRun, UsageError
from proctor.fleet.answered import answered, failed, refuse_cache
from proctor.fleet.arrival import describe_changes
from proctor.fleet.errands import request_id
from proctor.fleet.expectation import expectation
from proctor.fleet.ray_actor import Answer, TrialActor
from proctor.fleet.ray_pool import Pool, Seat, Wanted, cause
from proctor.records.lossless import restored_result
from proctor.records.mail import EvalRequest
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import Configuration, Delivery, EvalResult, Failure

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
            raise ConfigError(
                "an actor has no GPU, a part of one, or several whole ones", where="gpus"
            )
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

    def _signed(
        self, answer: Answer, request: EvalRequest[Any, Any], seat: Seat, count: int
    ) -> EvalResult:
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
