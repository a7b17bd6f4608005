"""semantic_similarity: cosines become scores, and the score says what was compared.

The other evaluators of quality have tests of their own: test_coherence, test_hallucination,
test_relevance.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.quality import similarity
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings

from proctor.errors import EvaluatorError, ModelError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.text.quality import semantic_similarity
from proctor.models import weights
from proctor.records.fields.context import FieldContext
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.wiring.evaluate import evaluate
from proctor.wiring.registry import Registry
from tests.evaluators.judging.rehearsed import scores
from tests.evaluators.test_recorded_judges import DATA, folder

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


def score(output: Any, expected: Any, embedder: Any = None, threshold: float = 0.8, **options: Any) -> Score:
    attached = attach(semantic_similarity(embedder or Compass(), threshold=threshold, **options))
    found: Score = attached(output, expected)
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
def test_the_value_is_the_cosine_and_never_negative(output: str, expected: str, value: float, passed: bool) -> None:
    """By hand: (1,0)·(4,3)/5 = 0.8, which passes; opposite directions give 0."""
    found = score(output, expected)
    assert found.value == pytest.approx(value, abs=1e-7)
    assert found.passed == passed
    assert found.details["method"] == "embeddings"
    assert found.details["embedder"] == "compass"


def test_the_details_keep_the_cosine_itself() -> None:
    found = score("east", "west")
    assert found.details["cosine"] == -1.0
    assert found.reason == "cosine -1.000 with 'west'"


def test_of_several_references_and_answers_the_nearest_count() -> None:
    found = score("east", ["north", "", "nearly east", "west"])
    assert found.value == pytest.approx(0.8)
    assert found.details["reference"] == 2
    found = score(("west", "north"), ["north-east", "east"], match="any")
    assert found.value == pytest.approx(math.sqrt(0.5))
    assert (found.details["answer"], found.details["reference"]) == (1, 0)


def test_of_many_references_those_are_embedded_that_look_like_the_answer() -> None:
    embedded: list[str] = []

    def letters(text: str) -> list[float]:
        embedded.append(text)
        return [float(len(text)), 1.0]

    many = [f"{word} {word}" for word in ("kiwi", "plum", "fig", "pear", "lime", "date")] * 2
    found = score("a ripe banana", [*many, "ripe bananas"], letters)
    assert "ripe bananas" in embedded
    assert len(set(embedded) & {*many, "ripe bananas"}) <= 8
    assert found.value is not None


def test_a_missing_reference_is_skipped() -> None:
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
    def place(text: str) -> list[float]:
        return PLACES[text]

    assert score("north", "north-east", place).value == pytest.approx(math.sqrt(0.5))


def test_what_the_embedder_raises_is_an_error_score() -> None:
    found = score("east", "the moon")
    assert (found.status, found.value) == ("error", None)

    class Uneven(Compass):
        async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
            return [[1.0] * len(text) for text in texts]

    found = score("a", "bb", Uneven())
    assert found.status == "error"
    assert "vectors of different lengths" in found.reason


@given(st.text(min_size=1), st.text(min_size=1))
def test_lexical_scores_are_sound_whatever_the_texts(output: str, expected: str) -> None:
    """From 0 to 1, 1 for equal texts, and as wholes symmetric."""
    found = score(output, expected, "lexical", excerpts=False)
    back = score(expected, output, "lexical", excerpts=False)
    if found.value is not None and back.value is not None:
        assert 0.0 <= found.value <= 1.0
        assert found.value == pytest.approx(back.value, abs=1e-6)
        if output.strip():
            same = score(output, output, "lexical")
            inside = score(output, expected, "lexical")
            assert inside.value is not None
            assert found.value <= inside.value + 1e-6 <= 1.0 + 2e-6
            assert same.value == pytest.approx(1.0, abs=1e-6)
            assert same.passed


def test_without_weights_letters_are_compared_and_the_score_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path))
    attached = attach(semantic_similarity)
    assert attached.spec.parameters == {"embedder": "lexical", "threshold": 0.8}
    found = attached("Paris", "PARIS")
    assert found.details["method"] == "lexical"
    assert found.reason == "letters only: cosine 1.000 with 'PARIS'"


def test_with_weights_meanings_are_compared() -> None:
    pytest.importorskip("numpy", reason="the extra `local` is not installed")
    try:
        weights.pull("minilm")
    except ModelError as error:
        pytest.skip(f"the weights cannot be pulled: {error.what}")
    attached = attach(semantic_similarity)
    assert attached.spec.parameters["embedder"] == "local:minilm"
    found = attached("He purchased an automobile.", "He bought a car.")
    assert (found.passed, found.details["method"]) == (True, "embeddings")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.5}, "threshold must be between 0 and 1"),
        ({"embedder": "lexicl"}, "'lexicl' is not an embedder address"),
        ({"embedder": 3}, "3 is not an embedder"),
        ({"against": "yesterday"}, "against"),
    ],
)
def test_wrong_options_raise_before_anything_runs(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EvaluatorError, match=message):
        attach(semantic_similarity, parameters=options)


def test_an_unknown_reference_option_is_refused() -> None:
    wrong: Any = "yesterday"
    with pytest.raises(EvaluatorError, match="against must be"):
        semantic_similarity("lexical", against=wrong)


def test_missing_weights_name_the_command_that_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path))
    with pytest.raises(EvaluatorError) as caught:
        semantic_similarity("local:minilm")
    assert caught.value.fix == "run proctor models pull minilm (91 MB)"


def test_what_was_given_for_an_embedder_is_not_stored() -> None:
    given = {"model": "http://127.0.0.1:9/v1#tiny", "api_key": "sk-secret"}
    spec = attach(semantic_similarity(given)).spec
    assert spec.parameters["embedder"] == "http://127.0.0.1:9/v1#tiny"
    assert "sk-secret" not in str(spec)
    assert attach(semantic_similarity(given | {"api_key": "sk-new"})).spec == spec


def test_a_run_that_compared_letters_for_want_of_a_model_warns_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROCTOR_MODELS", str(tmp_path))
    samples = [Sample(str(n), "red car", "a red car") for n in range(3)]

    def warnings(evaluator: Any) -> tuple[str, ...]:
        metadata = evaluate(lambda text: text, samples, [evaluator], history=False).metadata
        assert metadata is not None
        return metadata.warnings

    (warning,) = warnings(semantic_similarity())
    assert 'pip install "proctor[local]" and proctor models pull minilm' in warning
    assert warnings(semantic_similarity("lexical")) == ()


def test_it_agrees_with_people_more_than_contains_does() -> None:
    folder("01_qa_reference/evouna_tq")
    if weights.find("minilm") is None:
        pytest.skip("the weights of minilm are not here: proctor models pull minilm")
    answers = list(similarity.read(DATA, "chatgpt"))[::80]
    passed = asyncio.run(similarity.verdicts(attach(semantic_similarity()), answers))
    agreed, _ = similarity.agreement(answers, passed)
    plain, _ = similarity.agreement(answers, [similarity.has_one(one) for one in answers])
    assert agreed > plain


def test_it_is_registered_and_runs_in_an_evaluation() -> None:
    compass = Compass()
    samples = [Sample(str(n), place, "east") for n, place in enumerate(PLACES)]
    report = evaluate(lambda text: text, samples, [semantic_similarity(compass, 0.7)], history=False)
    column = report.results.column("semantic_similarity")
    assert (column.passed, len(report.results)) == (3, 6)
    named = Registry.standard().build({"semantic_similarity": {"embedder": "lexical"}})
    assert named.spec.parameters == {"embedder": "lexical", "threshold": 0.8}


def in_field(output: Any, expected: Any, result: dict[str, Any], **options: Any) -> Score:
    """The score where the output is a field of a result."""
    name = options.pop("field", "output")
    evaluator = semantic_similarity(Compass(), **options)
    found: Score = evaluator(output, expected, FieldContext(name, result))
    return found


def test_without_an_expected_value_the_baseline_is_the_reference() -> None:
    result = {"output": "east", "baseline_output": "nearly east"}
    assert in_field("east", None, result).value == pytest.approx(0.8)
    assert in_field("east", "north", result).value == 0.0
    assert in_field("east", "north", result, against="baseline").passed
    assert in_field("east", None, result, against="expected").status == "skipped"


def test_the_expected_value_is_the_outputs_so_other_fields_have_their_baseline() -> None:
    result = {"summary": "east", "baseline_summary": "east"}
    assert in_field("east", "north", result, field="summary").value == 1.0
    alone = in_field("east", "north", {"summary": "east"}, field="summary")
    assert alone.status == "skipped"
    assert "neither expected nor baseline" in alone.reason


def test_a_short_reference_is_found_inside_a_long_answer() -> None:
    answer = "I am quite sure that it was written by Jane Austin in 1813."
    found = score(answer, ["Jane Austen", "Emily Bronte"], "lexical")
    assert found.details["excerpt"] == "jane austin"
    assert found.details["reference"] == 0
    assert "of 'jane austin' in it" in found.reason
    whole = score(answer, "Jane Austen", "lexical", excerpts=False)
    assert "excerpt" not in whole.details
    assert (whole.value or 0.0) < (found.value or 0.0)
    assert "excerpt" not in score("one two three", "one two three", "lexical").details
    assert score("by Jane Austen", "Jane Austen", "lexical", excerpts=True).value == 1.0
    assert "excerpt" not in score("by Jane Austen", "?!", "lexical", excerpts=True).details


def test_a_judge_scores_how_far_the_meaning_is_the_same() -> None:
    judge = scores(8)
    evaluator = attach(semantic_similarity(model=judge))
    found = evaluator("He bought a car.", "He purchased an automobile.")
    assert (found.value, found.passed, found.details["method"]) == (0.8, True, "judge")
    assert judge.asked[0].part("EXPECTED") == "He purchased an automobile."
    assert evaluator.spec.parameters == {"model": "test:judge", "threshold": 0.8}
    assert evaluator("He bought a car.").status == "skipped"
    empty = evaluator(" ", "something")
    assert (empty.value, empty.details["method"]) == (0.0, "judge")
    assert len(judge.asked) == 1
