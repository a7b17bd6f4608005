"""Reports in the formats of other tools can be read back."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from proctor.comparison.report import EvalReport
from proctor.errors import ConfigError
from proctor.interop.formats import read_file
from proctor.interop.writers.inspect_log import InspectReporter, make_log
from proctor.interop.writers.promptfoo_csv import PromptfooReporter
from proctor.records.run import EvaluatorSpec, RunMetadata, TargetSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Configuration, EvalResult, Failure, Trial


def make_report(*configurations: str) -> EvalReport:
    """Return a report with a pass by a score below 1, a skipped score, and an error, for each configuration."""
    call = ToolCall("lookup", {"key": "a"}, "1", call_id="c1")
    session = Session([Message("user", "a?"), Message("assistant", "", tool_calls=(call,)), call, ModelCall("m")])
    results = []
    for name in configurations:
        usage = Usage(input_tokens=10, output_tokens=2)
        first = Trial(Sample("1", {"q": "=1+1"}, "one"), "one", configuration=name, usage=usage, session=session)
        second = Trial(Sample("2", {"q": "b"}), {"n": 2}, configuration=name, epoch=1)
        third = Trial(Sample("3", {"q": "c"}), error=Failure("ValueError", "no"), configuration=name)
        results += [
            EvalResult(first, {"close": Score(0.8, True, "near")}),
            EvalResult(second, {"close": Score.skipped("no expected value")}),
            EvalResult(third),
        ]
    run = RunMetadata(
        "run-1",
        "sums",
        datetime(2026, 1, 2, tzinfo=UTC),
        "completed",
        target=TargetSpec("app", "function"),
        configurations=tuple(Configuration(name, {"model": "openai/x"}) for name in configurations),
        evaluators=(EvaluatorSpec("close", "close"),),
    )
    return EvalReport(results, run)


def test_an_inspect_log_is_read_back_with_the_same_results(tmp_path: Path) -> None:
    """Verdicts, values, epochs, errors, tokens, messages and tool calls survive."""
    path = tmp_path / "log.json"
    path.write_text(InspectReporter().generate(make_report("default")))
    (run,) = read_file(path).runs
    assert [(r.sample_id, r.trial.epoch, r.outcome) for r in run.results] == [
        ("1", 0, "passed"),
        ("2", 1, "skipped"),
        ("3", 0, "error"),
    ]
    first = run.results[0]
    assert first.scores["close"].value == 0.8
    assert first.trial.usage == Usage(input_tokens=10, output_tokens=2)
    assert first.trial.session is not None
    assert first.trial.session[ToolCall] == (ToolCall("lookup", {"key": "a"}, "1", call_id="c1"),)
    assert str(run.results[2].trial.error) == "ValueError: no"


def test_an_inspect_log_has_the_keys_that_inspect_requires() -> None:
    """Version, status, eval, plan, results, stats and samples, with one log per configuration."""
    log = json.loads(InspectReporter().generate(make_report("default")))
    assert list(log) == ["version", "status", "eval", "plan", "results", "stats", "samples"]
    assert log["eval"].keys() >= {"run_id", "created", "task", "task_id", "dataset", "model", "config"}
    assert [len(sample["messages"]) for sample in log["samples"]] == [3, 2, 1]
    with pytest.raises(ConfigError) as caught:
        InspectReporter().generate(make_report("a", "b"))
    assert caught.value.fix == "proctor report run-1@a --format inspect"


def test_an_inspect_log_has_the_parts_of_messages() -> None:
    """Parts that Inspect knows stay parts, and others become text; a chat as input is a list of messages."""
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image", "image": "data:image/png;base64,AA=="}]
    chat = [{"role": "user", "content": parts}]
    trial = Trial(Sample("1", chat), "a dot", session=Session([Message("user", [*parts, {"type": "audio"}])]))
    (sample,) = make_log(EvalReport([EvalResult(trial)]))["samples"]
    assert sample["input"] == chat
    assert sample["messages"][0]["content"] == [*parts, {"type": "text", "text": '{"type":"audio"}'}]


def test_inspect_ai_reads_the_log(tmp_path: Path) -> None:
    """The tool's own reader accepts it, where it is installed."""
    log = pytest.importorskip("inspect_ai.log")
    path = tmp_path / "log.json"
    path.write_text(InspectReporter().generate(make_report("default")))
    assert [sample.id for sample in log.read_eval_log(str(path)).samples] == ["1", "2", "3"]


def test_a_promptfoo_table_is_read_back_with_the_same_verdicts(tmp_path: Path) -> None:
    """Each configuration is a group of columns; what has no verdict is an error, and formulas are disarmed."""
    text = PromptfooReporter().generate(make_report("a", "b"))
    header, first, *_ = csv.reader(io.StringIO(text))
    assert header[:3] == ["Description", "q", "[app] a"]
    assert (first[1], first[3:6]) == ("'=1+1", ["PASS", "0.80", '{"close":0.8}'])
    path = tmp_path / "table.csv"
    path.write_text(text, newline="")
    (run,) = read_file(path).runs
    outcomes = [result.outcome for result in run.results]
    assert outcomes == ["passed", "passed", "error", "error", "error", "error"]
    assert [configuration.name for configuration in run.configurations] == ["a", "b"]
