"""A mutation test counts the planted faults that an evaluator notices and the harmless changes that it fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.records.results import ResultList
from proctor.records.run import EvaluatorSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import ModelCall, Session, ToolCall
from proctor.records.trial import EvalResult, Trial
from proctor.validity.mutation_report import render_markdown, render_text
from proctor.validity.mutation_test import MutationReport, limit_calls, plan_mutants, run_mutation_test
from proctor.validity.mutations import MUTATIONS
from tests.support import run_command

PASSED, FAILED = Score(1.0, True), Score(0.0, False)
RULE = EvaluatorSpec("rule", "rule")
JUDGE = EvaluatorSpec("judge", "judge", {"model": "test:judge"})


def results(count: int, score: Score = PASSED, *, calls: int = 0, name: str = "rule", epochs: int = 1) -> ResultList:
    sessions = {name: Session([ModelCall("test:judge")] * calls)} if calls else {}
    return ResultList(
        EvalResult(Trial(Sample(f"s{i}", "?", "5 km"), f"It is {i + 2} km long.", epoch=epoch), {name: score}, sessions)
        for i in range(count)
        for epoch in range(epochs)
    )


def constant(score: Score | None) -> Callable[[str, Sequence[Trial]], list[Score | None]]:
    return lambda _name, trials: [score] * len(trials)


def measure(stored: ResultList, score: Any, *names: str, spec: EvaluatorSpec = RULE) -> MutationReport:
    plan = plan_mutants(spec, stored, is_scored=True, mutations=[MUTATIONS[name] for name in names])
    return run_mutation_test([plan], score)


def test_only_passed_outputs_are_changed() -> None:
    """An output that fails already says nothing about a fault: it gets no mutant."""
    stored = ResultList([*results(3), *results(5, FAILED), *results(4, Score.skipped("no"))])
    plan = plan_mutants(RULE, stored, is_scored=True, mutations=[MUTATIONS["changed_number"]])
    assert (plan.passed, len(plan.mutants)) == (3, 3)
    failed = ResultList([EvalResult(Trial(Sample("1", "?"), "x"), {"rule": FAILED})])
    assert run_mutation_test([plan_mutants(RULE, failed, is_scored=True)], constant(PASSED)).answer.startswith("Cannot")


def test_the_rate_counts_verdicts_and_nothing_else() -> None:
    """Errors and skips are counted beside the rate; mutations that do not apply are no mutants."""
    scores = iter([FAILED, PASSED, Score.error("down"), Score.skipped("no claims"), FAILED])
    [tested] = measure(results(5), lambda _n, t: [next(scores) for _ in t], "changed_number", "changed_date").evaluators
    [row] = tested.rows
    assert (row.rate.value, row.rate.n, row.rate.errors, row.rate.skipped) == (2 / 3, 3, 1, 1)
    assert row.rate.interval == pytest.approx((0.2077, 0.9385), abs=5e-5)
    assert [verdict.sample_id for verdict in tested.survivors] == [tested.survivors[0].sample_id]


def test_mutants_of_one_sample_are_one_cluster() -> None:
    """Ten epochs of six samples are not sixty independent mutants: six clusters that agree count as six."""
    [tested] = measure(results(6, epochs=10), constant(FAILED), "changed_number").evaluators
    assert tested.kills["output"].n == 50
    assert tested.kills["output"].interval == pytest.approx((0.60, 1.0), abs=0.02)


def test_a_seed_draws_the_same_outputs_for_every_evaluator() -> None:
    """Evaluators with the same passed outputs are tested with the same mutants; another seed draws others."""
    options: dict[str, Any] = {"is_scored": True, "sample_size": 5}
    first, second = (plan_mutants(EvaluatorSpec("rule", use), results(90), **options) for use in ("a", "b"))
    other = plan_mutants(RULE, results(90), seed=1, **options)
    assert first.mutants == second.mutants
    assert {trial.sample.id for trial in first.trials} != {trial.sample.id for trial in other.trials}


def test_an_evaluator_without_verdicts_is_scored_first() -> None:
    """Mutants are made only of the outputs that the evaluator passes now."""
    plan = plan_mutants(RULE, results(4, FAILED), is_scored=False, mutations=[MUTATIONS["changed_number"]])

    def score(_name: str, trials: Sequence[Trial]) -> list[Score | None]:
        return [PASSED if trial.output.startswith(("It is 2", "It is 3 km")) else FAILED for trial in trials]

    [tested] = run_mutation_test([plan], score).evaluators
    assert (tested.trials, tested.passed) == (2, None)
    assert sum(row.rate.n for row in tested.rows) == 2


def test_a_judge_is_also_asked_about_unchanged_outputs() -> None:
    """The control shows how often a judge fails an output that it has passed before."""
    report = measure(results(3, name="judge"), constant(FAILED), "changed_number", spec=JUDGE)
    [tested] = report.evaluators
    assert tested.instability is not None
    assert (tested.instability.value, tested.instability.n) == (1.0, 3)
    assert "failed when asked again" in render_text(report)


def test_the_calls_of_judges_are_expected_and_limited() -> None:
    """Stored sessions tell the calls per verdict; a limit leaves mutants out and says so."""
    plan = plan_mutants(JUDGE, results(4, calls=3, name="judge"), is_scored=True)
    assert plan.calls == 3 * len(plan.mutants) > 60
    limit_calls([plan], 30)
    assert (len(plan.mutants), plan.calls) == (10, 30)
    assert len({mutant.mutation.name for mutant in plan.mutants}) > 3
    unscored = plan_mutants(JUDGE, results(20, name="judge"), is_scored=False)
    limit_calls([unscored], 20)
    assert (len(unscored.trials), len(unscored.mutants)) == (10, 10)
    report = run_mutation_test([plan], lambda _n, trials: [None, *[FAILED] * (len(trials) - 1)])
    assert report.evaluators[0].left_out == plan.left_out > 1
    assert "left out (--max-calls)" in " ".join(render_text(report).split())


def test_the_weakest_evaluator_is_named_by_what_it_reads() -> None:
    """An evaluator that notices no change of the output is weak, unless it notices changes of the session."""
    plans = [plan_mutants(EvaluatorSpec(name, name), results(40, name=name), is_scored=True) for name in ("a", "b")]
    report = run_mutation_test(plans, lambda name, trials: [FAILED if name == "a" else PASSED] * len(trials))
    assert report.weakest == "b"
    assert "Weakest: b, which notices 0% (0 of " in report.answer
    assert "overlap" not in report.answer
    assert report.any_evaluator is not None
    assert report.any_evaluator.value == 1.0


def test_a_check_of_tool_calls_is_rated_by_faults_in_the_session() -> None:
    """It cannot see changed outputs, so they are neither in its rates nor among its survivors; a judge sees both."""
    session = Session([ToolCall("find", {"city": "Rome"})])
    reports = {}
    for uses in ("all_tools_succeeded", "slice_contains"):
        trials = [Trial(Sample(f"s{i}", "?"), f"It is {i + 2} km long.", session=session) for i in range(10)]
        stored = ResultList(EvalResult(trial, {"check": PASSED}) for trial in trials)
        mutations = [MUTATIONS["changed_number"], MUTATIONS["missing_tool_call"]]
        plan = plan_mutants(EvaluatorSpec("check", uses), stored, is_scored=True, mutations=mutations)
        reports[uses] = run_mutation_test([plan], constant(PASSED)).evaluators[0]
    check = reports["all_tools_succeeded"]
    assert {part: rate.n for part, rate in check.kills.items()} == {"session": 10}
    assert {survivor.mutation for survivor in check.survivors} == {"missing_tool_call"}
    assert {part: rate.n for part, rate in reports["slice_contains"].kills.items()} == {"output": 10, "session": 10}


def test_a_fault_that_an_evaluator_could_not_judge_counts_as_not_noticed() -> None:
    """`a` notices 40 of 80 faults and `b` none of 40; the other 40 are errors of `b`: 40 of 80, at most 80 of 80."""
    names = [MUTATIONS["changed_number"], MUTATIONS["leaked_secret"]]
    plans = [
        plan_mutants(EvaluatorSpec(n, n), results(40, name=n), is_scored=True, mutations=names) for n in ("a", "b")
    ]

    def score(name: str, trials: Sequence[Trial]) -> list[Score | None]:
        leaks = ["API key" in str(trial.output) for trial in trials]
        if name == "a":
            return [PASSED if leak else FAILED for leak in leaks]
        return [Score.error("no answer") if leak else PASSED for leak in leaks]

    report = run_mutation_test(plans, score)
    assert report.any_evaluator is not None
    assert (report.any_evaluator.value, report.any_evaluator.n, report.undecided) == (0.5, 80, 40)
    assert "50% (40 of 80, 95% interval" in report.answer
    assert "40 of the 80 count as not noticed" in report.answer
    assert "the share would be 100%" in report.answer
    assert report.answer.endswith("b failed on 40 of 80 mutants, which its shares leave out.")
    nothing = run_mutation_test(plans, lambda _, trials: [Score.error("no answer") for _ in trials])
    assert nothing.answer.startswith("Cannot tell: no mutant was scored. a failed on 80 of 80 mutants")


def test_an_address_that_cannot_be_loaded_is_named(folder: Path) -> None:
    """`-e file.py:judge` is not an evaluator of the run, so the error is about the file."""
    done = run_command("mutate", "latest", "-e", "nofile.py:judge", cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith("error: -e: nofile.py:judge cannot be loaded: ")
    assert "of run" not in done.stderr
    assert done.stderr.count("Fix:") == 1


@given(st.lists(st.tuples(*[st.sampled_from(["passed", "failed", "error", "budget"])] * 3), min_size=1, max_size=12))
def test_together_evaluators_notice_at_least_what_each_of_them_notices(table: list[tuple[str, ...]]) -> None:
    """The count of the union is never below that of a member, whatever the others could not judge."""
    verdicts = {"passed": PASSED, "failed": FAILED, "error": Score.error("no answer"), "budget": None}
    mutations = [MUTATIONS["changed_number"]]
    plans = [
        plan_mutants(EvaluatorSpec(n, n), results(len(table), name=n), is_scored=True, mutations=mutations)
        for n in "012"
    ]
    report = run_mutation_test(plans, lambda n, _trials: [verdicts[row[int(n)]] for row in table])
    together = report.any_evaluator
    noticed = round((together.value or 0.0) * together.n) if together else 0
    assert noticed == sum("failed" in row for row in table)
    assert all(noticed >= sum(row[i] == "failed" for row in table) for i in range(3))
    judged = [row for row in table if {"passed", "failed"} & {*row}]
    assert (together.n if together else 0) == len(judged)
    assert report.undecided == sum("failed" not in row and bool({"error", "budget"} & {*row}) for row in judged)


def test_faults_put_to_some_evaluators_only_are_left_out_and_counted() -> None:
    """`a` passes 4 outputs and `b` 10: six of the ten faults were not put to `a`, and say nothing about both."""
    names = [MUTATIONS["changed_number"]]
    plans = [
        plan_mutants(EvaluatorSpec(n, n), results(count, name=n), is_scored=True, mutations=names)
        for n, count in (("a", 4), ("b", 10))
    ]
    report = run_mutation_test(plans, lambda n, trials: [FAILED if n == "a" else PASSED] * len(trials))
    assert report.any_evaluator is not None
    assert (report.any_evaluator.value, report.any_evaluator.n, report.not_shared) == (1.0, 4, 6)
    assert "of the planted faults put to all of them (6 put to only some of them are left out)" in report.answer


def test_a_rule_without_verdicts_gets_as_many_passing_outputs_as_asked_for() -> None:
    """Every third of 90 outputs passes; `sample_size=20` changes 20 of those 30, not the third of 20 drawn ones."""
    stored = results(90, FAILED)
    passing = {result.sample_id for result in list(stored)[::3]}
    plan = plan_mutants(RULE, stored, is_scored=False, sample_size=20, mutations=[MUTATIONS["changed_number"]])

    def score(_name: str, trials: Sequence[Trial]) -> list[Score | None]:
        return [PASSED if trial.sample.id in passing else FAILED for trial in trials]

    [tested] = run_mutation_test([plan], score).evaluators
    assert (tested.trials, tested.rows[0].rate.n) == (20, 20)


def test_names_and_texts_are_escaped_in_markdown() -> None:
    """Outputs cannot add links or formatting to a comment."""
    stored = ResultList([EvalResult(Trial(Sample("[x](y)", "?"), "See <b>5</b> www.x.org now"), {"rule": PASSED})])
    page = render_markdown(measure(stored, constant(PASSED), "changed_number", "leaked_secret"))
    assert "[-<b>" not in page
    assert r"\<b>" in page
    assert "[x](y)" not in page
    assert "| changed_number | 0/1 0% |" in page


QUESTIONS = {"How long is it?": "5 km", "Where?": "Madrid", "When?": "May 1999", "Free?": "No", "Cost?": "$12"}
APP = """
ANSWERS = {answers}

