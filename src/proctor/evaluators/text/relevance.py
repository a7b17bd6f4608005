"""Score whether a text answers a question, or how close in meaning it is to another input."""

from __future__ import annotations

import functools
import importlib.util
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proctor.evaluators.embeddings import LOCAL, UNRELATED_TEXTS, TextEmbedder, VectorSimilarity, run_off_loop
from proctor.evaluators.score_conversion import preview
from proctor.evaluators.text.request_kind import asks_creative, classify_request, load_starts
from proctor.evaluators.tokenizer import are_related, collect_texts, split_sentences, split_words
from proctor.models import weights
from proctor.models.cross_encoder import NAME as MS_MARCO
from proctor.models.cross_encoder import CrossEncoder
from proctor.records.score import Score

# Embedders read only the start of longer texts.
MAX_PIECE_WORDS = 150
# Only the first pieces of longer texts are compared; the details show this.
MAX_PIECES = 100
# Answers have at least this similarity to the question, and get at least this value.
ANSWER_SIMILARITY, ANSWER_VALUE = 0.28, 0.7
# The same for questions and `local:minilm`: at most one in twenty answers to the most similar other question is closer.
# Few answers are below the second similarity; an output between the two may or may not answer the question.
QUESTION_SIMILARITY, MIN_RELATED_SIMILARITY = 0.55, 0.2
PULL_HINT = "run proctor models pull ms-marco, or a model can judge it (model=…)"
# The cross-encoder scores this many pieces of a long answer.
MAX_SCORED_PIECES = 4
# Between this logit and 0 are answers that do not repeat the subject of the question, and texts on its subject.
MIN_CERTAIN_LOGIT = -7.0
# Direct advice may have the logit of a text off the topic, but is nearer to the question than this.
MAX_OFF_TOPIC_SIMILARITY = 0.1
# Shorter answers may leave out the subject of the question ("It is called a lintel.").
MAX_ELLIPTICAL_WORDS = 25
UNDECIDED_REASON = "cannot tell whether this answers the question"
CREATIVE_REASON = "the input asks for creative text, which need not repeat its words; a judge can do it"
ELLIPTICAL_REASON = "the output needs the question to be understood; a judge can do it"
# Four digits that are no decade ("1930s") and no part of a longer number.
_YEAR = re.compile(r"(?<![\w,.])(?:1[0-9]{3}|20[0-9]{2})(?!\w|['’]s|[,.]\d)", re.ASCII)
_START_WORDS, _ASKED_WORDS = 5, 5
_BE = frozenset({"is", "are", "was", "were"})
_PRONOUNS = frozenset({"it", "he", "she", "they", "this", "that", "these", "those", "there", "yes", "no", "because"})
# At this similarity or higher, the value is 1.
FULL_SIMILARITY = 0.8
# An answer with fewer words is only a name, not a sentence.
MIN_ANSWER_WORDS = 5


class TopicMatch(NamedTuple):
    """The nearest piece of an answer; `left_out` counts the pieces that were not compared."""

    similarity: float
    piece: str
    left_out: int = 0
    answer_similarity: float = ANSWER_SIMILARITY

    @property
    def value(self) -> float:
        """The value of the score: 0 for unrelated texts, 0.7 at the similarity of a typical answer, up to 1."""
        if self.similarity < self.answer_similarity:
            return ANSWER_VALUE * self.similarity / self.answer_similarity
        share = min(1.0, (self.similarity - self.answer_similarity) / (FULL_SIMILARITY - self.answer_similarity))
        return ANSWER_VALUE + (1.0 - ANSWER_VALUE) * share


