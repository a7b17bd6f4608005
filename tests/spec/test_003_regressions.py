"""The runner spec: example usage, tracking regressions, interpreting results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor import (
    EvalRunner,
    JSONLDataset,
    JSONReporter,
    MarkdownReporter,
    compare,
    evaluate,
    exact_match,
    llm_judge,
    question_format,
)
from proctor.reports.json import load
from tests.spec.clauses import clause, not_applicable
from tests.spec.runner_examples import FRANCE, GOOD, LIGHT, FollowUps, Project, double

not_applicable(
    "003.READING.5",
    "Common Issues and Fixes",
    "Low judge scores, weak novelty filters and wrong starters have known fixes in the generator.",
    reason="advice about the follow-up generator of another program, not about evaluation",
)
not_applicable(
    "003.STRUCTURE.1",
    "File Structure",
    "The framework is one package of eight modules.",
    reason="the layout of another program; ARCHITECTURE.md describes this one",
)


def rows(rights: int, total: int) -> list[dict[str, str]]:
    """Samples of which the first N are right."""
    return [{"id": str(n), "input": "a", "expected": "aa" if n < rights else "x"} for n in range(total)]


@clause("003.USAGE.1", "Basic Evaluation")
def test_the_basic_example_of_the_spec_runs(tmp_path: Path) -> None:
    """Load a file, run a target with a judge, save a Markdown report, read the judge's mean."""

    def model(messages: Any) -> str:
        *_, line = messages[-1].content.splitlines()
        return f"Fine.\n{line.partition('<')[0]}4"

    path = tmp_path / "my_eval_data.jsonl"
    lines = [json.dumps({"id": s.id, "input": s.input, "expected": s.expected}) for s in (FRANCE, LIGHT)]
    path.write_text("\n".join(lines), encoding="utf-8")
    results = EvalRunner(GOOD, evaluators=[llm_judge(model)]).run(JSONLDataset(path), history=False)
    MarkdownReporter().save(results, tmp_path / "eval_report.md")
    assert f"{results.metrics['llm_judge.mean'].value:.2f}" == "0.75"
    assert "llm_judge.mean" in (tmp_path / "eval_report.md").read_text().replace("\\", "")


