"""A run: jobs stream through a crew of workers, and every result is kept at once."""

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

from proctor.core import lifetimes
from proctor.core.clock import Clock
from proctor.core.process_exit import exit_blocked
from proctor.core.redaction.redact import Redaction
from proctor.core.threads import Threads
from proctor.engine.crew import Crew, Hear, failure_of
from proctor.engine.finish import finish
from proctor.engine.ledger import Ledger
from proctor.engine.progress import Progress
from proctor.engine.redacting import guarded, redaction_for, with_counts
from proctor.engine.trial import Runner
from proctor.errors import RunIncomplete, RunInterrupted, RunStopped
from proctor.models.asking import Conditions, conditions
from proctor.models.spending import Spending
from proctor.ports import History, Metric, ResultWriter, RunView
from proctor.records.report import EvalReport
from proctor.records.run import RunMetadata, RunStatus, StoppedEarly
from proctor.records.trial import EvalResult, Verdict
from proctor.sessions import current as sessions

Watch = Callable[[RunView], AbstractContextManager[object]]
OpenRunner = Callable[[Threads, ResultWriter], AbstractAsyncContextManager[Runner]]


@dataclass(frozen=True)
class Sitting:
    """One sitting of a run: a new run, or what is left of an earlier one.

    `open_runner` gives what does the jobs, and frees what it held when they are done. `decide`
    hears every result, those of earlier sittings (`known`) first; `heard` is given those of this
    sitting as they are stored, without what must not be.
    """

    metadata: RunMetadata
    history: History
    clock: Clock
    jobs: Ledger
    progress: Progress
    open_runner: OpenRunner
    metrics: Sequence[Metric] = ()
    watch: Watch | None = None
    is_new: bool = True
    spending: Spending | None = None
    decide: Hear | None = None
    known: Iterable[EvalResult] = ()
    heard: Callable[[EvalResult], object] | None = None

    async def run(self) -> EvalReport:
        """Run all jobs, then finish: metrics are computed and the run is closed.

        However it ends, what was finished is kept and the run says how it stands.
        """
        (self.history.begin if self.is_new else self.history.update)(self.metadata)
        status: RunStatus = "failed"
        crew: Crew | None = None
        folder = _current_folder()
        redaction = redaction_for(self.metadata.options)
        try:
            watched = self.watch(self.progress) if self.watch else contextlib.nullcontext()
            opened = self.history.writer(self.metadata.run_id)
            with watched, opened as writer, self._guarded(writer, redaction) as kept:
                crew = await self._work(kept)
            if crew.stopped in ("", "settled", "interrupted"):
                status = "interrupted" if crew.stopped == "interrupted" else "completed"
        except asyncio.CancelledError:
            status = "interrupted"
            raise
        finally:
            self._return_to(folder)
            missing = self._missing(crew)
            if missing and status == "completed":
                status = "interrupted"
            report = self._finish(status, redaction, crew, missing)
        self._raise_if_stopped(crew)
        if missing and status != "completed":
            raise RunIncomplete(
                missing, run_id=self.metadata.run_id, report=report, is_stored=self._is_stored()
            )
        return report

    def _return_to(self, folder: str | None) -> None:
        """Go back to the current folder of before, if a target or an evaluator has left it."""
        if folder is None or folder == _current_folder():
            return
        self.progress.warnings.append(
            "a target or an evaluator changed the current folder of the process (os.chdir): "
            "samples that ran at the same time may have seen the other folder"
        )
        with contextlib.suppress(OSError):
            os.chdir(folder)

    def _missing(self, crew: Crew | None) -> str:
        """Compare the results with the plan: what has none, in words; empty if they agree."""
        if crew is not None and crew.stopped == "settled" and not self.jobs.open:
            return ""
        try:
            stored = len(self.history.results(self.metadata.run_id, self.metadata))
            return self.jobs.missing(stored)
        except Exception as error:
            # The dataset or the history failed: that error is already under way.
            return f"the results could not be compared with the plan: {error}"

    def _guarded(
        self, writer: ResultWriter, redaction: Redaction | None
    ) -> contextlib.AbstractContextManager[ResultWriter]:
        warnings = self.progress.warnings
        told = writer if self.heard is None else Overheard(writer, self.heard, warnings)
        return guarded(told, redaction, warnings=warnings)

    async def _work(self, writer: ResultWriter) -> Crew:
        threads = Threads()
        self.progress.start()
        # Set for what this task starts, and taken back: the caller's context is his own.
        told = conditions.set(Conditions(self.spending, is_stopping=lambda: self.progress.stopping))
        warned = sessions.warnings.set(self.progress.warnings)
        counted = sessions.cut_off.set(self.progress.cut_off)
        try:
            async with lifetimes.in_use(), self.open_runner(threads, writer) as runner:
                options = self.metadata.options
                crew = Crew(options, self.jobs, runner, writer, self.progress, self.clock, decide=self.decide)
                for result in self.known:
                    if crew.stopped != "told":
                        crew.hear(result)
                with on_interrupt(crew.interrupt), exit_blocked(self.progress.warnings.append):
                    await crew.work()
        finally:
            conditions.reset(told)
            sessions.warnings.reset(warned)
            sessions.cut_off.reset(counted)
            threads.close()
            if threads.abandoned:
                self.progress.warnings.append(
                    f"calls that ran out of time in a thread: {threads.abandoned}; Python cannot "
                    "stop a thread, each ends when its call returns"
                )
        return crew

    def _finish(
        self, status: RunStatus, redaction: Redaction | None, crew: Crew | None, missing: str
    ) -> EvalReport:
        told = [*self._warnings(), *([missing] if missing else [])]
        longer = self.jobs.longer()
        run = msgspec.structs.replace(
            self.metadata,
            status=status,
            finished_at=self.clock.now(),
            duration_seconds=self.metadata.duration_seconds + self.progress.seconds,
            total=self.jobs.total,
            warnings=tuple(dict.fromkeys([*told, *([longer] if longer else [])])),
            spent=None if self.spending is None else self.spending.so_far,
            stopped_early=self._stopped_early(crew),
        )
        report = finish(self.history, with_counts(run, redaction), self.metrics)
        self.progress.end(failed=status != "completed")
        return report

    def _warnings(self) -> Iterator[str]:
        """The warnings of the run so far; outputs that were cut off before it was resumed count."""
        number = len(self.progress.cut_off)
        for text in (*self.metadata.warnings, *self.progress.warnings):
            earlier = sessions.count_cut_off(text)
            if earlier is None:
                yield text
            else:
                number += earlier
        if number:
            yield sessions.describe_cut_off(number)

    def _stopped_early(self, crew: Crew | None) -> StoppedEarly | None:
        """Where and why a run ended that was settled, unless nothing was left to run."""
        if crew is None or crew.stopped != "settled" or not self.jobs.has_rest():
            return None
        return StoppedEarly(crew.settled, self.progress.done, self.progress.total)

    def _is_stored(self) -> bool:
        """False with `history=False`: nobody can reach the results after the run."""
        return bool(getattr(self.history, "is_reachable", True))

    def _raise_if_stopped(self, crew: Crew) -> None:
        run_id = self.metadata.run_id
        if crew.stopped == "settled":
            # Whatever became of what was under way then, nothing waits for it.
            return
        if crew.stopped == "interrupted":
            raise RunInterrupted(run_id, is_stored=self._is_stored())
        kept, again = f"what was finished is kept as run {run_id}", "resume it"
        if not self._is_stored():
            kept, again = "nothing was stored (history=False)", "run it again"
        if crew.told is not None:
            raise RunStopped(crew.told.what, run_id=run_id, fix=f"{crew.told.fix}; {kept}")
        if crew.cause is not None:
            what = failure_of(crew.cause)
            if crew.stopped == "max_errors":
                what = f"stopped after {self.metadata.options.max_errors} errors; the last: {what}"
            raise RunStopped(what, run_id=run_id, fix=f"{kept}; mend the cause and {again}")


