"""A built-in evaluator that is called with wrong arguments names the right ones."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import pytest

import proctor
from proctor import evaluators, judges
from proctor.errors import EvaluatorError, ProctorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.decorator import get_mark, is_factory
from proctor.records.sample import Sample
from proctor.records.trial import Trial
from tests.tables import each_row

BUILT_IN = {
    name: value
    for namespace in (evaluators, judges)
    for name in namespace.__all__
    if get_mark(value := getattr(namespace, name)) is not None
}


def test_both_namespaces_contain_built_in_evaluators() -> None:
    """The parametrized tests below have cases."""
    assert {"contains", "exact_match", "coherence", "llm_judge", "starts_with"} <= BUILT_IN.keys()


@each_row("name", BUILT_IN)
def test_the_error_for_an_unknown_parameter_lists_the_known_ones(name: str) -> None:
    """Every built-in evaluator raises an `EvaluatorError` that is also a `TypeError`."""
    function = BUILT_IN[name]
    evidence = () if is_factory(function) else ("a", "b")
    with pytest.raises(EvaluatorError) as caught:
        function(*evidence[:1], no_such_parameter=1)
    assert isinstance(caught.value, TypeError)
    assert "unknown parameter 'no_such_parameter'" in str(caught.value)
    for parameter in get_mark(function).info.parameters:  # type: ignore[union-attr]
        assert parameter.name in str(caught.value)


def test_a_misspelt_parameter_gets_a_suggestion() -> None:
    with pytest.raises(EvaluatorError, match="did you mean 'case_sensitive'"):
        proctor.contains("a", "b", case_sensitve=False)  # type: ignore[call-arg]
    with pytest.raises(EvaluatorError, match="did you mean 'threshold'"):
        proctor.coherence(treshold=0.5)  # type: ignore[call-arg]


def test_a_call_without_an_output_says_how_to_set_options() -> None:
    """The suggested call works."""
    with pytest.raises(EvaluatorError, match=r"functools\.partial\(contains, case_sensitive=False\)"):
        proctor.contains(case_sensitive=False)  # type: ignore[call-arg]
    configured: Any = functools.partial(proctor.contains, case_sensitive=False)
    assert configured("PARIS", "paris").passed is True


def test_a_run_calls_the_evaluator_itself() -> None:
    """The check costs a run nothing, and the function is found by its name as before."""
    trial = Trial(Sample("1", "?", "paris"), "paris")
    assert attach(proctor.exact_match).score(trial).passed is True
    assert pickle.loads(pickle.dumps(proctor.exact_match)) is proctor.exact_match


def test_a_type_error_inside_an_evaluator_is_left_alone() -> None:
    """Only a call that does not fit is explained."""

    class Odd:
        def __eq__(self, other: object) -> bool:
            raise TypeError("odd")

        __hash__ = None  # type: ignore[assignment]

    with pytest.raises(TypeError, match="odd"):
        proctor.exact_match(Odd(), Odd())


WRONG_VALUES = [None, -1, "", object(), []]
# The other arguments of each call, where the evaluator needs some.
RUBRIC = {"id": "a", "name": "a", "description": "a", "scoring_criteria": "a"}
REQUIRED: dict[str, Any] = {
    "model": lambda messages: "good", "path": "output", "evaluators": [proctor.contains], "tolerance": 1,
    "phrases": "a", "language": "de", "evaluator": proctor.contains, "judge": proctor.contains, "of": proctor.contains,
    "judges": [proctor.contains, proctor.exact_match], "expected": ["search"], "rubric": {"a": 1},
}  # fmt: skip
FURTHER: dict[str, dict[str, Any]] = {
    "keywords": {"include": ["a"]}, "text_count": {"exactly": 1}, "rubric": {"rubric": RUBRIC},
    "occurrences": {"text": "a", "exactly": 1}, "tool_call_count": {"max_count": 1},
}  # fmt: skip
# Words by which a message may call a parameter.
SYNONYMS = {"of": "evaluat", "judges": "evaluat", "judge": "evaluat", "evaluator": "evaluat"}


@each_row("name", BUILT_IN)
def test_a_wrong_value_is_accepted_or_named(name: str) -> None:
    """No built-in evaluator fails with an error from inside when one of its options has a wrong value."""
    function = BUILT_IN[name]
    mark = get_mark(function)
    assert mark is not None
    names = [parameter.name for parameter in mark.info.parameters]
    required = {p.name: REQUIRED[p.name] for p in mark.info.parameters if p.required and p.name in REQUIRED}
    for parameter in names:
        for value in WRONG_VALUES:
            options = {**required, **FURTHER.get(name, {}), parameter: value}
            message = _get_error(function, options)
            names_it = message is None or parameter in message or SYNONYMS.get(parameter, parameter) in message
            assert names_it, (parameter, value, message)


def _get_error(function: Any, options: dict[str, Any]) -> str | None:
    try:
        function(**options) if is_factory(function) else attach(functools.partial(function, **options))
    except ProctorError as error:
        return str(error)
    return None


def test_the_first_mistakes_of_a_new_user_name_the_argument() -> None:
    """Each is also a `TypeError`."""
    with pytest.raises(EvaluatorError, match="evaluators must be a list of evaluators, got "):
        proctor.field("foo", proctor.exact_match)  # type: ignore[arg-type]
    with pytest.raises(EvaluatorError, match="field_context must be"):
        evaluators.latency(-1)  # type: ignore[arg-type]
    with pytest.raises(EvaluatorError, match="include must be str or list"):
        evaluators.keywords("text", include=5)  # type: ignore[arg-type]
