"""`proctor import`: runs in the history that every other command can use, datasets and eval files."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from proctor.comparison.report import EvalReport
from proctor.datasets.dataset import Dataset
from proctor.datasets.formats import dataset_formats
from proctor.interop.formats import READERS
from proctor.wiring.open_history import open_history
from tests.interop.examples import (
    PROMPTFOO_CONFIG,
    deepeval_run,
    inspect_log,
    openai_log,
    promptfoo_results,
    write_eval,
)
from tests.support import run_command
from tests.tables import each_row


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one file of each tool."""
    write_eval(tmp_path / "log.eval", inspect_log())
    (tmp_path / "results.json").write_text(json.dumps(promptfoo_results()))
    (tmp_path / "run.json").write_text(json.dumps(deepeval_run()))
    (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, openai_log())))
    (tmp_path / "promptfooconfig.yaml").write_text(PROMPTFOO_CONFIG)
    return tmp_path


def run(folder: Path, *args: str, code: int = 0) -> str:
    done = run_command(*args, cwd=folder)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout if code == 0 else done.stderr


def import_json(folder: Path, *args: str) -> dict[str, Any]:
    return json.loads(run(folder, "import", *args, "--json"))  # type: ignore[no-any-return]


def load(folder: Path, run_id: str) -> EvalReport:
    return open_history(folder / ".proctor" / "history.db").report(run_id)


def test_the_runs_of_a_file_are_stored_once(folder: Path) -> None:
    """The id depends on the content: a copy under another name is already imported."""
    first = import_json(folder, "log.eval")["runs"]["log.eval"][0]
    (folder / "copy.eval").write_bytes((folder / "log.eval").read_bytes())
    again = import_json(folder, "copy.eval")["runs"]["copy.eval"][0]
    assert (first["new"], again["new"], first["run_id"]) == (True, False, again["run_id"])
    assert "already imported" in run(folder, "import", "log.eval")
    assert run(folder, "runs").count(first["run_id"]) == 1


def test_the_numbers_of_the_tool_are_next_to_those_of_proctor(folder: Path) -> None:
    """The mean of 1 and 0.5 is the reported accuracy; the tokens of all models agree."""
    text = run(folder, "import", "log.eval")
    assert "log.eval (inspect 0.3.1): 4 samples, 1 run" in text
    assert "4       1       1       1           1  new" in text
    assert [line.split()[:3] for line in text.splitlines() if line.startswith(("match", "tokens"))] == [
        ["match.accuracy", "0.75", "0.75"],
        ["tokens", "52", "52"],
    ]
    assert "they differ" not in text


def test_a_number_that_differs_is_a_warning(folder: Path) -> None:
    """OpenAI evals counts an invalid grade as 0; Proctor leaves it out and says so."""
    text = run(folder, "import", "log.jsonl")
    line = next(line for line in text.splitlines() if line.startswith("fact.mean"))
    assert line.split()[1:3] == ["0.5", "1"]
    assert line.endswith("warning: they differ")
    assert "the tool counts it as 0, Proctor as an error" in text
    reason = "openai-evals counts 1 error as 0, and Proctor leaves out errors"
    assert f"note: fact.mean is 0.5 in openai-evals and 1 here: {reason}" in text
    run_id = import_json(folder, "log.jsonl")["runs"]["log.jsonl"][0]["run_id"]
    assert reason in " ".join(run(folder, "show", run_id).split())


def test_a_pass_mark_is_part_of_the_run(folder: Path) -> None:
    """It changes verdicts and the id of the run, and is an option of the evaluator."""
    plain = import_json(folder, "log.eval")["runs"]["log.eval"][0]
    marked = import_json(folder, "log.eval", "--pass-at", "match=0.5")["runs"]["log.eval"][0]
    assert (plain["counts"]["passed"], marked["counts"]["passed"]) == (1, 2)
    stored = load(folder, marked["run_id"]).metadata
    assert stored is not None
    assert [spec.parameters for spec in stored.evaluators] == [{"threshold": 0.5}]
    assert import_json(folder, "log.eval", "--pass-at", "match=0.5")["runs"]["log.eval"][0]["new"] is False


