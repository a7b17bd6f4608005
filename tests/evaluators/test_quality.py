"""semantic_similarity: cosines become scores, and the score says what was compared."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from proctor import weights
from proctor.api import evaluate
from proctor.errors import EvaluatorError, ModelError
from proctor.evaluators.attach import attach
from proctor.evaluators.quality import semantic_similarity
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.registry import Registry

PLACES = {
    "east": [1.0, 0.0],
    "north": [0.0, 2.0],
    "west": [-1.0, 0.0],
    "north-east": [1.0, 1.0],
    "nearly east": [4.0, 3.0],
    "nowhere": [0.0, 0.0],
}


class Compass:
    """An embedder with vectors that can be checked by hand."""

    name, method = "compass", "embeddings"

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        self.asked += texts
        return [PLACES[text] for text in texts]


class LangChainCompass(Embeddings):
    """The same as LangChain embeddings."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [PLACES[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return PLACES[text]


def score(output: Any, expected: Any, embedder: Any = None, threshold: float = 0.8) -> Score:
    attached = attach(semantic_similarity(embedder or Compass(), threshold=threshold))
    found: Score = asyncio.run(attached(output, expected))
    return found


@pytest.mark.parametrize(
    ("output", "expected", "value", "passed"),
    [
        ("east", "east", 1.0, True),
        ("east", "nearly east", 0.8, True),
        ("east", "north-east", math.sqrt(0.5), False),
        ("east", "north", 0.0, False),
        ("east", "west", 0.0, False),
        ("east", "nowhere", 0.0, False),
    ],
)
def test_the_value_is_the_cosine_and_never_negative(
    output: str, expected: str, value: float, passed: bool
) -> None:
    """By hand: (1,0)·(4,3)/5 = 0.8, which passes; opposite directions give 0."""
    found = score(output, expected)
    assert found.value == pytest.approx(value, abs=1e-7)
    assert found.passed == passed
    assert found.details["method"] == "embeddings"
    assert found.details["embedder"] == "compass"


def test_the_details_keep_the_cosine_itself() -> None:
    """Also where the value hides that it is negative."""
    found = score("east", "west")
    assert found.details["cosine"] == -1.0
    assert found.reason == "cosine -1.000 with 'west'"


def test_of_several_references_and_answers_the_nearest_count() -> None:
    """Their places are told; empty texts are passed over."""
    found = score("east", ["north", "", "nearly east", "west"])
    assert found.value == pytest.approx(0.8)
    assert found.details["reference"] == 2
    found = score(("west", "north"), ["north-east", "east"])
    assert found.value == pytest.approx(math.sqrt(0.5))
    assert (found.details["answer"], found.details["reference"]) == (1, 0)


def test_nothing_to_compare_is_no_number() -> None:
    """No expected value, or an empty one, is skipped; an empty output is 0 and asks nobody."""
    assert score("east", None).status == "skipped"
    assert score("east", []).status == "skipped"
    assert score("east", " ").status == "skipped"
    compass = Compass()
    nothing: list[Any] = ["", " \n", []]
    for empty in nothing:
        found = score(empty, "east", compass)
        assert (found.value, found.reason) == (0.0, "the output is empty")
    assert compass.asked == []


def test_what_is_not_text_is_compared_as_json() -> None:
    """Keys in order, so that equal things are equal."""
    one, two = {"b": 1, "a": [True]}, {"a": [True], "b": 1}
    assert score(one, two, "lexical").value == pytest.approx(1.0)
    assert score(7, "7", "lexical").value == pytest.approx(1.0)
    assert score([1, 2], "[1,2]", "lexical").value == pytest.approx(1.0)


def test_spec_003_langchain_embeddings_and_a_threshold() -> None:
    """`SemanticSimilarityEvaluator(embeddings, threshold=0.8)` of the runner spec."""
    found = score("east", "nearly east", LangChainCompass(), threshold=0.8)
    assert found.value == pytest.approx(0.8)
    assert found.passed
    assert found.details["embedder"] == "python:LangChainCompass"


def test_a_function_is_an_embedder_too() -> None:
    """Of one text, as its annotation says."""

    def place(text: str) -> list[float]:
        return PLACES[text]

    assert score("north", "north-east", place).value == pytest.approx(math.sqrt(0.5))