def _current_folder() -> str | None:
    """The current folder of the process; None if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109 - as text, and quick
    except OSError:
        return None


class Overheard:
    """A writer whose results somebody else is given too; if that fails, the run says so once."""

    def __init__(
        self, writer: ResultWriter, heard: Callable[[EvalResult], object], warnings: list[str]
    ) -> None:
        self._add, self.keep, self.behind = writer.add, writer.keep, writer.behind
        self._heard = heard
        self._warnings: list[str] | None = warnings

    def add(self, position: int, result: EvalResult, verdict: Verdict | None = None) -> None:
        """Hand on a result, then tell of it."""
        self._add(position, result, verdict)
        try:
            self._heard(result)
        except Exception as error:
            if self._warnings is not None:
                self._warnings.append(f"a result could not be told at once: {error}")
            self._warnings = None


class _Interrupts:
    """What a signal does while a run lasts. Runs side by side in one loop are all told.

    Runs need not end in the order in which they began, so one that is over may lie under one that
    is not. It says nothing then: only when all are over does what was there before them hold.
    """

    def __init__(self, tell: Callable[[], object], before: Any) -> None:
        self._tell = tell
        self._before = before
        self._over = False

    def __call__(self, number: int, frame: Any) -> None:
        under: Any = self
        told = False
        while isinstance(under, _Interrupts):
            if not under._over:
                under._tell()
                told = True
            under = under._before
        if not told and callable(under):
            under(number, frame)

    def end(self) -> Any:
        """The run is over: what is to hold if nobody has come in between."""
        self._over = True
        under: Any = self
        while isinstance(under, _Interrupts) and under._over:
            under = under._before
        return under


@contextlib.contextmanager
def on_interrupt(handle: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM be handled by the run while it lasts, where this thread may decide it.

    SIGTERM drops what is being run, as a second Ctrl-C does: whoever sends it does not wait long.
    A program that handles SIGTERM itself goes on doing so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()

    def drop() -> None:
        handle()
        handle()

    with contextlib.ExitStack() as handlers:
        handlers.enter_context(_handled(signal.SIGINT, loop, handle))
        at_term = signal.getsignal(signal.SIGTERM)
        if at_term is signal.SIG_DFL or isinstance(at_term, _Interrupts):
            handlers.enter_context(_handled(signal.SIGTERM, loop, drop))
        yield


@contextlib.contextmanager
def _handled(
    number: signal.Signals, loop: asyncio.AbstractEventLoop, handle: Callable[[], None]
) -> Iterator[None]:
    ours = _Interrupts(lambda: loop.call_soon_threadsafe(handle), signal.getsignal(number))
    signal.signal(number, ours)
    try:
        yield
    finally:
        before = ours.end()
        if signal.getsignal(number) is ours:
            signal.signal(number, before)