@each_row(
    "args, message",
    [
        (["log.eval", "--pass-at", "match"], "write --pass-at closeness=0.7"),
        (["log.eval", "--pass-at", "match=70"], "the pass mark of match must be a number from 0 to 1, got '70'"),
        (["log.eval", "--pass-at", "mtach=0.7"], "did you mean 'match'?"),
        (["run.json", "--pass-at", "Exact Match=0.7"], "Exact Match has the verdicts of its tool"),
        (["log.eval", "--pass-at", "match=0.7", "--dataset", "x.jsonl"], "--pass-at is for runs"),
    ],
)
def test_a_pass_mark_that_cannot_be_used_is_refused(folder: Path, args: list[str], message: str) -> None:
    """The message says why, and what to write."""
    assert message in run(folder, "import", *args, code=2)


def test_an_unfinished_import_is_not_resumed(folder: Path) -> None:
    """Without an id, --resume continues runs of Proctor only."""
    (folder / "log.json").write_text(json.dumps(inspect_log(status="error")))
    assert import_json(folder, "log.json", "--name", "sums")["runs"]["log.json"][0]["new"]
    (folder / "data.jsonl").write_text('{"id": "1", "input": "a", "expected": "a"}\n')
    (folder / "eval.yaml").write_text(
        "name: sums\ndataset: data.jsonl\ntarget: {command: cat}\nevaluators: [contains]\n"
    )
    assert "there is no unfinished run of 'sums' to resume" in run(folder, "run", "eval.yaml", "--resume", code=2)


def test_an_inspect_log_in_a_folder_has_a_name_that_inspect_lists(folder: Path) -> None:
    """`inspect log list` shows only names that start with a time."""
    run_id = import_json(folder, "log.eval")["runs"]["log.eval"][0]["run_id"]
    name = f"logs/2026-01-02T03-04-05-00-00_sums_{run_id}.json"
    assert f"wrote {name}" in run(folder, "report", run_id, "--format", "inspect", "--output", "logs/")
    again = import_json(folder, name, "--dry-run")["runs"][name][0]["counts"]
    assert again == {"passed": 1, "failed": 1, "error": 1, "unscored": 1, "skipped": 0}


def test_a_stored_import_has_metadata_and_metrics(folder: Path) -> None:
    """Status, time, configurations, evaluators, tags, reported numbers and our own metrics."""
    run_id = import_json(folder, "results.json", "--name", "nightly")["runs"]["results.json"][0]["run_id"]
    report = load(folder, run_id)
    stored = report.metadata
    assert stored is not None
    assert (stored.name, stored.status, stored.total) == ("nightly", "completed", 4)
    assert stored.started_at.isoformat() == "2026-01-02T03:04:05+00:00"
    assert [configuration.name for configuration in stored.configurations] == ["model 0", "model 1"]
    assert [(spec.name, spec.uses) for spec in stored.evaluators] == [
        ("assertions", "imported:promptfoo"),
        ("Topic", "imported:promptfoo"),
    ]
    assert stored.tags == {"imported": "promptfoo"}
    assert stored.dataset.details["reported"]["errors"] == 1
    counts = report.counts
    assert (counts.passed, counts.failed, counts.error) == (2, 1, 1)
    assert report.metrics["assertions.mean"].value == pytest.approx(2.5 / 3)
    assert report.metrics["tokens.total"].value == 21
    assert report.by_configuration["model 1"]["success_rate"].value == 0.5


