"""The rubric spec: rubric files, judge templates and judge prompts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from proctor import (
    ChatSession,
    EvaluationConfig,
    Message,
    Rubric,
    RubricScorer,
    Score,
    Session,
    ToolCall,
    evaluate,
    load_rubrics,
    rubric_evaluators,
)
from proctor.cli.main import run_cli
from proctor.errors import ConfigError, EvaluatorError
from tests.evaluators.judging.rehearsed import scores
from tests.spec.chats import CHAT, CLARITY, EFFICIENCY, TEMPLATE, Chats, read_log, rubric_file
from tests.spec.clauses import clause, not_applicable

ENTRY: dict[str, Any] = {
    "id": "tone",
    "name": "Tone",
    "description": "Is the agent polite?",
    "scoring_criteria": "1: rude\n5: polite",
}


def load(folder: Path, *entries: dict[str, Any], **more: Any) -> Any:
    """The rubric set of a file with these entries."""
    path = folder / "rubrics.json"
    path.write_text(json.dumps({"version": "2.1", "rubrics": list(entries), **more}))
    return load_rubrics(path)


def judge_chat(judge: Any, rubric: Any = EFFICIENCY, **options: Any) -> Score:
    """The score of `CHAT` by one rubric."""
    (evaluator,) = rubric_evaluators(judge, [rubric], **options)

    async def main() -> Score:
        score: Score = await evaluator(None, None, CHAT)
        return score

    return asyncio.run(main())


def judge_with_template(folder: Path, template: str) -> str:
    """The request of a judge with this template, as one text."""
    judge = scores(4)
    (folder / "judge_template.txt").write_text(template)
    judge_chat(judge, template=folder / "judge_template.txt")
    return judge.asked[0].text


@clause("004.RUBRICS.1", "1. List of Rubrics")
def test_a_rubric_file_is_json_with_a_version_and_rubrics(tmp_path: Path) -> None:
    """`load_rubrics(path)` gives the version and the rubrics of a JSON file, in its order."""
    loaded = load(tmp_path, {**ENTRY, "weight": 1.5}, {**ENTRY, "id": "brevity", "name": "Brevity"})
    assert loaded.version == "2.1"
    assert [(rubric.id, rubric.name) for rubric in loaded] == [("tone", "Tone"), ("brevity", "Brevity")]
    tone = loaded["tone"]
    assert (tone.description, tone.scoring_criteria, tone.weight) == ("Is the agent polite?", "1: rude\n5: polite", 1.5)


@clause("004.RUBRICS.2", "1. List of Rubrics", ruling="a rubric has weight=1.0")
def test_the_weight_of_a_rubric_is_one_by_default(tmp_path: Path) -> None:
    """A rubric without `weight` has the weight 1.0, in a file and in a program."""
    assert load(tmp_path, ENTRY)["tone"].weight == 1.0
    assert Rubric("tone", "Tone", "Is the agent polite?", "1: rude").weight == 1.0


@clause("004.RUBRICS.3", "1. List of Rubrics", ruling="ids unique, weights positive")
@pytest.mark.parametrize("weight", [0, -1, "2", float("inf")])
def test_ids_are_unique_and_weights_positive(tmp_path: Path, weight: Any) -> None:
    """A repeated id and a weight that is not a number greater than 0 are errors of the file."""
    with pytest.raises(ConfigError, match=r"rubrics\[0\]\.weight"):
        load(tmp_path, {**ENTRY, "weight": weight})
    with pytest.raises(ConfigError, match=r"rubrics\[1\]\.id: .*'tone'"):
        load(tmp_path, ENTRY, {**ENTRY, "name": "Another"})


@clause("004.RUBRICS.4", "1. List of Rubrics", ruling="rubric files may carry further keys")
def test_further_keys_are_kept_and_listed_in_a_warning(tmp_path: Path) -> None:
    """Keys beyond the known ones are kept in `metadata`, and a run warns of them."""
    loaded = load(tmp_path, {**ENTRY, "evidence_count": 7})
    assert loaded["tone"].metadata["evidence_count"] == 7
    sessions = read_log(tmp_path / "chat.jsonl", [{"role": "user", "content": "Hello"}])
    evaluators = rubric_evaluators(scores(4), tmp_path / "rubrics.json")
    report = evaluate(None, sessions, evaluators, history=False)
    assert report.results[0].scores["tone"].details["score"] == 4
    assert report.metadata is not None
    assert any("'evidence_count'" in warning for warning in report.metadata.warnings)


@clause("004.RUBRICS.5", "1. List of Rubrics")
def test_rubrics_can_be_predefined() -> None:
    """The set "starter" ships: six rubrics with criteria for each score from 1 to 5."""
    starter = load_rubrics("starter")
    assert len(starter) == 6
    for rubric in starter:
        assert all(f"{score}:" in rubric.scoring_criteria for score in range(1, 6)), rubric.id


@clause("004.RUBRICS.6", "1. List of Rubrics")
def test_the_rubric_file_is_named_on_the_command_line(tmp_path: Path) -> None:
    """`--rubrics FILE` names the rubrics that the judge scores by."""
    chats = Chats(tmp_path)
    chats.add("a", 4, 5)
    other = rubric_file(tmp_path / "other.json", CLARITY)
    report = chats.evaluate("a", "--rubrics", str(other))
    assert [entry["rubric_id"] for entry in report["rubric_scores"]] == ["rubric_002"]


@clause("004.RUBRICS.7", "1. List of Rubrics")
def test_rubrics_can_be_learned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`proctor sessions learn` writes rubrics in the format that sessions are scored by."""
    monkeypatch.chdir(tmp_path)
    for number in range(10):
        chat = [{"role": "user", "content": f"Session {number} has quality {1 + number % 5}."}]
        (tmp_path / f"s{number}.json").write_text(json.dumps(chat))
    known = [{"path": f"s{number}.json", "score": 1 + number % 5} for number in range(10)]
    (tmp_path / "manifest.json").write_text(json.dumps(known))
    model = ("--model", "tests.rubrics.test_learning:TEACHER", "--embedder", "lexical")
    files = ("--manifest", "manifest.json", "--output", "learned.json")
    assert run_cli(["sessions", "learn", *files, *model]) == 0
    assert [rubric.name for rubric in load_rubrics("learned.json")] == ["Evidence", "Brevity"]
    scored = ("--session", "s4.json", "--output", "result.json", "--quiet")
    assert run_cli(["sessions", "evaluate", "--rubrics", "learned.json", *scored, "--judge", model[1]]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["summary"]["total_score"] == 5.0


@clause("004.TEMPLATE.1", "2. LLM-as-a-Judge Template Prompt")
def test_a_template_has_four_variables(tmp_path: Path) -> None:
    """Name, description, criteria and session replace their variables.

    They are `{rubric_name}`, `{rubric_description}`, `{scoring_criteria}` and `{chat_session}`.
    """
    request = judge_with_template(
        tmp_path, "N={rubric_name}\nD={rubric_description}\nC={scoring_criteria}\nS follows\n{chat_session}"
    )
    assert "N=Task Completion Efficiency\nD=Is the task completed in few turns?\n" in request
    assert "C=1: no 5: yes\nS follows\n" in request
    assert "[1] user:\n    Count the files.\n[2] assistant:\n    Two files." in request


@clause("004.TEMPLATE.2", "2. LLM-as-a-Judge Template Prompt")
def test_the_template_is_a_file_that_the_user_names(tmp_path: Path) -> None:
    """`--template FILE` is the template of the judge; without it one that ships is used."""
    chats = Chats(tmp_path)
    chats.add("a", 4, 5)
    wrong = TEMPLATE.replace("## Rubric: {rubric_name}", "## Rubric: none ({rubric_name})")
    (tmp_path / "wrong.txt").write_text(wrong)
    report = chats.evaluate("a", "--template", str(tmp_path / "wrong.txt"))
    assert report["summary"]["rubrics_evaluated"] == 0
    judge = scores(4)
    assert judge_chat(judge).details["score"] == 4
    assert "## Rubric: Task Completion Efficiency" in judge.asked[0].text


@clause("004.TEMPLATE.3", "2. LLM-as-a-Judge Template Prompt", ruling="checked when loaded")
def test_unknown_and_missing_variables_are_errors(tmp_path: Path) -> None:
    """A template with an unknown variable, or without one of the four, is refused when loaded."""
    with pytest.raises(EvaluatorError) as refused:
        judge_with_template(tmp_path, "{rubric_name}\n{rubric_text}\n{scoring_criteria}")
    problems = "\n".join(map(str, refused.value.problems))
    for name in ("{rubric_text}", "{rubric_description}", "{chat_session}"):
        assert name in problems
    assert "line 2" in problems


@clause("004.TEMPLATE.4", "2. LLM-as-a-Judge Template Prompt", ruling="braces are safe")
def test_other_braces_in_a_template_are_text(tmp_path: Path) -> None:
    """JSON and other braces in a template reach the judge as they are written."""
    request = judge_with_template(tmp_path, f'Like {{"a": {{"b": 1}}}} or {{}}.\n{TEMPLATE}')
    assert 'Like {"a": {"b": 1}} or {}.\n' in request


@clause("004.TEMPLATE.5", "Judge Template Prompt Example")
def test_the_template_of_the_example_is_taken_as_it_is(tmp_path: Path) -> None:
    """The template of the specification is accepted, and all of its text reaches the judge."""
    request = judge_with_template(tmp_path, TEMPLATE)
    before, after = TEMPLATE.split("{chat_session}")
    filled = before.format(
        rubric_name="Task Completion Efficiency",
        rubric_description="Is the task completed in few turns?",
        scoring_criteria="1: no 5: yes",
    )
    assert filled.strip() in request
    assert after.strip() in request


@clause("004.PROMPT.1", "1. Judge Prompt Generator")
def test_each_rubric_has_a_prompt_of_its_own() -> None:
    """For N rubrics the judge gets N requests, each with one rubric and the whole session."""
    judge = scores(4)
    scorer = RubricScorer(judge, EvaluationConfig(max_concurrent=1))
    asyncio.run(scorer.score_all([EFFICIENCY, CLARITY], CHAT))
    first, second = (request.text for request in judge.asked)
    assert (EFFICIENCY.name in first, CLARITY.name in first) == (True, False)
    assert (EFFICIENCY.name in second, CLARITY.name in second) == (False, True)
    assert "Two files." in first
    assert "Two files." in second


@clause("004.PROMPT.2", "1. Judge Prompt Generator")
def test_the_session_is_formatted_with_turns_and_tools() -> None:
    """The judge reads numbered turns, tool calls with arguments, their results and errors."""
    judge = scores(4)
    session = Session(
        [
            Message("user", "Count the files."),
            ToolCall("ls", {"path": "."}, result="a b"),
            ToolCall("rm", {}, error="denied"),
            Message("assistant", "Two."),
        ]
    )
    asyncio.run(RubricScorer(judge).score(EFFICIENCY, ChatSession("s1", session)))
    assert judge.asked[0].part("CHAT SESSION") == (
        "[1] user:\n    Count the files.\n"
        '[2] tool ls({"path":"."}) returned:\n    a b\n'
        "[3] tool rm({}) failed:\n    denied\n"
        "[4] assistant:\n    Two."
    )


@clause("004.PROMPT.3", "1. Judge Prompt Generator", ruling="braces in the text are safe")
def test_braces_in_rubrics_and_sessions_are_not_filled_in() -> None:
    """Text in braces in a rubric or a session reaches the judge unchanged."""
    rubric = Rubric("r", "R", "Is {chat_session} valid JSON: {'a': {}}?", "1: {no} 5: {{yes}}")
    session = Session([Message("user", "Print {rubric_name} and {0}."), Message("assistant", "{")])
    judge = scores(4)
    asyncio.run(RubricScorer(judge).score(rubric, session))
    text = judge.asked[0].text
    assert "Is {chat_session} valid JSON: {'a': {}}?" in text
    assert "1: {no} 5: {{yes}}" in text
    assert "Print {rubric_name} and {0}." in text


@clause("004.PROMPT.4", "1. Judge Prompt Generator", ruling="cut for the judge only")
def test_long_contents_are_cut_in_the_middle_for_the_judge_only(tmp_path: Path) -> None:
    """The judge gets the beginning and the end of a long content; the record keeps all of it."""
    content = "b" * 3_000 + "m" * 3_000 + "e" * 3_000
    events = [
        {"type": "message", "role": "user", "content": "Read it."},
        {"type": "tool_call", "name": "read", "result": content},
    ]
    sessions = read_log(tmp_path / "s.json", {"id": "s", "session": {"events": events}})
    judge = scores(4)
    report = evaluate(None, sessions, rubric_evaluators(judge, [CLARITY]), history=False)
    shown = judge.asked[0].part("CHAT SESSION")
    assert (shown.count("b" * 1_000), shown.count("e" * 1_000)) == (2, 2)
    assert len(shown) < 5_000
    assert "5,000 characters left out" in shown
    recorded = report.results[0].trial.session
    assert recorded is not None
    assert recorded[ToolCall][0].result == content


not_applicable(
    "004.PROMPT.5",
    "1. Judge Prompt Generator",
    "A class `JudgePromptGenerator` makes the prompts.",
    reason="the evaluator `rubric` makes the prompts; the guide for other tools maps the name.",
)
