"""Score with models of the Hugging Face Hub: toxicity classifiers, NLI models, cross-encoders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from proctor.errors import EvaluatorError, UsageError
from proctor.evaluators.score_conversion import preview
from proctor.evaluators.text.relevance import (
    ELLIPTICAL_REASON,
    explain_other_year,
    explain_short,
    is_elliptical,
    to_value,
)
from proctor.evaluators.text.request_kind import classify_request
from proctor.evaluators.tokenizer import collect_texts, split_sentences, split_words
from proctor.models import hf
from proctor.records.score import Score

METHOD = "hf"
# A passage is a few sentences: models read a limited number of tokens, and the worst passage decides.
PASSAGE_WORDS = 80
MAX_PASSAGES = 400
# The names of labels for harmless text; with one of them, all other labels are harmful.
SAFE_LABELS = frozenset(
    {"neutral", "nontoxic", "nothate", "nonhate", "nothateful", "notoffensive", "nonoffensive", "safe", "ok", "normal",
     "clean", "benign", "acceptable", "none", "notoxic", "notoxicity"}
)  # fmt: skip
HARMFUL_PARTS = ("toxic", "hate", "offens", "abus", "insult", "threat", "obscen", "harass", "violen", "harm", "unsafe")
ENTAILMENT = "entail"


class ToxicityClassifier:
    """Scores 1 minus the highest probability of harm over all passages of the output."""

    def __init__(self, address: str, threshold: float, where: str) -> None:
        self._classifier = _connect(hf.classifier, address, where)
        self._threshold = threshold
        self._safe, self._harmful = _sort_labels(self._classifier.labels, address, where)
        self.options = {"model": address}

    async def score(self, output: Any, reference: Any = None) -> Score:
        """Score the worst passage."""
        del reference
        text = "\n".join(collect_texts(output))
        details: dict[str, Any] = {"method": METHOD, "model": self._classifier.name}
        passages = split_passages(text)
        if not passages:
            return Score.skipped("there is no text to check", details)
        worst = _Worst(-1.0, "", {})
        for passage, scores in zip(passages, await self._classifier.classify(passages), strict=True):
            worst = max(worst, _Worst(self._measure_harm(scores), passage, scores), key=lambda result: result.harm)
        details["labels"] = {label: round(value, 4) for label, value in worst.labels.items()}
        value = 1.0 - worst.harm
        reason = f"probability of harm {worst.harm:.2f}, in {preview(worst.passage)}"
        return Score(value, value >= self._threshold, reason, details)

    def _measure_harm(self, scores: hf.LabelScores) -> float:
        if self._safe:
            return 1.0 - min(1.0, sum(scores[label] for label in self._safe))
        return max(scores[label] for label in self._harmful)


class _Worst(NamedTuple):
    harm: float
    passage: str
    labels: hf.LabelScores


class EntailmentScorer:
    """Scores the sentence of the output that the context entails least, with an NLI model."""

    def __init__(self, address: str, threshold: float, where: str) -> None:
        self._classifier = _connect(hf.classifier, address, where)
        self._threshold = threshold
        labels = self._classifier.labels
        self._entailment = next((label for label in labels if label.casefold().startswith(ENTAILMENT)), "")
        if not self._entailment:
            listed = ", ".join(labels)
            raise EvaluatorError(f"{address} is not an NLI model: its labels are {listed}", where=where)
        self.options = {"nli": address}

    async def score(self, output: Any, reference: Sequence[str] = ()) -> Score:
        """Score each sentence by the passage of the context that entails it most."""
        from proctor.evaluators.grounding.statements import find_statement_words

        details: dict[str, Any] = {"method": METHOD, "model": self._classifier.name}
        text = "\n\n".join(collect_texts(output))
        claims = [sentence for sentence in split_sentences(text) if find_statement_words(sentence)]
        passages = [passage for source in reference for passage in split_passages(source)]
        if not claims:
            return Score.skipped("the output makes no statement to check", details)
        if not passages:
            return Score.skipped("the context has no text to check against", details)
        pairs = [(passage, claim) for claim in claims[:MAX_PASSAGES] for passage in passages]
        scores = iter(await self._classifier.classify(pairs))
        best = [(max(next(scores)[self._entailment] for _ in passages), claim) for claim in claims[:MAX_PASSAGES]]
        details["sentences"] = [{"text": claim, "support": round(value, 4)} for value, claim in best]
        value, claim = min(best)
        reason = f"least support {value:.2f}, in {preview(claim)}"
        return Score(value, value >= self._threshold, reason, details)


class CrossEncoderRelevance:
    """Scores how well the best passage of the output answers the input, with a cross-encoder."""

    def __init__(self, address: str, threshold: float, where: str) -> None:
        self._encoder = _connect(hf.cross_encoder, address, where)
        self._threshold = threshold
        self.options = {"model": address}

    async def score(self, output: Any, reference: Any = None) -> Score:
        """Score the passage of the output with the highest logit; 0 has the value 0.7.

        Cross-encoders are trained on questions and complete answers, so a low logit of anything else is skipped.
        """
        details: dict[str, Any] = {"method": METHOD, "model": self._encoder.name}
        answer, question = ("\n".join(collect_texts(value)) for value in (output, reference))
        passages = split_passages(answer)
        if not passages:
            return Score(0.0, False, "the output is empty", details)
        if problem := explain_short(len(split_words(answer))):
            return Score.skipped(problem, details)
        logits = await self._encoder.score([(question, passage) for passage in passages])
        logit, passage = max(zip(logits, passages, strict=True))
        details["logit"] = round(logit, 4)
        if logit < 0 and is_elliptical(question, answer):
            return Score.skipped(ELLIPTICAL_REASON, details)
        if logit < 0 and classify_request(question) != "question":
            return Score.skipped(f"the input is not a question (logit {logit:.2f}); a judge can do it", details)
        if logit >= 0 and (problem := explain_other_year(question, answer)):
            return Score.skipped(problem, details)
        value = to_value(logit)
        return Score(value, value >= self._threshold, f"logit {logit:.2f}, by {preview(passage)}", details)


def split_passages(text: str) -> list[str]:
    """Split a text between sentences into passages of about 80 words."""
    passages: list[str] = []
    size = PASSAGE_WORDS
    for sentence in split_sentences(text):
        length = len(split_words(sentence))
        if not length:
            continue
        if size + length > PASSAGE_WORDS:
            passages.append(sentence)
            size = length
        else:
            passages[-1] += f" {sentence}"
            size += length
    return passages[:MAX_PASSAGES]


def _connect(connect: Any, address: str, where: str) -> Any:
    try:
        return connect(address)
    except UsageError as error:
        raise EvaluatorError(error.what, where=where, fix=error.fix, problems=error.problems) from None


def _sort_labels(labels: Sequence[str], address: str, where: str) -> tuple[list[str], list[str]]:
    """Return the labels of harmless text and those of harmful text."""
    plain = {label: "".join(filter(str.isalnum, label.casefold())) for label in labels}
    safe = [label for label, name in plain.items() if name in SAFE_LABELS]
    harmful = [label for label, name in plain.items() if any(part in name for part in HARMFUL_PARTS)]
    if not safe and not harmful:
        listed = ", ".join(labels)
        raise EvaluatorError(
            f"the labels of {address} do not say which one is harmful: {listed}",
            where=where,
            fix='name the labels in id2label of its config.json, for example {"0": "neutral", "1": "toxic"}',
        )
    return safe, [label for label in harmful if label not in safe]
