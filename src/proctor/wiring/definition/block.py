"""A field with its evaluators while it is being defined, and checks of a definition's arguments."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from proctor.core.aliases import common_name
from proctor.errors import ConfigError, Problem, suggest_name
from proctor.evaluators.bound_evaluator import BoundEvaluator
from proctor.evaluators.fields import RULES, Combination
from proctor.evaluators.fields import field as combine_evaluators
from proctor.records.progress import EventKind, ProgressStatus
from proctor.records.score import Skipped
from proctor.wiring import evaluate as api

# Parameters of `evaluate` that a definition sets in other ways.
DEFINITION_CALLS = {
    "history": ".history(…)",
    "tags": ".history(tags={…})",
    "name": 'define("…")',
    "on_progress": ".on_progress(…)",
    "baseline": ".baseline(…)",
    "fields": '.select("usage.total_tokens", as_="tokens")',
    "evaluators": '.evaluate_field("output", …)',
}
RESULT_FIELDS = ("output", "input", "expected", "usage", "latency_ms", "configuration")


@dataclass
class Block:
    """A field with its evaluators."""

    path: str
    evaluators: list[BoundEvaluator] = field(default_factory=list)
    combine: Combination | None = None
    skipped: Skipped = "skip"

    def combine_with(self, rule: Combination, skipped: Skipped = "skip") -> None:
        """Set how the evaluators combine; a second, different rule is an error."""
        if self.combine not in (None, rule) or (self.combine and self.skipped != skipped):
            raise ConfigError(
                f"the field is already combined by {_describe_rule(self.combine)}, and now by {_describe_rule(rule)}",
                where=self.path,
                fix="keep one of the two combine_with calls",
            )
        # Raises if the rule is invalid; `len` is a placeholder for the real evaluators.
        combine_evaluators(self.path, [len], rule, skipped=skipped)
        self.combine, self.skipped = rule, skipped

    def evaluator(self, name: str) -> BoundEvaluator:
        """Return the evaluators as one, with the name of the field."""
        return combine_evaluators(self.path, self.evaluators, self.combine or "and", name, self.skipped)


def missing_field_error(call: str) -> ConfigError:
    """Return the error for a call before any `evaluate_field`."""
    return ConfigError(f"{call} has no field", fix='call .evaluate_field("output") first')


def check_alias(name: Any, path: str) -> None:
    """Reject an invalid name for a field, and a name that hides a field of every result."""
    if name in RESULT_FIELDS and name != path:
        raise ConfigError(
            f"{name!r} is a field of every result, and cannot be the name of {path!r}",
            fix='choose another name: as_="…"',
        )
    if not isinstance(name, str) or not name.strip() or "." in name or name != name.strip():
        raise ConfigError(f"{name!r} cannot be the name of a field", fix="use a word without dots and spaces around it")


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Reject keyword arguments that `Definition.evaluate` does not have."""
    known_parameters = api.RunKwargs.__annotations__
    for name in parameters:
        if common_name(name, known_parameters) not in known_parameters:
            call = DEFINITION_CALLS.get(name)
            fix = f"write it in the definition: {call}" if call else suggest_name(name, known_parameters)
            raise ConfigError(f"evaluate has no parameter {name!r}", fix=fix)


def check_evaluator(evaluator: Any, configure: Any) -> None:
    """Reject a list of evaluators, and parameters that are not passed by name."""
    if isinstance(evaluator, list | tuple):
        raise ConfigError(
            "must be one evaluator, got a list", fix='pass them one by one: .evaluate_field("output", first, second)'
        )
    if configure is not None and not callable(configure):
        name = describe_object(evaluator)
        raise ConfigError(
            f"the second argument of evaluate_with({name}, …) must be a function, got {configure!r}",
            fix=f"pass parameters by name: evaluate_with({name}, parameter=value)",
        )


def check_listener(callback: Any, kinds: Collection[str], statuses: Collection[str]) -> None:
    """Reject an invalid progress callback, and filters that match no event."""
    api.list_callbacks([callback])
    problems = []
    for option, names, known_names in (
        ("kinds", kinds, get_args(EventKind)),
        ("statuses", statuses, get_args(ProgressStatus)),
    ):
        if isinstance(names, str):
            raise ConfigError(
                f"{option} must be a list of names, got the text {names!r}",
                where="on_progress",
                fix=f"write {option}=[{names!r}]",
            )
        problems += [
            Problem("on_progress", f"unknown events {name!r}; {suggest_name(name, known_names)}")
            for name in names
            if name not in known_names
        ]
    if problems:
        fix = "correct these names, or leave out kinds and statuses"
        raise ConfigError("the callback selects events that do not exist", problems=problems, fix=fix)


def is_series(name: str, other_name: str) -> bool:
    """Return whether names differ only in their ending (output_1, output_2), so that neither is a typo.

    >>> is_series("output_1", "output_2"), is_series("tokns", "tokens")
    (True, False)
    """
    stems = {re.sub(r"(?:[0-9]+|[_-][A-Za-z]|s)$", "", text) for text in (name, other_name)}
    return len(stems) == 1


def describe_object(value: Any) -> str:
    """Return the source form of an evaluator or a function."""
    return repr(value) if isinstance(value, str) else getattr(value, "__name__", repr(value))


def _describe_rule(rule: Any) -> str:
    return repr(rule) if rule in RULES else describe_object(rule)
