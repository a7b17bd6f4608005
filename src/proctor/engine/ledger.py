"""Whether every planned trial ended as a result: the plan's jobs, counted out and counted in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain, islice

from proctor.engine.plan import IsDone, Job
from proctor.errors import DatasetError
from proctor.records.trial import DEFAULT_CONFIGURATION

NAMED_AT_MOST = 20
_NO_RESULT = "planned trials have no result"
_TOO_SHORT = "it gave fewer samples than its length said"


class Skipped:
    """Says which trials of a plan are done already, and counts them."""

    def __init__(self, is_done: IsDone) -> None:
        self._is_done = is_done
        self.count = 0

    def __call__(self, position: int, sample_id: str, configuration: str, epoch: int) -> bool:
        is_done = self._is_done(position, sample_id, configuration, epoch)
        self.count += is_done
        return is_done


class Ledger:
    """The jobs of a plan in turn; it knows which were handed out and have no result yet.

    `total` is how many trials the plan has, if that is known; `skipped` counts those that had a
    result before. A job that is handed out stays in `open` until its result takes it out.
    """

    def __init__(self, jobs: Iterator[Job], total: int | None, skipped: Skipped | None = None) -> None:
        self._jobs = jobs
        self._skipped = skipped
        self.total = total
        self.handed_out = 0
        self.is_exhausted = False
        self.open: dict[int, Job] = {}

    def __iter__(self) -> Iterator[Job]:
        # A generator, for one step of it is taken for every sample.
        open_jobs = self.open
        try:
            for job in self._jobs:
                self.handed_out += 1
                open_jobs[job[0]] = job
                yield job
        except asyncio.CancelledError as error:
            # Passed on, it would end the worker that reads and not the run.
            raise DatasetError("reading the dataset was cancelled from inside it") from error
        self.is_exhausted = True

    def has_rest(self) -> bool:
        """True if jobs are left that were not handed out."""
        first = None if self.is_exhausted else next(self._jobs, None)
        if first is None:
            self.is_exhausted = True
            return False
        # Put back: it has no result, and whoever names what is missing wants it.
        self._jobs = chain([first], self._jobs)
        return True

    @property
    def planned(self) -> int:
        """How many trials the plan turned out to have so far: those skipped and those begun."""
        return self.handed_out + (0 if self._skipped is None else self._skipped.count)

    @property
    def is_short(self) -> bool:
        """True if the dataset ended before it had given as many samples as it said."""
        return self.is_exhausted and self.total is not None and self.planned < self.total

    def missing(self, stored: int) -> str:
        """What the plan has and the history does not, in words; empty if they agree.

        `stored` is how many results the history holds. A dataset that gave more samples than it
        said has no result missing.
        """
        expected = self.planned if self.total is None else max(self.planned, self.total)
        count = max(len(self.open), expected - stored)
        if self.is_exhausted:
            count = max(count, len(self.open) + expected - self.planned)
        if count <= 0:
            return ""
        if self.is_short and not self.open:
            ended = f"the dataset ended after {self.planned} of the {expected} planned trials"
            return f"{ended}: {_TOO_SHORT}"
        names = self._names()
        listed = f": {names}" if names else ""
        return f"{count} of {expected} {_NO_RESULT}{listed}"

    def longer(self) -> str:
        """That the dataset gave more samples than it said, in words; empty if it did not.

        The plan then has as many trials as there were.
        """
        if self.total is None or self.planned <= self.total:
            return ""
        said, self.total = self.total, self.planned
        return (
            f"the dataset gave more samples than its length said: {self.planned} trials were run, "
            f"{said} were planned"
        )

    def _names(self) -> str:
        """The trials without a result, the open ones first, as far as there is room."""
        jobs = list(self.open.values())
        if not self.is_exhausted and len(jobs) <= NAMED_AT_MOST:
            jobs += islice(self._jobs, NAMED_AT_MOST + 1 - len(jobs))
        named = [_name(job) for job in jobs[:NAMED_AT_MOST]]
        return ", ".join([*named, "…"] if len(jobs) > NAMED_AT_MOST else named)


def says_missing(warning: str) -> bool:
    """True for a warning that trials have no result: a resumed run counts anew.

    >>> says_missing("2 of 8 planned trials have no result: s1, s2")
    True
    """
    return _NO_RESULT in warning or _TOO_SHORT in warning


def _name(job: Job) -> str:
    """A trial in words: its sample, and its configuration and epoch where these say something."""
    _, sample, configuration, epoch = job
    about = [] if configuration.name == DEFAULT_CONFIGURATION else [configuration.name]
    about += [f"epoch {epoch}"] if epoch else []
    return f"{sample.id} ({', '.join(about)})" if about else sample.id
