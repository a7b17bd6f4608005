"""Topic: how near a text is in meaning to what was asked."""

from __future__ import annotations

from typing import Any, NamedTuple

from proctor.evaluators.meanings import UNRELATED_TEXTS, Meanings, Nearness, aside
from proctor.evaluators.verdict import shown
from proctor.evaluators.wording import sentences, texts_in, words
from proctor.records.score import Score

# What embedders read at once, in words; of longer texts they read the start only.
LONGEST_PIECE = 150
# Of texts with more pieces the first ones are compared, and the details say so.
MOST_PIECES = 100
# How near an answer is to its own question rather than to another one, and what that is worth.
ANSWERS, WORTH = 0.28, 0.7
# Nearer than this makes no difference any more.
CLOSEST = 0.8
# So few words name something rather than address a question.
SHORTEST_ANSWER = 5


class Topic(NamedTuple):
    """How near the nearest pieces of question and answer are, and what that is worth.

    `left_out` is how many pieces were not compared.
    """

    nearness: float
    piece: str
    left_out: int = 0

    @property
    def value(self) -> float:
        """0 for texts without relation, 0.7 where answers begin, 1 for the closest."""
        if self.nearness < ANSWERS:
            return WORTH * self.nearness / ANSWERS
        above = min(1.0, (self.nearness - ANSWERS) / (CLOSEST - ANSWERS))
        return WORTH + (1.0 - WORTH) * above


class OnTopic:
    """Input and output, compared by how near they are beyond what any two texts are."""

    def __init__(self, meanings: Meanings, threshold: float) -> None:
        self._meanings, self._threshold = meanings, threshold
        self.given = meanings.given

    async def score(self, output: Any, beside: Any = None) -> Score:
        """What the nearness of question and answer is worth; skipped for a bare name."""
        answer, details = "\n".join(texts_in(output)), self._meanings.details
        if not answer:
            return Score(0.0, False, "the output is empty", details)
        count = len(await aside(len(answer), words, answer))
        if count < SHORTEST_ANSWER:
            few = "1 word is" if count == 1 else f"{count} words are"
            return Score.skipped(f"{few} too few to tell what is addressed; a judge can", details)
        question = "\n".join(texts_in(beside))
        size = len(answer) + len(question)
        problem = await aside(size, self._meanings.unreadable, [answer, question])
        if problem:
            return Score.skipped(problem, details)
        found = await topic(question, answer, self._meanings)
        details["nearness"] = found.nearness
        if found.left_out:
            details["pieces_left_out"] = found.left_out
        letters = ", by letters only" if self._meanings.method == "lexical" else ""
        reason = f"nearness {found.nearness:.2f} to the input{letters}"
        if found.piece != answer:
            reason += f", by {shown(found.piece)}"
        return Score(found.value, found.value >= self._threshold, reason, details)


async def topic(question: str, answer: str, meanings: Meanings) -> Topic:
    """Compare all pieces of a question with all pieces of an answer."""
    size = len(question) + len(answer)
    asked, said = await aside(size, lambda: (pieces(question), pieces(answer)))
    rest = max(0, len(asked) - MOST_PIECES) + max(0, len(said) - MOST_PIECES)
    asked, said = asked[:MOST_PIECES], said[:MOST_PIECES]
    vectors, floor = await meanings.vectors([*asked, *said]), await meanings.floor(UNRELATED_TEXTS)
    near = await aside(size, Nearness, vectors, floor)
    nearest = await aside(size, near.nearest, said, asked)
    return max(Topic(*found, rest) for found in zip(nearest, said, strict=True))


def pieces(text: str) -> list[str]:
    """A text in pieces that an embedder can read, cut between sentences.

    >>> len(pieces("This is short.")), len(pieces("Six words are in this sentence. " * 60))
    (1, 3)
    """
    if len(words(text)) <= LONGEST_PIECE:
        return [text]
    found: list[str] = []
    size = LONGEST_PIECE
    for sentence in sentences(text):
        length = len(words(sentence))
        if size + length > LONGEST_PIECE:
            found.append(sentence)
            size = length
        else:
            found[-1] += f" {sentence}"
            size += length
    return found
