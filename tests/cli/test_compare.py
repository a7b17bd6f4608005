"""`proctor compare` and `proctor rank`: what they print, write and refuse."""

from __future__ import annotations

import pytest

from tests.cli.project import Project

APP = """
def answer(number, *, wrong=8):
    return "right" if number >= wrong else "wrong"
"""
EVAL = """
name: exam
dataset: numbers.jsonl
target: answers.py:answer
configurations:
  careful: {wrong: 1}
  hasty: {wrong: 12}
evaluators: [exact_match]
"""


@pytest.fixture
def runs(project: Project) -> Project:
    """A run called old, the baseline main, and one called new, of thirty samples each."""
    rows = "".join(f'{{"id": "n{n}", "input": {n}, "expected": "right"}}\n' for n in range(30))
    project.write("numbers.jsonl", rows)
    project.write("answers.py", APP)
    project.write("eval.yaml", EVAL)
    item = ("run", "--target", "answers.py:answer", "--dataset", "numbers.jsonl", "-q")
    evaluated = (*item, "--evaluator", "exact_match", "--name")
    assert project.proctor(*evaluated, "old").code == 0
    assert project.proctor("baseline", "set", "main", "old").code == 0
    project.write("answers.py", APP.replace("wrong=8", "wrong=1"))
    assert project.proctor(*evaluated, "new").code == 0
    return project


def test_compare_answers_in_a_sentence_first(runs: Project) -> None:
    """Then the table, the samples that turned, and how to look at one; the exit code is 0."""
    result = runs.proctor("compare", "new", "main", "--metric", "pass_rate", "--flips", "2")
    lines = result.out.splitlines()
    assert result.code == 0
    assert " ".join(lines[:2]) == (
        "new is better than main: pass_rate 96.7% vs. 73.3%, +23.3 points (n = 30, "
        "95% interval +5.1 to +38.6, p = 0.016)."
    )
    ids = [line.split()[-1].rstrip(";") for line in lines if line.startswith("new is run")]
    assert len(ids) == 1
    row = next(line for line in lines if line.startswith("pass_rate"))
    assert " ".join(row.split()) == "pass_rate 96.7% 73.3% +23.3 points 0.016 better"
    assert "0 samples passed only in main (lost), 7 only in new (won); score of main → new; the first 2:" in " ".join(
        result.out.split()
    )
    assert "  won   n1  0.00 → 1.00" in lines
    look = next(line for line in lines if line.startswith("  proctor show"))
    output = runs.proctor(*look.split()[1:])
    assert (output.code, output.out.split()[0]) == (0, "n1")
    assert max(map(len, lines)) <= 80


def test_a_worse_run_is_no_failure_of_the_command(runs: Project) -> None:
    """It is no gate: the exit code is 0 whatever comes out."""
    result = runs.proctor("compare", "main", "new", "--metric", "pass_rate")
    assert (result.code, result.out.startswith("main is worse than new")) == (0, True)
    same = runs.proctor("compare", "main", "new", "--metric", "pass_rate", "--min-difference", "50%")
    assert same.out.startswith("main and new show no relevant difference")


def test_json_for_programs(runs: Project) -> None:
    """Everything that is known, in one object."""
    result = runs.proctor("compare", "latest", "baseline:main", "--json").json
    [item] = result["comparisons"]
    assert (item["a"], item["b"], item["samples"]) == ("latest", "baseline:main", 30)
    rate = item["metrics"]["pass_rate"]
    assert (rate["verdict"], rate["n"], rate["p"]) == ("better", 30, 2 / 2**7)
    assert [flip["sample_id"] for flip in item["flips"]] == [f"n{n}" for n in range(1, 8)]
    assert result["only_one_has"] == []


def test_markdown_is_written(runs: Project) -> None:
    """The same as a file, for a pull request."""
    result = runs.proctor("compare", "new", "main", "--markdown", "out/compare.md")
    assert result.out.endswith("wrote out/compare.md\n")
    text = (runs.folder / "out" / "compare.md").read_text(encoding="utf-8")
    assert text.startswith("## new compared with main\n\nnew is better than main")
    assert "| pass_rate | 96.7% (" in text


def test_configurations_of_one_run(runs: Project) -> None:
    """--run names the run, A and B its configurations; or RUN@CONFIGURATION."""
    assert runs.proctor("run", "eval.yaml", "-q").code == 0
    result = runs.proctor("compare", "careful", "hasty", "--run", "exam", "--metric", "pass_rate")
    assert result.out.startswith("careful is better than hasty: pass_rate 96.7% vs. 60.0%")
    assert "Both configurations belong to run" in result.out
    same = runs.proctor("compare", "exam@careful", "exam@hasty", "--metric", "pass_rate")
    assert same.out == result.out


def test_every_configuration_that_both_have(runs: Project) -> None:
    """One after the other, corrected together; what only one has is named."""
    runs.proctor("run", "eval.yaml", "-q")
    runs.write("eval.yaml", EVAL.replace("evaluators", "  third: {wrong: 3}\nevaluators"))
    runs.proctor("run", "eval.yaml", "-q", "--name", "again")
    result = runs.proctor("compare", "again", "exam", "--metric", "pass_rate")
    assert "again@careful and exam@careful" in result.out
    assert "again@hasty and exam@hasty" in result.out
    assert result.out.endswith("Not compared, only one run has it: again@third\n")
    chosen = runs.proctor("compare", "again", "exam", "--configuration", "careful")
    assert "hasty" not in chosen.out


