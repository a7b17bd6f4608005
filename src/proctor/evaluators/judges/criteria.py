"""A rubric: several criteria, each with a weight, from any of the ways to write them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from proctor.errors import EvaluatorError, Problem, nearest
from proctor.records.numbers import is_fraction, is_number

if TYPE_CHECKING:
    from proctor.evaluators.judges.opinion import Asking


Temperature = float | Literal["auto"] | None


def connected(adapter: Any) -> Any:
    """The model that is meant, by its address or as it is."""
    # Addresses are looked up among what is installed, which takes a moment.
    from proctor.models.connect import provider

    return provider(adapter)


def asking(
    temperature: Temperature,
    max_tokens: int | None,
    *,
    logprobs: bool = False,
    samples: int = 1,
    remind: bool = True,
) -> Asking:
    """How a judge is asked, or what is wrong with it."""
    from proctor.evaluators.judges.opinion import Asking

    if temperature == "auto":
        # Several opinions at temperature 0 would be one opinion, several times.
        temperature = 0.0 if samples == 1 else None
    if temperature is not None and not (is_number(temperature) and temperature >= 0):
        raise EvaluatorError(f"a temperature is a number from 0 up, got {temperature!r}")
    return Asking(temperature, max_tokens, logprobs, remind)


def check_terms(where: str, threshold: float | None, *, combine: str = "mean", **counts: int | None) -> None:
    """Refuse a pass mark, a rule or a count that cannot be one."""
    if combine not in ("mean", "vote"):
        raise EvaluatorError(f"opinions combine by mean or vote, not {combine!r}", where=where)
    if threshold is not None and not is_fraction(threshold):
        raise EvaluatorError(f"a pass mark is from 0 to 1, got {threshold!r}", where=where)
    for name, count in counts.items():
        if count is not None and not (is_number(count) and count == int(count) >= 1):
            raise EvaluatorError(f"{name} is a whole number from 1 up, got {count!r}", where=where)


_KEYS = ("id", "name", "description", "scoring_criteria", "weight")
_WAYS = "write a list of criteria, {name: weight}, {name: description} or {name: {description, weight}}"


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One thing that an output is scored by, and how much it counts.

    >>> print(Criterion("tone", description="Is it polite?", weight=2.0).text)
    tone
    Is it polite?
    """

    id: str
    name: str = ""
    description: str = ""
    scoring_criteria: str = ""
    weight: float = 1.0

    @property
    def text(self) -> str:
        """What a judge is told of it."""
        parts = (self.name or self.id, self.description, self.scoring_criteria)
        return "\n".join(part.strip() for part in parts if part.strip())


def rubric_of(given: Any, where: str) -> tuple[Criterion, ...]:
    """The criteria of a rubric; every fault in it is named at once.

    A list of criteria (texts, or mappings with name, description, scoring_criteria, weight), or a
    mapping of names to weights, descriptions or such mappings. What a rubric file holds,
    {version, rubrics: […]}, is taken too.

    >>> [(one.id, one.weight) for one in rubric_of({"accuracy": 3, "tone": 1}, "a rubric")]
    [('accuracy', 3.0), ('tone', 1.0)]
    """
    if isinstance(given, Mapping) and isinstance(given.get("rubrics"), list | tuple):
        given = given["rubrics"]
    named = _named(given, where)
    problems: list[Problem] = []
    found: list[Criterion] = []
    for place, (name, value) in enumerate(named, start=1):
        told = _read(name, value)
        label = str(name or told.get("id") or told.get("name") or f"criterion {place}")
        faults = _faults(label, told, bool(name.strip()))
        problems += faults
        if not faults:
            found.append(_made(label, told))
    twice = [label for label, count in Counter(one.id for one in found).items() if count > 1]
    problems += [Problem(label, "two criteria have this name") for label in twice]
    if not named:
        problems.append(Problem("", "it has no criterion"))
    if problems:
        raise EvaluatorError("the rubric does not hold together", where=where, fix=_WAYS, problems=problems)
    return tuple(found)


def _named(given: Any, where: str) -> list[tuple[str, Any]]:
    if isinstance(given, Mapping):
        return [(str(name), value) for name, value in given.items()]
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return [("", value) for value in given]
    raise EvaluatorError(f"{given!r} is not a rubric", where=where, fix=_WAYS)


def _read(name: str, value: Any) -> dict[str, Any]:
    """One criterion as a mapping, however it was written."""
    if isinstance(value, Criterion):
        return dict(msgspec.structs.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, str):
        return {"description": value} if name else {"id": value}
    return {"weight": value}


def _faults(label: str, told: Mapping[str, Any], named: bool) -> list[Problem]:
    faults = [
        Problem(label, f"{key!r} means nothing here; {nearest(key, _KEYS)}")
        for key in told
        if key not in _KEYS
    ]
    weight = told.get("weight", 1.0)
    if not is_number(weight) or weight <= 0:
        faults.append(Problem(label, f"a weight is a number above 0, got {weight!r}"))
    faults += [
        Problem(label, f"{key} is a text, got {told[key]!r}")
        for key in _KEYS[:-1]
        if not isinstance(told.get(key, ""), str)
    ]
    if not (named or any(told.get(key) for key in _KEYS[:-1])):
        faults.append(Problem(label, "it does not say what it is about"))
    return faults


def _made(label: str, told: Mapping[str, Any]) -> Criterion:
    texts = {key: told.get(key, "") for key in ("name", "description", "scoring_criteria")}
    return Criterion(str(told.get("id") or label), **texts, weight=float(told.get("weight", 1.0)))
