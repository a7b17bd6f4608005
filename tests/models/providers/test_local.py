"""Local models: addresses, options, servers that cannot start. test_local_model.py uses real weights."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.errors import CallFailed, MissingExtra, ModelError
from proctor.models.connect import provider
from proctor.models.local import LocalAdapter, LocalServer
from tests.models.providers.scripted import asked

needs_llama = pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed")


def test_missing_weights_are_an_error_with_a_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that pulls them."""
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path))
    with pytest.raises(ModelError, match="are not installed") as caught:
        provider("local:smollm2")
    assert "proctor models pull smollm2" in str(caught.value)


def test_an_unknown_name_is_refused() -> None:
    """With the nearest known one."""
    with pytest.raises(ModelError, match="smollm2"):
        provider("local:smolm2")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """Before anything is started."""
    with pytest.raises(ModelError, match="the file does not exist"):
        provider(f"local:{tmp_path}/none.gguf")


@needs_llama
def test_all_invalid_options_are_reported_together(tmp_path: Path) -> None:
    """context, parallel and max_tokens below 1."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"")
    with pytest.raises(ModelError, match="context, concurrency, max_tokens must be 1 or more"):
        provider(f"local:{file}", context=0, concurrency=0, max_tokens=0)
    with pytest.raises(ModelError, match="choose one of: concurrency, context, max_tokens, timeout"):
        provider(f"local:{file}", threads=3)


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is connected, not at the first question."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtra, match="xllamacpp") as caught:
        provider(f"local:{file}")
    assert "proctor[local]" in str(caught.value)


@needs_llama
def test_an_invalid_model_file_fails_with_the_servers_log(tmp_path: Path) -> None:
    """Each time, and nothing hangs."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"garbage")
    model = provider(f"local:{file}")
    assert isinstance(model, LocalAdapter)
    for _ in range(2):
        with pytest.raises(CallFailed, match="its server process ended with status 3") as caught:
            asyncio.run(asyncio.wait_for(model.complete(asked()), 120))
        assert "failed to load model" in str(caught.value)
    assert repr(model) == f"LocalAdapter('local:{file}')"


@needs_llama
def test_the_server_process_reports_why_it_cannot_start(tmp_path: Path) -> None:
    """On standard error, with exit code 3."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"garbage")
    result = subprocess.run(
        [sys.executable, "-m", "proctor.models.local", str(file), "--context", "128"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (result.returncode, result.stdout) == (3, "")
    assert "init server" in result.stderr


def test_an_embedder_is_not_a_language_model() -> None:
    """It is refused on connection, with or without its weights."""
    with pytest.raises(ModelError, match="an embedding model, which cannot answer") as caught:
        provider("local:minilm")
    assert "embedder" in caught.value.fix


@needs_llama
def test_models_start_concurrently(tmp_path: Path) -> None:
    """Loading one file does not block another."""
    small, large = (LocalServer(tmp_path / name, 128, 1) for name in ("small.gguf", "large.gguf"))
    assert small._start_lock is small._start_lock
    with large._start_lock, pytest.raises(CallFailed, match="its server process ended"):
        small.start()