@pytest.mark.parametrize("name", ["log.eval", "results.json", "run.json", "log.jsonl"])
def test_other_commands_work_on_an_imported_run(folder: Path, name: str) -> None:
    """show, compare, gate, report, export and rescore take it as any other run."""
    run_id = import_json(folder, name)["runs"][name][0]["run_id"]
    assert run_id in run(folder, "show", run_id)
    # Another file with the same content is another run.
    if name == "log.eval":
        write_eval(folder / name, inspect_log(), zipfile.ZIP_STORED)
    else:
        (folder / name).write_text((folder / name).read_text() + "\n")
    other = import_json(folder, name)["runs"][name][0]["run_id"]
    place = "@model 0" if name == "results.json" else ""
    assert "pass_rate" in run(folder, "compare", other + place, run_id + place, "--json")
    gate = json.loads(run_command("gate", other + place, "--baseline", run_id + place, "--json", cwd=folder).stdout)
    assert gate["verdict"] in ("pass", "inconclusive"), gate
    run(folder, "rescore", run_id, "-e", "not-json_validity", "-q")
    for file_format in ("html", "markdown", "csv", "junit", "json"):
        run(folder, "report", run_id, "--format", file_format, "--output", f"reports/{file_format}")
    run(folder, "history", "export", "runs.jsonl")
    if name == "log.eval":
        refusal = run(folder, "report", run_id, "--format", "inspect", "--output", "x.eval", code=2)
        assert "Fix: name a .json file: --output x.json" in refusal


def test_an_inspect_session_can_be_rescored_for_its_tool_calls(folder: Path) -> None:
    """The first sample called `lookup`, the others did not."""
    run_id = import_json(folder, "log.eval")["runs"]["log.eval"][0]["run_id"]
    run(folder, "rescore", run_id, "-e", "tool_called", "--set", "tool_called.name=lookup", "-q")
    report = load(folder, json.loads(run(folder, "runs", "--json"))[0]["run_id"])
    assert [result.outcome for result in report.results] == ["passed", "failed", "failed", "error"]


def test_a_partial_file_is_an_incomplete_run(folder: Path) -> None:
    """Every command says so, a gate refuses it, and the tool's numbers are not expected to agree."""
    log = inspect_log()
    log["results"]["total_samples"] = 2340
    (folder / "part.json").write_text(json.dumps(log))
    warning = "the file has 4 of 2,340 results"
    assert warning in run(folder, "import", "part.json")
    run_id = import_json(folder, "part.json")["runs"]["part.json"][0]["run_id"]
    assert "interrupted  4 of 2,340" in run(folder, "runs")
    shown = run(folder, "show", run_id)
    assert warning in shown
    assert "interrupted, with 4 of 2,340 results" in shown
    import_json(folder, "log.eval")
    assert f"{run_id} is not complete" in run(folder, "compare", run_id, "sums")
    refusal = run(folder, "gate", run_id, code=3)
    assert "a gate needs a complete run" in refusal
    assert "Fix: import the complete file: proctor import FILE" in refusal


def test_an_unfinished_log_says_how_many_results_are_missing(folder: Path) -> None:
    """A log without header.json is interrupted; the plan in it gives the total, and without it the total is unknown."""
    spec = inspect_log()["eval"]
    ids = {"name": "letters", "samples": 100, "sample_ids": list(range(10))}
    unknown = "the run did not finish, and the file has 4 results of an unknown number"
    for dataset, config, results, warning in (
        ({"name": "letters"}, {}, "4 of ?", unknown),
        ({"samples": 100}, {"limit": 10}, "4 of ?", unknown),
        ({"samples": 5}, {}, "4 of 5", "the file has 4 of 5 results"),
        (ids, {"limit": 10, "epochs": 2}, "4 of 20", "the file has 4 of 20 results"),
        ({"samples": 4}, {}, "4 of 4", "the run did not finish, but the file has all 4 results"),
    ):
        start = {"version": 2, "eval": {**spec, "dataset": dataset, "config": config}}
        with zipfile.ZipFile(folder / "open.eval", "w") as archive:
            archive.writestr("_journal/start.json", json.dumps(start))
            for sample in inspect_log()["samples"]:
                archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
        assert warning in run(folder, "import", "open.eval")
        assert f"interrupted  {results} " in run(folder, "runs", "--limit", "1").replace("   ", "  ")
        assert "a gate needs a complete run" in run(folder, "gate", "latest", code=3)
        run(folder, "delete", "latest", "--yes")


