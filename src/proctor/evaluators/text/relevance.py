"""Score how close in meaning a text is to the question it answers."""

from __future__ import annotations

from typing import Any, NamedTuple

from proctor.evaluators.embeddings import UNRELATED_TEXTS, TextEmbedder, VectorSimilarity, run_off_loop
from proctor.evaluators.score_conversion import preview
from proctor.evaluators.tokenizer import collect_texts, split_sentences, split_words
from proctor.records.score import Score

# Embedders read only the start of longer texts.
MAX_PIECE_WORDS = 150
# Only the first pieces of longer texts are compared; the details show this.
MAX_PIECES = 100
# Answers have at least this similarity to the question, and get at least this value.
ANSWER_SIMILARITY, ANSWER_VALUE = 0.28, 0.7
# At this similarity or higher, the value is 1.
FULL_SIMILARITY = 0.8
# An answer with fewer words is only a name, not a sentence.
MIN_ANSWER_WORDS = 5


class TopicMatch(NamedTuple):
    """The nearest piece of an answer; `left_out` counts the pieces that were not compared."""

    similarity: float
    piece: str
    left_out: int = 0

    @property
    def value(self) -> float:
        """The value of the score: 0 for unrelated texts, 0.7 at the similarity of a typical answer, up to 1."""
        if self.similarity < ANSWER_SIMILARITY:
            return ANSWER_VALUE * self.similarity / ANSWER_SIMILARITY
        share = min(1.0, (self.similarity - ANSWER_SIMILARITY) / (FULL_SIMILARITY - ANSWER_SIMILARITY))
        return ANSWER_VALUE + (1.0 - ANSWER_VALUE) * share


class RelevanceScorer:
    """Scores how close in meaning the output is to the input."""

    def __init__(self, embedder: TextEmbedder, threshold: float) -> None:
        self._embedder, self._threshold = embedder, threshold
        self.options = embedder.options

    async def score(self, output: Any, reference: Any = None) -> Score:
        """Score the similarity of question and answer; skip very short outputs."""
        answer, details = "\n".join(collect_texts(output)), self._embedder.details
        if not answer:
            return Score(0.0, False, "the output is empty", details)
        count = len(await run_off_loop(len(answer), split_words, answer))
        if count < MIN_ANSWER_WORDS:
            word_count_text = "1 word is" if count == 1 else f"{count} words are"
            return Score.skipped(f"{word_count_text} too few to compare with the input; a judge can do it", details)
        question = "\n".join(collect_texts(reference))
        size = len(answer) + len(question)
        problem = await run_off_loop(size, self._embedder.explain_unreadable, [answer, question])
        if problem:
            return Score.skipped(problem, details)
        match = await match_topic(question, answer, self._embedder)
        details["nearness"] = match.similarity
        if match.left_out:
            details["pieces_left_out"] = match.left_out
        letters = ", by letters only" if self._embedder.method == "lexical" else ""
        reason = f"nearness {match.similarity:.2f} to the input{letters}"
        if match.piece != answer:
            reason += f", by {preview(match.piece)}"
        return Score(match.value, match.value >= self._threshold, reason, details)


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
