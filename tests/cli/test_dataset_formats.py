"""What a dataset is, on the command line and in eval files: the content tells, or `--format`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from proctor.sessions.importers.session_files import FORMATS
from tests.cli.project import Project
from tests.support import run_command

ROWS = [{"id": f"s{i}", "input": f"word {i}", "expected": f"WORD {i}"} for i in range(3)]
CHAT = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "HELLO"}]
RUN = ("run", "--target", "app.py:shout", "-e", "exact_match")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qa.json", json.dumps(ROWS)),
        ("qa.json", json.dumps(ROWS, indent=2)),
        ("qa.json", json.dumps({"examples": ROWS})),
        ("qa.json", "".join(json.dumps(row) + "\n" for row in ROWS)),
        ("qa.json.gz", gzip.compress(json.dumps(ROWS).encode())),
        ("qa.jsonl.gz", gzip.compress("".join(json.dumps(row) + "\n" for row in ROWS).encode())),
    ],
    ids=["list", "indented", "under a key", "lines", "list, compressed", "lines, compressed"],
)
def test_samples_in_a_json_file_are_run(project: Project, name: str, content: str | bytes) -> None:
    """A list of records, under a key or not, compressed or not, is a dataset for a target."""
    project.write(name, content)
    result = project.proctor(*RUN, "--dataset", name, "--json")
    assert result.code == 0, result.err
    assert result.json["total"] == 3
    project.write("own.yaml", f"dataset: {name}\ntarget: app.py:shout\nevaluators: [exact_match]\n")
    result = project.proctor("run", "own.yaml", "--json")
    assert (result.code, result.json["total"]) == (0, 3)


def test_the_detected_format_is_shown(project: Project) -> None:
    """Where the content decided, one line on standard error says what the file was read as."""
    project.write("qa.json", json.dumps(ROWS))
    result = project.proctor(*RUN, "--dataset", "qa.json")
    assert "qa.json is read as samples (a JSON list)" in result.err
    assert "--dataset-format" in result.err
    assert "is read as" not in project.proctor(*RUN, "--dataset", "data.jsonl").err
    assert "is read as" not in project.proctor(*RUN, "--dataset", "qa.json", "--quiet").err


def test_a_chat_in_a_json_file_is_still_a_recorded_session(project: Project) -> None:
    """Sessions need no target, and the line on standard error says which format it is."""
    project.write("chat.json", json.dumps(CHAT))
    (project.folder / "eval.yaml").unlink()
    result = project.proctor("run", "--dataset", "chat.json", "-e", "app.py:long_enough")
    assert result.code == 0, result.err
    assert "chat.json is read as recorded sessions (openai)" in result.err


def test_format_overrides_what_the_content_says(project: Project) -> None:
    """`--format` names a format of samples or of sessions."""
    project.write("qa.txt", "id,input,expected\ns0,word 0,WORD 0\n")
    result = project.proctor(*RUN, "--dataset", "qa.txt", "--format", "csv", "--json")
    assert (result.code, result.json["total"]) == (0, 1)
    project.write("own.yaml", "dataset: {path: qa.txt, format: csv}\ntarget: app.py:shout\n"
                  "evaluators: [exact_match]\n")  # fmt: skip
    assert project.proctor("run", "own.yaml", "--quiet").code == 0
    project.write("qa.json", json.dumps(ROWS))
    result = project.proctor(*RUN, "--dataset", "qa.json", "--format", "openai")
    assert result.code == 2
    result = project.proctor(*RUN, "--dataset", "qa.json", "--format", "jsn")
    assert (result.code, "did you mean 'json'?" in result.err) == (2, True)


def test_samples_without_a_target_are_refused(project: Project) -> None:
    """A JSON list of samples needs a target as JSON Lines do."""
    project.write("qa.json", json.dumps(ROWS))
    (project.folder / "eval.yaml").unlink()
    result = project.proctor("run", "--dataset", "qa.json", "-e", "exact_match")
    assert (result.code, "--target" in result.err) == (2, True)
    project.write("own.yaml", "dataset: qa.json\nevaluators: [exact_match]\n")
    result = project.proctor("run", "own.yaml")
    assert (result.code, "target is missing" in result.err) == (2, True)


def test_mapping_and_generated_ids_mean_samples(project: Project) -> None:
    """`--map` and `--generate-ids` are about records, so that a .json file has some."""
    project.write("qa.json", '[{"question": "word 1", "answer": "WORD 1"}]')
    result = project.proctor(
        *RUN, "--dataset", "qa.json", "--map", "question=input", "--map", "answer=expected",
        "--generate-ids", "--json",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert result.json["metrics"]["pass_rate"]["value"] == 1.0


def test_faults_of_a_json_file_have_lines(project: Project) -> None:
    """The error says what the file was read as, and where each fault is."""
    project.write("qa.json", '[\n{"id": "a", "input": "x"},\n{"id": "b"},\n{"input": "y"}\n]')
    result = project.proctor(*RUN, "--dataset", "qa.json")
    assert result.code == 2
    assert "qa.json:3: input is missing" in result.err
    assert "qa.json:4: id is missing" in result.err
    assert "read as a JSON list" in result.err


def test_a_table_with_semicolons_is_recognised(project: Project) -> None:
    """The delimiter of the header is used, and said."""
    project.write("qa.csv", "id;input;expected\ns0;word 0;WORD 0\n")
    result = project.proctor(*RUN, "--dataset", "qa.csv")
    assert result.code == 0, result.err
    assert "qa.csv is read as a table separated by ';'" in result.err


def test_the_help_lists_every_session_format(tmp_path: Path) -> None:
    """A format that is missing from the help is never tried."""
    text = " ".join(run_command("run", "--help", cwd=tmp_path).stdout.split())
    start = text.index("Logs and traces, which need no target:")
    names = text[start : text.index("or auto", start)].replace("- ", "-")
    assert [name for name in FORMATS if f" {name}," not in names] == []
