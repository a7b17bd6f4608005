"""Evaluators with models of the Hugging Face Hub; the models are tiny ones that the tests make."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import EvaluatorError
from proctor.evaluators.bound_evaluator import attach
from proctor.evaluators.hf_scorers import EntailmentScorer, ToxicityClassifier, split_passages
from proctor.evaluators.safety.detection import toxicity_detection
from proctor.evaluators.text.quality import relevance
from proctor.records.sample import Sample
from proctor.records.score import Score
from proctor.records.trial import Trial
from tests.models.tiny_models import save_model

# The tiny models give "good" the vector (1, 0), "bad" (-1, 0), "cat" (0, 1) and "car" (0, -1).
TOXIC = {"id2label": {"0": "neutral", "1": "toxic"}, "max_position_embeddings": 512}
NLI = {"id2label": {"0": "contradiction", "1": "entailment"}}


def test_the_worst_passage_decides_about_toxicity(tmp_path: Path) -> None:
    """One bad sentence among hundreds of harmless ones is found, and the reason quotes its passage."""
    folder = save_model(tmp_path / "m", weights=[[1, -1], [0, 0]], config=TOXIC)
    scorer = ToxicityClassifier(f"hf:{folder}", 0.5, "toxicity_detection")
    harmless = "dog dog dog dog dog. " * 200
    assert asyncio.run(scorer.score("good cat. " * 50)).passed
    score = asyncio.run(scorer.score(f"{harmless} bad bad bad bad bad bad bad bad bad bad bad bad. {harmless}"))
    assert not score.passed
    assert score.details["model"].startswith("hf:m@")
    assert score.details["labels"]["toxic"] > 0.5


def test_toxicity_detection_takes_a_classifier(tmp_path: Path) -> None:
    """The address is not taken for that of a judge, and names the exact weights in the details."""
    folder = save_model(tmp_path / "m", weights=[[1, -1], [0, 0]], config=TOXIC)
    safe = toxicity_detection(model=f"hf:{folder}", threshold=0.5)
    score = safe("bad bad bad bad.")
    assert score.passed is False
    assert score.details["model"].startswith("hf:m@")
    assert safe("good cat.").passed is True


def test_the_harm_of_several_labels_is_the_highest(tmp_path: Path) -> None:
    config = {"id2label": {"0": "insult", "1": "threat"}, "problem_type": "multi_label_classification"}
    folder = save_model(tmp_path / "m", weights=[[0, 0], [3, -3]], config=config)
    scorer = ToxicityClassifier(f"hf:{folder}", 0.5, "toxicity_detection")
    for text in ("cat", "car"):
        assert asyncio.run(scorer.score(text)).value == pytest.approx(1 - 1 / (1 + 2.718281828**-3), abs=1e-6)


def test_labels_without_a_meaning_are_refused(tmp_path: Path) -> None:
    config = {"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}
    folder = save_model(tmp_path / "m", weights=[[1, -1], [0, 0]], config=config)
    with pytest.raises(EvaluatorError, match="do not say which one is harmful: LABEL_0, LABEL_1") as caught:
        ToxicityClassifier(f"hf:{folder}", 0.5, "toxicity_detection")
    assert "id2label" in (caught.value.fix or "")


def test_the_sentence_with_the_least_entailment_decides(tmp_path: Path) -> None:
    """The sum of the words of context and claim decides: "good" and "good" entail, "good" and "bad bad" do not."""
    folder = save_model(tmp_path / "m", weights=[[-2, 2], [0, 0]], config=NLI)
    scorer = EntailmentScorer(f"hf:{folder}", 0.5, "hallucination_detection")
    supported = asyncio.run(scorer.score("good cat.", ["good dog."]))
    assert supported.passed
    mixed = asyncio.run(scorer.score("good cat. bad bad car.", ["good dog."]))
    assert not mixed.passed
    assert [sentence["text"] for sentence in mixed.details["sentences"]] == ["good cat.", "bad bad car."]
    assert "bad bad car." in mixed.reason


def test_an_output_without_statements_is_skipped(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", weights=[[-2, 2], [0, 0]], config=NLI)
    scorer = EntailmentScorer(f"hf:{folder}", 0.5, "hallucination_detection")
    assert asyncio.run(scorer.score("", ["good dog."])).status == "skipped"
    assert asyncio.run(scorer.score("good cat.", [""])).status == "skipped"


def test_a_model_with_other_labels_is_no_nli_model(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", weights=[[1, -1], [0, 0]], config=TOXIC)
    with pytest.raises(EvaluatorError, match="is not an NLI model: its labels are neutral, toxic"):
        EntailmentScorer(f"hf:{folder}", 0.5, "hallucination_detection")


def _score_relevance(folder: Path, output: str, question: str = "Is it a dog?", **options: Any) -> Score:
    """Score with a model whose logit is three times the number of "good" minus that of "bad" in output and input."""
    save_model(folder, weights=[[3], [0]], config={"id2label": {"0": "LABEL_0"}, "max_position_embeddings": 64})
    evaluator = attach(relevance(model=f"hf:{folder}", **options))
    score: Score = asyncio.run(evaluator.score(Trial(Sample("1", question), output)))
    return score


@pytest.mark.parametrize(
    ("output", "value"),
    [("dog dog dog dog dog bad", 0.104), ("dog dog dog dog dog", 0.7), ("dog dog dog dog dog good", 0.979)],
)
@pytest.mark.parametrize("threshold", [0.05, 0.7, 0.9])
def test_relevance_with_an_hf_model_is_the_logistic_of_its_logit(
    tmp_path: Path, output: str, value: float, threshold: float
) -> None:
    """By hand for logits of -3, 0 and 3: 0.7 / (0.7 + 0.3 * exp(-logit))."""
    score = _score_relevance(tmp_path / "m", output, threshold=threshold)
    assert score.value == pytest.approx(value, abs=5e-4)
    assert score.passed is (value >= threshold)
    assert score.details["method"] == "hf"
    assert score.details["model"].startswith("hf:m@")


@pytest.mark.parametrize(
    ("output", "question", "reason"),
    [
        ("bad dog", "Is it a dog?", "2 words are too few"),
        ("It is a bad old dog.", "Is it a dog?", "needs the question"),
        ("dog dog dog dog dog bad", "Write a poem about a dog.", "the input is not a question"),
        ("dog dog dog dog good in 1989", "Is it a dog of 1987?", "the output about 1989"),
    ],
)
def test_what_a_cross_encoder_cannot_judge_is_skipped(tmp_path: Path, output: str, question: str, reason: str) -> None:
    score = _score_relevance(tmp_path / "m", output, question)
    assert score.status == "skipped"
    assert reason in score.reason


def test_the_best_passage_of_a_long_answer_counts(tmp_path: Path) -> None:
    filler = "dog dog dog dog dog dog dog bad. " * 30
    score = _score_relevance(tmp_path / "m", f"{filler}{'good ' * 60}. {filler}")
    assert score.passed
    assert "good good" in score.reason


def test_an_hf_model_that_is_no_cross_encoder_is_refused(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", weights=[[1, -1], [0, 0]], config=TOXIC)
    with pytest.raises(EvaluatorError, match="not a cross-encoder: it has the labels neutral, toxic"):
        relevance(model=f"hf:{folder}")


def test_passages_keep_all_sentences_in_order() -> None:
    text = " ".join(f"This is sentence number {number} of a long text." for number in range(40))
    passages = split_passages(text)
    assert len(passages) > 3
    assert " ".join(passages) == text
