"""A weighted rubric: score every criterion, in one call or in separate calls, and return the weighted mean."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from proctor.errors import CallFailed, EvaluatorError, Problem, suggest_name
from proctor.evaluators.judges.fence import Fence
from proctor.evaluators.judges.judge import (
    DEFAULT_OPTIONS,
    NO_REFERENCE,
    JudgeOptions,
    Opinion,
    Question,
    View,
    ask_judge,
    create_opinion,
    describe_judge,
    failed_score,
    get_opinion,
    run_concurrently,
)
from proctor.evaluators.judges.scale import NumberScale
from proctor.evaluators.judges.verdict_form import (
    AllowedVerdicts,
    MarkedLines,
    Verdict,
    object_schema,
    read_object,
    remove_heading,
)
from proctor.models.prompts import PromptTemplate
from proctor.ports import ProviderAdapter
from proctor.records.numbers import is_number
from proctor.records.rubric import Rubric, decide_mean, weighted_mean
from proctor.records.score import FAILED_PARTS, Score, describe_gaps
from proctor.records.session import Usage

NO_CRITERION_SCORE = "the judge's answer has no readable score for it, not even after a reminder"
_KEYS = ("id", "name", "description", "scoring_criteria", "weight")
_FORMATS = "write a list of criteria, {name: weight}, {name: description} or {name: {description, weight}}"


class Criterion(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One criterion of a rubric, and its weight."""

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
    """Return the criteria of a rubric; one error lists all problems.

    The source is a list of criteria (strings, rubrics, or mappings with name, description, scoring_criteria, weight), a
    mapping of names to weights, descriptions or such mappings, or the content of a rubric file: {version, rubrics:
    […]}.
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
        problems.append(Problem("", "the rubric has no criteria"))
    if problems:
        raise EvaluatorError("the rubric is invalid", where=where, fix=_FORMATS, problems=problems)
    return tuple(criteria)


def _to_fields(name: str, value: Any) -> dict[str, Any]:
    if isinstance(value, Criterion | Rubric):
        return {key: getattr(value, key) for key in _KEYS}
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}
    if isinstance(value, str):
        return {"description": value} if name else {"id": value}
    return {"weight": value}


def _find_problems(label: str, fields: Mapping[str, Any], has_name: bool) -> list[Problem]:
    problems = [
        Problem(label, f"unknown key {key!r}; {suggest_name(key, _KEYS)}") for key in fields if key not in _KEYS
    ]
    weight = fields.get("weight", 1.0)
    if not is_number(weight) or weight <= 0:
        problems.append(Problem(label, f"weight must be a number greater than 0, got {weight!r}"))
    problems += [
        Problem(label, f"{key} must be a string, got {fields[key]!r}")
        for key in _KEYS[:-1]
        if not isinstance(fields.get(key, ""), str)
    ]
    if not (has_name or any(fields.get(key) for key in _KEYS[:-1])):
        problems.append(Problem(label, "the criterion has no name and no description"))
    return problems


def _criterion_key(index: int) -> str:
    # The criterion's name is not used: it may be long, or look like part of the answer.
    return f"criterion_{index + 1}"


class SheetForm:
    """Asks for a number for each criterion, as JSON or on lines `SCORE delimiter criterion_1: 4`.

    If a criterion has no verdict, the judge is reminded once; after that, an incomplete sheet is returned, but an
    empty sheet is an error.
    """

    def __init__(self, count: int, scale: tuple[float, float], fence: Fence) -> None:
        self.delimiter = fence.delimiter
        self._keys = [_criterion_key(index) for index in range(count)]
        self._allowed = AllowedVerdicts(scale=scale)
        self._is_quoted = fence.contains
        self._lines = [MarkedLines(f"SCORE {fence.delimiter} {key}", self._allowed) for key in self._keys]
        self._was_read = False

    @property
    def schema(self) -> dict[str, Any]:
        """The schema: one object for each criterion, with the reason before the score."""
        item = object_schema({"reason": {"type": "string"}, "score": self._allowed.schema})
        return object_schema(dict.fromkeys(self._keys, item))

    @property
    def instructions(self) -> str:
        """The instructions for a model without structured output."""
        lines = "\n".join(f"{line.prefix}: <{self._allowed}>" for line in self._lines)
        return (
            "Explain each score briefly, and put it on a line of its own below that. "
            f"These are the lines, exactly of this form, one for each criterion:\n{lines}"
        )

    def read(self, text: str, *, structured: bool) -> dict[int, Verdict]:
        """Return the verdicts by the index of the criterion, or raise a ValueError with the problems."""
        is_first, self._was_read = not self._was_read, True
        verdicts, problems = (self._read_json if structured else self._read_lines)(text)
        if problems and (is_first or not verdicts):
            raise ValueError("; ".join(problems))
        return verdicts

    def _read_json(self, text: str) -> tuple[dict[int, Verdict], list[str]]:
        answer = read_object(text, self._is_quoted)
        verdicts, problems = {}, []
        for index, key in enumerate(self._keys):
            item = answer.get(key)
            if not isinstance(item, dict) or "score" not in item:
                problems.append(f"it has no score for {key}")
                continue
            try:
                choice = self._allowed.parse(item["score"])
                verdicts[index] = Verdict(choice, str(item.get("reason", "")).strip())
            except ValueError as error:
                problems.append(f"{key}: {error}")
        return verdicts, problems

    def _read_lines(self, text: str) -> tuple[dict[int, Verdict], list[str]]:
        lines, choices, problems = {}, {}, []
        for index, marked in enumerate(self._lines):
            try:
                lines[index] = marked.find_last(text)
                choices[index] = self._allowed.parse(lines[index].text)
            except ValueError as error:
                problems.append(f"{self._keys[index]}: {error}")
        verdicts = {}
        for index, choice in choices.items():
            start = lines[index].start
            above = max((line.end for line in lines.values() if line.end <= start), default=0)
            verdicts[index] = Verdict(choice, remove_heading(text[above:start]))
        return verdicts, problems


Opinions = Mapping[str, Opinion]


class RubricJudge(NamedTuple):
    """A model that scores outputs by several criteria; `one_call` asks for all of them together."""

    adapter: ProviderAdapter
    template: PromptTemplate[Any]
    criteria: tuple[Criterion, ...]
    scale: NumberScale
    values: Mapping[str, str]
    one_call: bool = True
    view: View = View()
    options: JudgeOptions = DEFAULT_OPTIONS

    async def score(self, output: Any, sample: Any) -> Score:
        """Return the weighted mean of the criteria; without a criterion that could change the verdict, an error."""
        texts = self.view.texts(output, sample, self.template)
        if not texts:
            return Score.skipped(NO_REFERENCE)
        ask = self._ask_together if self.one_call else self._ask_each
        try:
            opinions, failures = await ask(texts)
        except CallFailed as error:
            return failed_score(self.adapter, self.template, [error])
        if not opinions:
            return failed_score(self.adapter, self.template, list(failures.values()), len(failures))
        return self._combine(opinions, failures)

    async def _ask_together(self, texts: Mapping[str, str]) -> tuple[Opinions, dict[str, CallFailed]]:
        criteria = "\n\n".join(
            f"{_criterion_key(index)}: {criterion.text}" for index, criterion in enumerate(self.criteria)
        )
        question = Question(self.template, {"criteria": criteria, **texts}, self.values)
        bounds = (self.scale.low, self.scale.high)
        response = await ask_judge(
            self.adapter, question, lambda fence: SheetForm(len(self.criteria), bounds, fence), self.options
        )
        opinions: dict[str, Opinion] = {}
        for index, verdict in response.output.items():
            opinion = create_opinion(self.adapter, self.template, self.scale, verdict, response)
            # The usage of the single call is assigned to the first verdict.
            usage = Usage() if opinions else response.usage
            opinions[self.criteria[index].id] = msgspec.structs.replace(opinion, usage=usage)
        return opinions, {}

    async def _ask_each(self, texts: Mapping[str, str]) -> tuple[Opinions, dict[str, CallFailed]]:
        questions = [
            Question(self.template, {"criterion": criterion.text, **texts}, self.values) for criterion in self.criteria
        ]
        answers = await run_concurrently(
            [functools.partial(get_opinion, self.adapter, q, self.scale, self.options) for q in questions]
        )
        by_id = dict(zip((criterion.id for criterion in self.criteria), answers, strict=True))
        opinions = {key: answer for key, answer in by_id.items() if isinstance(answer, Opinion)}
        return opinions, {key: answer for key, answer in by_id.items() if isinstance(answer, CallFailed)}

    def _combine(self, opinions: Opinions, failures: Mapping[str, CallFailed]) -> Score:
        weights = {criterion.id: criterion.weight for criterion in self.criteria if criterion.id in opinions}
        missing = {criterion.id: criterion.weight for criterion in self.criteria if criterion.id not in opinions}
        weighted = [(weight, opinions[key].value) for key, weight in weights.items()]
        value = min(1.0, max(0.0, weighted_mean(weighted)))
        passed = decide_mean(weighted, sum(missing.values()), self.scale.passes)
        scored = {
            key: {
                "score": self.scale.to_data(opinions[key].verdict),
                "value": opinions[key].value,
                "weight": weight,
                "reason": opinions[key].reason,
            }
            for key, weight in weights.items()
        }
        reason = ", ".join(f"{key} {item['score']:g}/{self.scale.high:g}" for key, item in scored.items())
        if missing:
            reason += f"; not scored: {', '.join(missing)}"
        judge = describe_judge(list(opinions.values()), list(failures.values()))
        if failures:
            judge["failures"] = [str(error) for error in failures.values()]
        gaps = describe_gaps({key: str(failures.get(key, NO_CRITERION_SCORE)) for key in missing})
        details = {"criteria": scored, "missing": list(missing), "judge": judge, **gaps}
        if passed is None:
            reasons = "; ".join(f"{key}: {text}" for key, text in gaps[FAILED_PARTS].items())
            return Score.error(f"{len(missing)} of {len(self.criteria)} criteria have no score: {reasons}", details)
        return Score(value, passed, reason, {**self.scale.details(value), **details})