def test_run_and_show_compare_each_configuration_with_the_baseline(runs: Project) -> None:
    """`report.md` and `show --json` have the comparison too."""
    runs.write("eval.yaml", f"{EVAL}baseline: careful\n")
    result = runs.proctor("run", "eval.yaml", "--output", "out")
    assert "hasty is worse than careful: pass_rate 60.0% vs. 96.7%" in result.out
    assert "11 samples passed only in careful (lost), 0 only in hasty (won);" in result.out
    assert "hasty is worse than careful" in runs.proctor("show").out
    report = (runs.folder / "out" / "report.md").read_text(encoding="utf-8")
    assert "## hasty compared with careful" in report
    output = runs.proctor("show", "--json").json
    assert output["comparisons"][0]["metrics"]["pass_rate"]["verdict"] == "worse"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("new", "new"), "new and new are the same run"),
        (("new", "man"), "unknown run 'man'"),
        (("new", "main", "--metric", "pas_rate"), "did you mean 'pass_rate'?"),
        (("new", "main", "--configuration", "x"), "has no configuration 'x'"),
        (("new", "main", "--min-difference", "much"), "write 1% or 0.01"),
        (("new", "main", "--min-difference", "5"), "--min-difference must be 0 or more and less than 1, got 5"),
        (("a", "b", "--run", "new"), "has no configuration 'a'"),
        (("new",), "REFERENCE is missing"),
    ],
)
def test_what_is_refused(runs: Project, args: tuple[str, ...], message: str) -> None:
    """Invalid arguments are usage errors, with the cause and a fix."""
    result = runs.proctor("compare", *args)
    assert result.code == 2
    assert message in result.err


def test_rank_puts_runs_in_order(runs: Project) -> None:
    """The best first, with the places that the evidence allows; lower latency would be better."""
    result = runs.proctor("rank", "pass_rate", "main", "new")
    assert result.out.splitlines()[0] == "new is first by pass_rate, beyond chance."
    assert " ".join(result.out.splitlines()[4].split()) == "1 new 96.7% 83.3–99.4 30 1 100%"
    upward = runs.proctor("rank", "pass_rate", "main", "new", "--order", "asc")
    assert upward.out.startswith("main is first by pass_rate")
    actual = runs.proctor("rank", "exact_match", "main", "new", "--json").json
    assert actual["ranking"]["places"][0]["ranks"] == [1, 1]
    assert actual["answer"].startswith("new is first")


def test_rank_takes_one_run_apart(runs: Project) -> None:
    """Its configurations; a run with only one has nothing to put in order."""
    runs.proctor("run", "eval.yaml", "-q")
    assert runs.proctor("rank", "pass_rate", "exam").out.startswith("careful is first")
    single = runs.proctor("rank", "pass_rate", "new")
    assert (single.code, "only new has" in single.err) == (2, True)
    unknown = runs.proctor("rank", "pas_rate", "exam")
    assert (unknown.code, "did you mean 'pass_rate'?" in unknown.err) == (2, True)


def test_rank_says_what_can_be_ranked_by(runs: Project) -> None:
    """Texts have no order, and the names that have one are listed."""
    result = runs.proctor("rank", "expected", "main", "new")
    assert result.code == 2
    assert "rank by one of: pass_rate, strict_pass_rate, mean_score" in result.err


def test_rank_tells_of_a_run_that_is_not_complete(runs: Project) -> None:
    """What ran first need not be like the rest."""
    broken = APP.replace('return "right"', '1 / (number - 20); return "right"')
    runs.write("answers.py", broken)
    item = ("run", "--target", "answers.py:answer", "--dataset", "numbers.jsonl", "-q")
    more = ("--evaluator", "exact_match", "--name", "part", "--on-error", "raise")
    assert runs.proctor(*item, *more).code == 3
    result = runs.proctor("rank", "pass_rate", "main", "part")
    assert "Note: part is not complete (failed)" in " ".join(result.out.split())


def test_runs_without_a_common_sample_need_unpaired(runs: Project) -> None:
    """No verdict, exit code 2 and a Fix that works: the same command as two groups."""
    runs.write("others.jsonl", "".join(f'{{"id": "o{n}", "input": {n}, "expected": "right"}}\n' for n in range(30)))
    target = ("--target", "answers.py:answer", "-e", "exact_match")
    assert runs.proctor("run", "--dataset", "others.jsonl", *target, "--name", "others", "-q").code == 0
    result = runs.proctor("compare", "others", "main")
    assert (result.code, result.out) == (2, "")
    assert "others and main are not comparable: they have no sample in common" in result.err
    command = result.err.split("independent groups: ")[1].split()
    groups = runs.proctor(*command[1:])
    assert (command[-1], groups.code) == ("--unpaired", 0)
    assert "All samples of both are compared, as two independent groups." in " ".join(groups.out.split())
