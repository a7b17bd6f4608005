"""Notices from workers to a run: which code they run, and which code the run expects."""

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

# A run gets another notice for requests that are this much newer, because it may have been resumed.
REPEAT_AFTER = timedelta(seconds=5)
# The number of runs whose notices are remembered.
MAX_RUNS = 1_000
# The number of workers that a warning lists.
MAX_NAMED_WORKERS = 5


class WorkerNotice(msgspec.Struct, frozen=True, omit_defaults=True):
    """The code that a worker runs, the code that the request expects, and the worker's versions."""

    runs: str
    wanted: str
    proctor: str = ""
    python: str = ""

    @property
    def is_match(self) -> bool:
        return self.runs == self.wanted


def notice_id(run_id: str) -> str:
    """Return the request id of notices; no request has this id, so no collector counts them."""
    return f"{run_id}-notice"


def read_notice(result: EvalResult) -> WorkerNotice | None:
    """Return the notice in a result, or None if it is a real result."""
    delivery = result.delivery
    if delivery is None or delivery.request_id != notice_id(delivery.run_id):
        return None
    try:
        return msgspec.convert(result.trial.output, WorkerNotice)
    except ValueError:
        return WorkerNotice("", "")


class NoticeSender:
    """Sends each run one notice, through the mailbox of its results."""

    def __init__(self, runs: str, worker: str) -> None:
        self._runs = runs
        self._worker = worker
        self._sent_times: dict[str, datetime] = {}

    def send(self, message: Message[Any], request: EvalRequest[Any, Any]) -> None:
        """Send a notice, unless the run already has one; errors are ignored."""
        if not request.expects or message.reply_to is None:
            return
        previous = self._sent_times.get(request.run_id)
        if previous is not None and request.created_at <= previous + REPEAT_AFTER:
            return
        if len(self._sent_times) >= MAX_RUNS:
            self._sent_times.clear()
        self._sent_times[request.run_id] = request.created_at
        with contextlib.suppress(ProctorError):
            message.reply(self._create_notice(request))

    def _create_notice(self, request: EvalRequest[Any, Any]) -> EvalResult:
        notice = WorkerNotice(self._runs, request.expects, VERSION, platform.python_version())
        delivery = Delivery(request.run_id, notice_id(request.run_id), self._worker)
        sample: Sample[Any, Any] = Sample(delivery.request_id, None)
        return EvalResult(Trial(sample, msgspec.to_builtins(notice)), delivery=delivery)


class WorkerRegistry:
    """The workers that have answered a run."""

    def __init__(self) -> None:
        self.has_match = False
        self._mismatches: dict[str, list[str]] = {}
        self._versions: dict[str, list[str]] = {}

    def record(self, result: EvalResult) -> bool:
        """Record the worker that sent a result; return True if it is a notice."""
        notice = read_notice(result)
        if notice is None:
            self.has_match = True
            return False
        worker = result.delivery.worker if result.delivery is not None else ""
        if notice.is_match:
            self.has_match = True
            _add_worker(self._versions, _other_versions(notice, with_python=False), worker)
        else:
            difference = describe_difference(notice.wanted, notice.runs)
            versions = _other_versions(notice, with_python=True)
            _add_worker(self._mismatches, f"{difference} ({versions})" if versions else difference, worker)
        return True

    @property
    def mismatches(self) -> str:
        """Describe how the code of workers differs from the code of the run; "" if it does not."""
        return "; ".join(f"{_join_names(names)}: {text}" for text, names in self._mismatches.items())

    def warnings(self) -> Iterator[str]:
        """Describe mismatched code and versions for the report."""
        for text, names in self._mismatches.items():
            yield f"workers: {_join_names(names)} could not run requests of this run: {text}"
        for text, names in self._versions.items():
            yield f"workers: {_join_names(names)} used another version: {text}"


def _other_versions(notice: WorkerNotice, *, with_python: bool) -> str:
    """List the versions of Proctor and Python that differ from this process."""
    pairs = [("Proctor", notice.proctor, VERSION)]
    if with_python:
        pairs.append(("Python", notice.python, platform.python_version()))
    return ", ".join(
        f"{name} {worker_version}, this run has {run_version}"
        for name, worker_version, run_version in pairs
        if worker_version != run_version
    )


def _add_worker(table: dict[str, list[str]], text: str, worker: str) -> None:
    if text and worker not in table.setdefault(text, []):
        table[text].append(worker)


def _join_names(workers: list[str]) -> str:
    more = len(workers) - MAX_NAMED_WORKERS
    return ", ".join(workers[:MAX_NAMED_WORKERS]) + (f" and {more} more" if more > 0 else "")
