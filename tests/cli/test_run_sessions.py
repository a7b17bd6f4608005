"""`proctor run` on recorded sessions: logs and traces are scored without a target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from proctor.datasets.sessions import SessionDataset
from proctor.errors import ConfigError
from proctor.wiring.config import load_eval_file
from tests.cli.project import Project
from tests.importers.examples import CLAUDE


def folder(project: Project, **files: list[Any]) -> Path:
    logs = project.folder / "logs"
    logs.mkdir()
    for name, values in files.items():
        (logs / f"{name}.jsonl").write_text("".join(json.dumps(v) + "\n" for v in values))
    return logs


def test_a_run_scores_logs(project: Project) -> None:
    """`proctor run --dataset logs/ --format claude-code -e …` needs nothing else."""
    folder(project, a=[*CLAUDE, {"type": "hologram"}])
    (project.folder / "logs" / "b.jsonl").write_text("{")
    result = project.proctor(
        "run", "--dataset", "logs", "--format", "claude-code", "-e", "tool_called",
        "--set", "tool_called.name=Bash", "-e", "token_usage_under",
        "--set", "token_usage_under.max_tokens=416", "-e", "all_tools_succeeded", "--json",
    )  # fmt: skip
    assert result.code == 0, result.err
    metrics = result.json["metrics"]
    assert metrics["tool_called.pass_rate"]["value"] == 1
    assert metrics["token_usage_under.pass_rate"]["value"] == 1
    assert metrics["all_tools_succeeded.pass_rate"]["value"] == 0
    warnings = " ".join(result.json["metadata"]["warnings"])
    assert "hologram (1)" in warnings
    assert "b.jsonl:1" in warnings


def test_a_folder_needs_no_format_and_samples_stay_samples(project: Project) -> None:
    """A folder is read as sessions; a .jsonl without --format is what it was: samples."""
    folder(project, a=CLAUDE)
    assert project.proctor("run", "--dataset", "logs", "-e", "all_tools_succeeded", "-q").code == 0
    result = project.proctor("run", "--dataset", "logs/a.jsonl", "-e", "all_tools_succeeded", "-q")
    assert result.code == 2
    assert "logs/a.jsonl:1: input is missing" in result.err
    assert "--dataset-format auto" in result.err
    result = project.proctor("run", "--dataset", "data.jsonl", "--target", "app.py:shout", "-e", "contains")
    assert result.code == 0
    result = project.proctor("run", "--dataset", "logs", "--map", "a=input", "-e", "contains")
    assert "not to recorded sessions" in result.err
    assert "needs --dataset" in project.proctor("run", "eval.yaml", "--format", "otlp").err
    assert project.proctor("run", "--dataset", "logs", "--format", "x", "-e", "contains").code == 2


def test_an_eval_file_names_sessions(project: Project) -> None:
    """With a format, or as a folder; no target is needed."""
    folder(project, a=CLAUDE)
    evaluators = "evaluators: [all_tools_succeeded]\n"
    path = project.write("s.yaml", "dataset: {path: logs, pattern: '*.jsonl'}\n" + evaluators)
    assert isinstance(load_eval_file(path).evaluation.dataset, SessionDataset)
    assert project.proctor("run", "s.yaml", "-q").code == 0
    project.write("t.yaml", "dataset: {path: logs/a.jsonl, format: codex}\n" + evaluators)
    result = project.proctor("run", "t.yaml", "-q")
    assert (result.code, "the file contains no codex session" in result.err) == (2, True)
    bad = project.write("u.yaml", "dataset: data.jsonl\n" + evaluators)
    with pytest.raises(ConfigError, match=r"target is missing; .* format: auto"):
        load_eval_file(bad)


def test_sessions_read_as_samples_get_a_hint(project: Project) -> None:
    """Also where the eval file of the folder has no target: it gives nothing, and asks nothing."""
    folder(project, a=CLAUDE)
    asks = "evaluators: [all_tools_succeeded]\nfail_under: {all_tools_succeeded.pass_rate: 0.9}\n"
    project.write("eval.yaml", "dataset: logs\n" + asks)
    result = project.proctor("run", "--dataset", "logs/a.jsonl", "-e", "tool_called", "-q",
                           "--set", "tool_called.name=Bash")  # fmt: skip
    assert result.code == 2
    assert "error: no eval file is given, and --target is missing" in result.err
    assert "--dataset-format auto" in result.err
    assert "fail_under" not in result.err


@pytest.mark.parametrize(
    ("dataset", "result"),
    [
        ("logz", "s.yaml:1: dataset: file not found: logz; did you mean 'logs'?"),
        ("{path: logs, fromat: openai}", "unknown key 'fromat'; did you mean 'format'?"),
    ],
)
def test_a_misspelt_dataset_is_reported_before_a_missing_target(project: Project, dataset: str, result: str) -> None:
    """What is meant may be sessions, which need none."""
    folder(project, a=CLAUDE)
    path = project.write("s.yaml", f"dataset: {dataset}\nevaluators: [all_tools_succeeded]\n")
    with pytest.raises(ConfigError) as caught:
        load_eval_file(path)
    assert result in str(caught.value)
    assert "target" not in str(caught.value)