def test_what_the_embedder_raises_is_an_error_score() -> None:
    """Never a number."""
    found = score("east", "the moon")
    assert (found.status, found.value) == ("error", None)

    class Uneven(Compass):
        async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
            return [[1.0], [1.0, 2.0]]

    found = score("a", "b", Uneven())
    assert found.status == "error"
    assert "vectors of 1 and of 2 numbers" in found.reason


@given(st.text(min_size=1), st.text(min_size=1))
def test_lexical_scores_are_sound_whatever_the_texts(output: str, expected: str) -> None:
    """From 0 to 1, symmetric, and 1 for equal texts."""
    found, back = score(output, expected, "lexical"), score(expected, output, "lexical")
    if found.value is not None and back.value is not None:
        assert 0.0 <= found.value <= 1.0
        assert found.value == pytest.approx(back.value, abs=1e-6)
        if output.strip():
            same = score(output, output, "lexical")
            assert same.value == pytest.approx(1.0, abs=1e-6)
            assert same.passed


def test_without_weights_letters_are_compared_and_the_score_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the details, in the reason, and in what is stored of the evaluator."""
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path))
    attached = attach(semantic_similarity)
    assert attached.spec.parameters == {"embedder": "lexical", "threshold": 0.8}
    found = asyncio.run(attached("Paris", "Paris"))
    assert found.details["method"] == "lexical"
    assert found.reason == "letters only: cosine 1.000 with 'Paris'"


def test_with_weights_meanings_are_compared() -> None:
    """The local model is chosen without being named."""
    pytest.importorskip("numpy", reason="the extra `local` is not installed")
    try:
        weights.pull("minilm")
    except ModelError as error:
        pytest.skip(f"the weights cannot be pulled: {error.what}")
    attached = attach(semantic_similarity)
    assert attached.spec.parameters["embedder"] == "local:minilm"
    found = asyncio.run(attached("He purchased an automobile.", "He bought a car."))
    assert (found.passed, found.details["method"]) == (True, "embeddings")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"threshold": 1.5}, "a threshold is from 0 to 1"),
        ({"embedder": "lexicl"}, "not the address of an embedder"),
        ({"embedder": 3}, "cannot embed"),
    ],
)
def test_what_cannot_be_made_is_told_before_anything_runs(
    options: dict[str, Any], told: str
) -> None:
    """With the way to mend it."""
    with pytest.raises(EvaluatorError, match=told):
        attach(semantic_similarity, parameters=options)


def test_missing_weights_name_the_command_that_gets_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the local model was asked for by name, it is not replaced in silence."""
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path))
    with pytest.raises(EvaluatorError) as caught:
        semantic_similarity("local:minilm")
    assert caught.value.fix == "proctor models pull minilm (91 MB)"


def test_what_was_given_for_an_embedder_is_not_stored() -> None:
    """It may hold a key: the address alone is kept, and another key is no other evaluator."""
    given = {"model": "http://127.0.0.1:9/v1#tiny", "api_key": "sk-secret"}
    spec = attach(semantic_similarity(given)).spec
    assert spec.parameters["embedder"] == "http://127.0.0.1:9/v1#tiny"
    assert "sk-secret" not in str(spec)
    assert attach(semantic_similarity(given | {"api_key": "sk-new"})).spec == spec


def test_a_run_that_compared_letters_for_want_of_a_model_warns_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the way to embeddings; who names `lexical` knows what it is."""
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path))
    samples = [Sample(str(n), "red car", "a red car") for n in range(3)]

    def warnings(evaluator: Any) -> tuple[str, ...]:
        metadata = evaluate(lambda text: text, samples, [evaluator], history=False).metadata
        assert metadata is not None
        return metadata.warnings

    (warning,) = warnings(semantic_similarity())
    assert 'pip install "proctor[local]" and proctor models pull minilm' in warning
    assert warnings(semantic_similarity("lexical")) == ()


def test_it_is_registered_and_runs_in_an_evaluation() -> None:
    """By its name, with options from a file; every text is embedded once."""
    compass = Compass()
    samples = [Sample(str(n), place, "east") for n, place in enumerate(PLACES)]
    report = evaluate(
        lambda text: text, samples, [semantic_similarity(compass, 0.7)], history=False
    )
    column = report.results.column("semantic_similarity")
    assert (column.passed, len(report.results)) == (3, 6)
    named = Registry.standard().build({"semantic_similarity": {"embedder": "lexical"}})
    assert named.spec.parameters == {"embedder": "lexical", "threshold": 0.8}
