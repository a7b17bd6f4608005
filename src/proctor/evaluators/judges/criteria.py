"""The criteria of a weighted rubric, and checks of judge options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from proctor.errors import EvaluatorError, Problem, suggest_name
from proctor.records.numbers import is_fraction, is_number

if TYPE_CHECKING:
    from proctor.evaluators.judges.opinion import JudgeOptions

Temperature = float | Literal["auto"] | None
_KEYS = ("id", "name", "description", "scoring_criteria", "weight")
_FORMATS = "write a list of criteria, {name: weight}, {name: description} or {name: {description, weight}}"


def connect_model(adapter: Any) -> Any:
    """Return the model of an address, or the adapter unchanged."""
    # This import looks up the installed providers, which takes time.
    from proctor.models.connect import provider

    return provider(adapter)


def create_judge_options(
    temperature: Temperature,
    max_tokens: int | None,
    *,
    logprobs: bool = False,
    samples: int = 1,
    remind: bool = True,
) -> JudgeOptions:
    """Create the options of a judge, or say what is wrong with them."""
    from proctor.evaluators.judges.opinion import JudgeOptions

    if temperature == "auto":
        # Several opinions at temperature 0 would be equal.
        temperature = 0.0 if samples == 1 else None
    if temperature is not None and not (is_number(temperature) and temperature >= 0):
        raise EvaluatorError(f"temperature must be a number of 0 or more, got {temperature!r}")
    return JudgeOptions(temperature, max_tokens, logprobs, remind)


def check_judge_options(
    where: str, threshold: float | None, *, combine: str = "mean", **counts: int | None
) -> None:
    """Refuse an invalid threshold, combination or count."""
    if combine not in ("mean", "vote"):
        raise EvaluatorError(f"combine must be mean or vote, got {combine!r}", where=where)
    if threshold is not None and not is_fraction(threshold):
        raise EvaluatorError(f"threshold must be from 0 to 1, got {threshold!r}", where=where)
    for name, count in counts.items():
        if count is not None and not (is_number(count) and count == int(count) >= 1):
            raise EvaluatorError(f"{name} must be an integer of 1 or more, got {count!r}", where=where)


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One criterion of a rubric, and its weight.

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
        """The text for the judge."""
        lines = (self.name or self.id, self.description, self.scoring_criteria)
        return "\n".join(line.strip() for line in lines if line.strip())


def parse_criteria(source: Any, where: str) -> tuple[Criterion, ...]:
    """Return the criteria of a rubric; the error names all problems at once.

    The source is a list of criteria (texts, or mappings with name, description, scoring_criteria,
    weight), or a mapping of names to weights, descriptions or such mappings, or the content of a rubric
    file: {version, rubrics: […]}.

    >>> [(item.id, item.weight) for item in parse_criteria({"accuracy": 3, "tone": 1}, "a rubric")]
    [('accuracy', 3.0), ('tone', 1.0)]
    """
    if isinstance(source, Mapping) and isinstance(source.get("rubrics"), list | tuple):
        source = source["rubrics"]
    if isinstance(source, Mapping):
        items = [(str(name), value) for name, value in source.items()]
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes):
        items = [("", value) for value in source]
    else:
        raise EvaluatorError(f"{source!r} is not a rubric", where=where, fix=_FORMATS)
    problems: list[Problem] = []
    criteria: list[Criterion] = []
    for number, (name, value) in enumerate(items, start=1):
        fields = _to_fields(name, value)
        label = str(name or fields.get("id") or fields.get("name") or f"criterion {number}")
        invalid = _find_problems(label, fields, bool(name.strip()))
        problems += invalid
        if not invalid:
            fields |= {"id": str(fields.get("id") or label), "weight": float(fields.get("weight", 1.0))}
            criteria.append(Criterion(**fields))
    counts = Counter(criterion.id for criterion in criteria)
    problems += [Problem(name, "two criteria have this name") for name, count in counts.items() if count > 1]
    if not items:
        problems.append(Problem("", "it has no criterion"))
    if problems:
        raise EvaluatorError("the rubric is invalid", where=where, fix=_FORMATS, problems=problems)
    return tuple(criteria)


def _to_fields(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Criterion):
        return dict(msgspec.structs.asdict(value))
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, str):
        return {"description": value} if name else {"id": value}
    return {"weight": value}


def _find_problems(label: str, fields: Mapping[str, Any], has_name: bool) -> list[Problem]:
    problems = [
        Problem(label, f"there is no key {key!r}; {suggest_name(key, _KEYS)}")
        for key in fields
        if key not in _KEYS
    ]
    weight = fields.get("weight", 1.0)
    if not is_number(weight) or weight <= 0:
        problems.append(Problem(label, f"weight must be a number above 0, got {weight!r}"))
    problems += [
        Problem(label, f"{key} must be a text, got {fields[key]!r}")
        for key in _KEYS[:-1]
        if not isinstance(fields.get(key, ""), str)
    ]
    if not (has_name or any(fields.get(key) for key in _KEYS[:-1])):
        problems.append(Problem(label, "it has no name or description"))
    return problems
