"""Addresses become models: by provider, or by module and attribute; models stay as they are."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path
from typing import Any

import pytest

from proctor.core import imports as plugins
from proctor.errors import ModelError
from proctor.models.connect import embedder, is_model_address, provider
from tests.models.providers.scripted import Scripted, asked


def test_a_model_object_is_used_unchanged() -> None:
    """Any object with the methods of the port; it takes no options."""
    model = Scripted()
    assert provider(model) is model
    assert provider({"model": model}) is model
    with pytest.raises(ModelError, match="a model that is already connected takes no options: retries"):
        provider(model, retries=3)


def test_a_mapping_names_the_model_and_its_options() -> None:
    """Options of the call go over those of the mapping."""
    adapter = provider({"model": "http://127.0.0.1:1/v1#m", "retries": 0}, retries=1)
    assert adapter.model == "http://127.0.0.1:1/v1#m"
    with pytest.raises(ModelError, match="the mapping has no 'model' key"):
        provider({"retries": 0})


@pytest.mark.parametrize(
    ("address", "words", "fix"),
    [
        ("gpt-4o", "'gpt-4o' is not a model address", "anthropic, cached, gemini"),
        ("opnai:gpt-4o", "unknown provider 'opnai'", "did you mean 'openai'"),
        ("hf:owner/name", "do not write text", "such as openai:gpt-4o"),
        ("json:nothing_here", "no attribute 'nothing_here'", "correct the address"),
        ("python:json:nothing_here", "no attribute", "correct"),
    ],
)
def test_an_unknown_address_is_refused(address: str, words: str, fix: str) -> None:
    """With a suggestion."""
    with pytest.raises(ModelError, match=words) as caught:
        provider(address)
    assert fix in str(caught.value)


def _module(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (folder / "held_models.py").write_text(textwrap.dedent(text))
    monkeypatch.chdir(folder)


def test_a_python_address_leads_to_the_users_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function, or the address of another model; with or without `python:` before it."""
    _module(
        tmp_path,
        monkeypatch,
        """
        def answer(messages):
            return "Paris"
        alias = "held_models:answer"
        options = {"model": answer, "name": "oracle"}
        itself = "held_models:itself"
        """,
    )
    for address in ("held_models:answer", "python:held_models:answer", "held_models:alias"):
        model = provider(address)
        assert model.model == "python:answer"
        assert asyncio.run(model.complete(asked())).text == "Paris"
    assert provider("held_models:options").model == "python:oracle"
    with pytest.raises(ModelError, match="refers to itself"):
        provider("held_models:itself")


def test_unknown_options_are_refused_with_the_known_ones() -> None:
    """And an error inside a provider is not taken for one of its options."""
    with pytest.raises(ModelError, match="unknown option 'off'") as caught:
        provider("paced:5/s", off=Scripted())
    assert "choose one of: source_model" in str(caught.value)
    with pytest.raises(ModelError, match="unexpected keyword argument 'retries'"):
        provider(lambda messages: "", retries=3)
    with pytest.raises(TypeError, match="a fault of its own"):
        provider({"model": _Faulty()})


class _Faulty:
    """An object whose attributes raise errors."""

    def __call__(self, messages: Any) -> str:
        return ""

    @property
    def __name__(self) -> str:
        raise TypeError("a fault of its own")


def test_wrappers_nest_in_any_order(tmp_path: Path) -> None:
    """All of them around one model: its address, schema and answers come through."""
    model = Scripted(supports_json_schema=True)
    wrapped = provider(
        {
            "model": "paced:1000/s",
            "of": {"model": f"cached:{tmp_path}/kept", "of": {"model": f"record:{tmp_path}/calls.jsonl", "of": model}},
        }
    )
    other_way = provider(
        {
            "model": f"record:{tmp_path}/other.jsonl",
            "of": {"model": f"cached:{tmp_path}/kept", "of": {"model": "paced:99/s", "of": model}},
        }
    )
    for adapter in (wrapped, other_way, wrapped):
        assert (adapter.model, adapter.supports_json_schema) == ("test:scripted", True)
        assert asyncio.run(adapter.complete(asked(), timeout=5)).text.startswith("answer to")
    assert len(model.requests) == 1
    replay = provider(f"replay:{tmp_path}/other.jsonl")
    assert asyncio.run(replay.complete(asked())).cached


def test_the_identity_of_a_wrapped_function_is_that_of_the_function(tmp_path: Path) -> None:
    inside: Any = provider(lambda messages: "x")
    outside: Any = inside
    for address in ("paced:9/s", f"cached:{tmp_path}/k", f"record:{tmp_path}/c.jsonl"):
        outside = provider(address, of=outside)
        assert outside.identity == inside.identity


def test_model_addresses_differ_from_python_addresses() -> None:
    """The part before the colon decides."""
    addresses = ["openai:x", "local:x", "replay:f", "python:x", "my:thing", "plain", "http://x"]
    assert [is_model_address(each) for each in addresses] == [
        True, True, True, False, False, False, True,
    ]  # fmt: skip


def test_an_embedder_object_is_used_unchanged() -> None:
    """The same road as for models."""

    class Mine:
        name = "mine"
        method = "embeddings"

        async def embed(self, texts: Any) -> list[Any]:
            return [[1.0] for _ in texts]

    mine = Mine()
    assert embedder(mine) is mine
    with pytest.raises(ModelError, match="'minilm' is not an embedder address"):
        embedder("minilm")


# Plugins


def _package(folder: Path, name: str, points: str) -> None:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(textwrap.dedent(points))
    (folder / f"{name}.py").write_text(
        "class Mine:\n"
        "    model, supports_json_schema = 'parrot:polly', False\n"
        "    async def complete(self, request, *, timeout=None): ...\n"
        "def connect(address):\n"
        "    return Mine()\n"
    )


def test_a_package_offers_a_provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point, also if it is installed while the program runs."""
    assert plugins.load_plugin(plugins.PROVIDERS, "parrot") is None
    _package(tmp_path, "parrots", "[proctor.providers]\nparrot = parrots:connect\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert provider("parrot:polly").model == "parrot:polly"
    assert "parrot" in plugins.plugin_names(plugins.PROVIDERS)


def test_a_package_cannot_take_a_built_in_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proctor's own providers come first, so that no other package receives the keys."""
    _package(tmp_path, "thieves", "[proctor.providers]\nopenai = thieves:connect\n")
    monkeypatch.syspath_prepend(tmp_path)
    result = plugins.load_plugin(plugins.PROVIDERS, "openai")
    assert result.__module__ == "proctor.models.openai"
