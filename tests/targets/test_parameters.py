"""The options of a callable are checked before a run."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.errors import TargetError
from proctor.targets.resolve import read_parameters


def answer(question: str, model: str, *, temperature: float = 0.0) -> str:
    return f"{question} {model} {temperature}"


def test_good_options_have_no_faults() -> None:
    """Options that the function takes, with every needed one given, are accepted."""
    parameters = read_parameters(answer, "answer")
    assert parameters.check({"model": "small", "temperature": 1.0}) == []


def test_all_faults_are_reported_at_once() -> None:
    """A misspelt option, a clash with the input and a missing option in one list."""
    assert read_parameters(answer, "answer").check({"temprature": 1.0, "question": "?"}) == [
        "unknown option 'temprature': did you mean 'temperature'?",
        "the option 'question' has the name of the parameter for the input",
        "no configuration sets the required parameter 'model'",
    ]


def test_a_target_without_options_says_so() -> None:
    """Where there is nothing to suggest, the fault says that no option is taken."""
    assert read_parameters(len, "len").check({"model": "small"}) == [
        "unknown option 'model': the target takes no options"
    ]


def test_keyword_arguments_take_anything() -> None:
    """A function with **kwargs takes every option but one named like its input."""

    def anything(question: str, **options: Any) -> Any:
        return options

    parameters = read_parameters(anything, "anything")
    assert parameters.check({"zzz": 1}) == []
    assert parameters.check({"question": 1}) != []


def test_a_positional_only_input_leaves_its_name_free() -> None:
    """An option may be named like an input that has no name to callers."""

    def anything(question: str, /, **options: Any) -> Any:
        return options

    assert read_parameters(anything, "anything").check({"question": 1}) == []


def test_star_args_take_the_input() -> None:
    """`*args` takes the input and clashes with no option."""

    def many(*inputs: str, loud: bool = False) -> Any:
        return inputs

    assert read_parameters(many, "many").check({"loud": True}) == []
    assert read_parameters(many, "many").check({"inputs": 1}) != []


def test_options_bound_by_a_partial_are_optional() -> None:
    """They can still be changed."""
    bound = functools.partial(answer, model="small")
    assert read_parameters(bound, "answer").check({}) == []
    assert read_parameters(bound, "answer").check({"model": "large"}) == []


def test_a_function_without_a_signature_takes_all_options() -> None:
    """Some functions written in C have none; they check their options themselves."""
    assert read_parameters(max, "max").check({"key": len}) == []


@pytest.mark.parametrize(
    "function",
    [lambda: None, lambda *, question: question, lambda **options: options],
    ids=["nothing", "keyword only", "kwargs only"],
)
def test_a_function_without_a_positional_parameter_is_refused(function: Any) -> None:
    """The input is passed by position."""
    with pytest.raises(TargetError, match="the target takes no input") as caught:
        read_parameters(function, "mine")
    assert caught.value.where == "mine"
    assert "def answer(question)" in caught.value.fix


def test_a_required_positional_only_option_is_refused() -> None:
    """Options are passed by name, so it could never get a value."""

    def unreachable(question: str, model: str, /) -> str:
        return question + model

    with pytest.raises(TargetError, match="'model' is positional-only"):
        read_parameters(unreachable, "mine")


def test_an_optional_positional_only_parameter_is_ignored() -> None:
    """A second positional-only parameter with a default is not an option."""

    def reachable(question: str, model: str = "small", /) -> str:
        return question + model

    assert read_parameters(reachable, "mine").check({}) == []
    assert read_parameters(reachable, "mine").check({"model": "large"}) != []


@given(st.dictionaries(st.sampled_from(["question", "model", "temperature", "top"]), st.floats()))
def test_accepted_options_can_be_called(options: dict[str, Any]) -> None:
    """Options are faultless exactly when the call does not raise a TypeError."""
    faults = read_parameters(answer, "answer").check(options)
    if faults:
        with pytest.raises(TypeError):
            answer("why?", **options)
    else:
        assert answer("why?", **options).startswith("why?")