class RelevanceScorer:
    """Scores whether the output answers a question, or how close in meaning it is to another input.

    Without a named embedder, questions are left to a cross-encoder if its weights are installed.
    """

    def __init__(self, embedder: Any, threshold: float) -> None:
        self._embedder, self._threshold = TextEmbedder(embedder, "relevance"), threshold
        self._is_named = embedder is not None
        self.options = self._embedder.options

    async def score(self, output: Any, reference: Any = None) -> Score:
        """Score an answer; skip very short outputs."""
        answer, details = "\n".join(collect_texts(output)), self._embedder.details
        if not answer:
            return Score(0.0, False, "the output is empty", details)
        count = len(await run_off_loop(len(answer), split_words, answer))
        if problem := explain_short(count):
            return Score.skipped(problem, details)
        question = "\n".join(collect_texts(reference))
        size = len(answer) + len(question)
        problem = await run_off_loop(size, self._embedder.explain_unreadable, [answer, question])
        if problem:
            return Score.skipped(problem, details)
        if not self._is_named and asks_creative(question):
            return Score.skipped(CREATIVE_REASON, details)
        is_question = classify_request(question) == "question"
        cross_encoder = None if self._is_named or not is_question else find_cross_encoder()
        if cross_encoder is not None:
            return await self._score_answer(cross_encoder, question, answer)
        return await self._score_similarity(question, answer, is_question=is_question)

    async def _score_answer(self, encoder: CrossEncoder, question: str, answer: str) -> Score:
        pieces = await run_off_loop(len(answer), split_pieces, answer)
        likely = await run_off_loop(len(answer), select_likely_pieces, question, pieces)
        logits = await encoder.score([(question, piece) for piece in likely])
        logit, piece = max(zip(logits, likely, strict=True))
        details = {"method": "cross-encoder", "model": encoder.name, "logit": logit}
        if len(pieces) > len(likely):
            details["pieces_left_out"] = len(pieces) - len(likely)
        if logit < 0 and is_elliptical(question, answer):
            return Score.skipped(ELLIPTICAL_REASON, details)
        if logit < 0 and not (logit < MIN_CERTAIN_LOGIT and await self._is_off_topic(question, answer, details)):
            return Score.skipped(f"{encoder.name} {UNDECIDED_REASON} (logit {logit:.1f}); a judge can do it", details)
        if logit >= 0 and (problem := explain_other_year(question, answer) or explain_echo(question, answer)):
            return Score.skipped(problem, details)
        value = to_value(logit)
        verdict = "it answers the question" if logit >= 0 else "it is off the topic of the question"
        nearness = f", nearness {details['nearness']:.2f}" if "nearness" in details else ""
        reason = f"{verdict} by {encoder.name} (logit {logit:.1f}{nearness})"
        if piece != answer:
            reason += f", by {preview(piece)}"
        return Score(value, value >= self._threshold, reason, details)

    async def _is_off_topic(self, question: str, answer: str, details: dict[str, Any]) -> bool:
        """Return True if embeddings confirm that an answer is about something else; letters cannot."""
        if self._embedder.method == "lexical":
            return False
        match = await match_topic(question, answer, self._embedder)
        details["nearness"] = match.similarity
        return match.similarity < MAX_OFF_TOPIC_SIMILARITY

    async def _score_similarity(self, question: str, answer: str, *, is_question: bool) -> Score:
        details = self._embedder.details
        match = await match_topic(question, answer, self._embedder)
        # The limit was measured for this embedder only.
        if is_question and self._embedder.embedder.name == LOCAL:
            match = match._replace(answer_similarity=QUESTION_SIMILARITY)
        details["nearness"] = match.similarity
        if match.left_out:
            details["pieces_left_out"] = match.left_out
        letters = ", by letters only" if self._embedder.method == "lexical" else ""
        reason = f"nearness {match.similarity:.2f} to the input{letters}"
        if match.piece != answer:
            reason += f", by {preview(match.piece)}"
        if MIN_RELATED_SIMILARITY <= match.similarity < match.answer_similarity > ANSWER_SIMILARITY:
            return Score.skipped(
                f"{reason}: it is on the subject, but may not answer the question; {PULL_HINT}", details
            )
        return Score(match.value, match.value >= self._threshold, reason, details)


def explain_short(word_count: int) -> str:
    """Return why an output with so few words cannot be scored; "" if it has enough."""
    if word_count >= MIN_ANSWER_WORDS:
        return ""
    words = "1 word is" if word_count == 1 else f"{word_count} words are"
    return f"{words} too few to compare with the input; a judge can do it"


def find_cross_encoder() -> CrossEncoder | None:
    """Return the local cross-encoder; None if it is not installed."""
    path = weights.find(MS_MARCO)
    return _open_cross_encoder(path) if path is not None and importlib.util.find_spec("numpy") is not None else None


@functools.cache
def _open_cross_encoder(path: Path) -> CrossEncoder:
    # One model in memory for all evaluators.
    return CrossEncoder(path)


def to_value(logit: float) -> float:
    """Return the logistic function of a logit, moved so that 0 has the value 0.7.

    >>> to_value(0.0), round(to_value(5.0), 3), round(to_value(-5.0), 3)
    (0.7, 0.997, 0.015)
    """
    return ANSWER_VALUE / (ANSWER_VALUE + (1.0 - ANSWER_VALUE) * math.exp(-logit))


