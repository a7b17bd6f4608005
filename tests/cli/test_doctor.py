"""`proctor doctor`: what is installed, configured and reachable, each problem with a fix."""

from __future__ import annotations

import json
import re
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import pytest

from proctor import evaluate
from proctor.cli import doctor
from proctor.testing import ModelServer
from tests.servers import RedisServer
from tests.support import ROOT, run_command

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_BASE_URL")
SECRET = "sk-test-9f8e7d6c5b4a3f2e1d0c"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


def check(folder: Path, *arguments: str, **variables: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the checks by name."""
    result = run_command("doctor", *arguments, "--json", cwd=folder, **variables)
    assert SECRET not in result.stdout + result.stderr
    return result.returncode, {check["name"]: check for check in json.loads(result.stdout)["checks"]}


def test_every_extra_of_the_package_is_explained() -> None:
    """The names are those of pyproject.toml, and each has packages; `all` is the sum of them."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    del extras["all"]
    assert sorted(doctor.EXTRAS) == sorted(extras)
    installed = {extra: {name for name, _ in packages} for extra, packages in doctor._list_extras().items()}
    for extra, packages in extras.items():
        assert installed[extra] == {re.split(r"[\[>;]", package)[0].replace("_", "-") for package in packages}


def test_an_empty_folder_has_no_failures(tmp_path: Path) -> None:
    """Missing keys and a missing eval file are information; nothing is created."""
    code, checks = check(tmp_path)
    assert code == 0
    assert checks["eval file"] | {"message": ""} == {
        "section": "Configured",
        "name": "eval file",
        "status": "info",
        "message": "",
        "fix": "proctor init my-evals",
    }
    assert checks["openai"]["status"] == "info"
    assert "the first run creates" in checks["history"]["message"]
    assert list(tmp_path.iterdir()) == []


def test_a_project_is_checked_without_calling_its_target(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print('imported')\ndef answer(text):\n    raise SystemError('called')\n")
    (tmp_path / "d.jsonl").write_text('{"id": "1", "input": "a", "expected": "A"}\n')
    (tmp_path / "eval.yaml").write_text("dataset: d.jsonl\ntarget: app.py:answer\nevaluators: [exact_match]\n")
    code, checks = check(tmp_path, OPENAI_API_KEY=SECRET)
    assert code == 0
    assert checks["eval file"]["message"] == "eval.yaml: target answer, 1 sample, 1 evaluator"
    assert checks["openai"]["message"] == "OPENAI_API_KEY is set; --online checks it"


def test_failures_have_a_fix_and_exit_code_3(tmp_path: Path) -> None:
    """A misspelt evaluator, a target that cannot be imported, a broken history and a dead mailbox."""
    (tmp_path / "d.jsonl").write_text('{"id": "1", "input": "a"}\n')
    (tmp_path / "eval.yaml").write_text("dataset: d.jsonl\ntarget: app.py:answer\nevaluators: [exact_mach]\n")
    (tmp_path / "bad.db").write_text("this is not a database" * 100)
    address = "redis://user:hunter2@127.0.0.1:1/0/evals"
    code, checks = check(tmp_path, "--history", "bad.db", "--requests", address)
    assert code == 3
    for name in ("eval file", "history", "mailbox"):
        assert checks[name]["status"] == "fail", name
        assert checks[name]["fix"], name
    assert "hunter2" not in str(checks)
    (tmp_path / "app.py").write_text("1 / 0")
    assert "division by zero" in check(tmp_path)[1]["eval file"]["message"]
    result = run_command("doctor", cwd=tmp_path)
    assert result.returncode == 3
    assert re.search(r"  fail  eval file .*\n(.*\n)* +Fix: ", result.stdout)
    assert re.search(r"\d+ checks: 1 failure, \d+ warnings?", result.stdout)


def test_a_history_is_opened_and_written(tmp_path: Path) -> None:
    """The lock of another writer makes the check fail, because the file cannot be written."""
    evaluate(str.upper, [{"id": "1", "input": "a", "expected": "A"}], "exact_match", history=tmp_path / "h.db")
    assert "can be read and written; latest run: 2" in check(tmp_path, "--history", "h.db")[1]["history"]["message"]
    writer = sqlite3.connect(tmp_path / "h.db", isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    _, checks = check(tmp_path, "--history", "h.db")
    writer.close()
    assert checks["history"]["status"] == "fail"
    assert "h.db can be read but not written: database is locked" in checks["history"]["message"]


def test_servers_are_asked(tmp_path: Path) -> None:
    """A Redis mailbox answers; with --online, a provider with a key lists its models, and one that refuses fails."""
    with RedisServer() as redis:
        address = f"redis://127.0.0.1:{redis.port}/0/evals"
        _, checks = check(tmp_path, "--requests", address)
    assert checks["mailbox"]["message"] == f"{address} answers; 0 messages"
    for key, status in ((SECRET, "ok"), ("another-key-1234567890", "fail")):
        with ModelServer(key=SECRET) as server:
            base_url = f"{server.url}/v1"
            code, checks = check(tmp_path, "--online", OPENAI_API_KEY=key, OPENAI_BASE_URL=base_url)
        assert checks["openai"]["status"] == status
        assert code == (0 if status == "ok" else 3)


def test_an_old_package_of_an_extra_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "_list_extras", lambda: {"redis": [("redis", "999.0")], "ray": [("no-such-package", "")]}
    )
    findings = {finding.name: finding for finding in doctor._check_installation()}
    assert findings["redis"].status == "warn"
    assert "is older than 999.0" in findings["redis"].message
    assert findings["ray"].status == "info"
    assert findings["ray"].fix == 'pip install "proctor[ray]"'


def test_evaluators_of_samples_are_mentioned(tmp_path: Path) -> None:
    """An eval file without evaluators of its own is not described as one that has none."""
    (tmp_path / "app.py").write_text("def answer(text):\n    return text\n")
    (tmp_path / "d.jsonl").write_text('{"id": "1", "input": "a", "expected": "a", "evaluators": ["exact_match"]}\n')
    (tmp_path / "eval.yaml").write_text("dataset: d.jsonl\ntarget: app.py:answer\n")
    result = run_command("doctor", cwd=tmp_path)
    assert "1 sample, samples have their own evaluators (exact_match)" in " ".join(result.stdout.split())
