"""`EvalRunner` runs a target on datasets; `EvalLoop` answers the requests of a mailbox."""

from __future__ import annotations

import logging
from typing import Any, Generic, Unpack

import msgspec

from proctor.comparison.report import EvalReport
from proctor.core import bridge
from proctor.core.aliases import TimeoutAlias, use_common_names
from proctor.distributed.inbox import StopCondition
from proctor.distributed.outbox import WorkerSummary
from proctor.distributed.worker import Worker, WorkerConfig
from proctor.errors import ConfigError
from proctor.ports import DatasetLike, EvaluatorsLike, Mailbox, TargetLike, TypeVar
from proctor.records.mail import EvalRequest
from proctor.records.run import RunOptions, RunOptionsKwargs
from proctor.records.trial import EvalResult
from proctor.targets.main_loop.loop import MainLoop
from proctor.wiring.evaluate import evaluate
from proctor.wiring.prepare import Configurations, Metrics, prepare_setup
from proctor.wiring.registry import Registry


class RunnerKwargs(RunOptionsKwargs, TimeoutAlias, total=False):
    """The options of a run, including the aliases of the specification."""


class EvalRunner:
    """A target with its evaluators and metrics, to run on datasets.

    `continue_on_error=False` stops at the first failed sample; `timeout` applies to each call of the target.
    """

    def __init__(
        self,
        target: TargetLike,
        evaluators: EvaluatorsLike,
        metrics: Metrics | None = None,
        *,
        continue_on_error: bool = True,
        **options: Unpack[RunnerKwargs],
    ) -> None:
        self.target = target
        self.evaluators = evaluators
        self.metrics = tuple(metrics or ())
        self.options = use_common_names(options, RunOptions.__struct_fields__)
        self.options["on_error"] = "continue" if continue_on_error else "raise"

    def run(self, dataset: DatasetLike, configurations: Configurations | None = None, **settings: Any) -> EvalReport:
        """Evaluate the target on a dataset; `settings` are the same as for `evaluate`."""
        return evaluate(
            self.target,
            dataset,
            self.evaluators,
            configurations=configurations,
            metrics=self.metrics,
            **{**self.options, **settings},
        )


_log = logging.getLogger("proctor.worker")


LoopInputT = TypeVar("LoopInputT", default=Any)
LoopOutputT = TypeVar("LoopOutputT", default=Any)
LoopExpectedT = TypeVar("LoopExpectedT", default=Any)


class EvalLoop(Generic[LoopInputT, LoopOutputT, LoopExpectedT]):
    """Answers the requests of a mailbox: runs each sample, scores it, and sends the result.

    `loop` is a main loop or any other target; `evaluator` is one evaluator or several. Results go to `results`, or to
    the mailbox that each request specifies. `options` are the same as for `evaluate` (concurrency, timeout, retries …).
    If this process dies, others receive its requests after `lease_seconds`. A poll takes at most `batch_size` requests.

    >>> from proctor import InMemoryMailbox, collect_results, exact_match, submit_dataset
    >>> requests, results = InMemoryMailbox("requests"), InMemoryMailbox("results")
    >>> loop = EvalLoop(
    ...     loop=str.upper, evaluator=exact_match, requests=requests, results=results
    ... )
    >>> submission = submit_dataset([{"id": "1", "input": "yes", "expected": "YES"}], requests)
    >>> tally = loop.run(max_iterations=1)
    >>> collect_results(results, submission).pass_rate
    1.0
    """

    def __init__(
        self,
        *,
        loop: MainLoop[LoopInputT, LoopOutputT] | TargetLike,
        evaluator: EvaluatorsLike,
        requests: Mailbox[EvalRequest[LoopInputT, LoopExpectedT]],
        results: Mailbox[EvalResult] | None = None,
        lease_seconds: float = 30.0,
        batch_size: int = 1_000,
        wait_seconds: float = 20.0,
        name: str = "",
        registry: Registry | None = None,
        **options: Unpack[RunOptionsKwargs],
    ) -> None:
        if options.get("budget") is not None:
            raise ConfigError(
                "a loop cannot have a budget, because it answers requests of any run",
                where="EvalLoop",
                fix="pass the budget to the run: evaluate(…, workers=…, budget=…)",
            )
        for where, box in (("requests", requests), ("results", results)):
            if isinstance(box, str):
                raise ConfigError(
                    f"{box!r} is not a mailbox", where=where, fix="pass a mailbox, such as RedisMailbox(…)"
                )
        setup = prepare_setup(loop, evaluator, options, registry or Registry.standard())
        config = WorkerConfig(requests, results, lease_seconds, name, warn=_log.warning)
        self._worker = Worker(setup, config)
        self._until = StopCondition(wait=wait_seconds, batch=batch_size)

    async def arun(self, *, max_iterations: int | None = None, until_empty: bool = False) -> WorkerSummary:
        """Answer requests for `max_iterations` polls, until the mailbox is empty, or until `stop`."""
        if max_iterations is not None and max_iterations < 1:
            raise ConfigError("max_iterations must be 1 or more", where="EvalLoop.run", fix="write max_iterations=1")
        until = msgspec.structs.replace(self._until, polls=max_iterations, empty=until_empty)
        return await self._worker.run(until)

    run = bridge.synchronous(arun)

    def stop(self) -> None:
        """Finish the running samples and return the other requests; safe to call from any thread.

        A second call also stops the running samples. A call before `run` ends the next `run`.
        """
        self._worker.stop()
