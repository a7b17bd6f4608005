"""`proctor gate`: pass, fail and inconclusive, what it prints and writes, and its exit codes."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest

from proctor.history.sqlite import SQLiteHistory
from tests.cli.project import CommandResult, Project
from tests.tables import each_row

TARGET = """
from pathlib import Path

def answer(text, *, style=""):
    number = int(text)
    if number >= 1000:
        raise ValueError("too high")
    lost = int(Path(f"lost{style}.txt").read_text())
    return "no" if number < lost else f"A{number}"
"""
EVAL = """
name: exam
dataset: data.jsonl
target: app.py:answer
evaluators: [exact_match]
run: {concurrency: 1, shuffle: 7}
"""
CONFIGURATIONS = "configurations: {short: {style: -short}, long: {style: -long}}\n"
RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}")


@pytest.fixture
def exam(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """200 samples, all right except the number in lost.txt; the baseline is `main`."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    project.write("app.py", TARGET)
    project.write("eval.yaml", EVAL)
    samples(project, range(200))
    lose(project, 0)
    project.make_baseline()
    return project


def samples(project: Project, numbers: range) -> None:
    rows = [{"id": f"q{i}", "input": str(i), "expected": f"A{i}"} for i in numbers]
    project.write("data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def lose(project: Project, lost: int, name: str = "lost.txt") -> None:
    project.write(name, str(lost))


def run(project: Project, lost: int) -> None:
    lose(project, lost)
    assert project.proctor("run", "eval.yaml", "-q").code in (0, 3)


WARNING = (
    "Warning: target 'answer' depends on files whose names are computed (in answer):\n"
    "resume, cache, workers and comparisons do not notice changes there; set a\n"
    "version of the target when it changes\n"
)


def shown(result: CommandResult) -> str:
    return RUN_ID.sub("RUN", result.out)


def test_a_run_that_is_as_good_passes(exam: Project) -> None:
    """One sentence, one line for the check, exit code 0."""
    run(exam, 0)
    result = exam.proctor("gate", "latest", "--baseline", "main")
    assert (result.code, result.err) == (0, "")
    assert (
        shown(result)
        == (
            "The gate passes: strict_pass_rate 100.0% vs. 100.0%, at most 1.4 points worse\n"
            "(margin 2.0 points, 200 samples).\n"
            "\n"
            "pass          strict_pass_rate 100.0% vs. 100.0%, 0.0 points (95% interval -1.4\n"
            "              to +1.4), margin 2.0, 200 samples\n"
        )
        + WARNING
    )


def test_a_run_that_is_worse_fails_and_shows_what_was_lost(exam: Project) -> None:
    """Exit code 1; at most five samples, and how to look at one."""
    run(exam, 20)
    result = exam.proctor("gate", "latest", "--baseline", "main", "--max-flips", "3")
    assert result.code == 1
    assert (
        shown(result)
        == (
            "The gate fails in both checks: strict_pass_rate 90.0% vs. 100.0%, at least 5.6\n"
            "points worse (margin 2.0 points, 200 samples).\n"
            "\n"
            "fail          strict_pass_rate 90.0% vs. 100.0%, -10.0 points (95% interval\n"
            "              -14.2 to -5.6), margin 2.0, 200 samples\n"
            "fail          20 samples passed in the baseline and fail now; the limit is 3\n"
            "\n"
            "20 samples lost, 0 won; the 5 worst\n"
            + "".join(
                f"  lost  {name:<3}  1.00 → 0.00\n"
                f"    input     {name[1:]}\n"
                f"    expected  A{name[1:]}\n"
                f"    main      A{name[1:]}\n"
                "    latest    no\n"
                f"    reason    expected 'A{name[1:]}', got 'no' (exact_match)\n"
                for name in ("q0", "q1", "q10", "q11", "q12")
            )
            + "  … and 15 more: proctor compare latest main --flips 20\n"
            "To inspect a sample: proctor show RUN --sample q0\n"
        )
        + WARNING
    )


def test_too_few_samples_are_inconclusive_and_it_says_how_many_more(exam: Project) -> None:
    """Exit code 4, or what --inconclusive makes of it."""
    run(exam, 3)
    result = exam.proctor("gate", "latest", "--baseline", "main")
    assert result.code == 4
    answer = " ".join(result.out.split("\n\n")[0].split())
    assert re.fullmatch(
        r"The gate is inconclusive: strict_pass_rate 98\.5% vs\. 100\.0%, from 3\.6 points "
        r"worse to 0\.7 points better \(margin 2\.0 points, 200 samples\); if the difference stays near -1\.5 points, "
        r"about [\d,]+ more "
        r"samples would decide it\.",
        answer,
    )
    for choice, code in (("pass", 0), ("fail", 1), ("code", 4)):
        result = exam.proctor("gate", "latest", "--baseline", "main", "--inconclusive", choice)
        assert result.code == code
        assert (f"Inconclusive counts as {choice} (--inconclusive)." in result.out) == (choice != "code")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--margin", "20%"], 0),
        (["--margin", "0.2"], 0),
        (["--margin", "0"], 1),
        (["--metric", "exact_match.mean=20%"], 0),
        (["--metric", "exact_match=20%", "--metric", "strict_pass_rate"], 1),
        (["--margin", "20%", "--max-flips", "20"], 0),
        (["--margin", "20%", "--max-flips", "19"], 1),
        (["--margin", "20%", "--fail-under", "0.9"], 0),
        (["--margin", "20%", "--fail-under", "91%"], 1),
        (["--margin", "20%", "--configuration", "default"], 0),
    ],
)
def test_only_the_requested_metrics_decide(exam: Project, options: list[str], code: int) -> None:
    """Twenty of 200 are lost: 90%, surely no worse than 20 points."""
    run(exam, 20)
    assert exam.proctor("gate", "latest", "--baseline", "main", *options).code == code


