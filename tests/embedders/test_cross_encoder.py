"""The local cross-encoder with its real weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from proctor.errors import ModelError
from proctor.models.cross_encoder import MAX_PIECES, CrossEncoder, read_tensors

QUESTION = "How many people live in Berlin?"
ANSWER = "Berlin has a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers."
OTHER = "New York City is famous for the Metropolitan Museum of Art."


def test_an_answer_scores_high_and_another_text_low(cross_encoder: CrossEncoder) -> None:
    """The example on the page of the model; the published scores of the answer are 8.6 to 9.2 for its sizes."""
    answer, other = cross_encoder.scores([(QUESTION, ANSWER), (QUESTION, OTHER)])
    assert answer == pytest.approx(9.27, abs=0.05)
    assert other == pytest.approx(-11.19, abs=0.05)


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("What is the capital of France?", "Paris is the capital of France.", "I like bananas."),
        (
            "How do I reset my password?",
            "To reset your password, open the settings and choose a new one.",
            "The weather is nice.",
        ),
        ("Who wrote Hamlet?", "Hamlet was written by Shakespeare.", "Hamlet is a small village in Scotland."),
    ],
)
def test_zero_separates_answers_from_other_texts(
    cross_encoder: CrossEncoder, question: str, right: str, wrong: str
) -> None:
    right_score, wrong_score = cross_encoder.scores([(question, right), (question, wrong)])
    assert right_score > 0 > wrong_score


def test_scores_do_not_depend_on_the_batch(cross_encoder: CrossEncoder) -> None:
    pairs = [(QUESTION, ANSWER), ("", ""), (QUESTION, "word " * 700), ("word " * 300, OTHER), (QUESTION, OTHER)]
    together = cross_encoder.scores(pairs)
    alone = [cross_encoder.scores([pair])[0] for pair in pairs]
    assert together == pytest.approx(alone, abs=1e-3)


def test_the_start_of_a_long_passage_counts(cross_encoder: CrossEncoder) -> None:
    start = "word " * MAX_PIECES
    first, second = cross_encoder.scores([(QUESTION, start), (QUESTION, start + ANSWER)])
    assert first == pytest.approx(second, abs=1e-4)


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x3a\xff", b"\x3a\x02\x0a\x00"])
def test_another_file_is_not_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ModelError, match="it is not an ONNX file of a quantized BERT model"):
        CrossEncoder(tmp_path / "model.onnx").scores([(QUESTION, ANSWER)])


def test_a_file_without_a_graph_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\x08\x01")
    with pytest.raises(ModelError):
        read_tensors(tmp_path / "model.onnx", np)
