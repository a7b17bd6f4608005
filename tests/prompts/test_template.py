"""Templates: contradictions are refused on creation, and versions follow from the content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from proctor.core.identity import compute_digest
from proctor.errors import ModelError
from proctor.models.prompts import MarkdownSection, PromptTemplate


@dataclass
class DataParams:
    question: str
    limit: int = 3


class StructParams(msgspec.Struct):
    question: str
    limit: int = 3


class ModelParams(BaseModel):
    question: str
    limit: int = 3


@dataclass
class Later:
    question: "NotImportedHere"  # type: ignore[name-defined]  # noqa: F821, UP037


def section(text: str, key: str = "task", **options: Any) -> MarkdownSection[Any]:
    return MarkdownSection("", text, key, **options)


def faults(*sections: MarkdownSection[Any], **options: Any) -> list[str]:
    """Everything that is wrong with a template of these sections."""
    with pytest.raises(ModelError) as caught:
        PromptTemplate[Any]("ns", "key", sections, **options)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("kind", [DataParams, StructParams, ModelParams])
def test_a_typed_section_takes_its_placeholders_from_the_fields(kind: Any) -> None:
    """Of a dataclass, struct or pydantic model, with their types."""
    template = PromptTemplate[Any]("ns", "key", [MarkdownSection[kind]("Task", "$question in $limit words", "task")])
    assert template.parameters == {"question": str, "limit": int}
    assert template.sections[0].params_type is kind


def test_unknown_placeholders_are_refused_with_a_suggestion() -> None:
    """Fields without a placeholder are refused too; all are reported at once."""
    wrong = MarkdownSection[DataParams]("", "$qestion and $other", "task")
    assert faults(wrong) == [
        "task: $qestion is not a field of DataParams; did you mean 'question'?",
        "task: $other is not a field of DataParams; choose one of: limit, question",
        "DataParams.question: the text does not use this field",
        "DataParams.limit: the text does not use this field",
    ]


def test_the_sections_of_one_type_share_its_fields() -> None:
    """A field may have its place in any section."""
    one = MarkdownSection[DataParams]("", "$question", "one")
    two = MarkdownSection[DataParams]("", "$limit", "two")
    assert PromptTemplate[Any]("ns", "key", [one, two]).parameters == {"question": str, "limit": int}


def test_one_name_cannot_have_two_types() -> None:
    @dataclass
    class Other:
        question: int

    one = MarkdownSection[DataParams]("", "$question $limit", "one")
    two = MarkdownSection[Other]("", "$question", "two")
    assert faults(one, two) == ["question: it is str in one type, but int in another"]


def test_declared_parameters_must_match_the_text() -> None:
    """Unknown and unused names are reported, also in conditions."""
    assert faults(section("$question", only_if="hint"), parameters={"quest": str, "limit": int}) == [
        "task: $question is not a parameter; did you mean 'quest'?",
        "task: $hint is not a parameter; choose one of: limit, quest",
        "quest: the text does not use this parameter",
        "limit: the text does not use this parameter",
    ]


def test_without_types_the_placeholders_are_the_parameters() -> None:
    """Conditions too; `Any` in brackets adds nothing."""
    made = MarkdownSection[Any]("", "$a ${b} $a", "task", only_if="c")
    assert made.placeholders == ("a", "b")
    assert PromptTemplate[Any]("ns", "key", [made]).parameters == {"a": Any, "b": Any, "c": Any}


def test_a_type_whose_names_cannot_be_resolved_still_has_fields() -> None:
    """Then the types of values are not checked."""
    made = PromptTemplate[Any]("ns", "key", [MarkdownSection[Later]("", "$question", "task")])
    assert made.parameters == {"question": Any}


def test_a_type_without_fields_is_refused() -> None:
    """`MarkdownSection[int]` means nothing."""
    with pytest.raises(ModelError, match="has no fields"):
        PromptTemplate[Any]("ns", "key", [MarkdownSection[int]("", "$a", "task")])


def test_a_prompt_is_not_empty_and_each_section_has_its_key() -> None:
    """No sections, an empty one, and two of one key are faults."""
    assert faults() == ["sections: a prompt needs at least one section"]
    assert faults(section("a"), section(" ")) == [
        "task: two sections have this key",
        "task: a section needs a title or a text",
    ]


@pytest.mark.parametrize("text", ["costs $5", "a $ sign", "$", "${", "${open", "${two words}", "$é"])
def test_a_lone_dollar_is_refused(text: str) -> None:
    """With the way to write one."""
    with pytest.raises(ModelError, match="not followed by a parameter's name") as caught:
        section(text)
    assert caught.value.fix == "write $$ for a dollar sign"


def test_a_role_is_system_or_user() -> None:
    """The others are the model's own."""
    with pytest.raises(ModelError, match="unknown role 'asistant'"):
        section("Hello", role="asistant")


@given(st.text("ab$ \n{}"), st.text("ab$ \n{}"), st.sampled_from(["system", "user"]), st.booleans())
def test_the_version_changes_when_the_content_does(one: str, other: str, role: Any, titled: bool) -> None:
    """Equal contents have equal versions, independent of the name."""
    first, second = (text.replace("$", "$$") + "." for text in (one, other))
    plain = PromptTemplate[Any]("ns", "key", [section(first)])
    changed = PromptTemplate[Any](
        "other", "name", [MarkdownSection[Any]("T" if titled else "", second, "task", role=role)]
    )
    same = first == second and role == "user" and not titled
    assert (plain.version == changed.version) == same
    assert plain.id == f"ns/key@{plain.version}"


def test_a_users_version_is_used() -> None:
    """It is part of the id; the name defaults to the key."""
    made = PromptTemplate[Any]("ns", "key", [section("Hi")], version="3")
    assert (made.id, made.name) == ("ns/key@3", "key")


def test_the_identity_of_a_template_depends_on_its_text() -> None:
    """An evaluator with a template has the same identity in another process."""
    one, same, other = (PromptTemplate[Any]("n", "k", [section(t)]) for t in ("a", "a", "b"))
    assert compute_digest(one) == compute_digest(same) != compute_digest(other)
