"""Every error that Proctor raises on purpose.

ProctorError                  what is wrong, where, and how to fix it
├── UsageError                the caller can fix it; the command line exits with 2
│   ├── DatasetError          a dataset cannot be read or has invalid content
│   ├── ConfigError           an eval file, an option or a definition is wrong
│   ├── TargetError           a target cannot be found, called or configured
│   ├── EvaluatorError        an evaluator or a metric cannot be found, built or attached
│   ├── ModelError            a model, an embedder or a prompt cannot be found or configured
│   ├── MissingExtra          an optional package is not installed
│   ├── InvalidRecord         a Score, Rubric or Session has an invalid value (also a ValueError)
│   ├── FieldMissing          a result has no such field (also a LookupError)
│   ├── RunNotFound           the history has no such run
│   └── ResumeRefused         the run to resume differs from the current evaluation
├── CallFailed                a command, an endpoint or a model failed; the trial becomes an error
│   ├── Unreadable            a model's answer has the wrong format, after all retries
│   └── LoopStopped           a main loop reached its limit of turns, budget or time
├── HistoryError              the history cannot be opened, read or written
├── MailboxError              a mailbox cannot be reached, or rejects a request
│   ├── MailboxClosed         the mailbox is closed
│   ├── MailboxGone           the mailbox was removed
│   ├── MailboxFull           the mailbox has reached its capacity
│   ├── MessageRefused        a message can never be sent
│   │   └── MessageTooLarge   a message is larger than the mailbox accepts
│   └── ReceiptExpired        the lease of a message has expired
├── StopRun                   the whole run must end, for example because its budget is spent
└── RunStopped                a run stopped early because of errors (on_error, max_errors)
    └── RunIncomplete         a run ended and some planned trials have no result

RunInterrupted (a KeyboardInterrupt)   Ctrl-C; finished results are stored, and the run can be resumed
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

# The number of problems and names that a message lists.
MAX_ITEMS = 20
# A prefix of at least 3 letters suggests up to 3 names that start with it.
MIN_PREFIX, MAX_COMPLETIONS = 3, 3
# A description that starts like this has its location as the subject.
PREDICATES = ("must ", "is missing", "is unknown", "is mapped ", "is given ", "is not ")
_FILE_EXTENSION = re.compile(r"\.(?:ya?ml|jsonl?|ndjson|csv|tsv|py|md|txt|parquet|toml|db)\Z", re.IGNORECASE)


def join_location(where: str, what: str) -> str:
    """Write where a problem is and what it is as one sentence: "limit must be …", "a.jsonl: the file is empty"."""
    if not where:
        return what
    if what.endswith(" not found"):
        return f"{what}: {where}"
    return f"{where} {what}" if what.startswith(PREDICATES) else f"{where}: {what}"


class Problem(NamedTuple):
    """One problem in a file, a sample or a definition: its location, a description, and how to fix it."""

    where: str
    what: str
    fix: str = ""

    def __str__(self) -> str:
        return join_location(self.where, self.what)


class ProctorError(Exception):
    """An error that Proctor can explain.

    `what` is one sentence, `where` a file, an option or a name, `fix` what to type; `problems`
    lists the problems if there are several.
    """

    def __init__(self, what: str, *, where: str = "", fix: str = "", problems: Sequence[Problem] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix
        self.problems = tuple(problems)

    def __str__(self) -> str:
        lines = [join_location(self.where, self.what)]
        lines += [f"  - {problem}" for problem in self.problems[:MAX_ITEMS]]
        hidden_count = len(self.problems) - MAX_ITEMS
        if hidden_count > 0:
            lines.append(f"  … and {hidden_count} more")
        if self.fix:
            lines.append(f"Fix: {self.fix}")
        return "\n".join(lines)


class UsageError(ProctorError):
    """An error that the caller can fix; the command line exits with 2."""


class DatasetError(UsageError):
    """A dataset cannot be read or has invalid content."""


class ConfigError(UsageError):
    """An eval file, an option or a definition is wrong."""


class TargetError(UsageError):
    """A target cannot be found, called or configured."""


class EvaluatorError(UsageError):
    """An evaluator or a metric cannot be found, built or attached."""


class ModelError(UsageError):
    """A model, an embedder or a prompt cannot be found or configured."""


class MissingExtra(UsageError):
    """An optional package is not installed."""


class InvalidRecord(UsageError, ValueError):
    """A record such as a `Score`, `Rubric` or `Session` has an invalid value."""


class FieldMissing(UsageError, LookupError):
    """A result has no such field: `where` is the path, `what` names the missing key."""


class RunNotFound(UsageError):
    """The history has no such run."""


class ResumeRefused(UsageError):
    """The run to resume differs from the current evaluation."""


class CallFailed(ProctorError):
    """A call of a command, an HTTP endpoint or a model failed.

    `retryable` is true if the same call may succeed later; `retry_after` is the time to wait in
    seconds; `usage` is the usage of a model before it failed, if known.
    """

    def __init__(self, what: str, *, retryable: bool = False, retry_after: float | None = None) -> None:
        super().__init__(what)
        self.retryable = retryable
        self.retry_after = retry_after
        self.usage: Any = None


class Unreadable(CallFailed):
    """A model's answer has the wrong format; `answer` is the last answer."""

    def __init__(self, what: str, *, answer: str = "", usage: Any = None) -> None:
        super().__init__(what)
        self.answer = answer
        self.usage = usage


