"""Prompts: values are bound by type, inserted unchanged, and never expanded again."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from proctor.errors import ModelError
from proctor.models.prompts import MarkdownSection, Prompt, PromptTemplate
from tests.tables import each_row

Rating = Literal["excellent", "good", "fair", "poor", "wrong"]


@dataclass(slots=True, frozen=True)
class JudgeOutput:
    rating: Rating
    reason: str


@dataclass(slots=True, frozen=True)
class JudgeParams:
    criterion: str
    output: str
    expected: str


class Tone(StrEnum):
    KIND = "kind"


class Point(BaseModel):
    x: int


class Scale(msgspec.Struct):
    low: int
    high: int


def prompt(text: str, **parameters: Any) -> Prompt[Any]:
    sections = [MarkdownSection[Any]("", text, "task")]
    return Prompt(PromptTemplate[Any]("ns", "key", sections, parameters=parameters or None))


def test_the_template_of_the_loop_spec_works_to_the_letter() -> None:
    """Typed output, typed section, `Prompt(template).bind(Params(...))`."""
    template = PromptTemplate[JudgeOutput](
        ns="wink.evals",
        key="llm-judge",
        name="llm_judge",
        sections=[
            MarkdownSection[JudgeParams](
                title="Evaluation Task",
                template="Criterion: $criterion\n\nOutput: $output\n\nReference: $expected",
                key="task",
            )
        ],
    )
    bound = Prompt(template).bind(JudgeParams(criterion="accuracy", output="It is $4.", expected="{4}"))
    assert bound.output_type is JudgeOutput
    assert bound.text == ("# Evaluation Task\n\nCriterion: accuracy\n\nOutput: It is $4.\n\nReference: {4}")
    assert [message.role for message in bound.messages()] == ["user"]


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.text(), min_size=3))
def test_values_are_never_scanned_again(values: dict[str, str]) -> None:
    """Placeholders, dollar signs and braces in a value stay in the prompt."""
    values["a"] += "$b ${c} $$ {b} %s"
    bound = prompt("<$a|${b}|$c> $$a {a}").bind(**values)
    assert bound.text == f"<{values['a']}|{values['b']}|{values['c']}> $a {{a}}"


@given(st.text())
def test_text_without_dollars_is_sent_as_it_is(text: str) -> None:
    """Braces, percent signs and backslashes mean nothing."""
    text = text.replace("$", "") + "."
    assert prompt(text).text == text


@each_row(
    ("value", "stands"),
    [
        (3, "3"),
        (True, "true"),
        (0.5, "0.5"),
        (["a", 1], '[\n  "a",\n  1\n]'),
        (Tone.KIND, "kind"),
        (Point(x=1), '{\n  "x": 1\n}'),
        (Scale(1, 5), '{\n  "low": 1,\n  "high": 5\n}'),
        ("", ""),
    ],
)
def test_other_values_are_rendered_as_json(value: Any, stands: str) -> None:
    """Numbers, lists, models; an empty text is a value too."""
    assert prompt("<$v>").bind(v=value).text == f"<{stands}>"


@pytest.mark.parametrize("params", [Scale(1, 5), {"low": 1, "high": 5}])
def test_parameters_come_as_an_object_or_a_mapping(params: Any) -> None:
    """Structs and mappings; later values replace earlier ones."""
    bound = prompt("$low-$high").bind(params)
    assert bound.text == "1-5"
    assert bound.bind(high=7).text == "1-7"
    assert bound.text == "1-5"


def test_a_pydantic_model_binds_its_fields() -> None:
    """Under their own names."""
    assert prompt("$x").bind(Point(x=2)).text == "2"


def test_other_parameter_objects_are_refused() -> None:
    """A bare value has no names; a class is not an object of it."""
    for thing in ("text", Scale, JudgeParams):
        with pytest.raises(ModelError, match="parameters must be a"):
            prompt("$low").bind(thing)


def test_wrong_names_and_types_are_reported_together() -> None:
    """With the nearest name and the type that was wanted."""
    template = prompt("$low $high $name", low=int, high=int, name=str)
    with pytest.raises(ModelError) as caught:
        template.bind(low=True, high="5", nam="x")
    assert [str(problem) for problem in caught.value.problems] == [
        "nam: unknown parameter; did you mean 'name'?",
        "low must be an integer, got True",
        "high must be an integer, got '5'",
    ]


@each_row(
    ("kind", "fitting", "other"),
    [
        (float, 3, "3"),
        (float, 0.5, True),
        (bool, True, 1),
        (list[str], ["a"], ["a", 1]),
        (dict, {"a": 1}, [1]),
        (str | int, 3, 0.5),
        (Literal["a", "b"], "a", "c"),
        (Scale, Scale(1, 2), "1 to 2"),
        (Point, Point(x=1), "x"),
        (object, True, None),
    ],
)
def test_values_must_fit_the_declared_types(kind: Any, fitting: Any, other: Any) -> None:
    """An int is a float, a bool is neither; generics, unions and literals are checked."""
    template = prompt("$v", v=kind)
    assert template.bind(v=fitting).values == {"v": fitting}
    if other is not None:
        with pytest.raises(
            ModelError, match=r"the parameters of the prompt are invalid\n  - v must be .*, got "
        ) as caught:
            template.bind(v=other)
        assert str(caught.value).endswith(f", got {other!r}")


def test_a_type_that_only_python_knows_is_checked_as_python_does() -> None:
    """By isinstance; a union of several such types is left to the user."""

    class Odd:
        pass

    template = prompt("$v $w", v=Odd, w=Odd | Point)
    assert template.bind(v=Odd(), w="text").values["w"] == "text"
    with pytest.raises(ModelError, match="v must be Odd, got 'text'"):
        template.bind(v="text")


def test_missing_parameters_are_named_on_use() -> None:
    """All of them; None counts as missing."""
    with pytest.raises(ModelError) as caught:
        prompt("$b $a $c").bind(c="x", a=None).messages()
    assert caught.value.what == "parameters have no value: a, b"


def test_a_conditional_section_is_left_out_where_its_parameter_is_none() -> None:
    """With a reference and without one."""
    sections = [
        MarkdownSection[Any]("", "Be strict.", "rule", role="system"),
        MarkdownSection[Any]("Output", "$output", "output"),
        MarkdownSection[Any]("Reference", "$expected", "reference", only_if="expected"),
    ]
    template = PromptTemplate[str]("ns", "key", sections)
    without = Prompt(template).bind(output="4")
    assert [(m.role, m.content) for m in without.messages()] == [("system", "Be strict."), ("user", "# Output\n\n4")]
    output_text = without.bind(expected="four").messages()
    assert output_text[1].content == "# Output\n\n4\n\n# Reference\n\nfour"


def test_a_prompt_without_sections_is_an_error() -> None:
    """Rather than an empty question."""
    only = PromptTemplate[Any]("ns", "key", [MarkdownSection[Any]("", "$a", "task", only_if="a")])
    with pytest.raises(ModelError, match="the prompt is empty"):
        Prompt(only).messages()