def test_files_that_cannot_be_imported_are_named(folder: Path) -> None:
    """A folder names the command for its files; with one bad file of several, nothing is stored."""
    (folder / "logs").mkdir()
    write_eval(folder / "logs" / "a.eval", inspect_log())
    assert "Fix: import its files: proctor import logs/*.eval" in run(folder, "import", "logs", code=2)
    (folder / "bad.eval").write_bytes(b"PK no archive")
    message = run(folder, "import", "log.eval", "bad.eval", code=2)
    assert "1 of 2 files cannot be read; nothing was stored" in message
    assert "bad.eval: not a zip file" in message
    assert not (folder / ".proctor").exists()
    for name in ("log.eval", "results.json"):
        assert f"proctor import {name}" in run(folder, "sessions", "list", name, code=2)


def test_a_file_named_twice_is_imported_once(folder: Path) -> None:
    """The second row says so; names in a pipe are complete."""
    name = "a name that is much longer than the width of a terminal would allow in this table"
    text = run_command("import", "log.eval", "log.eval", "--name", name, cwd=folder, COLUMNS="").stdout
    rows = [line for line in text.splitlines() if line.startswith("inspect-")]
    assert [row.split()[-1] for row in rows] == ["new", "imported"]
    assert all(name in row for row in rows)
    assert name in run_command("runs", cwd=folder, COLUMNS="").stdout


def test_secrets_are_removed_before_a_run_is_stored(folder: Path) -> None:
    """As for runs of Proctor; the run says how many."""
    log = inspect_log()
    log["samples"][0]["output"]["completion"] = "the key is AKIA" + "Z7QW2MKX5RTB6PLN"
    (folder / "log.json").write_text(json.dumps(log))
    run_id = import_json(folder, "log.json")["runs"]["log.json"][0]["run_id"]
    report = load(folder, run_id)
    assert "MKX5RTB6" not in str(list(report.results))
    assert report.metadata is not None
    assert report.metadata.redacted


def test_a_dry_run_stores_nothing(folder: Path) -> None:
    """It shows the same numbers."""
    assert "not stored" in run(folder, "import", "log.eval", "--dry-run")
    assert not (folder / ".proctor").exists()
    run(folder, "import", "promptfooconfig.yaml", "--eval-file", "eval.yaml", "--dry-run")
    assert not (folder / "eval.yaml").exists()


def test_a_file_without_results_names_the_commands(folder: Path) -> None:
    """A dataset is not stored; the message has the exact commands."""
    text = run(folder, "import", "promptfooconfig.yaml")
    assert "promptfooconfig.yaml (promptfoo): 3 samples and no run" in text
    assert "proctor import promptfooconfig.yaml --format promptfoo --eval-file eval.yaml" in text
    assert "proctor run --dataset promptfooconfig.yaml --dataset-format promptfoo --target file.py:function" in text
    (folder / "empty.json").write_text(json.dumps(inspect_log(samples=[])))
    assert "no results, not stored" in run(folder, "import", "empty.json")


def test_samples_are_written_as_a_dataset(folder: Path) -> None:
    """`--dataset` writes JSONL that Proctor reads back, and stores no run."""
    text = run(folder, "import", "log.eval", "--dataset", "samples.jsonl")
    assert "wrote samples.jsonl: 4 samples" in text
    assert [sample.id for sample in Dataset.load(folder / "samples.jsonl")] == ["1", "2", "3", "4"]
    assert not (folder / ".proctor").exists()
    (folder / "mine.jsonl").write_text("my own file\n")
    assert "mine.jsonl" in run(folder, "import", "log.eval", "--dataset", "mine.jsonl", code=2)


