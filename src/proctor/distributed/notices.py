"""Notices from workers to a waiting run: what they run, and whether that is what the run needs."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from proctor.distributed.expected_results import describe_difference
from proctor.errors import ProctorError
from proctor.ports import Message
from proctor.records.mail import EvalRequest
from proctor.records.sample import Sample
from proctor.records.trial import Delivery, EvalResult, Trial
from proctor.version import VERSION

# A run is sent a second notice for requests that are this much newer: it may have been resumed.
AGAIN = timedelta(seconds=5)
# The notices of this many runs are remembered.
MOST_RUNS = 1_000
# How many workers a warning names.
SHOWN_WORKERS = 5


class WorkerNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker runs and what the request wanted it to run, with the versions around it."""

    runs: str
    wanted: str
    proctor: str = ""
    python: str = ""

    @property
    def fits(self) -> bool:
        """True if the worker runs what the request is for."""
        return self.runs == self.wanted


def notice_id(run_id: str) -> str:
    """The request id of notices: that of no request, so that no collector counts them."""
    return f"{run_id}-notice"


def notice_in(result: EvalResult) -> WorkerNotice | None:
    """The notice that a result carries, or None if it is a real result.

    >>> notice_in(EvalResult(Trial(Sample("1", "2 + 2"), "4"))) is None
    True
    """
    delivery = result.delivery
    if delivery is None or delivery.request_id != notice_id(delivery.run_id):
        return None
    try:
        return msgspec.convert(result.trial.output, WorkerNotice)
    except ValueError:
        return WorkerNotice("", "")


class NoticeSender:
    """Tells each run once what this worker runs, through the mailbox of the run's results."""

    def __init__(self, runs: str, worker: str) -> None:
        self._runs = runs
        self._worker = worker
        self._sent: dict[str, datetime] = {}

    def send(self, message: Message[Any], request: EvalRequest[Any, Any]) -> None:
        """Send a notice, unless the run has had one; a notice that cannot be sent is left out."""
        if not request.expects or message.reply_to is None:
            return
        before = self._sent.get(request.run_id)
        if before is not None and request.created_at <= before + AGAIN:
            return
        if len(self._sent) >= MOST_RUNS:
            self._sent.clear()
        self._sent[request.run_id] = request.created_at
        with contextlib.suppress(ProctorError):
            message.reply(self._notice(request))

    def _notice(self, request: EvalRequest[Any, Any]) -> EvalResult:
        notice = WorkerNotice(self._runs, request.expects, VERSION, platform.python_version())
        delivery = Delivery(request.run_id, notice_id(request.run_id), self._worker)
        sample: Sample[Any, Any] = Sample(delivery.request_id, None)
        return EvalResult(Trial(sample, msgspec.to_builtins(notice)), delivery=delivery)


class Roster:
    """The workers that a run has heard of."""

    def __init__(self) -> None:
        self.has_fitting = False
        self._misfits: dict[str, list[str]] = {}
        self._versions: dict[str, list[str]] = {}

    def hear(self, result: EvalResult) -> bool:
        """Take note of the worker that sent a result; True if it was a notice and no result."""
        notice = notice_in(result)
        if notice is None:
            self.has_fitting = True
            return False
        worker = result.delivery.worker if result.delivery is not None else ""
        if notice.fits:
            self.has_fitting = True
            _add(self._versions, _other_versions(notice, with_python=False), worker)
        else:
            difference = describe_difference(notice.wanted, notice.runs)
            around = _other_versions(notice, with_python=True)
            _add(self._misfits, f"{difference} ({around})" if around else difference, worker)
        return True

    @property
    def misfit(self) -> str:
        """How workers differ from what the run needs; empty if none does."""
        return "; ".join(f"{_names(names)}: {text}" for text, names in self._misfits.items())

    def sentences(self) -> Iterator[str]:
        """What the report should say about them."""
        for text, names in self._misfits.items():
            yield f"workers: {_names(names)} took no requests of this run, for {text}"
        for text, names in self._versions.items():
            yield f"workers: {_names(names)} took part with {text}"


def _other_versions(notice: WorkerNotice, *, with_python: bool) -> str:
    """The versions of Proctor and Python where they are not those of this process."""
    pairs = [("Proctor", notice.proctor, VERSION)]
    if with_python:
        pairs.append(("Python", notice.python, platform.python_version()))
    return ", ".join(
        f"{name} {theirs}, this run has {ours}" for name, theirs, ours in pairs if theirs != ours
    )


def _add(table: dict[str, list[str]], text: str, worker: str) -> None:
    if text and worker not in table.setdefault(text, []):
        table[text].append(worker)


def _names(workers: list[str]) -> str:
    more = len(workers) - SHOWN_WORKERS
    return ", ".join(workers[:SHOWN_WORKERS]) + (f" and {more} more" if more > 0 else "")
