"""The options of a callable are checked before a run."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import TargetError
from proctor.targets.resolve import parameters_of


def answer(question: str, model: str, *, temperature: float = 0.0) -> str:
    return f"{question} {model} {temperature}"


def test_good_options_have_no_faults() -> None:
    """Options that the function takes, with every needed one given, are accepted."""
    parameters = parameters_of(answer, "answer")
    assert parameters.check({"model": "small", "temperature": 1.0}) == []


def test_all_faults_are_reported_at_once() -> None:
    """A misspelt option, a clash with the input and a missing option in one list."""
    assert parameters_of(answer, "answer").check({"temprature": 1.0, "question": "?"}) == [
        "there is no option 'temprature': did you mean 'temperature'?",
        "the option 'question' has the name of the parameter for the input",
        "the option 'model' is required",
    ]


def test_a_target_without_options_says_so() -> None:
    """Where there is nothing to suggest, the fault says that no option is taken."""
    assert parameters_of(len, "len").check({"model": "small"}) == [
        "there is no option 'model': the target takes no options"
    ]


def test_keyword_arguments_take_anything() -> None:
    """A function with **kwargs takes every option but one named like its input."""

    def anything(question: str, **options: Any) -> Any:
        return options

    parameters = parameters_of(anything, "anything")
    assert parameters.check({"zzz": 1}) == []
    assert parameters.check({"question": 1}) != []


def test_a_positional_only_input_leaves_its_name_free() -> None:
    """An option may be named like an input that has no name to callers."""

    def anything(question: str, /, **options: Any) -> Any:
        return options

    assert parameters_of(anything, "anything").check({"question": 1}) == []


def test_star_args_take_the_input() -> None:
    """`*args` takes the input and clashes with no option."""

    def many(*inputs: str, loud: bool = False) -> Any:
        return inputs

    assert parameters_of(many, "many").check({"loud": True}) == []
    assert parameters_of(many, "many").check({"inputs": 1}) != []


def test_options_bound_by_a_partial_are_optional() -> None:
    """They can still be changed."""
    bound = functools.partial(answer, model="small")
    assert parameters_of(bound, "answer").check({}) == []
    assert parameters_of(bound, "answer").check({"model": "large"}) == []


def test_a_function_without_a_signature_takes_all_options() -> None:
    """Some functions written in C have none; they check their options themselves."""
    assert parameters_of(max, "max").check({"key": len}) == []


@pytest.mark.parametrize(
    "function",
    [lambda: None, lambda *, question: question, lambda **options: options],
    ids=["nothing", "keyword only", "kwargs only"],
)
def test_a_function_without_a_positional_parameter_is_refused(function: Any) -> None:
    """The input is passed by position."""
    with pytest.raises(TargetError, match="no positional parameter for the input") as caught:
        parameters_of(function, "mine")
    assert caught.value.where == "mine"
    assert "def answer(question)" in caught.value.fix


def test_a_required_positional_only_option_is_refused() -> None:
    """Options are passed by name, so it could never get a value."""

    def unreachable(question: str, model: str, /) -> str:
        return question + model

    with pytest.raises(TargetError, match="'model' is positional-only"):
        parameters_of(unreachable, "mine")


def test_an_optional_positional_only_parameter_is_ignored() -> None:
    """A second positional-only parameter with a default is not an option."""

    def reachable(question: str, model: str = "small", /) -> str:
        return question + model

    assert parameters_of(reachable, "mine").check({}) == []
    assert parameters_of(reachable, "mine").check({"model": "large"}) != []


@given(st.dictionaries(st.sampled_from(["question", "model", "temperature", "top"]), st.floats()))
def test_accepted_options_can_be_called(options: dict[str, Any]) -> None:
    """Options are faultless exactly when the call does not raise a TypeError."""
    faults = parameters_of(answer, "answer").check(options)
    if faults:
        with pytest.raises(TypeError):
            answer("why?", **options)
    else:
        assert answer("why?", **options).startswith("why?")
