"""Execute a run: jobs stream through a pool of workers, and every result is stored immediately."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import Any

import msgspec

from proctor.comparison.report import EvalReport
from proctor.core import resource_scope
from proctor.core.clock import Clock
from proctor.core.process_exit import exit_blocked
from proctor.core.redaction.redact import Redaction
from proctor.core.threads import CallThreads
from proctor.engine.finish import finish
from proctor.engine.ledger import Ledger
from proctor.engine.progress import Progress
from proctor.engine.redaction import add_redaction_counts, create_redaction, redacting_writer
from proctor.engine.trial import Runner
from proctor.engine.worker_pool import StopCheck, WorkerPool, describe_error
from proctor.errors import RunIncomplete, RunInterrupted, RunStopped
from proctor.models.model_calls import CallContext, call_context
from proctor.models.spending import Spending
from proctor.ports import History, Metric, ResultWriter, RunView
from proctor.records.run import RunMetadata, RunStatus, StoppedEarly
from proctor.records.trial import EvalResult, PositionedResult, Verdict
from proctor.sessions import current as sessions

OpenDisplay = Callable[[RunView], AbstractContextManager[object]]
OpenRunner = Callable[[CallThreads, ResultWriter], AbstractAsyncContextManager[Runner]]


@dataclass(frozen=True)
class RunExecution:
    """One execution of a run: a new run, or the rest of a resumed run.

    `open_runner` opens what runs the jobs and closes it afterwards. `stop_check` receives every
    result, first those of earlier executions (`earlier_results`); `on_result` receives the results
    of this execution as they are stored, after redaction. `source` is the run that is rescored: if it is not complete,
    neither is its rescoring.
    """

    metadata: RunMetadata
    history: History
    clock: Clock
    jobs: Ledger
    progress: Progress
    open_runner: OpenRunner
    metrics: Sequence[Metric] = ()
    open_display: OpenDisplay | None = None
    is_new: bool = True
    spending: Spending | None = None
    stop_check: StopCheck | None = None
    earlier_results: Iterable[EvalResult] = ()
    on_result: Callable[[EvalResult], object] | None = None
    source: RunMetadata | None = None

    async def run(self) -> EvalReport:
        """Run all jobs, compute the metrics and close the run.

        However it ends, finished results stay stored and the run records its status.
        """
        (self.history.begin if self.is_new else self.history.update)(self.metadata)
        status: RunStatus = "failed"
        pool: WorkerPool | None = None
        folder = _current_folder()
        redaction = create_redaction(self.metadata.options)
        try:
            display = self.open_display(self.progress) if self.open_display else contextlib.nullcontext()
            open_writer = self.history.writer(self.metadata.run_id)
            with display, open_writer as writer, self._redacted(writer, redaction) as safe_writer:
                pool = await self._work(safe_writer)
            if pool.stop_reason in ("", "decided", "interrupted"):
                status = "interrupted" if pool.stop_reason == "interrupted" else "completed"
        except asyncio.CancelledError:
            status = "interrupted"
            raise
        finally:
            self._restore_folder(folder)
            missing = self._describe_missing(pool)
            if missing and status == "completed":
                status = "interrupted"
            report = self._finish(status, redaction, pool, missing)
        self._raise_if_stopped(pool)
        if missing and status != "completed":
            raise RunIncomplete(missing, run_id=self.metadata.run_id, report=report, is_stored=self._is_stored())
        return report

    def _restore_folder(self, folder: str | None) -> None:
        """Restore the working directory if a target or an evaluator changed it."""
        if folder is None or folder == _current_folder():
            return
        self.progress.warnings.append(
            "a target or an evaluator changed the current folder of the process (os.chdir): "
            "samples that ran at the same time may have seen the other folder"
        )
        with contextlib.suppress(OSError):
            os.chdir(folder)

    def _describe_missing(self, pool: WorkerPool | None) -> str:
        if pool is not None and pool.stop_reason == "decided" and not self.jobs.open:
            return ""
        try:
            stored = len(self.history.results(self.metadata.run_id, self.metadata))
            return self.jobs.describe_missing(stored)
        except Exception as error:
            # The dataset or the history failed; that error is already being raised.
            return f"the results could not be compared with the plan: {error}"

    def _redacted(self, writer: ResultWriter, redaction: Redaction | None) -> AbstractContextManager[ResultWriter]:
        warnings = self.progress.warnings
        notifying_writer = writer if self.on_result is None else NotifyingWriter(writer, self.on_result, warnings)
        names = [spec.name for spec in self.metadata.evaluators]
        return redacting_writer(notifying_writer, redaction, warnings=warnings, evaluators=names)

    async def _work(self, writer: ResultWriter) -> WorkerPool:
        threads, progress = CallThreads(), self.progress
        progress.start()
        # Reset afterwards: the context belongs to the caller.
        token = call_context.set(CallContext(self.spending, is_stopping=lambda: progress.stopping))
        warnings_token = sessions.warnings.set(progress.warnings)
        cut_off_token = sessions.cut_off_outputs.set(progress.truncated_outputs)
        try:
            async with resource_scope.ResourceScope(), self.open_runner(threads, writer) as runner:
                options, check = self.metadata.options, self.stop_check
                names = [spec.name for spec in self.metadata.evaluators]
                pool = WorkerPool(
                    options, self.jobs, runner, writer, progress, self.clock, stop_check=check, evaluators=names
                )
                for result in self.earlier_results:
                    if pool.stop_reason != "stop_run":
                        pool.check_stop(result)
                with handle_interrupts(pool.interrupt), exit_blocked(progress.warnings.append):
                    await pool.work()
                if pool.still_running:
                    progress.warnings.append(
                        f"calls that continued after they were cancelled: {pool.still_running}; a coroutine that "
                        "catches every exception cannot be stopped. Fix: let asyncio.CancelledError through"
                    )
        finally:
            call_context.reset(token)
            sessions.warnings.reset(warnings_token)
            sessions.cut_off_outputs.reset(cut_off_token)
            threads.close()
            if threads.abandoned:
                progress.warnings.append(
                    f"calls that timed out or were interrupted in a thread: {threads.abandoned}. Python cannot stop "
                    "a thread, so each continues until its call returns"
                )
        return pool

    def _finish(
        self, status: RunStatus, redaction: Redaction | None, pool: WorkerPool | None, missing: str
    ) -> EvalReport:
        warnings = [*self._list_warnings(), missing, self.jobs.describe_surplus()]
        run = msgspec.structs.replace(
            self.metadata,
            status=status,
            finished_at=self.clock.now(),
            duration_seconds=self.metadata.duration_seconds + self.progress.seconds,
            total=self.jobs.total,
            warnings=tuple(dict.fromkeys(filter(None, warnings))),
            spent=None if self.spending is None else self.spending.so_far,
            stopped_early=self._stopped_early(pool),
        )
        if self.source is not None:
            run = _keep_plan(run, self.source)
        report = finish(self.history, add_redaction_counts(run, redaction), self.metrics)
        self.progress.end(failed=status != "completed")
        return report

    def _list_warnings(self) -> Iterator[str]:
        """Yield the warnings so far; the count of truncated outputs includes earlier executions."""
        truncated_outputs = len(self.progress.truncated_outputs)
        for text in (*self.metadata.warnings, *self.progress.warnings):
            earlier_count = sessions.parse_cut_off_count(text)
            if earlier_count is None:
                yield text
            else:
                truncated_outputs += earlier_count
        if truncated_outputs:
            yield sessions.describe_cut_off(truncated_outputs)

    def _stopped_early(self, pool: WorkerPool | None) -> StoppedEarly | None:
        """Return the position and reason of an early stop; None if all jobs had already run."""
        if pool is None or pool.stop_reason != "decided" or not self.jobs.has_remaining_jobs():
            return None
        return StoppedEarly(pool.decision, self.progress.done, self.progress.total)

    def _is_stored(self) -> bool:
        """False with `history=False`: the results cannot be read after the run."""
        return bool(getattr(self.history, "is_reachable", True))

    def _raise_if_stopped(self, pool: WorkerPool) -> None:
        run_id = self.metadata.run_id
        if pool.stop_reason == "decided":
            # Errors of trials that were still running do not change the decision.
            return
        if pool.stop_reason == "interrupted":
            raise RunInterrupted(run_id, is_stored=self._is_stored())
        stored = f"the finished results are stored as run {run_id}"
        next_step = (
            f"then run the failed and the missing samples: --resume {run_id} --retry-errors; if the fix changes the "
            "target, start a new run, or add --allow-changes to mix the results of both versions"
        )
        if not self._is_stored():
            stored, next_step = "nothing was stored (history=False)", "then run it again"
        if pool.stop_error is not None:
            raise RunStopped(pool.stop_error.what, run_id=run_id, fix=f"{pool.stop_error.fix}; {stored}")
        if pool.failed_result is not None:
            what = describe_error(pool.failed_result)
            if pool.stop_reason == "max_errors":
                limit = self.metadata.options.max_errors
                what = f"stopped after {limit} {'error' if limit == 1 else 'errors'}; the last: {what}"
            raise RunStopped(what, run_id=run_id, fix=f"{stored}; fix the cause, {next_step}")


def _keep_plan(run: RunMetadata, source: RunMetadata) -> RunMetadata:
    """Return a rescored run with the plan of its source, so that the trials that never ran are still missing."""
    status = run.status
    if status == "completed" and source.status != "completed":
        status = "failed" if source.status == "failed" else "interrupted"
    total = run.total if source.total is None else max(source.total, run.total or 0)
    return msgspec.structs.replace(run, status=status, total=total, stopped_early=source.stopped_early)


def _current_folder() -> str | None:
    """Return the working directory of the process; None if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109 - as text, and quick
    except OSError:
        return None