def answer(question):
    return ANSWERS[question]

def strict(output, expected, *, model=""):
    return output == expected
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "app.py").write_text(APP.format(answers=QUESTIONS))
    rows = [{"id": str(i), "input": q, "expected": a} for i, (q, a) in enumerate(QUESTIONS.items())]
    (folder / "qa.jsonl").write_text("\n".join(map(json.dumps, rows)))
    evaluators = ["-e", "exact_match", "-e", "contains"]
    ran = run_command("run", "--dataset", "qa.jsonl", "--target", "app.py:answer", *evaluators, "-q", cwd=folder)
    assert ran.returncode == 0, ran.stderr
    return folder


def command(folder: Path, *args: str) -> CompletedProcess[str]:
    return run_command("mutate", "latest", *args, cwd=folder)


def test_exact_match_notices_every_fault_and_contains_misses_appended_text(folder: Path) -> None:
    """The known answers: exact_match kills all mutants; contains passes what is only appended to the answer."""
    done = command(folder, "--json")
    assert done.returncode == 0, done.stderr
    exact, contains = json.loads(done.stdout)["evaluators"]
    assert exact["kills"]["output"]["value"] == 1.0
    assert exact["survivors"] == []
    rates = {row["mutation"]: row["rate"] for row in contains["rows"] if row["kind"] == "fault"}
    assert {name: rate["value"] for name, rate in rates.items()} == {
        "changed_number": 1.0, "changed_date": 1.0, "changed_name": 1.0, "changed_unit": 1.0, "negation": 1.0,
        "contradiction": 0.0, "leaked_secret": 0.0, "truncation": 1.0,
    }  # fmt: skip
    assert rates["contradiction"]["n"] == rates["leaked_secret"]["n"] == len(QUESTIONS)
    assert json.loads(done.stdout)["weakest"] == "contains"


