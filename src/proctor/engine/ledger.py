"""Track the jobs of a plan, so that every planned trial ends with a result."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain, islice

from proctor.engine.plan import IsDone, Job
from proctor.errors import DatasetError
from proctor.records.trial import DEFAULT_CONFIGURATION

MAX_NAMES = 20
NO_SAMPLES = "the dataset has no samples"
_NO_RESULT = "planned trials have no result"
_TOO_SHORT = "it gave fewer samples than its length said"


class DoneCounter:
    """Checks which trials of a plan are already done, and counts them."""

    def __init__(self, is_done: IsDone) -> None:
        self._is_done = is_done
        self.count = 0

    def __call__(self, position: int, sample_id: str, configuration: str, epoch: int) -> bool:
        is_done = self._is_done(position, sample_id, configuration, epoch)
        self.count += is_done
        return is_done


class Ledger:
    """Iterates over the jobs of a plan; `open` holds the jobs without a result.

    `total` is the number of planned trials, if known; `done` counts the trials with an earlier result.
    """

    def __init__(self, jobs: Iterator[Job], total: int | None, done: DoneCounter | None = None) -> None:
        self._jobs = jobs
        self._done = done
        self.total = total
        self.handed_out = 0
        self.is_exhausted = False
        self.open: dict[int, Job] = {}

    def __iter__(self) -> Iterator[Job]:
        # A generator, because one step runs for every trial.
        open_jobs = self.open
        try:
            for job in self._jobs:
                self.handed_out += 1
                open_jobs[job[0]] = job
                yield job
        except asyncio.CancelledError as error:
            # A CancelledError would end only the worker that reads, not the run.
            fix = "do not raise asyncio.CancelledError in the dataset"
            raise DatasetError("the code of the dataset cancelled reading it", fix=fix) from error
        self.is_exhausted = True
        if self.total is None and not self.planned:
            # A dataset of known length was checked before the run.
            raise DatasetError(NO_SAMPLES, fix="check the iterator: it may have been read before")

    def has_remaining_jobs(self) -> bool:
        """True if some jobs were not handed out."""
        first = None if self.is_exhausted else next(self._jobs, None)
        if first is None:
            self.is_exhausted = True
            return False
        # The job has no result yet, so it must still be listed as missing.
        self._jobs = chain([first], self._jobs)
        return True

    @property
    def planned(self) -> int:
        """The number of trials of the plan so far: already done or started."""
        return self.handed_out + (0 if self._done is None else self._done.count)

    @property
    def is_short(self) -> bool:
        """True if the dataset had fewer samples than its declared length."""
        return self.is_exhausted and self.total is not None and self.planned < self.total

    def describe_missing(self, stored: int) -> str:
        """Describe the planned trials that the history lacks; empty if there are none.

        `stored` is the number of stored results. A dataset with more samples than its declared length lacks none.
        """
        expected = self.planned if self.total is None else max(self.planned, self.total)
        count = max(len(self.open), expected - stored)
        if self.is_exhausted:
            count = max(count, len(self.open) + expected - self.planned)
        if count <= 0:
            return ""
        if self.is_short and not self.open:
            return f"the dataset ended after {self.planned} of the {expected} planned trials: {_TOO_SHORT}"
        names = self._list_names()
        return f"{count} of {expected} {_NO_RESULT}" + (f": {names}" if names else "")

    def describe_surplus(self) -> str:
        """Describe samples beyond the declared length of the dataset; empty if there are none.

        Sets `total` to the actual number of trials.
        """
        if self.total is None or self.planned <= self.total:
            return ""
        declared_total, self.total = self.total, self.planned
        return (
            f"the dataset gave more samples than its length said: {self.planned} trials were run, "
            f"{declared_total} were planned"
        )

    def _list_names(self) -> str:
        """List the trials without a result, open trials first, up to the limit."""
        jobs = list(self.open.values())
        if not self.is_exhausted and len(jobs) <= MAX_NAMES:
            jobs += islice(self._jobs, MAX_NAMES + 1 - len(jobs))
        names = [
            trial_label(sample.id, configuration.name, epoch) for _, sample, configuration, epoch in jobs[:MAX_NAMES]
        ]
        return ", ".join([*names, "…"] if len(jobs) > MAX_NAMES else names)


def is_missing_warning(warning: str) -> bool:
    """True for a warning about trials without a result; a resumed run counts them again.

    >>> is_missing_warning("2 of 8 planned trials have no result: s1, s2")
    True
    """
    return _NO_RESULT in warning or _TOO_SHORT in warning


def trial_label(sample_id: str, configuration: str, epoch: int) -> str:
    """Name a trial: its sample, and configuration and epoch where they are not the default.

    >>> trial_label("s1", "default", 0), trial_label("s1", "gpt", 2)
    ('s1', 's1 (gpt, epoch 2)')
    """
    details = [] if configuration == DEFAULT_CONFIGURATION else [configuration]
    if epoch:
        details.append(f"epoch {epoch}")
    return f"{sample_id} ({', '.join(details)})" if details else sample_id
