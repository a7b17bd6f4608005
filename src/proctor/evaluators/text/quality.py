"""Quality: meaning kept, text that hangs together, nothing made up, the question answered.

Each has a method that runs on this machine and, with a judge, one that asks a model. The details
of a score say which was used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from proctor.errors import EvaluatorError
from proctor.evaluators.grounding.grounded import GROUNDED, Grounded
from proctor.evaluators.marking import evaluator, made
from proctor.evaluators.meanings import Meanings
from proctor.evaluators.options import Embedding, Model
from proctor.evaluators.text.coherence import Flowing
from proctor.evaluators.text.relevance import OnTopic
from proctor.evaluators.text.similarity import Alike, Match
from proctor.evaluators.wording import texts_in
from proctor.records.fields.context import FieldContext
from proctor.records.fields.path import compiled
from proctor.records.numbers import is_fraction
from proctor.records.sample import CONTEXT, Sample
from proctor.records.score import Score

# So that 8 is 0.8, which is how pass marks are given.
SCALE = (0, 10)
EMPTY = "the output is empty"


class Graded:
    """A model scores one quality from 0 to 10, by the prompt of that name.

    `shows` is what it sees besides the output.

    >>> Graded(lambda messages: "", "coherence", 0.8).given["judge"].model
    'python:<lambda>'
    """

    def __init__(
        self, judge: Any, prompt: str, threshold: float, *, shows: Literal["input", "expected", ""] = ""
    ) -> None:
        # Prompts and addresses are looked up, which takes a moment.
        from proctor.evaluators.judges.judge import Judge
        from proctor.evaluators.judges.scale import numbers
        from proctor.evaluators.judges.templates import shipped
        from proctor.models.connect import provider

        adapter = provider(judge)
        low, high = map(str, SCALE)
        ends = {"low": low, "high": high}
        scale = numbers(SCALE, threshold, prompt)
        self._judge = Judge(adapter, shipped(prompt), scale, {}, ends)
        self._shows = shows
        # The adapter rather than what was given for it, which may hold a key.
        self.given = {"judge": adapter}

    async def score(self, output: Any, beside: Any = None) -> Score:
        """Ask once; an empty output needs no asking."""
        if isinstance(output, str) and not output.strip():
            return Score(0.0, False, EMPTY, {"method": "judge"})
        seen = {self._shows: beside} if self._shows else {}
        sample: Sample[Any, Any] = Sample("", seen.get("input"), seen.get("expected"))
        return _by_judge(await self._judge.score(output, sample))


class ClaimsChecked:
    """A model takes the output apart into claims, and checks each one against the context."""

    def __init__(self, judge: Any, threshold: float) -> None:
        from proctor.models.connect import provider

        self._threshold = threshold
        self.given = {"judge": provider(judge)}

    async def score(self, output: Any, beside: Any = None) -> Score:
        """The share of claims that are supported."""
        from proctor.evaluators.judges.claims import grounded_claims

        context = "\n\n".join(beside)
        adapter = self.given["judge"]
        return _by_judge(await grounded_claims(adapter, output, context, threshold=self._threshold))


def _by_judge(score: Score) -> Score:
    return msgspec.structs.replace(score, details={"method": "judge", **score.details})


Against = Literal["expected", "baseline"]
Evaluate = Callable[..., Any]

# Of the claims that a judge finds, all must be supported.
ALL_CLAIMS = 1.0
_OUTPUT = "output"


@evaluator(category="quality", factory=True, needs=(), threshold=0.8)
def semantic_similarity(
    embedder: Embedding = None,
    threshold: float = 0.8,
    *,
    against: Against | None = None,
    excerpts: bool | None = None,
    judge: Model = None,
    match: Match | None = None,
) -> Evaluate:
    """Passes if the output means about the same as what was expected.

    The value is the cosine of the two embeddings, 0 where that is negative. `embedder` is an
    address (`local:minilm`, `openai:text-embedding-3-small`, `http://host/v1#model`), LangChain
    embeddings, or a function. Without one it is `local:minilm` if its weights are there
    (`proctor models pull minilm`) and else `lexical`, which compares letters and knows no
    meanings; the details say which, and the run's report warns. Of several expected texts the
    nearest counts; of more than eight, those that look most like the output. Two lists of texts
    are compared item by item, and the worst pair counts; with `match="any"` the nearest two of
    all. What is not a text is compared as JSON.

    `against="baseline"` compares with the baseline's value; without it, that is done where there
    is no expected value, and for fields other than the output. A short reference (12 words at
    most) in a text of half as many again is also looked for inside it: the words there that
    look most like it are compared with it (in its first 200,000 characters). `excerpts` does that
    always or never.

    `local:minilm` reads English: other languages, code and emoji are skipped, unless identical.
    Embeddings do not see negations, and names or numbers of one kind are near each other: a wrong
    one may pass. With `judge`, a model scores how far the meaning is the same.

    >>> nearly_same = semantic_similarity("lexical", threshold=0.5)
    >>> score = nearly_same("She has two red cars.", "She has a red car.")
    >>> score.passed, score.details["method"]
    (True, 'lexical')
    """
    where = "semantic_similarity"
    _check(where, threshold=threshold)
    if match not in (None, "any"):
        raise EvaluatorError(f"match is 'any' or left out, not {match!r}", where=where)
    _check_against(against, where)
    method = (
        Alike(Meanings(embedder, where), threshold, excerpts, match)
        if judge is None
        else Graded(judge, "similarity", threshold, shows="expected")
    )

    async def evaluate(output: Any, expected: Any = None, field_context: FieldContext | None = None) -> Score:
        chosen = against or _usual_reference(expected, field_context)
        if chosen == "expected":
            return await method.score(output, expected)
        baseline = None if field_context is None else field_context.baseline_value
        if baseline is None:
            return Score.skipped("there is nothing to compare with: neither expected nor baseline")
        return await method.score(output, baseline)

    given = {"threshold": threshold, **_said(against=against, excerpts=excerpts, match=match)}
    return made(evaluate, by=semantic_similarity, **method.given, **given)


@evaluator(category="quality", factory=True, needs=(), threshold=0.8)
def coherence(min_score: float = 0.8, *, embedder: Embedding = None, judge: Model = None) -> Evaluate:
    """Passes if the output hangs together as a text.

    Five signs are looked for, each from 0 to 1, and the worst is the value. Connection: how near
    each sentence is in meaning to the next. Freshness: the same words do not come again and
    again. Order: articles stand before what they can belong to (English only). Sequence:
    numbered points do not run back, a text of several sentences does not begin with what refers
    back ("however"). Completeness: the last sentence does not end after an article, a conjunction,
    a preposition or a comma, nor without a mark where others have one. A text of one sentence has
    no connection to show, and is judged by the other signs. Of texts of more than 300 sentences the
    connection of the first 300 is seen, and the details say so. What is no prose (a number, a name,
    a list of words, mere letters, program code) is skipped. So is every language but English,
    unless an embedder is named that reads it.

    It finds texts that were mixed up, shuffled word by word, cut off or stuck in a loop. It does
    not read: sentences in a wrong order, contradictions and subtle leaps pass. With `judge`, a
    model scores all that. `embedder` as for `semantic_similarity`.

    >>> hangs_together = coherence(embedder="lexical")
    >>> hangs_together("She bought a car. The car is red. It was the best of").reason
    'completeness 0.75: it breaks off in the last sentence'
    """
    where = "coherence"
    _check(where, min_score=min_score)
    method = (
        Flowing(Meanings(embedder, where), min_score)
        if judge is None
        else Graded(judge, "coherence", min_score)
    )

    async def evaluate(output: Any) -> Score:
        return await method.score(output)

    return made(evaluate, by=coherence, min_score=min_score, **method.given)


@evaluator(category="quality", factory=True, needs=(), threshold=GROUNDED)
def hallucination_detection(
    *,
    context: str = CONTEXT,
    with_input: bool = False,
    threshold: float | None = None,
    embedder: Embedding = None,
    judge: Model = None,
) -> Evaluate:
    """Passes if what the output says stands in the sample's context.

    `context` is the path of what it must rest on: texts, documents and lists of them in the
    sample's metadata. `with_input` takes what the input says as given too. A sample without it is
    skipped.

    Each sentence is held against the three passages of the context that fit it best. A word is
    supported if it, another form of it, or a word near it in meaning stands there. Numbers,
    names, negations and what the speaker says of himself count double and have no near words;
    words like "the" count half. The value is the support of the weakest sentence, short ones seen
    with the rest; it passes from 0.75 (`threshold`). A sentence is worth at most 0.7 if it has a
    number or a name that those passages do not have, denies what they say, says what they deny, or
    has another month, unit or opposite (left, right). Citation marks, numbers of a list and
    courtesies state nothing. The details list the sentences and what is unsupported in them.

    It finds what is added or changed, not what is wrongly put together from words that are all
    there. Names are known by their capitals; at the beginning of a sentence, where every word has
    one, what is no ordinary English word is a name. A rounded number counts as changed; other
    languages than English are skipped. With `judge`, a model takes the output apart into claims and
    checks each one; all must be supported, by evidence that is in the context.

    >>> result = {"context": "Oslo is the capital of Norway."}
    >>> check = hallucination_detection(embedder="lexical")
    >>> def said(output):
    ...     return check(output, None, FieldContext("output", result))
    >>> said("Norway's capital is Oslo.").passed, said("Its capital was Bergen in 1299.").passed
    (True, False)
    """
    where = "hallucination_detection"
    passing = threshold if threshold is not None else GROUNDED if judge is None else ALL_CLAIMS
    _check(where, threshold=passing)
    # What is no path is refused here.
    path = compiled(context).text
    method = Grounded(Meanings(embedder, where), passing) if judge is None else ClaimsChecked(judge, passing)

    async def evaluate(output: Any, expected: Any = None, field_context: FieldContext | None = None) -> Score:
        del expected
        source = [] if field_context is None else texts_in(field_context.get(path))
        if not source:
            return Score.skipped(f"there is no {path!r} that the output could rest on")
        if with_input and field_context is not None:
            source += texts_in(field_context.input)
        return await method.score(output, source)

    given = {"context": context, "with_input": with_input, "threshold": passing}
    return made(evaluate, by=hallucination_detection, **given, **method.given)


@evaluator(category="quality", factory=True, needs=(), threshold=0.7)
def relevance(threshold: float = 0.7, *, embedder: Embedding = None, judge: Model = None) -> Evaluate:
    """Passes if the output addresses what was asked.

    The value rises with how near input and output are in meaning, beyond what any two texts are:
    0.7 is where an answer to the question is told from an answer to another one, 1 where it
    takes up the question in full. Of long texts the nearest pieces count, among the first hundred
    of 150 words.

    It knows what a text is about, not whether it answers: a right answer and a wrong one, or the
    question itself, are equally near, and a refusal that does not say what it refuses is far. An
    output of fewer than five words is skipped, for a bare name is near to nothing. So are program
    code and texts in a language that the embedder does not read (the local one reads English),
    unless an embedder is named that does. With `judge`,
    a model scores how well the output addresses the input. `embedder` as for
    `semantic_similarity`.

    >>> asked = FieldContext("output", {"input": "When was the old bridge in Mostar built?"})
    >>> on_topic = relevance(embedder="lexical")
    >>> on_topic("The old bridge in Mostar was built in 1566.", None, asked).passed
    True
    """
    where = "relevance"
    _check(where, threshold=threshold)
    method = (
        OnTopic(Meanings(embedder, where), threshold)
        if judge is None
        else Graded(judge, "relevance", threshold, shows="input")
    )

    async def evaluate(output: Any, expected: Any = None, field_context: FieldContext | None = None) -> Score:
        del expected
        asked = None if field_context is None else field_context.input
        if asked is None or not texts_in(asked):
            return Score.skipped("there is no input that the output could address")
        return await method.score(output, asked)

    return made(evaluate, by=relevance, threshold=threshold, **method.given)


def _usual_reference(expected: Any, field_context: FieldContext | None) -> Against:
    """The expected value is that of the output; other fields have only their baseline."""
    if field_context is None or expected is None:
        return "expected" if field_context is None else "baseline"
    return "expected" if field_context.path == _OUTPUT else "baseline"


def _check_against(against: Any, where: str) -> None:
    if against not in (None, "expected", "baseline"):
        raise EvaluatorError(f"it compares with expected or baseline, not {against!r}", where=where)


def _said(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _check(where: str, **marks: Any) -> None:
    for name, mark in marks.items():
        if not is_fraction(mark):
            raise EvaluatorError(f"a {name} is from 0 to 1, got {mark!r}", where=where)