def test_nothing_is_stored_and_the_survivors_are_shown(folder: Path) -> None:
    """The history has the same runs afterwards; the page shows the changed words."""
    before = run_command("runs", cwd=folder).stdout
    done = command(folder, "-e", "contains", "--survivors", "1", "--mutation", "contradiction")
    assert "contradiction                         0/5 0%       0% to 43%" in done.stdout
    assert "Faults that it still passes (1 of 5; --survivors N shows more):" in done.stdout
    assert "On the contrary" in done.stdout
    assert run_command("runs", cwd=folder).stdout == before


def test_the_verdicts_of_another_evaluator_are_computed(folder: Path) -> None:
    """An evaluator that the run does not have, or with other parameters, scores the originals first."""
    done = command(folder, "-e", "contains", "--set", "contains.case_sensitive=false", "--mutation", "casing", "--json")
    [tested] = json.loads(done.stdout)["evaluators"]
    assert "passed" not in tested or tested["passed"] is None
    assert tested["false_alarms"]["value"] == 0.0


def test_judges_are_asked_only_after_confirmation(folder: Path) -> None:
    """The number of calls is printed first; --json needs --yes."""
    judge = ["-e", "app.py:strict", "--set", "app.py:strict.model=test:x", "--mutation", "negation"]
    asked = command(folder, *judge, "--yes")
    assert "Expected calls of judges: 11 (strict 11)" in asked.stderr
    assert "negation                            1/1 100%" in asked.stdout
    refused = command(folder, *judge, "--json")
    assert refused.returncode == 2
    assert "add --yes" in refused.stderr
    limited = command(folder, *judge, "--yes", "--max-calls", "4")
    assert "Expected calls of judges: 4" in limited.stderr


def test_a_misspelled_mutation_is_refused(folder: Path) -> None:
    """The error suggests the nearest name."""
    done = command(folder, "--mutation", "changed_numbers")
    assert done.returncode == 2
    assert "did you mean 'changed_number'" in done.stderr
