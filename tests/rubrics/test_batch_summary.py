"""The summary of a batch: its usage, and the distribution of its scores."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from proctor import EvalReport, EvalResult, Usage
from proctor.records.rubric import read_run_columns
from proctor.records.run import Spent
from proctor.records.session import ModelCall, Session
from proctor.reports.rubric_files import BatchSummary, resumed_details
from proctor.reports.rubrics import describe_scores
from tests.cli.project import Project
from tests.rubrics.batches import BATCH, calls, summarize_batch
from tests.rubrics.test_results import report, result, run, spec


def test_the_usage_of_all_attempts_is_reported() -> None:
    """A budget also counts answers for interrupted sessions."""
    known = ModelCall("m", Usage(), details={"cached": True})
    asked = ModelCall("m", Usage(10, 5, cost=0.01))
    base = result("s", 4)
    one = EvalResult(base.trial, base.scores, {"r": Session([known, asked])})
    for spent, answer in ((Spent(2, 30, 0.02), "2 calls, 30 tokens, $0.0200"), (Spent(3, 0, 0.0), "3 calls")):
        output = EvalReport([one], msgspec.structs.replace(run(spec(1)), spent=spent))
        content = summarize_batch(output)
        assert content["details"]["spent"]["calls"] == spent.calls
        line = f"the whole run, including calls without a result: {answer}"
        assert line in describe_scores(output, content).splitlines()
    output = EvalReport([one], msgspec.structs.replace(run(spec(1)), spent=Spent(1, 15, 0.01)))
    assert "all sittings" not in describe_scores(output, summarize_batch(output))


def test_unknown_usage_is_reported() -> None:
    """Without a budget it is unknown; if nothing was known before, nothing is missing."""
    base = result("s", 4)
    for cached in (True, False):
        call = ModelCall("m", Usage(), details={"cached": cached})
        one = EvalResult(base.trial, base.scores, {"r": Session([call])})
        content = summarize_batch(report(one))
        content["details"] |= resumed_details(content["details"], 3)
        assert content["details"]["sessions_from_before"] == 3
        assert ("not_in_judging" in content["details"]) is cached
        answer = "not included: calls of earlier sessions whose results were not finished"
        assert (answer in describe_scores(report(one), content)) is cached


def test_ranges_have_unique_names() -> None:
    """Also on a scale whose ends are equal in six digits."""
    tally = BatchSummary(read_run_columns(run(spec(1, scale=[1_000_000, 1_000_021]))))
    tally.add(result("low", 1_000_001, low=1_000_000, high=1_000_021))
    tally.add(result("high", 1_000_020, low=1_000_000, high=1_000_021))
    found = tally.summary()["batch_summary"]["score_distribution"]
    assert len(found) == 10
    assert (found["1000000-1000002"], found["1000019-1000021"]) == (1, 1)


def test_a_resumed_batch_reports_the_total_cost(batch: Project) -> None:
    """Two calls of the first sitting were for a session that it did not finish.

    They are found again and cost nothing then, but the run has paid for them.
    """
    command = (*BATCH, "--output-dir", "out", "--parallel", "1", "--max-concurrent", "1")
    batch.proctor(*command, "--budget", "calls=8")
    command_result = batch.proctor(*command, "--budget", "calls=99", "--resume")
    assert command_result.code == 0, command_result.err
    assert sum(calls().values()) == 18
    details = json.loads(Path("out/summary.json").read_text())["details"]
    assert (details["judging"]["answers"], details["judging"]["from_history"]) == (18, 2)
    assert round(details["judging"]["cost"], 6) == 0.016
    assert round(details["spent"]["cost"], 6) == 0.018
    assert details["spent"]["calls"] == 18
    answer = "the whole run, including calls without a result: 18 calls, 1,980 tokens, $0.0180"
    assert answer in command_result.out.splitlines()


def test_rubrics_of_another_version_are_a_change(batch: Project) -> None:
    """Otherwise old results would appear under the new version."""
    rubrics = batch.proctor("sessions", "rubrics", "--json").json
    Path("mine.json").write_text(json.dumps({**rubrics, "version": "1.0"}))
    command = [*BATCH, "--output-dir", "out"]
    command[command.index("starter")] = "mine.json"
    batch.proctor(*command, "--budget", "calls=8", "--parallel", "1")
    Path("mine.json").write_text(json.dumps({**rubrics, "version": "2.0"}))
    result = batch.proctor(*command, "--resume")
    assert result.code == 2
    assert "rubrics_version: was 1.0, is 2.0" in result.err
    Path("mine.json").write_text(json.dumps({**rubrics, "version": "1.0"}))
    assert batch.proctor(*command, "--resume").code == 0
