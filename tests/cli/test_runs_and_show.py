"""runs, show, rescore, delete, evaluators, init, demo: everything around a run."""

from __future__ import annotations

import json

import click
import msgspec
import pytest

from proctor import SQLiteHistory
from proctor.cli.main import COMMANDS, run_cli
from tests.cli.project import EVAL, Project
from tests.tables import each_row


@pytest.fixture
def run_id(project: Project) -> str:
    """A run in the project's history."""
    result = project.proctor("run", "eval.yaml", "--json", "--tag", "branch=main")
    return str(result.json["run_id"])


def test_runs_lists_the_newest_first(project: Project, run_id: str) -> None:
    """Id, name, status, results, rate, errors and tags; --tag and --limit narrow it."""
    project.proctor("run", "eval.yaml", "-q", "--name", "second")
    lines = project.proctor("runs").out.splitlines()
    assert lines[0].split()[:3] == ["run", "name", "status"]
    assert ("second" in lines[1], "exam" in lines[2]) == (True, True)
    assert "100.0%" in lines[2]
    assert lines[3] == "  branch=main"
    tagged = json.loads(project.proctor("runs", "--tag", "branch=main", "--json").out)
    assert [run["run_id"] for run in tagged] == [run_id]
    assert len(project.proctor("runs", "--limit", "1").out.splitlines()) == 2


def test_an_empty_history_says_so_and_stays_absent(project: Project) -> None:
    """Looking makes no file."""
    where, fix = project.proctor("runs").out.split("; ")
    assert where == "no runs in .proctor/history.db"
    assert fix == "`proctor run eval.yaml` stores one, `proctor init` writes an eval file\n"
    result = project.proctor("show")
    assert (result.code, "the history is empty" in result.err) == (2, True)
    assert result.err.endswith("Fix: proctor run eval.yaml\n")
    other = project.proctor("show", "--history", "other.db")
    assert other.err.endswith("Fix: proctor run eval.yaml --history other.db\n")
    assert "`proctor run eval.yaml --history other.db` stores" in project.proctor("runs", "--history", "other.db").out
    assert not (project.folder / ".proctor").exists()


def test_a_killed_run_is_shown_as_interrupted(project: Project, run_id: str) -> None:
    """A run with the status running that no process works on is shown as interrupted."""
    history = SQLiteHistory(".proctor/history.db")
    history.update(msgspec.structs.replace(history.find(run_id), status="running"))
    assert "interrupted" in project.proctor("runs").out
    with history.claim(run_id):
        assert "running" in project.proctor("runs").out


def test_show_gives_the_report_again(project: Project, run_id: str) -> None:
    """By default the latest run; the text is the same as after the run."""
    result = project.proctor("show")
    assert result.out.startswith("4 of 4 judged passed")
    assert project.proctor("show", run_id[:17]).out == result.out
    assert project.proctor("show", "exam", "--json").json["total"] == 5
    written = project.proctor("show", "exam", "--output", "out")
    assert "wrote out/report.json" in written.out


def test_show_narrows_to_results(project: Project, run_id: str) -> None:
    """One sample, or results by outcome; every reason is there."""
    result = project.proctor("show", "latest", "--sample", "s3")
    assert result.out.startswith("s3  error  (default, ")
    assert "ValueError: no threes" in result.out
    assert 'raise ValueError("no threes")' in result.out
    passed = project.proctor("show", "latest", "--outcome", "passed", "--limit", "2").out
    assert passed.count("exact_match  1 passed") == 2
    actual = project.proctor("show", "exam", "--outcome", "passed", "--evaluator", "contains", "--json")
    assert len(actual.json) == 4
    none = project.proctor("show", "exam", "--outcome", "failed").out
    assert none.startswith("no such results; the run has 4 passed")
    none = project.proctor("show", "exam", "--outcome", "skipped", "--evaluator", "contains").out
    assert none.startswith("no such results; contains has 4 passed")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--sample", "s99"], "has no sample 's99'"),
        (["--configuration", "defalt"], "did you mean 'default'?"),
        (["--evaluator", "exact", "--outcome", "failed"], "the run has no evaluator 'exact'"),
        (["--outcome", "bad"], "--outcome must be"),
        (["s4"], "Fix: for a sample, write: proctor show latest --sample s4"),
    ],
)
def test_show_names_what_is_not_there(project: Project, run_id: str, args: list[str], message: str) -> None:
    """Unknown samples, configurations, evaluators and outcomes are faults of the call."""
    result = project.proctor("show", "latest", *args)
    assert result.code == 2
    assert message in result.err


