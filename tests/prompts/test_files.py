"""Prompts in files: a head, parts by role, and errors that name the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.errors import ModelError
from proctor.models.prompts import Prompt, PromptTemplate
from tests.tables import each_row

WHOLE = """\
---
ns: tests
key: judge
name: A judge
version: 1.5
parameters: {criterion: str, output: any, expected: str, limit: int}
---
<!-- system -->
You judge $criterion. Prices are in $$.

<!-- user -->
Output: $output

<!-- user if expected -->
Reference: $expected
<!-- user -->
In $limit words.
"""


def faults(text: str) -> str:
    with pytest.raises(ModelError) as caught:
        PromptTemplate.parse(text, where="judge.md")
    return str(caught.value)


def test_a_prompt_is_read_from_its_file(tmp_path: Path) -> None:
    """Roles, conditions and declared types; the version is that of the head."""
    path = tmp_path / "judge.md"
    path.write_text(WHOLE, encoding="utf-8")
    template = PromptTemplate.load(path)
    assert (template.id, template.name) == ("tests/judge@1.5", "A judge")
    bound = Prompt(template).bind(criterion="clarity", output=[1], limit=9)
    assert [(m.role, m.content) for m in bound.messages()] == [
        ("system", "You judge clarity. Prices are in $."),
        ("user", "Output: [\n  1\n]\n\nIn 9 words."),
    ]
    assert "Reference: $x\n" in bound.bind(expected="$x").text
    with pytest.raises(ModelError, match="limit must be an integer, got 'nine'"):
        bound.bind(limit="nine")


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_endings_and_byte_order_marks_do_not_matter(tmp_path: Path, ending: str, mark: str) -> None:
    """Files from other systems have the same version."""
    path = tmp_path / "judge.md"
    path.write_bytes((mark + WHOLE.replace("\n", ending)).encode())
    assert PromptTemplate.load(path).sections[1].template == "Output: $output"
    plain = PromptTemplate.parse(WHOLE)
    content = [section.template for section in PromptTemplate.load(path).sections]
    assert content == [section.template for section in plain.sections]


def test_without_role_marks_everything_is_a_user_message() -> None:
    """And without declared parameters the placeholders are the parameters."""
    template = PromptTemplate.parse("---\nkey: greet\n---\nGreet $name.")
    assert template.id.startswith("prompts/greet@")
    assert [(s.role, s.template) for s in template.sections] == [("user", "Greet $name.")]


def test_a_mark_at_the_very_end_is_a_mark() -> None:
    """An empty part is a fault, not a comment that is sent."""
    assert "part-2: a section needs a title or a text" in faults("---\nkey: a\n---\nHi\n<!-- user -->")


@each_row(
    ("text", "output"),
    [
        ("Hello", "judge.md: the file has no front matter"),
        ("---\nkey: a\nHello", "the file has no front matter"),
        ("---\n[unclosed\n---\nHi", "its front matter is not valid YAML: the list that starts on line 1 is not closed"),
        ("---\n- key\n---\nHi", "its front matter has no key"),
        ("---\nns: a\n---\nHi", "its front matter has no key"),
        ("---\nkey: 3\n---\nHi", "key must be a string, got 3"),
        ("---\nkey: a\nns:\n---\nHi", "ns must be a string, got None"),
        ("---\nkey: a\nversion: [1]\n---\nHi", "version must be a string or a number, got [1]"),
        ("---\nkey: a\nparamters: {}\n---\nHi", "paramters: unknown key; did you mean 'par"),
        ("---\nkey: a\nparameters: [b]\n---\nHi", "parameters must be a mapping of names to types, got ['b']"),
        ("---\nkey: a\nparameters: {b: sting}\n---\n$b", "parameters.b: 'sting' is not a type"),
        ("---\nkey: a\nparameters: {b: [str]}\n---\n$b", "parameters.b: ['str'] is not a type"),
        ("---\nkey: a\nparameters: {b: str}\n---\n$c", "part-1: $c is not a parameter"),
        ("---\nkey: a\nparameters: {b: str}\n---\nHi", "b: the text does not use this parameter"),
        ("---\nkey: a\n---\n<!-- asistant -->\nHi", "<!-- asistant -->: unknown role; choose one of: system, user"),
        ("---\nkey: a\n---\n<!-- user -->\ncosts $5", "judge.md, part-1: a $ is not followed"),
        ("---\nkey: a\n---\n", "a prompt needs at least one section"),
    ],
)
def test_a_fault_in_a_file_is_reported_with_its_name(text: str, output: str) -> None:
    """What, where, and the nearest known word."""
    answer = faults(text)
    assert output in answer
    assert "judge.md" in answer


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """Missing, or not UTF-8."""
    with pytest.raises(ModelError, match=r"file not found: .*gone\.md"):
        PromptTemplate.load(tmp_path / "gone.md")
    (tmp_path / "latin.md").write_bytes(b"---\nkey: caf\xe9\n---\nHi")
    with pytest.raises(ModelError, match="line 2 is not UTF-8 text"):
        PromptTemplate.load(tmp_path / "latin.md")
