"""Texts that a method cannot read get no verdict: languages, scripts, emoji, program code."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from proctor.evaluators.language import explain_foreign, explain_unreadable, is_code, is_unspaced
from proctor.evaluators.rules import keywords, occurrences, starts_with, text_count
from proctor.evaluators.safety.detection import bias_detection, compliance, toxicity_detection
from proctor.evaluators.text.quality import coherence, hallucination_detection, relevance, semantic_similarity
from proctor.models.embedders.minilm import MiniLM, WordPiece
from proctor.records.fields.context import FieldContext
from proctor.records.score import Score
from tests.evaluators.foreign_texts import CODE, ENGLISH, FOREIGN, SYMBOLS
from tests.tables import each_row


class EnglishOnly:
    """An embedder with a small vocabulary: all that it does not know has one vector."""

    name, method, languages = "english-only", "embeddings", ("en",)
    vocabulary = ("bridge", "built", "spring", "cat", "fish", "status", "passed", "report", "tests")

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """A count of each known word, and of all others together."""
        return [self._vector(text.lower()) for text in texts]

    def unknown_words(self, text: str) -> tuple[str, ...]:
        """Everything that is no ASCII."""
        return tuple(word for word in text.split() if not word.isascii())

    def _vector(self, text: str) -> list[float]:
        counts = [float(text.count(word)) for word in self.vocabulary]
        return [*counts, 1.0]


READER = EnglishOnly()
UNREADABLE = [(name, texts) for name, texts in FOREIGN.items()]


def score_with(evaluator: Any, output: Any, expected: Any = None, **result: Any) -> Score:
    """The score of an evaluator, with what it finds beside the output."""
    context = FieldContext("output", {"output": output, "expected": expected, **result})
    needs = len(inspect.signature(evaluator).parameters)
    found: Score = evaluator(*(output, expected, context)[:needs])
    return found


@each_row("name", FOREIGN)
def test_no_local_method_gives_a_verdict_in_a_language_it_cannot_read(name: str) -> None:
    for one, other in permutations(FOREIGN[name], 2):
        for score in (
            score_with(semantic_similarity(READER), one, other),
            score_with(relevance(embedder=READER), one, input=other),
            score_with(relevance(embedder="lexical"), f"{one} {one}", input=other),
            score_with(coherence(embedder=READER), f"{one} {other}"),
            score_with(coherence(embedder="lexical"), f"{one} {other}"),
            score_with(hallucination_detection(embedder="lexical"), one, context=other),
            score_with(hallucination_detection(embedder=READER), one, context=other),
            score_with(toxicity_detection(), one),
            score_with(bias_detection(), one),
        ):
            assert (score.status, score.value) == ("skipped", None), (name, score)
            assert score.reason


@each_row("name", FOREIGN)
def test_english_against_another_language_gets_no_verdict(name: str) -> None:
    for text in FOREIGN[name]:
        english = "The bridge was built in spring and is still in use."
        assert score_with(semantic_similarity(READER), english, text).status == "skipped"
        assert score_with(relevance(embedder=READER), english, input=text).status == "skipped"
        context = score_with(hallucination_detection(embedder="lexical"), english, context=text)
        assert context.status == "skipped"


@each_row("name", FOREIGN)
def test_a_refusal_in_another_language_is_not_looked_for(name: str) -> None:
    score = score_with(compliance((), refusal="required"), FOREIGN[name][0])
    assert score.passed is not True
    assert score.status == "skipped", score


@each_row("text", [*CODE, *SYMBOLS])
def test_program_code_and_emoji_get_no_verdict(text: str) -> None:
    other = next(one for one in (*CODE, *SYMBOLS) if one != text)
    assert score_with(semantic_similarity(READER), text, other).status == "skipped"
    assert score_with(semantic_similarity(READER), text, "It passed.").status == "skipped"
    assert score_with(coherence(embedder=READER), text).status == "skipped"
    score = score_with(relevance(embedder=READER), text, input="How do I print the folder in Python?")
    assert score.status == "skipped"


@pytest.mark.parametrize(
    ("one", "other"), [("✅", "❌"), ("Status: ✅", "Status: ❌"), ("The tests passed ✅", "The tests passed ❌")]
)
def test_texts_that_differ_in_what_is_not_read_are_not_the_same(one: str, other: str) -> None:
    assert score_with(semantic_similarity(READER), one, other).status == "skipped"
    assert score_with(semantic_similarity("lexical", 0.5), one, other).passed is not True


@pytest.mark.parametrize("text", ["这座桥建于春天", "สะพานถูกสร้างขึ้น", "✅", CODE[0], "{}", "¡Hola!"])
def test_identical_texts_are_the_same_in_every_language(text: str) -> None:
    assert score_with(semantic_similarity(READER), text, text).value == 1.0
    assert score_with(semantic_similarity(READER), text, ["something else", text]).value == 1.0


def test_lists_with_texts_that_cannot_be_read_are_open_unless_one_item_failed() -> None:
    one, other, _ = FOREIGN["Chinese"]
    same = "The bridge was built in spring."
    assert score_with(semantic_similarity(READER), [one, one], [other, other]).status == "skipped"
    assert score_with(semantic_similarity(READER), [same, one], [same, other]).status == "skipped"
    cats = "A cat ate a fish. The cat slept on fish, cat and fish."
    assert score_with(semantic_similarity(READER), [cats, one], [same, other]).passed is False


def test_different_texts_with_one_vector_get_no_verdict() -> None:
    def constant(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    score = score_with(semantic_similarity(constant), "The cat sleeps.", "Das Haus brennt.")
    assert score.status == "skipped"
    assert "the same vector" in score.reason
    assert score_with(semantic_similarity(constant), "The Cat sleeps!", "the cat sleeps").passed is True


def test_an_embedder_that_reads_more_is_trusted() -> None:
    def letters(texts: list[str]) -> list[list[float]]:
        return [[float(text.count(letter)) for letter in "aeiou"] for text in texts]

    for texts in (FOREIGN["German"], FOREIGN["Spanish"]):
        assert score_with(semantic_similarity(letters), texts[0], texts[1]).ok


@each_row("text", ENGLISH)
def test_ordinary_english_is_read(text: str) -> None:
    assert explain_unreadable(text) == ""


@each_row("name", FOREIGN)
@each_row("place", [0, 1, 2])
def test_other_languages_are_recognized(name: str, place: int) -> None:
    text = FOREIGN[name][place]
    assert explain_foreign(text)
    english = "The sign at the old bridge says this, and nobody in our group could read it. "
    assert explain_foreign(english + text + " " + english * 3) == ""
    assert explain_foreign(" ".join(FOREIGN[name]) + " " + english)


def test_code_is_distinguished_from_prose() -> None:
    assert is_code("x = 1\ny = 2\nprint(x + y)")
    assert is_code("Here:\n```\nls -l\n```")
    assert not is_code("Here is how you list the files:\n```\nls -l\n```")
    assert not is_code('{"city": "Oslo"}') or explain_unreadable('{"city": "Oslo"}') == ""
    assert explain_unreadable('{"antwort": "Das Wetter ist heute sehr schön."}')


def test_words_cannot_be_counted_where_they_are_not_parted() -> None:
    for name in ("Chinese", "Japanese", "Thai"):
        text = FOREIGN[name][0]
        assert is_unspaced(text)
        assert text_count(text, at_most=5).status == "skipped"
        assert text_count(text, of="sentences", exactly=1).status == "skipped"
        assert text_count(text, of="characters", at_least=5).passed is True
    assert text_count(FOREIGN["Russian"][0], at_least=5).passed is True


def test_a_word_is_found_where_words_are_not_parted() -> None:
    assert keywords("我的小猫最喜欢吃鱼", include=["小猫"]).passed is True
    assert keywords("我的猫最喜欢吃鱼", include=["猫"], whole_words=False).passed is True
    assert occurrences("猫，猫", text="猫", exactly=2).passed is True
    assert occurrences("고양이와 고양이가", text="고양이", exactly=2).passed is True
    assert starts_with("我的")("我的猫").passed is True
    assert keywords("concatenate", include=["cat"]).passed is False


def test_minilm_says_what_it_does_not_know(tmp_path: Path) -> None:
    assert MiniLM.languages == ("en",)
    tokenizer = WordPiece({"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "status": 3, ":": 4})
    assert tokenizer.unknown_words("Status: ✅") == ("✅",)
    assert tokenizer.token_ids("Status: ✅", 8) == tokenizer.token_ids("Status: ❌", 8)