def test_show_takes_a_run_and_its_configuration_as_compare_does(project: Project) -> None:
    """RUN@CONFIGURATION is the same as --configuration; an unknown one is named."""
    project.write("eval.yaml", EVAL + "configurations: {a: {}, b: {suffix: '!'}}\n")
    assert project.proctor("run", "-q").code == 0
    by_name = project.proctor("show", "latest@b", "--json").json
    assert by_name == project.proctor("show", "latest", "--configuration", "b", "--json").json
    assert {each["trial"]["configuration"] for each in by_name} == {"b"}
    assert "the run has no configuration 'c'" in project.proctor("show", "latest@c").err
    assert "unknown run 'nobody'" in project.proctor("show", "nobody@b").err


def test_rescore_scores_old_outputs(project: Project, run_id: str) -> None:
    """New evaluators by option or from a file; the target is not called; gates hold here too."""
    project.write("app.py", "raise SystemExit('the target must not be loaded')")
    result = project.proctor(
        "rescore", run_id, "-e", "regex_match", "--set", "regex_match.pattern=[02]$", "--json",
        "--tag", "again=yes",
    )  # fmt: skip
    assert result.json["pass_rate"] == 0.5
    assert result.json["metadata"]["rescored_from"] == run_id
    assert result.json["metadata"]["tags"] == {"branch": "main", "again": "yes"}
    gated = project.proctor("rescore", run_id, "-q", "-e", "not-contains", "--fail-under", "0.5", "--output", "out")
    assert gated.code == 1
    assert (project.folder / "out" / "report.md").exists()
    project.write("e.yaml", "dataset: data.jsonl\ntarget: app.py:shout\nevaluators: [json_subset]\n")
    by_file = project.proctor("rescore", run_id, "--file", "e.yaml", "--json")
    assert by_file.json["metrics"]["json_subset.mean"]["errors"] == 5
    assert project.proctor("rescore", run_id).code == 2