class NotifyingWriter:
    """Passes each result to a callback after writing it; warns once if the callback fails."""

    def __init__(self, writer: ResultWriter, on_result: Callable[[EvalResult], object], warnings: list[str]) -> None:
        self._writer, self.cache_output, self.is_lagging = writer, writer.cache_output, writer.is_lagging
        self._on_result = on_result
        self._warnings: list[str] | None = warnings

    def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
        self._writer.add(position, result, verdict)
        self._notify(result)

    def add_batch(self, batch: Sequence[PositionedResult]) -> None:
        self._writer.add_batch(batch)
        for _, result, _ in batch:
            self._notify(result)

    def _notify(self, result: EvalResult) -> None:
        try:
            self._on_result(result)
        except Exception as error:
            if self._warnings is not None:
                self._warnings.append(f"a result could not be shown during the run: {error}")
            self._warnings = None


class _SignalHandler:
    """Handles a signal during a run; all concurrent runs of a loop receive it.

    Runs may end in any order, so an ended run's handler may lie below an active one. It then does nothing; the original
    handler is restored when the last run ends.
    """

    def __init__(self, notify: Callable[[], object], previous: Any) -> None:
        self._notify = notify
        self._previous = previous
        self._is_over = False

    def __call__(self, number: int, frame: Any) -> None:
        handler: Any = self
        was_handled = False
        while isinstance(handler, _SignalHandler):
            if not handler._is_over:
                handler._notify()
                was_handled = True
            handler = handler._previous
        if not was_handled and callable(handler):
            handler(number, frame)

    def end(self) -> Any:
        """Deactivate the handler; return the handler to restore."""
        self._is_over = True
        handler: Any = self
        while isinstance(handler, _SignalHandler) and handler._is_over:
            handler = handler._previous
        return handler


@contextlib.contextmanager
def handle_interrupts(interrupt: Callable[[], None]) -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM during a run, if this is the main thread.

    SIGTERM drops the running jobs, like a second Ctrl-C: its sender does not wait long. A
    program's own SIGTERM handler stays in place.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def drop() -> None:
        interrupt()
        interrupt()

    with contextlib.ExitStack() as handlers:
        handlers.enter_context(_handle_signal(signal.SIGINT, loop, interrupt))
        current_handler = signal.getsignal(signal.SIGTERM)
        if current_handler is signal.SIG_DFL or isinstance(current_handler, _SignalHandler):
            handlers.enter_context(_handle_signal(signal.SIGTERM, loop, drop))
        yield


@contextlib.contextmanager
def _handle_signal(
    number: signal.Signals, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]
) -> Iterator[None]:
    handler = _SignalHandler(lambda: loop.call_soon_threadsafe(callback), signal.getsignal(number))
    signal.signal(number, handler)
    try:
        yield
    finally:
        previous = handler.end()
        if signal.getsignal(number) is handler:
            signal.signal(number, previous)
