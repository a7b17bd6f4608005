"""The encoder against the same sums written out in plain Python, number by number."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from proctor.models.embedders.minilm import HEADS, Bert

np = pytest.importorskip("numpy")

SIZE, WIDE, WORDS, LAYERS = 24, 40, 11, 2
Rows = list[list[float]]


def numbers(seed: int) -> dict[str, Any]:
    """A small model with random weights."""
    chance = random.Random(seed)

    def made(*shape: int) -> Any:
        flat = [chance.gauss(0, 0.5) for _ in range(math.prod(shape))]
        return np.array(flat, dtype=np.float32).reshape(shape)

    found = {
        "embeddings.word_embeddings.weight": made(WORDS, SIZE),
        "embeddings.position_embeddings.weight": made(16, SIZE),
        "embeddings.token_type_embeddings.weight": made(2, SIZE),
    }
    shapes = {"attention.output.dense": (SIZE, SIZE), "intermediate.dense": (WIDE, SIZE), "output.dense": (SIZE, WIDE)}
    shapes |= {f"attention.self.{part}": (SIZE, SIZE) for part in ("query", "key", "value")}
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        where = f"encoder.layer.{layer}."
        norms += [f"{where}attention.output.LayerNorm", f"{where}output.LayerNorm"]
        for name, shape in shapes.items():
            found[f"{where}{name}.weight"] = made(*shape)
            found[f"{where}{name}.bias"] = made(shape[0])
    for norm in norms:
        found[f"{norm}.weight"], found[f"{norm}.bias"] = made(SIZE), made(SIZE)
    return found


class Plain:
    """The encoder as the paper has it, in loops."""

    def __init__(self, tensors: dict[str, Any]) -> None:
        self.tensors = {name: tensor.tolist() for name, tensor in tensors.items()}

    def vector(self, pieces: list[int]) -> list[float]:
        word, place, kind = (
            self.tensors[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        rows = [
            [a + b + c for a, b, c in zip(word[piece], place[i], kind[0], strict=True)]
            for i, piece in enumerate(pieces)
        ]
        rows = self.norm(rows, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            rows = self.layer(rows, f"encoder.layer.{layer}.")
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        length = math.sqrt(sum(x * x for x in means))
        return [x / length for x in means]

    def layer(self, rows: Rows, where: str) -> Rows:
        seen = self.dense(self.attention(rows, where), f"{where}attention.output.dense")
        rows = self.norm(added(rows, seen), f"{where}attention.output.LayerNorm")
        wide = [
            [0.5 * x * (1 + math.erf(x / math.sqrt(2))) for x in row]
            for row in self.dense(rows, f"{where}intermediate.dense")
        ]
        narrow = self.dense(wide, f"{where}output.dense")
        return self.norm(added(rows, narrow), f"{where}output.LayerNorm")

    def attention(self, rows: Rows, where: str) -> Rows:
        query, key, value = (self.dense(rows, f"{where}attention.self.{part}") for part in ("query", "key", "value"))
        width = SIZE // HEADS
        found: Rows = [[] for _ in rows]
        for head in range(HEADS):
            part = slice(head * width, (head + 1) * width)
            for i, asking in enumerate(query):
                dots = [dot(asking[part], one[part]) / math.sqrt(width) for one in key]
                shares = [math.exp(x - max(dots)) for x in dots]
                found[i] += [
                    sum(s * one[part][j] for s, one in zip(shares, value, strict=True)) / sum(shares)
                    for j in range(width)
                ]
        return found

    def dense(self, rows: Rows, name: str) -> Rows:
        weight, bias = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        return [[dot(row, line) + shift for line, shift in zip(weight, bias, strict=True)] for row in rows]

    def norm(self, rows: Rows, name: str) -> Rows:
        weight, bias = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        found = []
        for row in rows:
            mean = sum(row) / len(row)
            spread = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row) + 1e-12)
            found.append([(x - mean) / spread * w + b for x, w, b in zip(row, weight, bias, strict=True)])
        return found


def dot(left: list[float], right: list[float]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def added(left: Rows, right: Rows) -> Rows:
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(left, right, strict=True)]


@pytest.mark.parametrize("seed", range(5))
def test_the_encoder_computes_what_the_loops_compute(seed: int) -> None:
    tensors = numbers(seed)
    chance = random.Random(seed)
    batch = [[chance.randrange(WORDS) for _ in range(length)] for length in (9, 2, 5, 1)]
    found = Bert(tensors, np).vectors(batch)
    plain = Plain(tensors)
    for row, pieces in zip(found.tolist(), batch, strict=True):
        assert row == pytest.approx(plain.vector(pieces), abs=2e-5)


def test_a_text_has_the_same_vector_whatever_it_is_batched_with() -> None:
    """To the precision of 32 bits."""
    model = Bert(numbers(7), np)
    alone = model.vectors([[3, 1, 4]])[0]
    among = model.vectors([[3, 1, 4], [1] * 16, [5]])[0]
    assert np.abs(alone - among).max() < 1e-5
