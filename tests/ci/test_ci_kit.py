"""The CI files: their steps run as they are, from an empty repository to a red and a green request with one comment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from tests.support import ROOT, run_command

KIT = ROOT / "ci"
FILES = [KIT / "github" / "action.yml", KIT / "github" / "eval.yml", KIT / "gitlab" / ".gitlab-ci.yml"]


class CommentsAPI(BaseHTTPRequestHandler):
    """The comments of one request, as GitHub and GitLab serve them."""

    comments: ClassVar[list[dict[str, Any]]] = []
    requests: ClassVar[list[tuple[str, str]]] = []
    status = 200

    def _answer(self, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _read(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        self.requests.append(("GET", self.path))
        match = re.search(r"per_page=(\d+)&page=(\d+)", self.path)
        assert match is not None
        size, page = map(int, match.groups())
        self._answer(self.comments[(page - 1) * size : page * size])

    def do_POST(self) -> None:
        self.requests.append(("POST", self.path))
        if self.status == 200:
            self.comments.append({"id": len(self.comments) + 1, **self._read()})
        self._answer(self.comments[-1])

    def _update(self) -> None:
        self.requests.append((self.command, self.path))
        comment = self.comments[int(self.path.rpartition("/")[2]) - 1]
        comment.update(self._read())
        self._answer(comment)

    do_PATCH = do_PUT = _update  # noqa: N815

    def log_message(self, *_arguments: Any) -> None:
        """Print nothing."""


@pytest.fixture
def api() -> Iterator[str]:
    others = [{"id": number, "body": f"comment {number} of a person"} for number in range(1, 102)]
    CommentsAPI.comments[:], CommentsAPI.requests[:], CommentsAPI.status = others, [], 200
    server = ThreadingHTTPServer(("127.0.0.1", 0), CommentsAPI)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with an eval file and a program that answers all questions."""
    lines = [json.dumps({"id": str(n), "input": str(n), "expected": str(n)}) for n in range(200)]
    (tmp_path / "qa.jsonl").write_text("\n".join(lines))
    (tmp_path / "eval.yaml").write_text("dataset: qa.jsonl\ntarget: app.py:answer\nevaluators: [exact_match]\n")
    (tmp_path / "app.py").write_text("def answer(question):\n    return question\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def github(event: Path, api: str) -> dict[str, str]:
    event.write_text(json.dumps({"number": 7, "pull_request": {}}))
    return {
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_API_URL": api,
        "GITHUB_REPOSITORY": "team/app",
        "GITHUB_TOKEN": "t",
        "GITHUB_SHA": "abc",
    }


def gitlab(api: str) -> dict[str, str]:
    return {"CI_API_V4_URL": api, "CI_PROJECT_ID": "3", "CI_MERGE_REQUEST_IID": "7", "PROCTOR_COMMENT_TOKEN": "t"}


def run_step(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a step of a CI file in a shell, with `python` and `proctor` of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "CI_", "PROCTOR_"))}
    variables = {**inherited, "PATH": path, "EVAL_FILE": "eval.yaml", "BASELINE": "main", "OPTIONS": "--margin 5%"}
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**variables, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def list_scripts(path: Path) -> dict[str, str]:
    """The scripts of a CI file that call the kit, by their step."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    if path.name == "action.yml":
        scripts = [step["run"] for step in data["runs"]["steps"] if "proctor_ci" in step.get("run", "")]
    else:
        jobs = [job for job in data.values() if isinstance(job, dict)]
        scripts = [line for job in jobs for key in ("script", "after_script") for line in job.get(key, ())]
    return {
        next(step for step in ("gate", "comment", "baseline") if f".py {step}" in s or f'.py" {step}' in s): s
        for s in scripts
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_the_files_are_valid_yaml(path: Path) -> None:
    """Every input of the action that a step uses is declared, and every file says what it is."""
    text = path.read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(data.get("inputs", {}))


@pytest.mark.slow
def test_from_no_baseline_to_a_red_and_a_green_pull_request(project: Path, api: str, tmp_path_factory: Any) -> None:
    """First no baseline; then one from the default branch; a bad change is red, a good one green, in one comment."""
    scripts = list_scripts(KIT / "github" / "action.yml")
    event = tmp_path_factory.mktemp("event") / "event.json"
    variables = {**github(event, api), "GITHUB_ACTION_PATH": str(KIT / "github")}

    def request() -> int:
        gate = run_step(scripts["gate"], project, **variables)
        assert gate.returncode in (0, 1), gate.stdout + gate.stderr
        result = run_step(scripts["comment"], project, **variables)
        assert result.returncode == 0, result.stderr
        return gate.returncode

    assert request() == 0
    assert "There is no baseline `main` yet" in CommentsAPI.comments[-1]["body"]
    result = run_step(scripts["baseline"], project, **variables)
    assert result.returncode == 0, result.stdout + result.stderr
    (project / "app.py").write_text("def answer(question):\n    return question.replace('1', 'x')\n")
    assert request() == 1
    assert "## Gate failed" in CommentsAPI.comments[-1]["body"]
    (project / "app.py").write_text("def answer(question):\n    return str(int(question))\n")
    assert request() == 0
    assert "## Gate passed" in CommentsAPI.comments[-1]["body"]
    own = [comment for comment in CommentsAPI.comments if comment["body"].startswith("<!-- proctor gate")]
    assert len(own) == 1
    assert [method for method, _ in CommentsAPI.requests if method != "GET"] == ["POST", "PATCH", "PATCH"]


def test_an_unreadable_eval_file_updates_the_same_comment(project: Path, api: str, tmp_path_factory: Any) -> None:
    """With a baseline and without one: the marker does not depend on what the file says."""
    variables = github(tmp_path_factory.mktemp("event") / "event.json", api)
    kit, good = f'python "{KIT / "proctor_ci.py"}"', "name: q\n" + (project / "eval.yaml").read_text()
    bodies = []
    for text, setup in (
        (good, "true"),
        ("evaluators: [", "true"),
        (good, f"{kit} baseline"),
        ("evaluators: [", "true"),
    ):
        (project / "eval.yaml").write_text(text)
        result = run_step(f"{setup} && ({kit} gate; {kit} comment)", project, **variables)
        assert result.returncode == 0, result.stderr
        bodies.append(CommentsAPI.comments[-1]["body"])
    assert len(CommentsAPI.comments) == 102
    assert {body.partition("\n")[0] for body in bodies} == {"<!-- proctor gate: eval.yaml, baseline main -->"}
    expected = ["There is no baseline `main`", "The evaluation did not run", "## Gate passed", "## Gate not decided"]
    for start, body in zip(expected, bodies, strict=True):
        assert start in body


def test_a_gate_that_cannot_start_replaces_the_old_result(project: Path) -> None:
    """An unknown option of `proctor gate` leaves no comment of an earlier job behind."""
    kit = f'python "{KIT / "proctor_ci.py"}"'
    assert run_step(f"{kit} baseline", project).returncode == 0
    (project / "gate.md").write_text("<!-- proctor gate: eval.yaml, baseline main -->\n## Gate passed\n")
    assert run_step(f"{kit} gate -- --margins 5%", project).returncode == 2
    assert "It did not run; see the log." in (project / "gate.md").read_text()


@pytest.mark.parametrize("environment", ["github", "gitlab"])
def test_the_second_comment_updates_the_first(project: Path, api: str, environment: str, tmp_path_factory: Any) -> None:
    """The comment is found by its marker behind a hundred comments of people."""
    event = tmp_path_factory.mktemp("event") / "event.json"
    variables = github(event, api) if environment == "github" else gitlab(api)
    script = f"python {KIT / 'proctor_ci.py'} comment"
    for text in ("first", "second"):
        (project / "gate.md").write_text(f"<!-- proctor gate: qa -->\n{text}\n")
        result = run_step(script, project, **variables)
        assert result.returncode == 0, result.stderr
    assert len(CommentsAPI.comments) == 102
    assert CommentsAPI.comments[-1]["body"] == "<!-- proctor gate: qa -->\nsecond\n"


def test_a_token_that_may_not_write_does_not_fail_the_job(project: Path, api: str, tmp_path_factory: Any) -> None:
    """The text is printed instead, with the reason."""
    CommentsAPI.status = 403
    (project / "gate.md").write_text("<!-- proctor gate: qa -->\ntext\n")
    variables = github(tmp_path_factory.mktemp("event") / "event.json", api)
    result = run_step(f"python {KIT / 'proctor_ci.py'} comment", project, **variables)
    assert result.returncode == 0
    assert "The comment was not written: 403" in result.stderr
    assert "text" in result.stdout


def test_every_command_of_the_kit_exists_with_its_options() -> None:
    """The commands in the script are commands of Proctor, and their options are known."""
    source = (KIT / "proctor_ci.py").read_text(encoding="utf-8")
    assert set(re.findall(r'"proctor", "(\w+)"(?:, "(\w+)")?', source)) >= {("baseline", "list"), ("baseline", "set")}
    for command, options in {
        ("gate",): ("--baseline", "--tag", "--output", "--markdown", "--junit", "--margin"),
        ("run",): ("--tag", "--output"),
        ("history", "prune"): ("--count", "--yes"),
        ("baseline", "set"): (),
        ("baseline", "list"): ("--json",),
    }.items():
        text = run_command(*command, "--help", cwd=ROOT).stdout
        assert text.startswith(f"Usage: proctor {' '.join(command)} ")
        assert set(re.findall(r"--[\w-]+", text)).issuperset(options), command


def test_a_run_with_many_errors_does_not_renew_the_baseline(project: Path) -> None:
    """The target fails for half of the samples: the old baseline stays, and the step says so."""
    step = f'"{sys.executable}" "{KIT / "proctor_ci.py"}" baseline'
    assert run_step(step, project).returncode == 0
    before = json.loads(run_command("baseline", "list", "--json", cwd=project).stdout)["main"]["run_id"]
    (project / "app.py").write_text("def answer(question):\n    return question if int(question) % 2 else 1 / 0\n")
    result = run_step(step, project)
    assert (result.returncode, "The baseline stays as it was" in result.stderr) == (2, True)
    assert "100 of 200 results" in result.stderr
    assert json.loads(run_command("baseline", "list", "--json", cwd=project).stdout)["main"]["run_id"] == before