class LoopStopped(CallFailed):
    """A main loop reached its `limit` ("turns", "budget" or "time") before it had an answer."""

    def __init__(self, what: str, *, limit: str, usage: Any = None) -> None:
        super().__init__(what)
        self.limit = limit
        self.usage = usage


class MailboxError(ProctorError):
    """A mailbox cannot be reached, or rejects a request."""


class MailboxClosed(MailboxError):
    """The mailbox is closed."""


class MailboxGone(MailboxError):
    """The mailbox was removed from its server."""


class MailboxFull(MailboxError):
    """The mailbox has reached its capacity, including messages in flight."""


class MessageRefused(MailboxError):
    """A message can never be sent."""


class MessageTooLarge(MessageRefused):
    """A message is larger than the mailbox accepts."""


class ReceiptExpired(MailboxError):
    """The lease of a message has expired, or the message was already acknowledged or returned."""


class StopRun(ProctorError):
    """Raised inside a trial to end the whole run; the trial is not stored as an error."""


class HistoryError(ProctorError):
    """The history cannot be opened, read or written."""


class RunStopped(ProctorError):
    """A run stopped early because of errors (`on_error`, `max_errors`)."""

    def __init__(self, what: str, *, run_id: str, fix: str = "") -> None:
        super().__init__(what, fix=fix)
        self.run_id = run_id


class RunIncomplete(RunStopped):
    """A run ended and some planned trials have no result; `report` has the other results."""

    def __init__(self, missing: str, *, run_id: str, report: Any, is_stored: bool = True) -> None:
        resume = f"resume the run: --resume {run_id} (resume={run_id!r})"
        fix = resume if is_stored else "start the run again; nothing was stored (history=False)"
        super().__init__(f"run {run_id} is incomplete: {missing}", run_id=run_id, fix=fix)
        self.report = report


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C during a run: finished results are stored under `run_id`, and the run can be resumed."""

    def __init__(self, run_id: str, *, is_stored: bool = True) -> None:
        next_step = f"resume with run id {run_id}"
        if not is_stored:
            next_step = "nothing was stored (history=False), so the run cannot be resumed"
        super().__init__(f"interrupted; {next_step}")
        self.run_id = run_id


def join_choices(choices: Iterable[str], word: str = "or") -> str:
    """Write alternatives as a list in a sentence.

    >>> join_choices(["'auto'", "'higher'", "'lower'"])
    "'auto', 'higher' or 'lower'"
    >>> join_choices(["pass_rate", "mean_score"], "and")
    'pass_rate and mean_score'
    """
    *first, last = choices
    return f"{', '.join(first)} {word} {last}" if first else last


def suggest_name(name: str, choices: Iterable[str]) -> str:
    """Suggest the most similar known name, or list the known names.

    >>> suggest_name("exact_macth", ["exact_match", "contains"])
    "did you mean 'exact_match'?"
    >>> suggest_name("zzz", ["exact_match", "contains"])
    'choose one of: contains, exact_match'
    >>> suggest_name("semantic", ["semantic_similarity", "schema_match"])
    "did you mean 'semantic_similarity'?"
    >>> suggest_name("nosuch.yaml", ["list.yaml"])
    'choose one of: list.yaml'
    """
    names = sorted(set(choices))
    completions = [candidate for candidate in names if len(name) >= MIN_PREFIX and candidate.startswith(name)]
    if 0 < len(completions) <= MAX_COMPLETIONS:
        return f"did you mean {' or '.join(map(repr, completions))}?"
    if similar := _find_similar(name, names):
        return f"did you mean {similar!r}?"
    if not names:
        return "there are none"
    more = f", … and {len(names) - MAX_ITEMS} more" if len(names) > MAX_ITEMS else ""
    return "choose one of: " + ", ".join(names[:MAX_ITEMS]) + more


def join_hints(*hints: str) -> str:
    """Join hints to one fix; a question needs no semicolon.

    >>> join_hints("did you mean 'a.db'?", "or leave it out", "see --help")
    "did you mean 'a.db'? or leave it out; see --help"
    """
    return "; ".join(hints).replace("?;", "?")


def list_names(name: str, choices: Iterable[str]) -> str:
    """List the known names, and suggest the most similar one.

    >>> list_names("chek", ["check", "judge"])
    "did you mean 'check'? Choose one of: check, judge"
    """
    names = list(dict.fromkeys(choices))
    hint = suggest_name(name, names)
    if not hint.startswith("did you mean"):
        return hint
    return f"{hint} Choose one of: {', '.join(names[:MAX_ITEMS])}{', …' if len(names) > MAX_ITEMS else ''}"


def _find_similar(name: str, names: list[str]) -> str | None:
    """Return the most similar name; file names must be similar without their extensions."""
    stems: dict[str, list[str]] = {}
    for candidate in names:
        stems.setdefault(_FILE_EXTENSION.sub("", candidate), []).append(candidate)
    for stem in difflib.get_close_matches(_FILE_EXTENSION.sub("", name), stems, n=1):
        return max(stems[stem], key=lambda each: difflib.SequenceMatcher(None, each, name).ratio())
    return None
