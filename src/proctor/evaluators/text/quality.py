"""Evaluate similarity, coherence, grounding and relevance of texts.

Each evaluator has a local method and, with `model`, asks a model. The details of a score show which method was used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from proctor.errors import EvaluatorError, UsageError
from proctor.evaluators.decorator import evaluator, tag_evaluator
from proctor.evaluators.embeddings import TextEmbedder
from proctor.evaluators.grounding.support import DEFAULT_THRESHOLD, GroundingScorer
from proctor.evaluators.measurements import check_fraction
from proctor.evaluators.options import Embedding, Model
from proctor.evaluators.text.coherence import CoherenceScorer
from proctor.evaluators.text.embedder_choice import EmbedderChoice
from proctor.evaluators.text.relevance import RelevanceScorer
from proctor.evaluators.text.similarity import Match, SimilarityScorer
from proctor.evaluators.tokenizer import collect_texts
from proctor.models.hf import is_hf_address
from proctor.records.fields.context import FieldContext
from proctor.records.fields.path import OUTPUT, parse_path
from proctor.records.sample import CONTEXT, Sample
from proctor.records.score import Score

# A score of 8 is the value 0.8.
SCALE = (0, 10)
# A judge must find all claims supported.
ALL_CLAIMS = 1.0

Against = Literal["expected", "baseline"]
Evaluate = Callable[..., Any]


class QualityJudge:
    """A model that scores one quality from 0 to 10 with the built-in prompt of that name.

    `reference_role` is the role of the reference in the prompt; with "" the model sees only the output.
    """

    def __init__(
        self, model: Any, prompt: str, threshold: float, *, reference_role: Literal["input", "expected", ""] = ""
    ) -> None:
        # Slow to import, and needed only with a judge.
        from proctor.evaluators.judges.judge import Judge
        from proctor.evaluators.judges.scale import create_number_scale
        from proctor.evaluators.judges.templates import load_template
        from proctor.models.connect import provider

        adapter = provider(model)
        bounds = dict(zip(("low", "high"), map(str, SCALE), strict=True))
        self._judge = Judge(adapter, load_template(prompt), create_number_scale(SCALE, threshold, prompt), {}, bounds)
        self._reference_role = reference_role
        # Store the adapter, because the user's argument may contain a key.
        self.options = {"model": adapter}

    async def score(self, output: Any, reference: Any = None) -> Score:
        """Ask the model once; an empty output scores 0 without a call."""
        if isinstance(output, str) and not output.strip():
            return Score(0.0, False, "the output is empty", {"method": "judge"})
        sample: Sample[Any, Any] = Sample(
            "",
            reference if self._reference_role == "input" else None,
            reference if self._reference_role == "expected" else None,
        )
        return _add_method(await self._judge.score(output, sample))


class ClaimsJudge:
    """A model that splits the output into claims and checks each against the context."""

    def __init__(self, model: Any, threshold: float) -> None:
        from proctor.models.connect import provider

        self._threshold = threshold
        self.options = {"model": provider(model)}

    async def score(self, output: Any, reference: Any = None) -> Score:
        """Score the fraction of claims that are supported."""
        from proctor.evaluators.judges.claims import grounded_claims

        context = "\n\n".join(reference)
        adapter = self.options["model"]
        return _add_method(await grounded_claims(adapter, output, context, threshold=self._threshold))


def _add_method(score: Score) -> Score:
    return msgspec.structs.replace(score, details={"method": "judge", **score.details})


@evaluator(category="quality", factory=True, needs=(), threshold=0.8)
def semantic_similarity(
    embedder: Embedding = None,
    threshold: float = 0.8,
    *,
    against: Against | None = None,
    excerpts: bool | None = None,
    model: Model = None,
    match: Match | None = None,
) -> Evaluate:
    """Passes if the output means about the same as the expected value.

    The value is the cosine of the two embeddings, at least 0. `embedder` is an address (`local:minilm`,
    `openai:text-embedding-3-small`, `http://host/v1#model`, `hf:owner/name`), LangChain embeddings, or a function.
    Without `embedder`, the language decides: `local:minilm` for English, `local:multilingual` for 14 other languages
    (the same for both texts of a pair), if their weights are installed (`proctor models pull minilm`, `… multilingual`,
    and `… languages` to identify languages). Other languages, code and emoji are skipped, unless identical. If no
    weights are installed, English is compared by `lexical`, which compares spelling, not meaning; the details show
    which embedder was used, and the report of the run warns. Of several expected texts, the nearest counts; of more
    than eight, only those with the most similar spelling are compared. Two lists of texts are compared item by item,
    and the worst pair counts, or with `match="any"` the nearest pair. Other values are compared as JSON.

    The local embedders share a scale, on which texts with the same meaning reach 0.8. With `local:minilm` the value
    also counts the words of the expected text that the output has: a quarter for a sentence, half for a phrase of up
    to five words and for more than forty words. English texts with nearly the same words and one changed fact (a
    number, date, name, unit, negation, opposite, or swapped roles) get three quarters of their value, so they fail at
    the default; the details name the difference. Changes that no rule sees, and changes in other languages, may pass.

    `against="baseline"` compares with the baseline's value; this is the default if there is no expected value, and for
    fields other than the output. A short reference (at most 12 words) is also compared with the most similar words
    inside a longer output (in its first 200,000 characters). `excerpts` does that always or never. With `model`, a
    model scores how similar the meanings are.

    >>> nearly_same = semantic_similarity("lexical", threshold=0.5)
    >>> score = nearly_same("She has two red cars.", "She has a red car.")
    >>> score.passed, score.details["method"]
    (True, 'lexical')
    """
    where = "semantic_similarity"
    check_fraction(where, "threshold", threshold)
    if match not in (None, "any"):
        raise EvaluatorError(f"unknown match {match!r}", where=where, fix='write match="any", or leave it out')
    if against not in (None, "expected", "baseline"):
        fix = 'write against="expected" or against="baseline"'
        raise EvaluatorError(f"unknown reference {against!r}", where=where, fix=fix)
    if model is None:
        method: Any = SimilarityScorer(EmbedderChoice(embedder, where), threshold, excerpts, match)
    else:
        method = QualityJudge(model, "similarity", threshold, reference_role="expected")

    async def evaluate(output: Any, expected: Any = None, field_context: FieldContext | None = None) -> Score:
        if (against or _choose_reference(expected, field_context)) == "expected":
            return await method.score(output, expected)  # type: ignore[no-any-return]
        baseline = None if field_context is None else field_context.baseline_value
        if baseline is None:
            return Score.skipped("there is nothing to compare with: neither expected nor baseline")
        return await method.score(output, baseline)  # type: ignore[no-any-return]

    options = {"against": against, "excerpts": excerpts, "match": match}
    set_options = {name: value for name, value in options.items() if value is not None}
    return tag_evaluator(evaluate, factory=semantic_similarity, **method.options, threshold=threshold, **set_options)


@evaluator(category="quality", factory=True, needs=(), threshold=0.8)
def coherence(threshold: float = 0.8, *, embedder: Embedding = None, model: Model = None) -> Evaluate:
    """Passes if the output is a coherent text.

    It computes five signs from 0 to 1; the worst is the value. Connection: each sentence is close in meaning to the
    next. Freshness: the same words are not repeated again and again. Order: articles precede words they can belong to
    (English only). Sequence: numbered points do not run backwards, and a text of several sentences does not start with
    a word that refers back ("however"). Completeness: the last sentence does not end after an article, a conjunction, a
    preposition or a comma, nor without punctuation if others have it. A text of one sentence has no connection.
    Connection covers only the first 300 sentences; the details show this. Texts that are not prose (a number, a name, a
    list of words, program code, JSON, YAML, HTML, XML, TeX) are skipped, and so is every language but English.

    It finds texts that are mixed up, shuffled, truncated or stuck in a loop. It does not notice
    sentences in a wrong order, contradictions or subtle leaps; with `model`, a model scores those
    too. `embedder` as for `semantic_similarity`.

    >>> check = coherence(embedder="lexical")
    >>> check("She bought a car. The car is red. It was the best of").reason
    'completeness 0.75: it breaks off in the last sentence'
    """
    where = "coherence"
    check_fraction(where, "threshold", threshold)
    if model is None:
        method: Any = CoherenceScorer(TextEmbedder(embedder, where), threshold)
    else:
        method = QualityJudge(model, "coherence", threshold)

    async def evaluate(output: Any) -> Score:
        return await method.score(output)  # type: ignore[no-any-return]

    return tag_evaluator(evaluate, factory=coherence, threshold=threshold, **method.options)


@evaluator(category="quality", factory=True, needs=(), threshold=DEFAULT_THRESHOLD)
def hallucination_detection(
    *,
    context: str = CONTEXT,
    with_input: bool = False,
    threshold: float | None = None,
    embedder: Embedding = None,
    model: Model = None,
    nli: str | None = None,
) -> Evaluate:
    """Passes if the sample's context supports everything that the output says.

    `context` is the path of the supporting texts, documents or lists of them in the sample's
    metadata. `with_input` adds the input to them. A sample without context is skipped.

    Each sentence is compared with the three passages of the context that match it best. Its value is a fixed
    combination of the words, word pairs, numbers and names that the passages have; 0.5 is the default `threshold`.
    If `local:ms-marco` is installed (`proctor models pull ms-marco`) and no embedder is named, this cross-encoder also
    rates the two weakest sentences. The value of the output is the mean of its weakest sentence and of all sentences.
    If a sentence has most words of a passage but another number, date, name, unit, bound or opposite, a negation,
    exchanged roles or an invented clause, the output gets less than half of its value and fails. It is skipped instead
    of passed if it may say something else (another object of a verb, a clause or thing without a word of the context).
    Citation marks, list numbers and courtesies are ignored. The details list unsupported words and changed facts.

    At the default threshold about 80% or more of supported claims pass, except claims written to mislead with the
    words of the context, which cannot be told apart by words: use `model` or `nli` for them. Languages other than
    English are skipped. With `embedder`, words close in meaning count as supported. With `nli="hf:…"`, a model for
    textual entailment scores each sentence (`pip install "proctor[hf]"`). With `model`, a model splits the output into
    claims and checks each one; all must be supported by evidence in the context.

    >>> result = {"context": "Oslo is the capital of Norway."}
    >>> check = hallucination_detection()
    >>> def evaluate(output):
    ...     return check(output, None, FieldContext("output", result))
    >>> evaluate("Norway's capital is Oslo.").passed, evaluate("Its capital was Bergen in 1299.").passed
    (True, False)
    """
    where = "hallucination_detection"
    if threshold is None:
        threshold = DEFAULT_THRESHOLD if model is None else ALL_CLAIMS
    check_fraction(where, "threshold", threshold)
    if nli is not None and model is not None:
        raise EvaluatorError("nli and model are two methods", where=where, fix="leave out nli= or model=")
    try:
        path = parse_path(context).text
    except UsageError as error:
        what = f"context must be a path: {error.what}"
        raise EvaluatorError(what, where="hallucination_detection", fix=error.fix) from None
    method = _choose_grounding(embedder, model, nli, threshold)

    async def evaluate(output: Any, expected: Any = None, field_context: FieldContext | None = None) -> Score:
        del expected
        source = [] if field_context is None else collect_texts(field_context.get(path))
        if not source:
            return Score.skipped(f"there is no {path!r} to check the output against")
        if with_input and field_context is not None:
            source += collect_texts(field_context.input)
        return await method.score(output, source)  # type: ignore[no-any-return]

    options = {"context": context, "with_input": with_input, "threshold": threshold}
    return tag_evaluator(evaluate, factory=hallucination_detection, **options, **method.options)


@evaluator(category="quality", factory=True, needs=(), threshold=0.7)
def relevance(threshold: float = 0.7, *, embedder: Embedding = None, model: Model = None) -> Evaluate:
    """Passes if the output addresses the input.

    Whether it answers a question is scored by the cross-encoder `local:ms-marco`, if its weights are installed
    (`proctor models pull ms-marco`) and no embedder is named. The value is a logistic function of its logit, with 0.7
    for 0. Answers that need the question to be understood ("It is called a lintel.") and are rated below that are
    skipped, and so are answers about other years than those of the question. Of long answers, the first piece of 150
    words and the three with the most words of the question count.

    For other inputs (requests to write something, statements), or with an embedder, the value grows with the similarity
    of input and output in meaning, compared with unrelated texts. It recognizes the subject of a text, not whether it
    answers. Without the cross-encoder, outputs on the subject of a question are therefore skipped, unless they are very
    close to it.

    Outputs of fewer than five words are skipped, and so are requests for creative text (a joke, a poem), program code
    and languages other than English, unless a named embedder reads them. `embedder` as for `semantic_similarity`.

    With `model`, a model scores how well the output addresses the input. `model="hf:…"` is a cross-encoder of the
    Hugging Face Hub, or in a folder (`pip install "proctor[hf]"`): its highest logit over passages of 80 words counts,
    and a low one is skipped if the input is not a question.

    >>> question = FieldContext("output", {"input": "When was the old bridge in Mostar built?"})
    >>> check = relevance(embedder="lexical")
    >>> check("The old bridge in Mostar was built in 1566.", None, question).passed
    True
    """
    where = "relevance"
    check_fraction(where, "threshold", threshold)
    if model is None:
        method: Any = RelevanceScorer(embedder, threshold)
    elif is_hf_address(model):
        from proctor.evaluators.hf_scorers import CrossEncoderRelevance

        method = CrossEncoderRelevance(model, threshold, where)
    else:
        method = QualityJudge(model, "relevance", threshold, reference_role="input")

    async def evaluate(output: Any, expected: Any = None, field_context: FieldContext | None = None) -> Score:
        del expected
        question = None if field_context is None else field_context.input
        if question is None or not collect_texts(question):
            return Score.skipped("there is no input to compare the output with")
        return await method.score(output, question)  # type: ignore[no-any-return]

    return tag_evaluator(evaluate, factory=relevance, threshold=threshold, **method.options)


def _choose_grounding(embedder: Any, model: Any, nli: str | None, threshold: float) -> Any:
    where = "hallucination_detection"
    if nli is not None:
        from proctor.evaluators.hf_scorers import EntailmentScorer

        return EntailmentScorer(nli, threshold, f"{where}: nli")
    if model is not None:
        return ClaimsJudge(model, threshold)
    return GroundingScorer(None if embedder is None else TextEmbedder(embedder, where), threshold)


def _choose_reference(expected: Any, field_context: FieldContext | None) -> Against:
    """Return the expected value for the output, and the baseline for other fields."""
    if field_context is None or (expected is not None and field_context.path == OUTPUT):
        return "expected"
    return "baseline"