def test_delete_asks_first(project: Project, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A no leaves everything; --yes deletes the run and its results."""
    monkeypatch.setattr("sys.stdin", __import__("io").StringIO("n\n"))
    assert project.proctor("delete", run_id).out.endswith("nothing was deleted\n")
    assert run_id in project.proctor("runs", "--json").out
    result = project.proctor("delete", run_id[:18], "exam", "--yes")
    assert result.out == f"deleted run {run_id} (exam)\n"
    assert project.proctor("runs", "--json").json == []
    repeated = project.proctor("run", "eval.yaml", "--json").json["run_id"]
    assert project.proctor("delete", repeated, "--yes", "--json").json == {"deleted": [repeated], "baselines": []}


def test_the_catalogue_names_every_evaluator(project: Project) -> None:
    """All, one, or with a plugin; JSON for programs; unknown names come with the nearest."""
    names = [info["name"] for info in project.proctor("evaluators", "--json").json]
    for name in ("exact_match", "contains", "regex_match", "within_tolerance", "json_subset",
                 "starter_phrase", "question_format", "all_of", "any_of", "weighted"):  # fmt: skip
        assert name in names
    result = project.proctor("evaluators", "contains")
    assert "case_sensitive: bool, default True" in result.out
    assert "did you mean 'contains'?" in project.proctor("evaluators", "contain").err
    assert "long_enough" in project.proctor("evaluators", "--plugin", "app.py:long_enough").out


def test_init_writes_a_project_that_runs(project: Project) -> None:
    """The scaffold runs as it is, its schema is there, and nothing is overwritten."""
    result = project.proctor("init", "mine")
    assert result.code == 0
    assert "cd mine && proctor run eval.yaml" in result.out
    schema = json.loads((project.folder / "mine/.proctor/eval.schema.json").read_text())
    assert "evaluators" in json.dumps(schema)
    first = (project.folder / "mine/eval.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=.proctor/eval.schema.json"
    run = project.proctor("run", "mine/eval.yaml", "--json")
    assert (run.code, run.json["total"]) == (0, 10)
    repeated = project.proctor("init", "mine")
    assert repeated.code == 2
    assert "nothing was written" in repeated.err
    assert len(project.proctor("init", "other", "--json").json["wrote"]) == 5


def test_the_demo_runs_and_says_what_next(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two configurations, both reports, the way on, and that no weights were there."""
    monkeypatch.setenv("PROCTOR_MODELS", str(project.folder / "models"))
    result = project.proctor("demo")
    assert result.code == 0
    assert "bm25: 102 of 120 passed" in result.out
    assert "overlap: 71 of 120 passed" in result.out
    assert "semantic_similarity compared spelling only" in result.out
    assert " models pull minilm" in result.out
    assert "Next steps:" in result.out
    assert (project.folder / "eval_results" / "report.md").exists()
    assert (project.folder / "eval_results" / "report.json").exists()
    quiet = project.proctor("demo", "--json")
    assert (quiet.json["total"], quiet.err) == (240, "")


def test_a_killed_run_can_be_looked_at(project: Project, run_id: str) -> None:
    """A run that never came to its end is shown as interrupted, with metrics over what there is."""
    history = SQLiteHistory(".proctor/history.db")
    history.update(msgspec.structs.replace(history.find(run_id), status="running"))
    result = project.proctor("show", run_id)
    assert "This run is interrupted" in result.out
    assert "exact_match.pass_rate" in result.out


def test_a_broken_plugin_is_a_warning(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed plugin that cannot be loaded is named, and everything else works."""
    from importlib.metadata import EntryPoint

    from proctor.core import imports as plugins

    installed = plugins.entry_points(plugins.EVALUATORS)
    broken = EntryPoint("bad", "no_such_module:thing", "proctor.evaluators")
    monkeypatch.setattr(plugins, "entry_points", lambda _group: [*installed, broken])
    result = project.proctor("evaluators", "contains")
    assert "contains" in result.out
    assert "warning: the plugin 'bad'" in result.err


@each_row("name", COMMANDS)
def test_every_command_has_help(project: Project, name: str) -> None:
    """--help of a command begins with its summary from the overview."""
    result = project.proctor(name, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: proctor {name}")


def test_a_misspelt_command_is_recognised(project: Project) -> None:
    """The nearest command is named."""
    result = project.proctor("rnu")
    assert result.code == 2
    assert "did you mean 'run'?" in result.err


def test_version_and_overview(project: Project) -> None:
    """`proctor` without arguments lists the commands; --version prints the version."""
    from proctor import __version__

    assert project.proctor("--version").out == f"proctor, version {__version__}\n"
    assert "Run on many machines:" in project.proctor("--help").out
    assert all(name in project.proctor("--help").out for name in COMMANDS)


def test_other_errors_have_another_exit_code_than_usage_errors(project: Project) -> None:
    """A history that is not a database is trouble (3), not usage (2)."""
    project.write("broken.db", "this is not a database at all, " * 100)
    result = project.proctor("runs", "--history", "broken.db")
    assert result.code == 3
    assert "the history cannot be opened" in result.err


def test_an_interrupted_command_says_how_to_go_on(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run id and the option are there; the exit code is 130."""
    from proctor.cli import main
    from proctor.errors import RunInterrupted

    @click.command("stop")
    def stop() -> None:
        raise RunInterrupted("20260101-000000-abcdef")

    monkeypatch.setattr(main.LazyCommands, "resolve_command", lambda *_: ("stop", stop, []))
    result = project.proctor("stop")
    assert result.code == 130
    assert "--resume 20260101-000000-abcdef" in result.err


def test_main_exits_with_the_code() -> None:
    """The script's entry point turns the outcome into an exit."""
    from proctor.cli.main import main

    with pytest.raises(SystemExit) as exit_:
        main(["--version"])
    assert exit_.value.code == 0
    assert run_cli(["run", "--no-such-option"]) == 2


def test_a_killed_and_resumed_run_says_what_its_duration_leaves_out(project: Project, run_id: str) -> None:
    """A killed run cannot store how long it ran."""
    history = SQLiteHistory(project.folder / ".proctor/history.db")
    history.update(msgspec.structs.replace(history.find(run_id), status="running", duration_seconds=0.0))
    resumed = project.proctor("run", "eval.yaml", "--resume", run_id)
    assert "the run was killed and resumed; its duration does not include the time before the kill" in " ".join(
        resumed.out.split()
    )
