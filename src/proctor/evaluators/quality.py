"""Quality: how near the output comes in meaning to what was expected."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Awaitable, Callable, Sequence
from operator import itemgetter, mul
from typing import Any

from proctor import codec, connections, sessions
from proctor.errors import CallFailed, EvaluatorError, UsageError
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.options import Embedding
from proctor.evaluators.verdict import is_fraction, shown
from proctor.records.score import Score

LOCAL, LEXICAL = "local:minilm", "lexical"
NO_MEANINGS = (
    "semantic_similarity compared letters, not meanings, for no embedder was named and there is no "
    'local one; get it with pip install "proctor[local]" and proctor models pull minilm, or name '
    "one, such as openai:text-embedding-3-small"
)


@evaluator(category="quality", factory=True, needs=("expected",), threshold=0.8)
def semantic_similarity(
    embedder: Embedding = None, threshold: float = 0.8
) -> Callable[[Any, Any], Awaitable[Score]]:
    """Passes if the output means about the same as what was expected.

    The value is the cosine of the two embeddings, 0 where that is negative. `embedder` is an
    address (`local:minilm`, `openai:text-embedding-3-small`, `http://host/v1#model`), LangChain
    embeddings, or a function. Without one it is `local:minilm` if its weights are there
    (`proctor models pull minilm`) and else `lexical`, which compares letters and knows no
    meanings; the details say which, and the run's report warns. Of several expected texts, and
    of several texts in the output, the nearest two count. What is not a text is compared as JSON.

    >>> import asyncio
    >>> nearly_same = semantic_similarity("lexical", threshold=0.5)
    >>> score = asyncio.run(nearly_same("She has two red cars.", "She has a red car."))
    >>> score.passed, score.details["method"]
    (True, 'lexical')
    """
    if not is_fraction(threshold):
        raise EvaluatorError(
            f"a threshold is from 0 to 1, got {threshold!r}", where="semantic_similarity"
        )
    try:
        live = connections.embedder(_nearest_at_hand() if embedder is None else embedder)
    except UsageError as error:
        raise EvaluatorError(
            error.what, where="semantic_similarity", fix=error.fix, problems=error.problems
        ) from None

    fell_back = embedder is None and live.name == LEXICAL

    async def evaluate(output: Any, expected: Any) -> Score:
        answers, references = _texts(output), _texts(expected)
        details: dict[str, Any] = {"method": live.method, "embedder": live.name}
        if not references:
            return Score.skipped("there is nothing to compare with: what is expected is empty")
        if not answers:
            return Score(0.0, False, "the output is empty", details)
        if fell_back:
            sessions.warn(NO_MEANINGS)
        vectors = await live.embed([*answers.values(), *references.values()])
        pairs = [
            (_cosine(mine, theirs), answer, reference)
            for answer, mine in zip(answers, vectors, strict=False)
            for reference, theirs in zip(references, vectors[len(answers) :], strict=True)
        ]
        cosine, answer, reference = max(pairs, key=itemgetter(0))
        details["cosine"] = cosine
        if len(answers) > 1:
            details["answer"] = answer
        if len(references) > 1:
            details["reference"] = reference
        compared = "letters only: cosine" if live.method == "lexical" else "cosine"
        reason = f"{compared} {cosine:.3f} with {shown(references[reference])}"
        value = max(0.0, cosine)
        return Score(value, value >= threshold, reason, details)

    # The embedder rather than what was given for it, which may hold a key.
    return made(evaluate, by=semantic_similarity, embedder=live, threshold=threshold)


def _nearest_at_hand() -> str:
    """The local model if it can be used, else the comparison of letters."""
    # Whoever names an embedder, or only reads the catalogue, does not wait for it.
    from proctor import weights

    there = weights.find("minilm") is not None and importlib.util.find_spec("numpy") is not None
    return LOCAL if there else LEXICAL


def _texts(value: Any) -> dict[int, str]:
    """The texts in a value, by their place: itself, each of a list, or anything else as JSON.

    Empty ones are left out: they mean nothing, and endpoints refuse them.
    """
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        texts = list(value)
    else:
        texts = [value if isinstance(value, str) else codec.canonical(value).decode()]
    return {place: text for place, text in enumerate(texts) if text.strip()}


def _cosine(left: Sequence[float], right: Sequence[float]) -> float:
    if len(left) != len(right):
        raise CallFailed(f"the embedder gave vectors of {len(left)} and of {len(right)} numbers")
    size = math.sqrt(math.fsum(map(mul, left, left)) * math.fsum(map(mul, right, right)))
    # What has no direction has nothing in common with anything.
    found = math.fsum(map(mul, left, right)) / size if size else 0.0
    return min(1.0, max(-1.0, found))
