"""The local embedder with its real weights: published figures, invariants, a loop that lives."""

from __future__ import annotations

import asyncio
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import MissingExtra, ModelError
from proctor.models import connect as connections
from proctor.models.embedders import local
from proctor.models.embedders.minilm import MAX_PIECES, MiniLM


def cosine(left: Any, right: Any) -> float:
    return float(sum(a * b for a, b in zip(left, right, strict=True)))


def similarities(model: MiniLM, first: str, *others: str) -> list[float]:
    vector, *rest = model.vectors([first, *others])
    return [cosine(vector, other) for other in rest]


def test_it_gives_the_similarities_of_the_model_card(minilm: MiniLM) -> None:
    """The example on the page of all-MiniLM-L6-v2: 0.695, 0.943 and 0.257."""
    found = similarities(
        minilm, "That is a happy person", "That is a happy dog", "That is a very happy person", "Today is a sunny day"
    )
    assert found == pytest.approx([0.695, 0.943, 0.257], abs=1e-3)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("How do I reset my password?", "I forgot my login credentials", "Reset the alarm clock"),
        ("The film was dull", "The movie was boring", "The film is on at eight"),
        ("A physician treats patients", "Doctors care for the sick", "A band treats the crowd"),
        ("He bought a car", "He purchased an automobile", "He sold his house"),
        ("Paris is the capital of France", "France's capital is Paris", "London is rainy"),
    ],
)
def test_what_means_the_same_is_nearer_than_what_looks_alike(minilm: MiniLM, text: str, near: str, far: str) -> None:
    to_near, to_far = similarities(minilm, text, near, far)
    assert to_near > to_far


@pytest.mark.no_cover
def test_vectors_have_length_one_and_do_not_depend_on_the_batch(minilm: MiniLM) -> None:
    texts = ["short", "", "a rather longer sentence about nothing in particular", "word " * 400]
    together = minilm.vectors(texts)
    for text, vector in zip(texts, together, strict=True):
        (alone,) = minilm.vectors([text])
        assert len(vector) == 384
        assert math.sqrt(cosine(vector, vector)) == pytest.approx(1.0, abs=1e-5)
        assert cosine(vector, alone) == pytest.approx(1.0, abs=1e-5)
    backwards = minilm.vectors(texts[::-1])[::-1]
    assert [cosine(a, b) for a, b in zip(together, backwards, strict=True)] == pytest.approx([1] * 4)


def test_case_and_accents_are_ignored_and_order_counts(minilm: MiniLM) -> None:
    same, other = similarities(minilm, "Café Olé bites dog", "cafe ole bites dog", "dog bites olé café")
    assert same == pytest.approx(1.0, abs=1e-6)
    assert other < 0.99


def test_of_a_long_text_the_start_counts(minilm: MiniLM) -> None:
    """After 256 pieces it makes no difference what follows."""
    start = "word " * (MAX_PIECES - 2)
    same, other = similarities(minilm, start, start + "and more", "more " + start)
    assert same == pytest.approx(1.0, abs=1e-6)
    assert other < 1.0 - 1e-5


def test_the_event_loop_runs_while_it_computes(minilm: MiniLM) -> None:
    async def main() -> int:
        task = asyncio.ensure_future(minilm.embed([f"sentence number {n}" for n in range(64)]))
        ticks = 0
        while not task.done():
            await asyncio.sleep(0.005)
            ticks += 1
        assert len(await task) == 64
        return ticks

    assert asyncio.run(asyncio.wait_for(main(), 30)) >= 3


def test_one_model_is_shared_by_address(minilm_path: Path) -> None:
    one, two = connections.embedder("local:minilm"), connections.embedder("local:minilm")
    assert one is two
    assert (one.name, one.method) == ("local:minilm", "embeddings")
    assert len(asyncio.run(one.embed(["a"]))[0]) == 384


def test_another_local_name_is_refused() -> None:
    with pytest.raises(ModelError, match="unknown local embedder 'smollm2'"):
        connections.embedder("local:smollm2")


def test_without_weights_or_numpy_it_says_how_to_get_them(
    minilm_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(MissingExtra, match="the local embedder needs the package 'numpy'"):
        local.connect("local:minilm")
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path))
    with pytest.raises(ModelError) as caught:
        local.connect("local:minilm")
    assert caught.value.fix == "run proctor models pull minilm (91 MB)"
