"""Warnings about worthless judges: one score for everything, no scores, or a passed canary."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from proctor import evaluate, llm_judge
from proctor.cli.main import run_cli
from proctor.comparison.gates.decision import GateConfig, decide
from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError
from proctor.metrics.warnings import MEASUREMENTS, warn_local_judges
from proctor.records.run import EvaluatorSpec, RunMetadata
from proctor.reports.markdown import MarkdownReporter
from proctor.wiring.prepare import Evaluation, prepare
from proctor.wiring.registry import Registry
from tests.evaluators.judging.rehearsed import Asked, Scripted, rates

DATASET = [{"id": str(at), "input": f"text {at}"} for at in range(10)]


def echo(text: str) -> str:
    return text


def spoken(output: str) -> bool:
    return bool(output)


def run(evaluators: Any, samples: int = 10) -> EvalReport:
    return evaluate(echo, DATASET[:samples], evaluators, history=False, progress=False)


def warnings(report: EvalReport) -> list[str]:
    assert report.metadata is not None
    return list(report.metadata.warnings)


@pytest.mark.parametrize("rating", ["excellent", "wrong"])
def test_a_judge_that_gives_one_score_to_everything_is_warned_of(rating: str) -> None:
    """At any value, in the run, in its Markdown and in a gate on it."""
    report = run(llm_judge(rates(rating), "Is it polite?"))
    [warning] = warnings(report)
    assert warning.startswith("llm_judge gave the same score, ")
    assert "to all 10 results it judged" in warning
    assert "gave the same score" in MarkdownReporter().generate(report)
    gate = decide([], GateConfig(fail_under={"strict_pass_rate": 0.0}), report=report)
    assert warning in gate.warnings
    assert warning not in gate.notes  # it is shown once


def test_few_verdicts_and_rules_that_all_pass_are_not_suspicious() -> None:
    """Nine equal verdicts may be chance, and right outputs are all right."""
    assert warnings(run(llm_judge(rates("good"), "Is it polite?"), samples=9)) == []
    assert warnings(run(spoken)) == []


def test_a_judge_that_tells_outputs_apart_is_not_suspicious() -> None:
    """One other verdict among ten is enough."""

    def by_text(asked: Asked) -> str:
        return asked.rating("poor" if asked.part("OUTPUT") == "text 3" else "good")

    assert warnings(run(llm_judge(Scripted(by_text), "Is it polite?"))) == []


def test_local_models_that_judge_say_what_they_are_worth() -> None:
    """Also inside a combination; a model elsewhere, and a target, say nothing."""
    judge = {"name": "polite", "uses": "llm_judge", "parameters": {"adapter": "local:smollm2"}}
    specs = (
        EvaluatorSpec("polite", "llm_judge", {"adapter": "local:smollm2"}),
        EvaluatorSpec("both", "all_of", {"evaluators": ["exact_match", judge]}),
        EvaluatorSpec("other", "llm_judge", {"adapter": "openai:gpt-4o-mini"}),
    )
    found = list(warn_local_judges(RunMetadata("r", "r", datetime.now(UTC), evaluators=specs)))
    assert [sentence.partition(" is judged by ")[0] for sentence in found] == ["polite", "both"]
    measured = MEASUREMENTS["smollm2"].summary
    assert all(sentence.endswith(f"local:smollm2, which {measured}") for sentence in found)


def test_canaries_are_shown_to_the_judges_of_a_run() -> None:
    """With `canary: 1` every sample has one; a judge that passes anything is warned of."""
    judge = rates("excellent")
    evaluation = Evaluation(echo, DATASET[:2], [llm_judge(judge, "Right?"), spoken], canary=1)
    plan = prepare(evaluation, Registry.standard())
    assert [one.mode for one in plan.evaluators] == ["async", "thread"]
    without = Evaluation(echo, DATASET[:2], [llm_judge(judge, "Right?"), spoken])
    plain = prepare(without, Registry.standard())
    assert [one.spec for one in plan.evaluators] == [one.spec for one in plain.evaluators]


def test_a_canary_needs_a_judge() -> None:
    """Without a judge it is refused before anything runs."""
    with pytest.raises(ConfigError, match="a canary needs a judge"):
        prepare(Evaluation(echo, DATASET, [spoken], canary=5), Registry.standard())


def test_the_command_line_and_the_eval_file_take_a_canary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`proctor run --canary 1` and `canary: 1` warn of a judge that passes a bad answer."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(
        "from proctor import llm_judge\n"
        "def answer(text): return text\n"
        "def kind(messages):\n"
        "    *_, line = messages[-1].content.splitlines()\n"
        "    return 'Fine.\\n' + line.partition('<')[0] + 'good'\n"
        "judge = llm_judge(kind, 'Is it right?')\n"
    )
    (tmp_path / "data.jsonl").write_text('{"id": "1", "input": "hi"}\n')
    body = "dataset: data.jsonl\ntarget: app.py:answer\nevaluators: ['app.py:judge']\n"
    (tmp_path / "plain.yaml").write_text(body)
    (tmp_path / "canary.yaml").write_text(body + "canary: 1\n")
    for args in (["run", "plain.yaml", "--canary", "1"], ["run", "canary.yaml"]):
        assert run_cli([*args, "--history", str(tmp_path / "h.db")]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert "passes the bad answer of the canary" in told
    run_cli(["run", "plain.yaml", "--history", str(tmp_path / "h.db")])
    assert "canary" not in capsys.readouterr().out