@clause("003.USAGE.2", "Dependencies")
def test_nothing_of_langchain_or_pydantic_is_needed() -> None:
    """Importing Proctor and running an evaluation loads neither pydantic nor LangChain."""
    import subprocess
    import sys

    code = (
        "import sys; from proctor import evaluate, exact_match\n"
        "evaluate(str.upper, [{'id': '1', 'input': 'a', 'expected': 'A'}], exact_match,"
        " history=False, progress=False)\n"
        "print(sorted({'pydantic', 'langchain_core', 'langchain_openai'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@clause("003.USAGE.3", "Overview", ruling="runner: a follow-up generator as a LangChain runnable")
def test_a_langchain_runnable_is_a_target() -> None:
    """A LangChain runnable that generates follow-up questions is evaluated as it is."""
    runnables = pytest.importorskip("langchain_core.runnables")
    node = runnables.RunnableLambda(lambda turn: [f"Interested in {turn['query'].lower()}"])
    report = evaluate(node, [FRANCE], question_format, history=False)
    (result,) = report.results
    assert result.output == ["Interested in what is the capital of france?"]
    assert result.passed is True


@clause("003.REGRESSION.1", "Tracking Regressions")
def test_two_stored_reports_can_be_read_and_compared(tmp_path: Path) -> None:
    """Reports are read back from JSON, and their metrics compared by name."""
    before = FollowUps({**GOOD.questions, "What is light?": "Tell me more."})
    for name, target in (("baseline", before), ("current", GOOD)):
        report = EvalRunner(target, [exact_match, question_format]).run([FRANCE, LIGHT], history=False)
        JSONReporter().save(report, tmp_path / f"{name}.json")
    baseline, current = load(tmp_path / "baseline.json"), load(tmp_path / "current.json")
    changes = {
        name: (baseline.metrics[name].value, current.metrics[name].value)
        for name in ("exact_match.mean", "question_format.mean")
    }
    assert changes == {"exact_match.mean": (0.5, 1.0), "question_format.mean": (0.5, 1.0)}


@clause("003.REGRESSION.2", "Tracking Regressions", ruling="runner: absolute and relative change")
def test_a_comparison_gives_the_absolute_and_the_relative_change(tmp_path: Path) -> None:
    """From 4 of 8 to 6 of 8 the pass rate rises by 0.25, which is 50% of the baseline."""
    history = tmp_path / "h.db"
    evaluate(double, rows(4, 8), exact_match, history=history, name="before")
    evaluate(double, rows(6, 8), exact_match, history=history, name="after")
    delta = compare("after", "before", history=history, accept_changes=True).find("pass_rate")
    assert delta is not None
    assert (delta.absolute, delta.percentage) == (0.25, 50.0)


@clause("003.REGRESSION.3", "Tracking Regressions", ruling="runner: no division by a zero baseline")
def test_a_baseline_of_zero_has_no_relative_change(tmp_path: Path) -> None:
    """Where the baseline is 0 there is an absolute change and no percentage."""
    history = tmp_path / "h.db"
    evaluate(double, rows(0, 8), exact_match, history=history, name="before")
    evaluate(double, rows(4, 8), exact_match, history=history, name="after")
    delta = compare("after", "before", history=history, accept_changes=True).find("pass_rate")
    assert delta is not None
    assert (delta.absolute, delta.percentage) == (0.5, None)


@clause("003.REGRESSION.4", "Tracking Regressions", ruling="runner: new and missing metrics are named")
def test_metrics_that_only_one_run_has_are_named(tmp_path: Path) -> None:
    """A metric without a partner is neither 0 nor left out in silence: it is listed."""
    history = tmp_path / "h.db"
    evaluate(double, rows(4, 8), {"same": exact_match}, history=history, name="before")
    evaluate(
        double, rows(4, 8), {"same": exact_match, "new": lambda output: True}, history=history,
        name="after",
    )  # fmt: skip
    comparison = compare("after", "before", history=history, accept_changes=True)
    delta = comparison.find("new")
    assert delta is not None
    assert (delta.a, delta.b, delta.absolute, delta.percentage) == (1.0, None, None, None)
    assert "new" in str(comparison)


@clause("003.REGRESSION.5", "Tracking Regressions")
def test_a_threshold_fails_the_build(tmp_path: Path) -> None:
    """`--fail-under` exits with 1 if the metric is below it, and with 0 if it is reached."""
    project = Project(tmp_path)
    run = (
        "run", "--dataset", "data.jsonl", "--target", "app.py:answer", "-e", "exact_match",
        "--history", "h.db", "--quiet",
    )  # fmt: skip
    assert project.proctor(*run, "--fail-under", "50%").returncode == 0
    below = project.proctor(*run, "--fail-under", "exact_match.mean=0.6")
    assert below.returncode == 1
    assert "exact_match.mean is 0.5, below 0.6" in below.stdout + below.stderr


@clause("003.REGRESSION.6", "Tracking Regressions")
def test_a_threshold_may_stand_in_the_eval_file(tmp_path: Path) -> None:
    """`fail_under: 80%` in an eval file gates every run of it."""
    project = Project(tmp_path)
    project.write(
        "eval.yaml", "dataset: data.jsonl\ntarget: app.py:answer\nevaluators: [exact_match]\nfail_under: 80%\n"
    )
    done = project.proctor("run", "--history", "h.db", "--quiet")
    assert done.returncode == 1
    assert "strict_pass_rate is 0.5, below 0.8" in done.stdout + done.stderr


@clause("003.REGRESSION.7", "Tracking Regressions", ruling="runner: a baseline gate with exit codes")
def test_a_baseline_gate_fails_a_regression(tmp_path: Path) -> None:
    """A run that lost half of 60 samples fails the gate of 5 points, and equal runs pass it."""
    project = Project(tmp_path)
    data = [{"id": str(n), "input": "a", "expected": "A"} for n in range(60)]
    project.write("many.jsonl", "\n".join(json.dumps(row) for row in data))
    project.write(
        "worse.py",
        "count = 0\n\ndef answer(text):\n    global count\n    count += 1\n    return 'A' if count % 2 else 'x'\n",
    )
    run = ("--dataset", "many.jsonl", "-e", "exact_match", "--history", "h.db", "--quiet")
    for name, target in (("main", "app.py:answer"), ("same", "app.py:answer"), ("bad", "worse.py:answer")):
        assert project.proctor("run", *run, "--target", target, "--name", name).returncode == 0
    gate = ("--baseline", "main", "--margin", "5%", "--history", "h.db")
    assert project.proctor("gate", "same", *gate).returncode == 0
    assert project.proctor("gate", "bad", *gate).returncode == 1


@clause("003.READING.1", "Interpreting Results")
def test_the_judge_mean_is_a_metric_of_every_run_with_a_judge() -> None:
    """The mean of a judge is kept as `llm_judge.mean`, so that a limit such as 0.7 can be set."""

    def model(messages: Any) -> str:
        *_, line = messages[-1].content.splitlines()
        return f"Fine.\n{line.partition('<')[0]}5"

    report = EvalRunner(GOOD, llm_judge(model)).run([FRANCE], history=False)
    assert report.metrics["llm_judge.mean"].value == 1.0


@clause("003.READING.2", "Interpreting Results")
def test_the_success_rate_shows_timeouts_and_errors() -> None:
    """Every time-out and error lowers the success rate: 9 of 10 is 90%."""
    data = [{"id": str(n), "input": "a" if n else "bad", "expected": "aa"} for n in range(10)]
    assert evaluate(double, data, exact_match, history=False).metrics["success_rate"].value == 0.9


@clause("003.READING.3", "Interpreting Results")
def test_the_question_format_rate_is_a_metric() -> None:
    """The share of well-formed questions is kept as `question_format.mean`."""
    report = EvalRunner(GOOD, question_format).run([FRANCE, LIGHT], history=False)
    assert report.metrics["question_format.mean"].value == 1.0


@clause("003.READING.4", "Interpreting Results", ruling="pass_rate never stands alone")
def test_errors_are_shown_beside_the_pass_rate() -> None:
    """The headline of a report with a pass rate also counts the errors."""
    data = [{"id": "1", "input": "a", "expected": "aa"}, {"id": "2", "input": "bad"}]
    report = evaluate(double, data, exact_match, history=False)
    assert (report.pass_rate, report.strict_pass_rate, report.errors) == (1.0, 0.5, 1)
    assert "1 error" in MarkdownReporter().generate(report).partition("## Overall")[0]
