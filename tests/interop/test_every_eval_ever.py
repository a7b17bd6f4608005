"""Runs as Every Eval Ever records, valid against the published schemas."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from proctor import EvalReport, evaluate, exact_match
from proctor.core.clock import SystemClock
from proctor.errors import ConfigError
from proctor.interop.writers.every_eval_ever import EveryEvalEverWriter
from proctor.records.run import DatasetInfo, EvaluatorSpec, Provenance, RunMetadata, TargetSpec
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.session import Message, ModelCall, Session, ToolCall, Usage
from proctor.records.trial import Configuration, EvalResult, Failure, Trial
from proctor.reports.formats import write_reports
from tests.interop.support import FORMATS, needs_public_files
from tests.support import run_command

SCHEMAS = FORMATS / "every-eval-ever" / "schemas"
FACTS = {"model": "acme/rocket-2", "organization": "Example Lab", "relationship": "third_party"}
START = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


class FixedClock(SystemClock):
    now = staticmethod(lambda: datetime(2026, 3, 5, tzinfo=UTC))


def make_result(number: int, scores: dict[str, Score], **trial: Any) -> EvalResult:
    sample = Sample(f"s{number}", f"question {number}", ["A", "a"], {"topic": "sums", "n": number})
    return EvalResult(Trial(sample, **{"output": "A", "latency_ms": 12.5, **trial}), scores)


def make_report() -> EvalReport:
    """A run with verdicts, an error of the target, an error of an evaluator, a skip, a chat and an agent."""
    agent = Session(
        [
            Message("user", "question 5"),
            Message("assistant", "", tool_calls=(ToolCall("add", {"a": 1, "b": "x"}, call_id="c1"),)),
            ToolCall("add", {"a": 1, "b": "x"}, result=3, call_id="c1"),
            ToolCall("look", {"q": "y"}, error="down"),
            ModelCall("rocket-2"),
            Message("assistant", "A"),
        ]
    )
    chat = Session(
        [Message("user", "hi"), Message("assistant", "yes?"), Message("user", "q"), Message("assistant", "A")]
    )
    usage = Usage(input_tokens=7, output_tokens=2, cached_tokens=3)
    results = [
        make_result(1, {"exact": Score(1.0, True, "same"), "style": Score(0.25, False)}, usage=usage),
        make_result(2, {"exact": Score(0.0, False), "style": Score.error("429")}),
        make_result(3, {}, error=Failure("ValueError", "no")),
        make_result(4, {"exact": Score(1.0, True), "style": Score.skipped("no text")}, session=chat),
        make_result(5, {"exact": Score(1.0, True), "style": Score(0.75, True)}, session=agent),
        make_result(5, {"exact": Score(0.0, False), "style": Score(1.0, True)}, epoch=1),
    ]
    metadata = RunMetadata(
        "run-1", "nightly", START, "completed", dataset=DatasetInfo("sums.jsonl", length=5, fingerprint="f00d"),
        configurations=(Configuration("default", {"temperature": 0.5, "top_k": "auto"}),),
        evaluators=(EvaluatorSpec("exact", "exact_match"), EvaluatorSpec("style", "llm_judge", {"model": "openai:x"})),
    )  # fmt: skip
    return EvalReport(results, metadata)


def write(report: EvalReport, folder: Path, **facts: str) -> tuple[dict[str, Any], list[dict[str, Any]], Path]:
    EveryEvalEverWriter(**{**FACTS, **facts}, clock=FixedClock()).save(report, folder)
    (record,) = folder.glob("data/*/*/*/*.json")
    (lines,) = folder.glob("data/*/*/*/*_samples.jsonl")
    return json.loads(record.read_text()), [json.loads(line) for line in lines.read_text().splitlines()], record


def test_the_record_is_where_the_validator_looks(tmp_path: Path) -> None:
    """The path has benchmark, developer and model, and the record names its samples with their checksum."""
    record, lines, path = write(make_report(), tmp_path)
    assert path.parent == tmp_path / "data" / "sums" / "acme" / "rocket-2"
    details = record["detailed_evaluation_results"]
    samples = tmp_path / details["file_path"]
    assert samples == path.with_name(f"{path.stem}_samples.jsonl")
    assert details["checksum"] == hashlib.sha256(samples.read_bytes()).hexdigest()
    assert details["total_rows"] == len(lines) == 8
    assert (record["evaluation_timestamp"], record["retrieved_timestamp"]) == ("1772600767", "1772668800")
    assert record["evaluation_id"] == "sums/acme_rocket-2/1772668800"
    assert {line["evaluation_id"] for line in lines} == {record["evaluation_id"]}
    write(make_report(), tmp_path)  # the same run again replaces its files


def test_errors_and_skips_are_counted_and_are_no_zeros(tmp_path: Path) -> None:
    """Means are over verdicts, and the counts of the others are in the details."""
    record, _, _ = write(make_report(), tmp_path)
    exact, style = record["evaluation_results"]
    assert exact["score_details"]["score"] == 3 / 5
    assert exact["score_details"]["details"]["results_with_error"] == "1"
    assert exact["score_details"]["uncertainty"]["num_samples"] == 5
    assert style["score_details"]["score"] == 2 / 3
    counts = style["score_details"]["details"]
    assert (counts["results_with_error"], counts["results_without_score"]) == ("2", "1")
    assert (exact["metric_config"]["score_type"], style["metric_config"]["score_type"]) == ("binary", "continuous")
    assert style["metric_config"]["additional_details"] == {"judges": "openai:x"}
    assert exact["generation_config"] == {
        "generation_args": {"temperature": 0.5},
        "additional_details": {"configuration": "default", "top_k": "auto"},
    }


def test_an_imported_run_names_its_tool_and_each_scorer(tmp_path: Path) -> None:
    """The metrics of two scorers differ, and the library is the tool of the file with its version."""
    own, _, _ = write(make_report(), tmp_path / "own")
    assert [entry["metric_config"]["metric_id"] for entry in own["evaluation_results"]] == [
        "proctor.exact",
        "proctor.style",
    ]
    assert own["eval_library"]["name"] == "proctor"
    report = make_report()
    assert report.metadata is not None
    metadata = msgspec.structs.replace(
        report.metadata,
        target=TargetSpec("gpt", "imported"),
        tags={"imported": "inspect"},
        provenance=Provenance(packages={"inspect": "0.3.1"}),
        evaluators=tuple(EvaluatorSpec(name, "imported:inspect") for name in ("exact", "style")),
    )
    record, _, _ = write(EvalReport(report.results, metadata), tmp_path / "imported")
    configs = [entry["metric_config"] for entry in record["evaluation_results"]]
    assert [config["metric_id"] for config in configs] == ["inspect.exact", "inspect.style"]
    assert [config["evaluation_description"] for config in configs] == ["mean score of exact", "mean score of style"]
    assert record["eval_library"] == {"name": "inspect", "version": "0.3.1"}


def test_conversations_have_their_messages(tmp_path: Path) -> None:
    """Single turns have an output; chats and agents have messages, with each tool call and its result once."""
    _, lines, _ = write(make_report(), tmp_path)
    by_sample = {line["sample_id"]: line for line in lines if line["metadata"]["epoch"] == "1"}
    types = {name: line["interaction_type"] for name, line in by_sample.items()}
    assert types == {"s1": "single_turn", "s2": "single_turn", "s4": "multi_turn", "s5": "agentic"}
    single, agent = by_sample["s1"], by_sample["s5"]
    assert (single["input"], single["output"]) == ({"raw": "question 1", "reference": ["A", "a"]}, {"raw": ["A"]})
    assert single["token_usage"] == {
        "input_tokens": 7, "output_tokens": 2, "total_tokens": 9, "input_tokens_cache_read": 3,
    }  # fmt: skip
    assert single["metadata"]["n"] == "1"
    roles = [(message["role"], message["content"]) for message in agent["messages"]]
    assert roles == [
        ("user", "question 5"), ("assistant", ""), ("tool", "3"),
        ("assistant", ""), ("tool", "down"), ("assistant", "A"),
    ]  # fmt: skip
    assert agent["evaluation"]["tool_calls_count"] == 2
    assert agent["messages"][1]["tool_calls"] == [{"id": "c1", "name": "add", "arguments": {"a": "1", "b": "x"}}]
    assert agent["messages"][2]["tool_call_id"] == ["c1"]
    assert agent["answer_attribution"][0]["source"] == "messages[5].content"


def test_missing_facts_are_asked_for() -> None:
    """One error lists all missing facts, with the options to type; the recorded model is suggested."""
    with pytest.raises(ConfigError) as caught:
        EveryEvalEverWriter(relationship="friend").generate(make_report())
    assert caught.value.fix == (
        "add --option model=DEVELOPER/rocket-2 --option organization=NAME --option relationship=first_party"
    )
    assert [problem.where for problem in caught.value.problems] == ["model", "organization", "relationship"]


def test_two_configurations_need_a_choice() -> None:
    """A record is about one model, so one configuration must be selected."""
    results = [make_result(1, {"exact": Score(1.0, True)}, configuration=name) for name in ("small", "large")]
    report = EvalReport(results, RunMetadata("run-1", "nightly", START))
    with pytest.raises(ConfigError, match=r"2 configurations[\s\S]*proctor report run-1@small"):
        EveryEvalEverWriter(**FACTS).generate(report)  # type: ignore[arg-type]


def test_the_tags_of_a_run_are_facts(tmp_path: Path) -> None:
    """A run with these tags needs no options, so that `run --output` can write the format."""
    report = make_report()
    assert report.metadata is not None
    tagged = EvalReport(report.results, RunMetadata("run-1", "nightly", START, tags=FACTS))
    write_reports(tagged, tmp_path, ["every-eval-ever", "markdown"])
    assert (tmp_path / "report.md").is_file()
    assert len(list(tmp_path.glob("data/nightly/acme/rocket-2/*"))) == 2


def test_the_command_writes_a_folder(tmp_path: Path) -> None:
    """`proctor report --format every-eval-ever` takes the facts as options and rejects unknown ones."""
    rows = [{"id": str(n), "input": str(n), "expected": "1"} for n in range(6)]
    evaluate(lambda text: text, rows, exact_match, history=tmp_path / "h.db")
    base = ["report", "--history", "h.db", "--format", "every-eval-ever", "--output", "shared"]
    options = [part for name, value in FACTS.items() for part in ("--option", f"{name}={value}")]
    result = run_command(*base, *options, cwd=tmp_path)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "wrote shared")
    (path,) = (tmp_path / "shared").glob("data/memory/acme/rocket-2/*.json")
    record = json.loads(path.read_text())
    assert record["evaluation_results"][0]["score_details"]["score"] == 1 / 6
    assert "confidence_interval" in record["evaluation_results"][0]["score_details"]["uncertainty"]
    unknown = run_command(*base, *options, "--option", "colour=red", cwd=tmp_path)
    assert unknown.returncode == 2
    assert "every-eval-ever has no option 'colour'" in unknown.stderr
    missing = run_command(*base, cwd=tmp_path)
    assert missing.returncode == 2
    assert "--option organization=NAME" in missing.stderr


@needs_public_files
def test_the_files_are_valid(tmp_path: Path) -> None:
    """The record and every line are valid against the schemas of version 0.3.0."""
    record, lines, _ = write(make_report(), tmp_path)
    aggregate = jsonschema_rs.validator_for(json.loads((SCHEMAS / "eval.schema.json").read_text()))
    instance = jsonschema_rs.validator_for(json.loads((SCHEMAS / "instance_level_eval.schema.json").read_text()))
    assert [error.message for error in aggregate.iter_errors(record)] == []
    assert [error.message for line in lines for error in instance.iter_errors(line)] == []
    # The schemas do refuse what is wrong.
    assert not aggregate.is_valid({**record, "model_info": {}})
    assert not instance.is_valid({**lines[0], "output": None})