def select_likely_pieces(question: str, pieces: Sequence[str]) -> list[str]:
    """Return the first piece of an answer, and those with the most words of the question."""
    if len(pieces) <= MAX_SCORED_PIECES:
        return list(pieces)
    wanted = _list_content(question)
    shared = [len(wanted & _list_content(piece)) for piece in pieces]
    ranked = sorted(range(1, len(pieces)), key=lambda index: -shared[index])
    return [pieces[index] for index in (0, *ranked[: MAX_SCORED_PIECES - 1])]


def is_elliptical(question: str, answer: str) -> bool:
    """Return True if a short answer leaves the subject to the question.

    It starts with a pronoun ("It is called a lintel."), or with what the question asks for ("The song is …" after
    "Which song …"), or it only lists names.
    """
    words = split_words(answer)
    if not 0 < len(words) < MAX_ELLIPTICAL_WORDS:
        return False
    if words[0].text in _PRONOUNS:
        return True
    if all(word.kind in ("name", "number", "function") or word.original[0].isupper() for word in words):
        return True
    start = [word.text for word in words[:_START_WORDS]]
    return not (_find_asked(question).isdisjoint(start) or _BE.isdisjoint(start))


def explain_other_year(question: str, answer: str) -> str:
    """Return why an answer may be about another event: it has years, but none of the question; "" if not.

    Cross-encoders rate "The cup was held in Rome in 1989." high for "Where was the cup held in 1987?".
    """
    asked, answered = (set(_YEAR.findall(text)) for text in (question, answer))
    if not asked or not answered or asked & answered:
        return ""
    years = [", ".join(sorted(years)) for years in (asked, answered)]
    return f"the input is about {years[0]}, the output about {years[1]}; a judge can do it"


def explain_echo(question: str, answer: str) -> str:
    """Return why an answer may say nothing: all its words are in the question, or are about questions; "" if not.

    Yes-or-no questions, and those with "or", can be answered with their own words.
    """
    asked = split_words(question)
    texts = {word.text for word in asked}
    talk = load_starts()
    if not asked or "or" in texts or not any(text in talk["open_question"] for text in texts):
        return ""
    new = [word for word in split_words(answer) if word.kind != "function" and word.text not in texts]
    if any(word.kind in ("name", "number", "negation") for word in new):
        return ""
    wondering = [word for word in new if word.text in talk["wondering"]]
    statement = [
        word
        for word in new
        if word not in wondering
        and word.text not in talk["about_questions"]
        and not any(are_related(word.text, text) for text in texts)
    ]
    # "Many tourists wonder …" has another word more; without such a verb it may be the answer.
    return "" if len(statement) > bool(wondering) else "it only repeats the question; a judge can do it"


def _find_asked(question: str) -> set[str]:
    """Return the words after "which" or "what"."""
    texts = [word.text for word in split_words(question)]
    starts = [index for index, text in enumerate(texts) if text in ("which", "what")]
    asked = {text for start in starts for text in texts[start + 1 : start + 1 + _ASKED_WORDS]}
    return asked & _list_content(question)


def _list_content(text: str) -> set[str]:
    return {word.text for word in split_words(text) if word.kind in ("content", "name", "number")}


async def match_topic(question: str, answer: str, embedder: TextEmbedder) -> TopicMatch:
    """Compare all pieces of a question with all pieces of an answer."""
    size = len(question) + len(answer)
    all_pieces = await run_off_loop(size, lambda: (split_pieces(question), split_pieces(answer)))
    left_out = sum(max(0, len(pieces) - MAX_PIECES) for pieces in all_pieces)
    questions, answers = (pieces[:MAX_PIECES] for pieces in all_pieces)
    vectors = await embedder.vectors([*questions, *answers])
    floor = await embedder.floor(UNRELATED_TEXTS)
    similarity = await run_off_loop(size, VectorSimilarity, vectors, floor)
    nearest = await run_off_loop(size, similarity.nearest, answers, questions)
    return max(TopicMatch(*pair, left_out) for pair in zip(nearest, answers, strict=True))


def split_pieces(text: str) -> list[str]:
    """Split a text between sentences into pieces that an embedder can read."""
    if len(split_words(text)) <= MAX_PIECE_WORDS:
        return [text]
    pieces: list[str] = []
    size = MAX_PIECE_WORDS
    for sentence in split_sentences(text):
        length = len(split_words(sentence))
        if size + length > MAX_PIECE_WORDS:
            pieces.append(sentence)
            size = length
        else:
            pieces[-1] += f" {sentence}"
            size += length
    return pieces