def test_an_eval_file_has_the_translated_checks(folder: Path) -> None:
    """It names dataset, target and configurations, and lists as comments what is not translated."""
    text = run(folder, "import", "promptfooconfig.yaml", "--eval-file", "evals/eval.yaml", "--name", "greetings")
    assert "next: proctor run evals/eval.yaml" in text
    source = (folder / "evals" / "eval.yaml").read_text()
    assert "# the assertion 'javascript' is not translated; use a function of your own" in source
    content = yaml.safe_load(source)
    assert content["name"] == "greetings"
    assert content["dataset"] == "dataset.jsonl"
    assert content["target"]["prompt"] == "Say $word in $language"
    assert list(content["configurations"]) == ["openai:gpt-4.1-mini", "claude"]
    lines = (folder / "evals" / "dataset.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["test-1", "test-2", "test-3"]
    inspect = run(folder, "import", "log.eval", "--eval-file", "inspect.yaml", "--dataset", "i.jsonl")
    assert "the scorer 'match' is not translated; use contains" in inspect
    assert yaml.safe_load((folder / "inspect.yaml").read_text())["evaluators"] == [
        {"contains": {"case_sensitive": False}}
    ]


def test_an_eval_file_has_the_epochs_and_says_where_choices_are(folder: Path) -> None:
    """Three epochs of a task stay three; the choices of a sample are not part of its input."""
    log = inspect_log()
    first = log["samples"][0]
    log["samples"] = [{**first, "epoch": epoch, "choices": ["1", "2"]} for epoch in (1, 2, 3)]
    (folder / "log.json").write_text(json.dumps(log))
    text = run(folder, "import", "log.json", "--eval-file", "eval.yaml", "--target", "app.py:answer")
    assert "the choices of a sample are in its metadata, so a target does not see them" in text
    assert yaml.safe_load((folder / "eval.yaml").read_text())["run"] == {"epochs": 3}
    (folder / "app.py").write_text("def answer(question):\n    return 'it is 1'\n")
    assert "3 of 3 passed" in run(folder, "run", "eval.yaml")


def test_an_imported_inspect_eval_file_runs(folder: Path) -> None:
    """The written files are a complete evaluation of another target."""
    (folder / "app.py").write_text("def answer(question):\n    return 'it is 1'\n")
    text = run(folder, "import", "log.eval", "--eval-file", "eval.yaml")
    assert "eval.yaml names no program: add the line target: file.py:function to it" in text
    assert "proctor run eval.yaml --target file.py:function" in text
    assert "4 of 4 passed" in run(folder, "run", "eval.yaml", "--target", "app.py:answer")
    run(folder, "import", "log.eval", "--eval-file", "eval.yaml", "--target", "app.py:answer", "--force")
    assert "4 of 4 passed" in run(folder, "run", "eval.yaml")
    assert "--target needs --eval-file" in run(folder, "import", "log.eval", "--target", "app.py:answer", code=2)


def test_a_target_is_written_relative_to_the_eval_file(folder: Path) -> None:
    """The eval file of another folder finds the program, from that folder too; other kinds of targets as well."""
    (folder / "app.py").write_text("def answer(question):\n    return 'it is 1'\n")
    command = ("import", "log.eval", "--eval-file", "evals/eval.yaml", "--force", "--target")
    run(folder, *command, "app.py:answer")
    assert yaml.safe_load((folder / "evals" / "eval.yaml").read_text())["target"] == "../app.py:answer"
    assert "4 of 4 passed" in run(folder, "run", "evals/eval.yaml")
    assert "4 of 4 passed" in run(folder / "evals", "run", "eval.yaml")
    for target, written in (
        ("{command: [cat]}", {"command": ["cat"], "cwd": ".."}),
        ("{recorded: answers.jsonl}", {"recorded": "../answers.jsonl"}),
        ("openai:gpt-4.1-mini", "openai:gpt-4.1-mini"),
    ):
        run(folder, *command, target)
        assert yaml.safe_load((folder / "evals" / "eval.yaml").read_text())["target"] == written


def test_an_edited_file_is_not_overwritten(folder: Path) -> None:
    """The same import changes nothing and is accepted; a file that differs needs --force."""
    command = ("import", "promptfooconfig.yaml", "--eval-file", "eval.yaml", "--target", "{http: https://a.org/chat}")
    run(folder, *command)
    assert yaml.safe_load((folder / "eval.yaml").read_text())["target"] == {"http": "https://a.org/chat"}
    run(folder, *command)
    with (folder / "eval.yaml").open("a") as file:
        file.write("# mine\n")
    assert "add --force" in run(folder, *command, code=2)
    assert (folder / "eval.yaml").read_text().endswith("# mine\n")
    run(folder, *command, "--force")
    assert "# mine" not in (folder / "eval.yaml").read_text()


def test_the_next_command_works_without_translated_checks(folder: Path) -> None:
    """A config without any check names an evaluator in the command to run."""
    (folder / "app.py").write_text("def answer(variables):\n    return 'hello'\n")
    (folder / "bare.yaml").write_text("prompts: ['{{q}}']\nproviders: [echo]\ntests: [{vars: {q: a}}]\n")
    command = ("import", "bare.yaml", "--eval-file", "eval.yaml", "--target", "app.py:answer")
    assert "next: proctor run eval.yaml -e exact_match" in run(folder, *command)
    assert "evaluators is missing" in run(folder, "run", "eval.yaml", code=2)
    assert "0 of 1 passed" in run(folder, "run", "eval.yaml", "-e", "json_validity")


def test_files_that_cannot_be_imported_say_what_to_do(folder: Path) -> None:
    """A config of promptfoo is no eval file; a spreadsheet and an empty file have their own messages."""
    fix = "proctor import promptfooconfig.yaml --eval-file eval.yaml"
    assert fix in run(folder, "run", "promptfooconfig.yaml", code=2)
    (folder / "tests.xlsx").write_bytes(b"PK")
    assert "save the table as CSV" in run(folder, "import", "tests.xlsx", code=2)
    (folder / "tests.csv").write_bytes(b"")
    assert "the file is empty" in run(folder, "import", "tests.csv", code=2)


def test_readers_are_dataset_formats(folder: Path) -> None:
    """`--dataset-format` and `dataset: {path, format}` read another tool's file directly."""
    (folder / "app.py").write_text("def answer(question):\n    return 'Paris'\n")
    command = ["run", "--dataset", "run.json", "--target", "app.py:answer", "-e", "contains", "--skipped", "ignore"]
    assert "1 of 1 judged passed" in run(folder, *command, "--dataset-format", "deepeval")
    assert "unknown dataset format" in run(folder, *command, "--dataset-format", "nonsense", code=2)
    assert set(READERS) <= set(dataset_formats())


def test_samples_of_several_files_must_not_contradict(folder: Path) -> None:
    """Equal samples are written once; another sample with the same id is an error."""
    other = inspect_log()
    other["samples"][0]["input"] = "What is b?"
    (folder / "other.json").write_text(json.dumps(other))
    message = run(folder, "import", "log.eval", "other.json", "--dataset", "all.jsonl", code=2)
    assert "the id '1' belongs to another sample too" in message


def test_the_help_and_the_page_list_all_formats(tmp_path: Path) -> None:
    """A reader that is added must be named in the help and in the table of the page."""
    help_text = run_command("import", "--help", cwd=tmp_path).stdout
    page = (Path(__file__).parents[2] / "docs" / "import.md").read_text(encoding="utf-8")
    assert [name for name in READERS if name not in help_text] == []
    assert [name for name in READERS if f"| `{name}` |" not in page] == []
