"""Judge templates: strict placeholders, safe braces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from proctor import MarkdownSection, PromptTemplate, rubric
from proctor.errors import EvaluatorError
from proctor.evaluators.judges.session_rubric import REQUIRED, judge_template, parse_template
from proctor.models.prompts import Prompt
from proctor.records.session import Session
from tests.evaluators.judging.rehearsed import scores

ALL = " ".join(f"{{{name}}}" for name in REQUIRED)
VALUES = dict.fromkeys(REQUIRED, "…")


def test_the_shipped_template_has_all_placeholders() -> None:
    """The four that are needed, and the ends of the scale."""
    assert set(judge_template().parameters) == {*REQUIRED, "min_score", "max_score", "mark"}


def test_unknown_and_missing_placeholders_are_named_with_their_line(tmp_path: Path) -> None:
    """All at once, when the file is loaded."""
    path = tmp_path / "mine.txt"
    path.write_text("{rubric_name}\n{rubric_descripton} {scoring_criteria}\n{user}")
    with pytest.raises(EvaluatorError) as refused:
        rubric(scores(4), "safety", prompt=path)
    assert [str(problem) for problem in refused.value.problems] == [
        "line 2: unknown placeholder {rubric_descripton}; did you mean 'rubric_description'?",
        (
            "line 3: unknown placeholder {user}; choose one of: chat_session, max_score, min_score, "
            "rubric_description, rubric_name, scale, scoring_criteria"
        ),
        "the placeholder {rubric_description} is missing",
        "the placeholder {chat_session} is missing",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"score": {"a": 1}}', '{"score": {"a": 1}}'),
        ("{} { x } {0} {a.b} }{ {{", "{} { x } {0} {a.b} }{ {{"),
        ("{{rubric_name}} {{x}}", "{rubric_name} {x}"),
        ("$rubric_name ${0} $$ 5$ %s", "$rubric_name ${0} $$ 5$ %s"),
        ("line\r\nline", "line\nline"),
    ],
)
def test_other_braces_and_dollars_are_text(text: str, shown: str) -> None:
    """Nothing but a name in single braces is a placeholder."""
    template = parse_template(f"{ALL} | {text}", "mine")
    assert Prompt(template).bind(VALUES).text == f"… … … \n…\n | {shown}"


def test_values_are_not_expanded_again() -> None:
    """A placeholder inside a value stays text."""
    template = parse_template(ALL, "mine")
    bound = Prompt(template).bind({**VALUES, "rubric_name": "{chat_session} $mark {{x}}"})
    assert bound.text == "{chat_session} $mark {{x}} … … \n…"


@pytest.mark.parametrize("around", ["{}", "Session: {} So?", "  {}.", "\n{}\n", "{}\t", "| {} |"])
def test_the_fence_begins_and_ends_a_line_wherever_the_session_is_put(around: str, tmp_path: Path) -> None:
    """The words on the fence say how it looks, and in the middle of a line it would not."""
    path = tmp_path / "mine.txt"
    others = " ".join(f"{{{name}}}" for name in REQUIRED if name != "chat_session")
    path.write_text(f"{others}\n{around.format('{chat_session}')}")
    judge = scores(4)
    rubric(judge, "safety", prompt=path)("Hello", None, Session())
    text = judge.asked[0].text
    found = re.findall(r"(?m)^<<<CHAT SESSION \w+$|^\w+ CHAT SESSION>>>[ \t]*$", text)
    assert len(found) == 2, text


def test_a_users_template_is_used_with_its_version(tmp_path: Path) -> None:
    """After the notice about the fence; the score names it."""
    path = tmp_path / "mine.txt"
    path.write_text(f"MY TEMPLATE, {{scale}}\n{ALL}", encoding="utf-8-sig")
    judge = scores(4)
    score = rubric(judge, "safety", prompt=path)("Hello", None, Session())
    assert "MY TEMPLATE, 1-5\nSafety Did the agent" in judge.asked[0].text
    assert score.details["judge"]["prompt"].startswith("judges/mine@")
    changed = tmp_path / "other" / "mine.txt"
    changed.parent.mkdir()
    changed.write_text(f"MY OTHER TEMPLATE\n{ALL}")
    assert judge_template(changed).id != judge_template(path).id


def test_a_prompt_template_is_accepted_too() -> None:
    """With the same four parameters, and no others."""
    text = " ".join(f"${name}" for name in REQUIRED)
    own: PromptTemplate[str] = PromptTemplate("me", "own", [MarkdownSection("", text, "all")])
    assert judge_template(own).id.startswith("me/own@")
    with pytest.raises(EvaluatorError, match=re.escape("the placeholder {chat_session} is missing")):
        judge_template(PromptTemplate("me", "own", [MarkdownSection("", "$rubric_name", "all")]))


def test_an_unreadable_template_is_refused(tmp_path: Path) -> None:
    """A missing file, and one that is not text."""
    with pytest.raises(EvaluatorError, match=r"file not found: .*none\.txt"):
        judge_template(tmp_path / "none.txt")
    (tmp_path / "latin.txt").write_bytes(b"\xff\xff")
    with pytest.raises(EvaluatorError, match="not UTF-8"):
        judge_template(tmp_path / "latin.txt")
