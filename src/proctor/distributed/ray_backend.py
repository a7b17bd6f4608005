"""Run trials on Ray actors, on a cluster or on all cores of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar
from urllib.parse import urlsplit

import msgspec

from proctor.core import optional as extras
from proctor.core.clock import Clock, SystemClock
from proctor.distributed.check_requests import describe_changes
from proctor.distributed.delivery_counts import describe_counts
from proctor.distributed.expected_results import (
    describe_difference,
    describe_setup,
    failed_result,
    reject_cache,
    restore_sample,
)
from proctor.distributed.ray_actor import ActorInfo, TrialActor, TrialResponse
from proctor.distributed.remote_runner import create_request
from proctor.engine.plan import Plan, Setup
from proctor.engine.progress import Progress
from proctor.engine.timeouts import WorkerSlot
from proctor.engine.trial import Runner
from proctor.errors import ConfigError, StopRun, UsageError
from proctor.models.spending import Spending
from proctor.records import codec
from proctor.records.lossless import restore_result
from proctor.records.mail import EvalRequest
from proctor.records.run import RunMetadata
from proctor.records.sample import Sample
from proctor.records.trial import Configuration, Delivery, EvalResult, Failure
from proctor.sessions import current as sessions

# The run stops after this many failed starts of actors in a row.
MAX_FAILED_STARTS = 3
WATCH_SECONDS = 1.0
# A notice appears after this time without an actor.
QUIET_SECONDS = 3.0
# How long actors may take to close before they are killed.
CLOSE_SECONDS = 5.0
MAX_CAUSE_LENGTH = 400


@dataclass(eq=False)
class ActorSlot:
    """A ready actor, the number of its trials, and whether it is reserved for a single trial."""

    actor: Any
    name: str
    busy: int = 0
    is_reserved: bool = False
    is_dead: bool = False


@dataclass(frozen=True)
class PoolConfig:
    """The number of actors, their resources, and the trials that each runs concurrently.

    `expects` describes the code they must run; the run stops after `worker_timeout` seconds without an actor.
    """

    actors: int
    concurrency: int
    resources: Mapping[str, float]
    expects: str
    worker_timeout: float | None = None


class ActorPool:
    """The actors of a run, created by `create`; `show_notice` receives a message while some actors are missing."""

    def __init__(
        self,
        ray: ModuleType,
        config: PoolConfig,
        create: Callable[[], Any],
        show_notice: Callable[[str], object],
        clock: Clock,
    ) -> None:
        self.death_count = 0
        self._ray = ray
        self._config = config
        self._create = create
        self._show_notice = show_notice
        self._clock = clock
        self._slots: list[ActorSlot] = []
        self._actors: list[Any] = []
        # Actors that have their resources and are preparing the setup.
        self._starting: set[Any] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: list[asyncio.Future[None]] = []
        self._stop: StopRun | None = None
        self._failed_starts = 0
        self._missing_since = clock.monotonic()

    async def __aenter__(self) -> ActorPool:
        for _ in range(self._config.actors):
            self._run_task(self._start_actor())
        self._run_task(self._watch())
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await asyncio.gather(*map(self._close_actor, self._slots))
        finally:
            for actor in self._actors:
                self._ray.kill(actor)

    @contextlib.asynccontextmanager
    async def reserve(self, *, exclusive: bool = False) -> AsyncIterator[ActorSlot]:
        """Reserve an actor for a trial; an `exclusive` actor runs no other trial.

        An exclusive actor may have died while its other trials finished.
        """
        slot = await self._find_slot(sys.maxsize if exclusive else self._config.concurrency)
        slot.is_reserved = exclusive
        try:
            while exclusive and slot.busy and not slot.is_dead:
                await self._wait_for_change()
            slot.busy += 1
            try:
                yield slot
            finally:
                slot.busy -= 1
        finally:
            if exclusive:
                slot.is_reserved = False
            self._wake_waiters()

    def replace(self, slot: ActorSlot) -> None:
        """Replace an actor that died."""
        if slot.is_dead:
            return
        slot.is_dead = True
        self.death_count += 1
        self._slots.remove(slot)
        self._kill_actor(slot.actor)
        self._missing_since = self._clock.monotonic()
        self._run_task(self._start_actor())

    async def _find_slot(self, limit: int) -> ActorSlot:
        """Find the actor with the fewest trials, below the limit."""
        while self._stop is None:
            free = [slot for slot in self._slots if not slot.is_reserved and slot.busy < limit]
            if free:
                return min(free, key=lambda slot: slot.busy)
            await self._wait_for_change()
        raise StopRun(self._stop.what, fix=self._stop.fix)

    async def _wait_for_change(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def _wake_waiters(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _give_up(self, what: str, fix: str) -> None:
        self._stop = self._stop or StopRun(what, fix=fix)
        self._wake_waiters()

    def _run_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_end)

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._give_up(
                f"Ray failed: {type(error).__name__}: {to_one_line(error)}",
                "check that the cluster is running, and resume the run",
            )

    async def _start_actor(self) -> None:
        """Start an actor; it gets trials once it runs the code that this run expects."""
        while self._stop is None:
            actor = self._create()
            self._actors.append(actor)
            try:
                await actor.ping.remote()
                self._starting.add(actor)
                info = codec.decode(await actor.prepare.remote(), ActorInfo)
            except self._ray.exceptions.RayError as error:
                self._kill_actor(actor)
                self._failed_starts += 1
                if self._failed_starts >= MAX_FAILED_STARTS:
                    self._give_up(
                        f"Ray actors die before they are ready: {to_one_line(error)}",
                        "check that every node can import proctor and what the target needs",
                    )
                continue
            finally:
                self._starting.discard(actor)
            self._failed_starts = 0
            self._accept_actor(actor, info)
            return

    def _accept_actor(self, actor: Any, info: ActorInfo) -> None:
        expects = self._config.expects
        if info.problem:
            self._give_up(
                f"actor {info.name} cannot prepare the evaluation: {info.problem}",
                "install the files and packages it needs on every node",
            )
        elif info.expects != expects:
            self._give_up(
                f"actor {info.name} runs {info.expects!r}, this run expects {expects!r}: "
                f"{describe_difference(expects, info.expects)}",
                "install the same code, on the same Python, on every node",
            )
        else:
            self._slots.append(ActorSlot(actor, info.name))
            self._wake_waiters()

    def _kill_actor(self, actor: Any) -> None:
        self._actors.remove(actor)
        self._ray.kill(actor)

    async def _close_actor(self, slot: ActorSlot) -> None:
        with contextlib.suppress(self._ray.exceptions.RayError):
            await slot.actor.close.remote()

    async def _watch(self) -> None:
        """Show a notice while actors are missing; stop the run if there is no actor for too long."""
        worker_timeout = self._config.worker_timeout
        has_notice = False
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            missing = self._config.actors - len(self._slots)
            seconds = self._clock.monotonic() - self._missing_since
            if has_notice and not missing:
                self._show_notice("")
            has_notice = missing > 0 and seconds > QUIET_SECONDS
            if has_notice:
                self._show_notice(await asyncio.to_thread(self._describe_shortage, missing))
            if not self._slots and worker_timeout is not None and seconds > worker_timeout:
                reason = await asyncio.to_thread(self._describe_shortage, missing)
                self._give_up(
                    f"no Ray actor could be started for {seconds:.0f} s: {reason}",
                    "wait until the cluster has room, and resume the run",
                )

    def _describe_shortage(self, missing: int) -> str:
        waiting = missing - len(self._starting)
        if waiting <= 0:
            return f"{missing} of {self._config.actors} Ray actors are starting"
        free, total = self._ray.available_resources(), self._ray.cluster_resources()
        figures = " and ".join(
            f"{free.get(name, 0.0):g} of {total.get(name, 0.0):g} {name}" for name in self._config.resources
        )
        return f"{waiting} of {self._config.actors} Ray actors wait for resources: free are {figures}"


def to_one_line(error: BaseException) -> str:
    """Return the message of a Ray error on one line."""
    return " ".join(str(error).split())[:MAX_CAUSE_LENGTH]


# A trial fails after this many dead actors; the last of them ran nothing else.
MAX_DEATHS = 3
CONNECT_SECONDS = 10.0
# The environment variable with a pattern of log messages that Ray does not print.
SKIPPED_LOGS = "RAY_DEDUP_LOGS_SKIP_REGEX"


@dataclass(frozen=True)
class RayBackend:
    """Runs the trials of a run on Ray actors.

    `build` creates a setup from a recipe and must be a function of a module, because only its name
    is sent. `address` is passed to `ray.init`; without an address, Ray decides. By default there are as many
    `actors` as the cluster has CPUs, up to the concurrency of the run; each has one CPU and `gpus`
    GPUs. After `worker_timeout` seconds without an actor the run stops and can be resumed.
    """

    recipe: bytes
    build: Callable[[bytes], Setup]
    address: str | None = None
    actors: int | None = None
    gpus: float = 0.0
    worker_timeout: float | None = 3_600.0
    clock: Clock = SystemClock()  # noqa: RUF009 - it has no state

    def __post_init__(self) -> None:
        if self.actors is not None and self.actors < 1:
            raise ConfigError(f"must be 1 or more, got {self.actors!r}", where="actors", fix="pass actors=1")
        if self.gpus < 0 or (self.gpus > 1 and self.gpus % 1):
            raise ConfigError(
                f"must be 0, a fraction of 1, or an integer, got {self.gpus!r}",
                where="gpus",
                fix="pass gpus=0.5 or gpus=1",
            )
        module, name = self.build.__module__, self.build.__qualname__
        if module == "__main__" or getattr(sys.modules[module], name, None) is not self.build:
            raise ConfigError(
                f"{name} of {module} cannot be found by its name on another machine",
                where="build",
                fix="define it as a function at the top level of an importable module",
            )

    @contextlib.asynccontextmanager
    async def runner(
        self, plan: Plan, run: RunMetadata, progress: Progress, spending: Spending | None
    ) -> AsyncIterator[Runner]:
        """Start the actors of a run, and stop them after it."""
        reject_cache(run)
        ray = import_ray()
        with connect_ray(ray, self.address):
            config = self._configure(ray, plan, progress)
            show_notice = functools.partial(setattr, progress, "notice")
            pool = ActorPool(ray, config, self._actor_factory(ray, config), show_notice, self.clock)
            runner = RayRunner(ray, pool, run.run_id, progress, spending, self.clock)
            try:
                async with pool:
                    yield runner
            finally:
                progress.notice = ""
                progress.warnings += runner.warnings()

    def _configure(self, ray: ModuleType, plan: Plan, progress: Progress) -> PoolConfig:
        resources = {"CPU": 1.0} | ({"GPU": self.gpus} if self.gpus else {})
        available = ray.cluster_resources()
        max_actors = int(min(available.get(name, 0.0) / amount for name, amount in resources.items()))
        limit = plan.options.concurrency
        if self.actors is None and max_actors > limit:
            progress.warnings.append(
                f"ray: only {limit} of {max_actors} possible actors ran, because concurrency={limit}; "
                f"set concurrency={max_actors} to use all"
            )
        remaining = limit if progress.total is None else progress.total - progress.done
        # Ray waits for actors without resources, because the cluster may grow.
        actors = max(1, min(self.actors or max_actors, limit, remaining))
        concurrency = -(-limit // actors)
        return PoolConfig(actors, concurrency, resources, describe_setup(plan), self.worker_timeout)

    def _actor_factory(self, ray: ModuleType, config: PoolConfig) -> Callable[[], Any]:
        # One call more than trials, so that a busy actor can receive `close`.
        actor = ray.remote(TrialActor).options(
            num_cpus=1, num_gpus=self.gpus, max_concurrency=config.concurrency + 1, max_restarts=0
        )
        address = f"{self.build.__module__}:{self.build.__qualname__}"
        return lambda: actor.remote(address, self.recipe)


@dataclass
class RayRunner:
    """Runs each job on an actor, and on a second actor if the first dies."""

    _ray: ModuleType
    _pool: ActorPool
    _run_id: str
    _progress: Progress
    _spending: Spending | None
    _clock: Clock
    _repeated: int = 0
    _failed: int = 0
    max_concurrency: ClassVar[None] = None

    async def run(
        self, slot: WorkerSlot, sample: Sample[Any, Any], configuration: Configuration, epoch: int
    ) -> EvalResult:
        assert slot.job is not None
        if self._spending is not None:
            self._spending.check()
        job = (slot.job[0], sample, configuration, epoch)
        request = create_request(job, self._run_id, self._clock.now())
        return restore_sample(await self._request_result(slot, request), sample, self._progress)

    def warnings(self) -> list[str]:
        """Return a warning for each unusual count."""
        death_warning = f"failed because {MAX_DEATHS} actors died while running"
        rerun = "trial was run again because its actor had died"
        reruns = "trials were run again because their actors had died"
        return describe_counts(
            "ray",
            (self._pool.death_count, "actor died and was replaced", "actors died and were replaced"),
            (self._repeated, rerun, reruns),
            (self._failed, f"trial {death_warning} it", f"trials {death_warning} each"),
        )

    async def _request_result(self, slot: WorkerSlot, request: EvalRequest[Any, Any]) -> EvalResult:
        try:
            data = _encode(request)
        except (*codec.ENCODE_ERRORS, UsageError) as error:
            reason = f"the sample cannot be sent as JSON: {error}"
            return failed_result(request, Failure("Unsendable", reason))
        death_count = 0
        while True:
            # Ctrl-C waits for a running trial, but not for a free actor.
            slot.is_idle = True
            async with self._pool.reserve(exclusive=death_count == MAX_DEATHS - 1) as actor_slot:
                slot.is_idle = False
                if actor_slot.is_dead:
                    continue
                try:
                    response = codec.decode(await actor_slot.actor.trial.remote(data), TrialResponse)
                except self._ray.exceptions.RayError as error:
                    self._pool.replace(actor_slot)
                    death_count += 1
                    cause = to_one_line(error)
                else:
                    return self._finish(response, request, actor_slot, death_count + 1)
            if death_count == MAX_DEATHS:
                self._failed += 1
                what = f"{MAX_DEATHS} Ray actors died while they ran it; the last: {cause}"
                return failed_result(request, Failure("ActorDied", what), death_count)
            self._repeated += death_count == 1

    def _finish(
        self, response: TrialResponse, request: EvalRequest[Any, Any], slot: ActorSlot, count: int
    ) -> EvalResult:
        if self._spending is not None and response.spent is not None:
            self._spending.add(response.spent)
        for warning in response.warnings:
            sessions.warn(warning)
        if response.result is None:
            raise StopRun(response.stop, fix=response.fix)
        delivery = Delivery(self._run_id, request.request_id, slot.name, count)
        return msgspec.structs.replace(restore_result(response.result), delivery=delivery)


def _encode(request: EvalRequest[Any, Any]) -> bytes:
    data = codec.encode(request)
    if change := describe_changes(request, codec.decode(data, EvalRequest)):
        raise TypeError(change)
    return data


def import_ray() -> ModuleType:
    """Import Ray so that it does not print a message for every dead actor."""
    # Otherwise Ray replaces `print`.
    os.environ.setdefault("RAY_TQDM_PATCH_PRINT", "0")
    previous = os.environ.get(SKIPPED_LOGS)
    # Ray reads it only when it is imported.
    os.environ[SKIPPED_LOGS] = previous or "A worker died or was killed"
    try:
        return extras.require("ray", extra="ray", why="running on Ray")
    finally:
        del os.environ[SKIPPED_LOGS]
        if previous is not None:
            os.environ[SKIPPED_LOGS] = previous


@contextlib.contextmanager
def connect_ray(ray: ModuleType, address: str | None) -> Iterator[None]:
    """Connect to Ray for the block, unless the program is already connected."""
    if ray.is_initialized():
        yield
        return
    _connect(ray, address)
    try:
        yield
    finally:
        ray.shutdown()


def _connect(ray: ModuleType, address: str | None) -> None:
    is_debugging = logging.getLogger("proctor").isEnabledFor(logging.DEBUG)
    try:
        _check_address(address or os.environ.get("RAY_ADDRESS", ""))
        with _keep_sigterm_handler():
            ray.init(
                address,
                include_dashboard=False,
                log_to_driver=is_debugging,
                logging_level=logging.DEBUG if is_debugging else logging.ERROR,
            )
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(
            f"Ray cannot be reached: {to_one_line(error)}",
            where=address or "RAY_ADDRESS",
            fix="check the address with `ray status --address ADDRESS`; if the cluster needs a token, set "
            "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN",
        ) from error


def _check_address(address: str) -> None:
    """Raise `OSError` immediately for an address without a server; Ray itself would retry for minutes."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if parts.scheme in ("", "ray") and parts.hostname and parts.port:
        socket.create_connection((parts.hostname, parts.port), CONNECT_SECONDS).close()


@contextlib.contextmanager
def _keep_sigterm_handler() -> Iterator[None]:
    """Restore the SIGTERM handler that Ray replaces when it starts."""
    previous = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and previous is not None:
            signal.signal(signal.SIGTERM, previous)
