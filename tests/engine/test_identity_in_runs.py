"""Cache, resume, workers and comparisons use the identity of targets and evaluators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from proctor import EvalReport, SQLiteHistory, compare, evaluate, exact_match, rescore
from proctor.core.identity import SCHEME
from proctor.distributed.expected_results import describe_setup
from proctor.engine.plan import Setup
from proctor.engine.start import find_changes
from proctor.errors import ResumeRefused
from proctor.evaluators.bound_evaluator import attach
from proctor.records.gate import Check
from proctor.reports import console, markdown
from proctor.reports import json as json_report
from proctor.targets.resolve import as_target
from tests.support import samples

CODE = """
PROMPT = "a"
CALLS = []
def answer(text):
    CALLS.append(text)
    return PROMPT
"""
JUDGE = """
WORDS = ["a"]
def judge(output):
    return output in WORDS
"""


@pytest.fixture
def program() -> dict[str, Any]:
    """A module with a prompt constant, a target and an evaluator."""
    names: dict[str, Any] = {"__name__": "a_program"}
    exec(CODE + JUDGE, names)
    return names


@pytest.fixture
def history(tmp_path: Path) -> SQLiteHistory:
    return SQLiteHistory(tmp_path / "h.db")


def run(program: dict[str, Any], history: SQLiteHistory, **options: Any) -> EvalReport:
    return evaluate(program["answer"], samples(3), program["judge"], history=history, **options)


def cached(report: EvalReport) -> tuple[int, int] | None:
    assert report.metadata is not None
    cached_outputs = report.metadata.cached_outputs
    return None if cached_outputs is None else (cached_outputs.count, cached_outputs.total)


def test_a_changed_prompt_is_not_answered_from_the_cache(program: dict[str, Any], history: SQLiteHistory) -> None:
    """Outputs of the old prompt are not scored as those of the new one."""
    assert cached(run(program, history, cache=True)) == (0, 3)
    assert cached(run(program, history, cache=True)) == (3, 3)
    program["PROMPT"] = "b"
    report = run(program, history, cache=True)
    assert cached(report) == (0, 3)
    assert [result.output for result in report.results] == ["b", "b", "b"]


def test_a_changed_prompt_refuses_to_be_resumed(program: dict[str, Any], history: SQLiteHistory) -> None:
    """One run does not mix the outputs of two prompts."""
    first = run(program, history, limit=2)
    program["PROMPT"] = "b"
    with pytest.raises(ResumeRefused, match="target: PROMPT changed"):
        run(program, history, resume=first.run_id)


def test_a_changed_constant_of_an_evaluator_refuses_to_be_resumed(
    program: dict[str, Any], history: SQLiteHistory
) -> None:
    """What an evaluator compares with is part of it."""
    first = run(program, history, limit=2)
    program["WORDS"] = ["b"]
    with pytest.raises(ResumeRefused, match=r"changed: judge \(its code, or code and constants that it uses\)"):
        run(program, history, resume=first.run_id)


def test_a_comparison_notices_a_changed_constant_of_an_evaluator(
    program: dict[str, Any], history: SQLiteHistory
) -> None:
    """Runs that were measured by other words are not compared as if they were alike."""
    first = run(program, history)
    program["WORDS"] = ["b"]
    second = run(program, history)
    comparison = compare(first.run_id, second.run_id, history=history)
    assert any("judge is not the same in both runs" in note for note in comparison.notes)


def test_a_worker_with_another_prompt_is_not_the_same(program: dict[str, Any]) -> None:
    """What a worker says it runs changes with the constants that it would use."""

    def told() -> str:
        setup = Setup(target=as_target(program["answer"]), evaluators=(attach(program["judge"]),))
        return describe_setup(setup)

    before = told()
    assert told() == before
    program["PROMPT"] = "b"
    assert told() != before


def test_every_report_says_how_many_outputs_are_from_the_cache(program: dict[str, Any], history: SQLiteHistory) -> None:
    """Console, Markdown, JSON and a comparison; a run without a cache says nothing of it."""
    plain = run(program, history)
    run(program, history, cache=True)
    report = run(program, history, cache=True)
    answer = "3 of 3 outputs from the cache"
    assert answer in console.render_report(report)
    assert f"- **Cache**: {answer}" in markdown.MarkdownReporter().generate(report)
    text = json_report.JSONReporter(indent=0).generate(report)
    assert '"cached_outputs":{"count":3,"of":3}' in text.replace(" ", "")
    comparison = compare(plain.run_id, report.run_id, history=history)
    assert [note for note in comparison.notes if answer in note]
    assert "cache" not in console.render_report(plain)
    again = rescore(report.run_id, exact_match, history=history)
    assert cached(again) == (3, 3)


def test_a_gate_says_how_many_outputs_are_from_the_cache(program: dict[str, Any], history: SQLiteHistory) -> None:
    """With thresholds alone, where no comparison says it."""
    from proctor.comparison.gates.decision import conclude_gate

    run(program, history, cache=True)
    check = Check("pass_rate", "pass", "pass_rate is at least 80%")
    result = conclude_gate([check], [], run(program, history, cache=True), baseline="")
    assert result.notes == ("3 of 3 outputs from the cache",)


def test_code_outside_the_identity_is_a_warning(history: SQLiteHistory) -> None:
    """For target and evaluators."""
    names: dict[str, Any] = {"__name__": "a_program"}
    exec(
        "import os\n"
        "def answer(text): return os.environ.get('ANSWER_STYLE', 'a')\n"
        "def judge(output): return output == os.getenv('JUDGE_STYLE', 'a')\n",
        names,
    )
    report = run(names, history)
    assert report.metadata is not None
    target, evaluator = report.metadata.warnings
    assert target.startswith("target 'answer' depends on the environment variable ANSWER_STYLE (in answer)")
    assert evaluator.startswith("evaluator 'judge' depends on the environment variable JUDGE_STYLE (in judge)")


def test_a_changed_prompt_file_is_not_answered_from_the_cache(tmp_path: Path, history: SQLiteHistory) -> None:
    """This includes files whose names are computed, next to the code or from a key."""
    prompt = tmp_path / "key_points.txt"
    names: dict[str, Any] = {"__name__": "a_program", "HERE": tmp_path}
    code = (
        "def answer(text): return (HERE / f'{pick()}_points.txt').read_text()\n"
        "def pick(): return 'key'\n"
        "def judge(output): return output == 'a'\n"
    )
    exec(compile(code, str(tmp_path / "program.py"), "exec"), names)
    prompt.write_text("a")
    assert cached(run(names, history, cache=True)) == (0, 3)
    assert cached(run(names, history, cache=True)) == (3, 3)
    prompt.write_text("b")
    report = run(names, history, cache=True)
    assert cached(report) == (0, 3)
    assert [result.output for result in report.results] == ["b", "b", "b"]


def test_an_ordinary_run_has_no_such_warning(program: dict[str, Any], history: SQLiteHistory) -> None:
    """No noise where everything is covered."""
    report = run(program, history, cache=True)
    assert report.metadata is not None
    assert report.metadata.warnings == ()


def test_a_run_of_an_older_scheme_says_so(program: dict[str, Any], history: SQLiteHistory) -> None:
    """Changes of its code cannot be detected; it continues with allow_changes."""
    first = run(program, history, limit=2)
    assert first.metadata is not None
    old = "0123456789abcdef"
    before = msgspec.structs.replace(
        first.metadata,
        target=msgspec.structs.replace(first.metadata.target, identity=old),
        evaluators=tuple(msgspec.structs.replace(spec, identity=old) for spec in first.metadata.evaluators),
    )
    history.update(before)
    places = [(change.where, change.what) for change in find_changes(before, first.metadata)]
    assert [where for where, _ in places] == ["target", "evaluators' code"]
    assert all(f"this is scheme {SCHEME}" in what for _, what in places)
    with pytest.raises(ResumeRefused, match="another version of Proctor"):
        run(program, history, resume=first.run_id)
    report = run(program, history, resume=first.run_id, allow_changes=True)
    assert report.total == 3


def test_a_run_of_another_version_continues_with_allow_changes(program: dict[str, Any], history: SQLiteHistory) -> None:
    """An upgrade may change the code of an evaluator; other options are still refused."""
    first = run(program, history, limit=2)
    assert first.metadata is not None
    (spec,) = first.metadata.evaluators
    before = msgspec.structs.replace(
        first.metadata,
        environment={**first.metadata.environment, "proctor": "0.0.9"},
        evaluators=(msgspec.structs.replace(spec, identity=f"{SCHEME}:0123456789abcdef"),),
    )
    history.update(before)
    with pytest.raises(ResumeRefused, match=r"another version of Python or Proctor(?s:.*)--allow-changes"):
        run(program, history, resume=first.run_id)
    assert run(program, history, resume=first.run_id, allow_changes=True).total == 3
    other_options = msgspec.structs.replace(spec, parameters={"margin": 1}, identity=f"{SCHEME}:0123456789abcdef")
    changes = find_changes(msgspec.structs.replace(before, evaluators=(other_options,)), first.metadata)
    assert [change.where for change in changes] == ["evaluators"]