def test_a_threshold_alone_is_a_gate(exam: Project) -> None:
    """Without a baseline there is no comparison; the eval file's own threshold counts too."""
    assert exam.proctor("gate", "latest", "--fail-under", "0.9").code == 0
    exam.write("eval.yaml", EVAL + "fail_under: 0.95\n")
    lose(exam, 20)
    result = exam.proctor("gate", "eval.yaml")
    assert result.code == 1
    failure = "The gate fails: strict_pass_rate is 0.9, below 0.95 (n = 200, 95% interval 0.851 to 0.934)."
    assert " ".join(result.out.split()).startswith(failure)
    assert exam.proctor("gate", "eval.yaml", "--fail-under", "0.9").code == 0
    chosen = exam.proctor("gate", "latest", "--fail-under", "0.9", "--configuration", "default")
    assert chosen.code == 0


def test_an_eval_file_is_run_first(exam: Project) -> None:
    """Live progress on standard error, and the run is kept; errors count as not passed."""
    samples(exam, range(185, 215))
    exam.write("app.py", TARGET.replace("1000", "200"))
    gate = ("gate", "eval.yaml", "--baseline", "main", "--margin", "30%")
    result = exam.proctor(*gate, "--accept-changes", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["verdict"] == "pass"
    assert result.json["checks"][0]["n"] == 15
    assert any("15 samples of" in note for note in result.json["notes"])
    assert any("the datasets are not the same" in note for note in result.json["notes"])
    result = exam.proctor(*gate)
    assert "30/30 (100%), 15 passed, 0 failed, 15 errors" in result.err
    assert "Note: the datasets are not the same" in result.out
    # Half of the samples are new: what the others say is not green.
    assert result.code == 4
    assert "15 of 30 samples of" in result.out
    grouped = exam.proctor("gate", "latest", *gate[2:], "--unpaired")
    assert grouped.code == 1
    assert "two groups of 30 and 200 samples" in " ".join(grouped.out.split())


def test_the_caller_may_say_which_direction_of_a_field_is_better(exam: Project) -> None:
    """The name of the field does not show its direction."""
    fields = "fields: {size: {path: output}}\n"
    exam.write("app.py", TARGET.replace('f"A{number}"', "number"))
    exam.write("eval.yaml", EVAL + fields)
    run(exam, 0)
    exam.proctor("baseline", "set", "sizes", "latest")
    metric = ("gate", "eval.yaml", "--baseline", "sizes", "--metric", "size")
    assert "--better size=higher" in exam.proctor(*metric).err
    assert exam.proctor(*metric, "--better", "size=lower").code == 0


def test_a_run_stops_when_the_gate_is_decided(exam: Project) -> None:
    """A target that is always wrong needs few samples; a second gate on the run has the same verdict."""
    lose(exam, 1000)
    result = exam.proctor("gate", "eval.yaml", "--baseline", "main", "--until-decided")
    assert result.code == 1
    answer = " ".join(result.out.split("\n\n")[0].split())
    assert answer == (
        "The gate fails: strict_pass_rate 0.0% vs. 100.0%, at least 4.6 points worse "
        "(margin 2.0 points, 9 samples); decided after 9 of 200 samples; 191 saved."
    )
    assert "stopped as soon as" not in result.out
    repeated = exam.proctor("gate", "latest", "--baseline", "main")
    same = result.out.replace("    exam      ", "    latest    ").replace("compare exam", "compare latest")
    assert (repeated.code, repeated.out) == (1, same)
    refused = exam.proctor("gate", "latest", "--baseline", "main", "--max-flips", "3")
    assert refused.code == 2
    assert "requires all samples, but the gate may stop its run early" in refused.err


def test_a_run_that_ends_before_it_is_decided_is_inconclusive(exam: Project) -> None:
    """200 equal samples do not show it while one looks; the usual test at the end would have."""
    lose(exam, 0)
    result = exam.proctor("gate", "eval.yaml", "--baseline", "main", "--until-decided")
    assert result.code == 4
    assert "not decided after 200 of 200 samples, because checking" in " ".join(result.out.split())
    assert exam.proctor("gate", "latest", "--baseline", "main").code == 0
    exam.write("eval.yaml", EVAL + "fail_under: 0.9\n")
    result = exam.proctor("gate", "eval.yaml", "--baseline", "main", "--until-decided")
    assert "fail_under in the file is not checked" in result.err


def test_without_a_seed_the_order_is_random(exam: Project) -> None:
    """The seed is kept with the run, so that the verdict can be had again."""
    exam.write("eval.yaml", EVAL.replace(", shuffle: 7", ""))
    lose(exam, 1000)
    seeds = set()
    for _ in range(2):
        result = exam.proctor("gate", "eval.yaml", "--baseline", "main", "--until-decided", "--json")
        run = exam.proctor("show", result.json["run_id"], "--json").json["metadata"]
        seeds.add(run["options"]["shuffle"])
        assert run["stopped_early"]["of"] == 200
        assert result.json["early"]["of"] == 200
    assert len(seeds) == 2


def test_every_configuration_is_gated(exam: Project) -> None:
    """Configurations of one name are compared, and all must pass; a new one is only mentioned."""
    exam.write("eval.yaml", EVAL + CONFIGURATIONS)
    lose(exam, 0, "lost-short.txt")
    lose(exam, 0, "lost-long.txt")
    exam.proctor("run", "eval.yaml", "-q")
    exam.proctor("baseline", "set", "both", "latest")
    lose(exam, 50, "lost-long.txt")
    lose(exam, 0, "lost-new.txt")
    exam.write("eval.yaml", EVAL + CONFIGURATIONS.replace("}}", "}, new: {style: -new}}"))
    exam.proctor("run", "eval.yaml", "-q")
    result = exam.proctor("gate", "latest", "--baseline", "both", "--json")
    assert result.code == 1
    assert [check["verdict"] for check in result.json["checks"]] == ["pass", "fail"]
    assert [check["configuration"].split("@")[-1] for check in result.json["checks"]] == [
        "short", "long",
    ]  # fmt: skip
    assert any("new" in note for note in result.json["notes"])
    assert exam.proctor("gate", "latest", "--baseline", "both", "--configuration", "short").code == 0
    assert exam.proctor("gate", "latest@long", "--baseline", "both@long").code == 1
    assert exam.proctor("gate", "latest@long", "--baseline", "latest@short").code == 1
    other = ("gate", "eval.yaml", "--baseline", "main")
    before = exam.proctor("runs", "--json").json
    assert "no configuration in common" in exam.proctor(*other).err
    assert exam.proctor("runs", "--json").json == before
    few = ("--fail-under", "0.9", "--configuration", "short")
    assert exam.proctor("gate", "latest", "--baseline", "both", *few).code == 0
    item = ("gate", "eval.yaml", "--baseline", "both", "--until-decided")
    exam.write("one.yaml", EVAL + "configurations: {short: {style: -short}}\n")
    several = exam.proctor("gate", "one.yaml", *item[2:])
    assert "select it: --baseline both@short" in several.err
    assert exam.proctor("gate", "one.yaml", "--baseline", "both@short", "--until-decided").code == 4
    assert "select it: --configuration short" in exam.proctor(*item).err
    result = exam.proctor(*item, "--configuration", "long")
    assert result.code == 1
    assert "decided after" in " ".join(result.out.split())
    unknown = exam.proctor(*item, "--configuration", "new")
    assert (unknown.code, "configuration 'new'" in unknown.err) == (2, True)


def test_files_for_ci_are_written(exam: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comment, JUnit XML, and the step summary, to which it is added."""
    run(exam, 20)
    summary = exam.write("summary.md", "before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = exam.proctor("gate", "latest", "--baseline", "main", "--junit", "out/gate.xml", "--markdown", "out/c.md")
    assert (result.code, result.err) == (1, "")
    comment = (exam.folder / "out/c.md").read_text()
    assert comment.startswith("<!-- proctor gate: exam -->\n## Gate failed: exam\n\nThe gate fails")
    assert summary.read_text() == f"before\n{comment}\n"
    suites = ET.parse(exam.folder / "out/gate.xml").getroot()
    assert (suites.tag, suites.get("tests"), suites.get("failures")) == ("testsuites", "1", "1")


def test_a_summary_that_cannot_be_written_is_no_verdict(exam: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard error mentions it, and the gate passes."""
    run(exam, 0)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(exam.folder / "no" / "summary.md"))
    result = exam.proctor("gate", "latest", "--baseline", "main")
    assert result.code == 0
    assert result.err.startswith("cannot write the step summary")


@each_row(
    ("args", "message"),
    [
        (["latest"], "Fix: proctor gate latest --baseline main\n"),
        (["eval.yaml"], "Fix: proctor gate eval.yaml --baseline main\n"),
        (["latest", "--margin", "2%"], "--margin needs --baseline"),
        (["eval.yaml", "--until-decided"], "--until-decided needs --baseline"),
        (["latest", "--baseline", "mian"], "did you mean 'main'"),
        (["latest", "--baseline", "main"], "latest and main are the same run"),
        (["lates", "--baseline", "main"], "unknown run 'lates'"),
        (["latest@lone", "--baseline", "main"], "has no configuration 'lone'"),
        (["nothing@lone", "--baseline", "main"], "unknown run 'nothing'"),
        (["no.yaml", "--baseline", "main"], "file not found: no.yaml"),
        (["latest", "--baseline", "main", "--margin", "80"], "write 80% or 0.8"),
        (["latest", "--baseline", "main", "--margin", "much"], "must be a number or a percentage"),
        (["latest", "--baseline", "main", "--metric", "a=2"], "--metric a: a margin of 2"),
        (["eval.yaml", "--baseline", "main", "--metric", "exact"], "--metric: unknown metric 'exact'"),
        (["latest", "--baseline", "main", "--better", "x=up"], "must be x=higher or x=lower, got 'up'"),
        (["latest", "--baseline", "main", "--fail-under", "80"], "--fail-under: the threshold of"),
        (["latest", "--baseline", "main", "--until-decided"], "a stored run has already ended"),
        (["latest", "--baseline", "main", "--junit", "."], "is a folder"),
        (["latest", "--baseline", "main", "--markdown", "app.py/c"], "cannot write the file"),
        (["eval.yaml", "--fail-under", "0.9", "--configuration", "x"], "configuration 'x'"),
        (
            ["eval.yaml", "--baseline", "main", "--until-decided", "--max-flips", "1"],
            "--max-flips: requires all samples, but the gate may stop its run early",
        ),
        (["latest", "--baseline", "main", "--max-flips=-1"], "--max-flips must be an integer, 0 or more, got -1"),
        (["latest", "--baseline", "main", "--max-missing", "200%"], "--max-missing must be from 0% to 100%"),
        (
            ["latest", "--baseline", "main", "--unpaired", "--max-flips", "1"],
            "Fix: leave out --unpaired or --max-flips",
        ),
        (["latest", "--baseline", "main", "--better", "x=higher"], "--better: x is not among the metrics"),
        (
            ["eval.yaml", "--baseline", "main", "--until-decided", "--metric", "latency_ms.mean"],
            "does not support the metric 'latency_ms.mean'",
        ),
        (["latest", "--baseline", "main", "--configuration", "x"], "configuration 'x'"),
    ],
)
def test_what_cannot_be_gated_is_refused_before_anything_is_run(exam: Project, args: list[str], message: str) -> None:
    """Exit code 2, with what to write instead, and no new run in the history."""
    before = exam.proctor("runs", "--json").json
    result = exam.proctor("gate", *args)
    assert (result.code, result.out) == (2, "")
    assert message in result.err
    assert exam.proctor("runs", "--json").json == before


def test_a_run_that_is_not_whole_is_not_decided_on(exam: Project) -> None:
    """Exit code 3, as for every run that did not come to its end."""
    exam.write("app.py", TARGET.replace("1000", "150"))
    assert exam.proctor("run", "eval.yaml", "-q", "--on-error", "raise").code == 3
    result = exam.proctor("gate", "latest", "--baseline", "main")
    assert result.code == 3
    assert "a gate needs a complete run" in result.err
    assert "--resume" in result.err


def test_an_incomplete_baseline_is_mentioned(exam: Project) -> None:
    """It may be one all the same, by --force."""
    exam.write("app.py", TARGET.replace("1000", "150"))
    assert exam.proctor("run", "eval.yaml", "-q", "--on-error", "raise").code == 3
    assert exam.proctor("baseline", "set", "part", "latest", "--force").code == 0
    exam.write("app.py", TARGET)
    run(exam, 0)
    result = exam.proctor("gate", "latest", "--baseline", "part", "--json")
    assert any("the baseline part is failed, with" in note for note in result.json["notes"])


def test_a_run_of_nothing_but_errors_is_trouble(exam: Project) -> None:
    """A wrong key or a server that is down is no verdict on the target."""
    exam.write("app.py", TARGET.replace("1000", "0"))
    result = exam.proctor("gate", "eval.yaml", "--baseline", "main")
    assert result.code == 3
    assert "has a verdict: 200 errors" in result.err


def test_a_baseline_goes_before_a_run_of_the_same_name(exam: Project) -> None:
    """`main` is the baseline, although the newest run is called so."""
    run(exam, 20)
    exam.proctor("run", "eval.yaml", "-q", "--name", "main")
    result = exam.proctor("gate", "latest", "--baseline", "main")
    assert result.code == 1
    assert exam.proctor("gate", "latest", "--baseline", "exam").code == 0


def test_the_fix_of_a_gate_without_a_baseline_can_be_typed(exam: Project) -> None:
    """It names the newest run that is not the candidate; a first run becomes the baseline of the next."""
    exam.proctor("baseline", "drop", "main")
    history = SQLiteHistory(".proctor/history.db")
    first = history.find("latest").run_id
    name_first = f"Fix: name a run: proctor baseline set main {first}; then: proctor gate "
    assert f"{name_first}eval.yaml --baseline main\n" in exam.proctor("gate", "latest").err
    assert exam.proctor("run", "eval.yaml", "-q").code == 0
    second = history.find("latest").run_id
    assert f"{name_first}latest --baseline main\n" in exam.proctor("gate", "latest").err
    assert f"set main {second}; then: proctor gate eval.yaml " in exam.proctor("gate", "eval.yaml").err
    assert f"set main {second}; then: proctor gate {first} " in exam.proctor("gate", first, "--unpaired").err
    other = exam.proctor("gate", "eval.yaml", "--history", "o t.db").err
    command = "proctor run eval.yaml --history 'o t.db', then proctor baseline set main latest --history 'o t.db'"
    assert command in " ".join(other.split())


def test_the_pass_rate_of_an_evaluator_is_in_percent(exam: Project) -> None:
    """Under the name that was requested, in the gate and in the comparison, as the pass rate of all is."""
    run(exam, 20)
    gate = " ".join(
        exam.proctor("gate", "latest", "--baseline", "main", "--metric", "exact_match.pass_rate=20%").out.split()
    )
    assert gate.startswith("The gate passes: exact_match.pass_rate 90.0% vs. 100.0%, at most")
    assert "(margin 20.0 points, 200 samples)" in gate
    compared = exam.proctor("compare", "latest", "baseline:main", "--metric", "exact_match.pass_rate").out
    assert "exact_match.pass_rate 90.0% vs. 100.0%, -10.0 points" in " ".join(compared.split())
