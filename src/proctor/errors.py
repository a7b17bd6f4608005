"""Every error Proctor raises on purpose.

ProctorError                  what happened, where, and how to mend it
├── UsageError                the caller can mend it; the command line exits with 2
│   ├── DatasetError          a dataset cannot be read or does not hold what it should
│   ├── ConfigError           an eval file, option or definition is wrong
│   ├── TargetError           a target cannot be found, called or configured
│   ├── EvaluatorError        an evaluator or metric cannot be found, built or attached
│   ├── ModelError            a model, embedder or prompt cannot be found, reached or configured
│   ├── MissingExtra          an optional package is not installed
│   ├── FieldMissing          a result has no such field (a LookupError too)
│   ├── RunNotFound           no such run in the history
│   └── ResumeRefused         the run to be resumed is not the one described now
├── CallFailed                a command, endpoint or model failed; becomes an error of its trial
│   ├── Unreadable            a model's answer is not what was asked for, also when asked again
│   └── LoopStopped           a main loop had used up its turns, budget or time before it answered
├── HistoryError              the history cannot be opened, read or written
├── MailboxError              a mailbox cannot be reached or refuses
│   ├── MailboxClosed         it was closed
│   ├── MailboxGone           it is not there any more
│   ├── MailboxFull           it holds as many messages as it may
│   ├── MessageRefused        a body cannot be sent, now or later
│   │   └── MessageTooLarge   it is larger than the mailbox takes
│   └── ReceiptExpired        the message is no longer the caller's: its lease is over
├── StopRun                   no further call may be made (a budget is spent); ends the whole run
└── RunStopped                a run ended early because it was told to (on_error, max_errors)
    └── RunIncomplete         a run ended and some planned trials have no result

RunInterrupted (a KeyboardInterrupt)   Ctrl-C; everything finished is kept and can be resumed
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

SHOWN_AT_MOST = 20
# A name that is only begun, at least so many letters of it, with so few ways to go on.
SHORTEST_START, FEW = 3, 3


class Problem(NamedTuple):
    """One thing that is wrong in a file or definition: where it is and what should be there."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" if self.where else self.what


class ProctorError(Exception):
    """Something went wrong that Proctor can explain.

    `what` is one sentence, `where` the file, option or name it is about, `fix` what to do;
    `problems` lists the single faults when there are several.
    """

    def __init__(
        self, what: str, *, where: str = "", fix: str = "", problems: Sequence[Problem] = ()
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix
        self.problems = tuple(problems)

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        lines += [f"  - {problem}" for problem in self.problems[:SHOWN_AT_MOST]]
        hidden = len(self.problems) - SHOWN_AT_MOST
        if hidden > 0:
            lines.append(f"  … and {hidden} more")
        if self.fix:
            lines.append(f"Fix: {self.fix}")
        return "\n".join(lines)


class UsageError(ProctorError):
    """The caller asked for something that cannot be done as asked."""


class DatasetError(UsageError):
    """A dataset cannot be read or does not hold what it should."""


class ConfigError(UsageError):
    """An eval file, option or definition is wrong."""


class TargetError(UsageError):
    """A target cannot be found, called or configured."""


class EvaluatorError(UsageError):
    """An evaluator or metric cannot be found, built or attached."""


class ModelError(UsageError):
    """A model, an embedder or a prompt cannot be found or configured."""


class MissingExtra(UsageError):
    """An optional package is needed and not installed."""


class FieldMissing(UsageError, LookupError):
    """A result has no such field: `where` is the path, `what` the key that is not there."""


class RunNotFound(UsageError):
    """The history holds no such run."""


class ResumeRefused(UsageError):
    """The run to be resumed is not the one that is described now."""


class CallFailed(ProctorError):
    """A call out of the process (a command, an HTTP endpoint, a model) failed.

    `retryable` says whether the same call may succeed later; `retry_after` how long to wait.
    """

    def __init__(self, what: str, *, retryable: bool = False, retry_after: float | None = None) -> None:
        super().__init__(what)
        self.retryable = retryable
        self.retry_after = retry_after
        # What a model used before it failed, where that is known.
        self.usage: Any = None


class Unreadable(CallFailed):
    """A model answered, but not what it was asked for; `answer` is what it said last."""

    def __init__(self, what: str, *, answer: str = "", usage: Any = None) -> None:
        super().__init__(what)
        self.answer = answer
        self.usage = usage


class LoopStopped(CallFailed):
    """A main loop had used up its "turns", "budget" or "time" (`limit`) before it had an answer."""

    def __init__(self, what: str, *, limit: str, usage: Any = None) -> None:
        super().__init__(what)
        self.limit = limit
        self.usage = usage


class MailboxError(ProctorError):
    """A mailbox cannot be reached, or refuses what it is asked."""


class MailboxClosed(MailboxError):
    """The mailbox was closed."""


class MailboxGone(MailboxError):
    """The mailbox was removed from its server: nobody waits for what is sent to it."""


class MailboxFull(MailboxError):
    """The mailbox holds as many messages as it may, those in flight counted."""


class MessageRefused(MailboxError):
    """A body cannot be sent, now or later."""


class MessageTooLarge(MessageRefused):
    """A body is larger than the mailbox takes."""


class ReceiptExpired(MailboxError):
    """The message is no longer the caller's: its lease is over, or it was settled before."""


class StopRun(ProctorError):
    """Raised inside a trial when the whole run must end: the trial is not kept as an error."""


class HistoryError(ProctorError):
    """The history cannot be opened, read or written."""


class RunStopped(ProctorError):
    """A run ended before its end because it was told to stop on errors."""

    def __init__(self, what: str, *, run_id: str, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.run_id = run_id


class RunIncomplete(RunStopped):
    """A run ended and some planned trials have no result; `report` holds those that have one."""

    def __init__(self, missing: str, *, run_id: str, report: Any, is_stored: bool = True) -> None:
        resume = f"resume it: --resume {run_id} (resume={run_id!r})"
        super().__init__(
            f"run {run_id} is incomplete: {missing}",
            run_id=run_id,
            fix=resume if is_stored else "run it again; nothing was stored (history=False)",
        )
        self.report = report


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run: what was finished is kept under `run_id` and can be resumed."""

    def __init__(self, run_id: str, *, is_stored: bool = True) -> None:
        how_to_resume = f"resume with run id {run_id}"
        lost = "nothing was stored (history=False), so it cannot be resumed"
        super().__init__(f"interrupted; {how_to_resume if is_stored else lost}")
        self.run_id = run_id


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known name was probably meant, or list them.

    >>> nearest("exact_macth", ["exact_match", "contains"])
    "did you mean 'exact_match'?"
    >>> nearest("zzz", ["exact_match", "contains"])
    'known: contains, exact_match'
    >>> nearest("semantic", ["semantic_similarity", "schema_match"])
    "did you mean 'semantic_similarity'?"
    """
    names = sorted(set(known))
    beginnings = [one for one in names if len(name) >= SHORTEST_START and one.startswith(name)]
    if 0 < len(beginnings) <= FEW:
        return f"did you mean {' or '.join(map(repr, beginnings))}?"
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if not names:
        return "none are known"
    more = f", … and {len(names) - SHOWN_AT_MOST} more" if len(names) > SHOWN_AT_MOST else ""
    return "known: " + ", ".join(names[:SHOWN_AT_MOST]) + more
