"""A field with its evaluators while it is being defined, and what can be wrong with it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from proctor.errors import ConfigError, Problem, UsageError, nearest
from proctor.evaluators.attached import Attached
from proctor.evaluators.fields import RULES, Combination
from proctor.evaluators.fields import field as evaluators_of
from proctor.records.progress import EventKind, ProgressStatus
from proctor.records.score import Skipped
from proctor.wiring import evaluate as api

# Where the definition says what `evaluate` has no parameter for.
_SAID_ELSEWHERE = {
    "history": ".history(…)",
    "tags": ".history(tags={…})",
    "name": 'define("…")',
    "on_progress": ".on_progress(…)",
    "baseline": ".baseline(…)",
    "fields": '.select("usage.total_tokens", as_="tokens")',
    "evaluators": '.evaluate_field("output", …)',
}

OWN_FIELDS = ("output", "input", "expected", "usage", "latency_ms", "configuration")


@dataclass
class Block:
    """A field with its evaluators, as far as it is defined."""

    path: str
    evaluators: list[Attached] = field(default_factory=list)
    combine: Combination | None = None
    skipped: Skipped = "skip"

    def combine_with(self, how: Combination, skipped: Skipped = "skip") -> None:
        """Say how the evaluators combine, once."""
        if self.combine not in (None, how) or (self.combine and self.skipped != skipped):
            raise ConfigError(
                f"the field is combined by {_shown(self.combine)} already, and now by {_shown(how)}",
                where=self.path,
                fix="keep one of the two combine_with calls",
            )
        # Made with an evaluator that stands for the real ones, to see whether it can be.
        evaluators_of(self.path, [len], how, skipped=skipped)
        self.combine, self.skipped = how, skipped

    def evaluator(self, name: str) -> Attached:
        """The field's evaluators as one, known by the field's name."""
        return evaluators_of(self.path, self.evaluators, self.combine or "and", name, self.skipped)


def no_field(said: str) -> ConfigError:
    """Something that belongs to a field was said before any field."""
    return ConfigError(f"{said} belongs to no field", fix='say which first: .evaluate_field("output")')


def check_alias(name: Any, path: str) -> None:
    """Refuse what cannot be the name of a field, and a name that hides another one."""
    if name in OWN_FIELDS and name != path:
        raise ConfigError(
            f"{name!r} is a field of every result, and cannot be the name of {path!r}",
            fix='choose another name: as_="…"',
        )
    if not isinstance(name, str) or not name.strip() or "." in name or name != name.strip():
        raise ConfigError(f"{name!r} cannot be the name of a field", fix="a name is a word without dots")


def check_conduct(how: Mapping[str, Any]) -> None:
    """Refuse what says nothing of how a run is to go."""
    known = api.Conducted.__annotations__
    for name in how:
        if name not in known:
            place = _SAID_ELSEWHERE.get(name)
            fix = f"write it in the definition: {place}" if place else nearest(name, known)
            raise ConfigError(f"evaluate has no parameter {name!r}", fix=fix)


def check_evaluator(evaluator: Any, configure: Any) -> None:
    """Refuse a list of evaluators, and parameters that are not given by name."""
    if isinstance(evaluator, list | tuple):
        raise ConfigError(
            "a list of evaluators was given where one is expected",
            fix='pass them one by one: .evaluate_field("output", first, second)',
        )
    if configure is not None and not callable(configure):
        name = name_in_words(evaluator)
        raise ConfigError(
            f"the second argument of evaluate_with({name}, …) is a function, got {configure!r}",
            fix=f"pass parameters by name: evaluate_with({name}, parameter=value)",
        )


def check_listener(callback: Any, kinds: Collection[str], statuses: Collection[str]) -> None:
    """Refuse what cannot be told of progress, and filters that let nothing through."""
    if not callable(callback) or inspect.iscoroutinefunction(callback):
        is_async = inspect.iscoroutinefunction(callback)
        raise ConfigError(
            f"a progress callback must be a plain function, got {name_in_words(callback)}",
            where="on_progress",
            fix="write it with def, not async def" if is_async else "pass a function of one event",
        )
    for name, names in (("kinds", kinds), ("statuses", statuses)):
        if isinstance(names, str):
            raise ConfigError(
                f"{name} is a list of names, got the text {names!r}",
                where="on_progress",
                fix=f"write {name}=[{names!r}]",
            )
    asked = [(one, get_args(EventKind)) for one in kinds]
    asked += [(one, get_args(ProgressStatus)) for one in statuses]
    problems = [
        Problem("on_progress", f"there are no events {one!r}; {nearest(one, known)}")
        for one, known in asked
        if one not in known
    ]
    if problems:
        raise ConfigError("the callback waits for events that there are not", problems=problems)


def are_a_series(one: str, other: str) -> bool:
    """True of names that differ only by how they end, as output_1 and output_2, or score_a and
    score_b do: such are meant as they are.

    >>> are_a_series("output_1", "output_2"), are_a_series("tokns", "tokens")
    (True, False)
    """
    stems = {re.sub(r"(?:[0-9]+|[_-][A-Za-z]|s)$", "", name) for name in (one, other)}
    return len(stems) == 1


def all_of_them(faults: list[UsageError], name: str | None) -> UsageError:
    """All faults of a definition as one error."""
    if len(faults) == 1:
        return faults[0]
    return ConfigError(
        f"the definition has {len(faults)} faults",
        where=name or "",
        problems=[Problem("", str(fault).replace("\n", "\n    ")) for fault in faults],
    )


def name_in_words(thing: Any) -> str:
    """An evaluator as a person wrote it."""
    return repr(thing) if isinstance(thing, str) else getattr(thing, "__name__", repr(thing))


def _shown(how: Any) -> str:
    return repr(how) if how in RULES else name_in_words(how)
