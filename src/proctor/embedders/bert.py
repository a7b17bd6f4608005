"""A BERT encoder in numpy: the numbers of pieces go in, one vector for each text comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

HEADS = 12
EPSILON = 1e-12
# So many rows at a time stay in the processor's cache while one function after another is applied.
ROWS = 64
# Padded places get no attention.
NEVER = -1e9


class _Layer(NamedTuple):
    """The numbers of one layer; matrices stand ready to be multiplied from the right."""

    attend: tuple[Any, Any]
    attended: tuple[Any, Any]
    attended_norm: tuple[Any, Any]
    widen: tuple[Any, Any]
    narrow: tuple[Any, Any]
    norm: tuple[Any, Any]


class Bert:
    """An encoder whose vectors are means over the pieces, of length 1.

    `tensors` are named as in published BERT models; `np` is numpy.
    """

    def __init__(self, tensors: Mapping[str, Any], np: Any) -> None:
        self._np = np
        self._words = tensors["embeddings.word_embeddings.weight"]
        kind = tensors["embeddings.token_type_embeddings.weight"][0]
        self._positions = tensors["embeddings.position_embeddings.weight"] + kind
        self._norm = _pair(tensors, "embeddings.LayerNorm")
        count = 0
        self._layers: list[_Layer] = []
        while f"encoder.layer.{count}.output.dense.weight" in tensors:
            self._layers.append(_layer(tensors, f"encoder.layer.{count}.", np))
            count += 1

    def vectors(self, batch: Sequence[Sequence[int]]) -> Any:
        """One row for each text; texts of about the same length waste the least."""
        np = self._np
        width = max(map(len, batch))
        numbers = np.zeros((len(batch), width), dtype=np.int64)
        there = np.zeros((len(batch), width), dtype=np.float32)
        for row, pieces in enumerate(batch):
            numbers[row, : len(pieces)] = pieces
            there[row, : len(pieces)] = 1.0
        state = self._normed(self._words[numbers] + self._positions[:width], self._norm)
        hidden = ((1.0 - there) * np.float32(NEVER))[:, None, None, :]
        for layer in self._layers:
            state = self._through(layer, state, hidden)
        means = (state * there[:, :, None]).sum(axis=1) / there.sum(axis=1)[:, None]
        return means / np.linalg.norm(means, axis=1, keepdims=True)

    def _through(self, layer: _Layer, state: Any, hidden: Any) -> Any:
        seen = _times(self._attention(layer, state, hidden), layer.attended)
        state = self._normed(state + seen, layer.attended_norm)
        wide = self._gelu(_times(state, layer.widen))
        return self._normed(state + _times(wide, layer.narrow), layer.norm)

    def _attention(self, layer: _Layer, state: Any, hidden: Any) -> Any:
        """What every piece takes from every other, in each of the heads."""
        np = self._np
        texts, width, size = state.shape
        heads = _times(state, layer.attend).reshape(texts, width, 3, HEADS, size // HEADS)
        query, key, value = heads.transpose(2, 0, 3, 1, 4)
        weights = query @ key.swapaxes(-1, -2) + hidden
        weights -= weights.max(axis=-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(axis=-1, keepdims=True)
        return (weights @ value).transpose(0, 2, 1, 3).reshape(texts, width, size)

    def _normed(self, state: Any, norm: tuple[Any, Any]) -> Any:
        state -= state.mean(axis=-1, keepdims=True)
        spread = self._np.einsum("...i,...i->...", state, state)[..., None] / state.shape[-1]
        state /= self._np.sqrt(spread + EPSILON)
        state *= norm[0]
        state += norm[1]
        return state

    def _gelu(self, state: Any) -> Any:
        """x times the share of a normal distribution below x, in place.

        The error function is Abramowitz and Stegun's 7.1.26, true to 1.5e-7: what 32 bits hold.
        """
        np = self._np
        rows = state.reshape(-1, state.shape[-1])
        for first in range(0, len(rows), ROWS):
            x = rows[first : first + ROWS]
            z = np.abs(x) * np.float32(0.7071067811865476)
            t = 1.0 / (1.0 + np.float32(0.3275911) * z)
            tail = np.float32(1.061405429) * t
            for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
                tail += np.float32(term)
                tail *= t
            np.multiply(z, z, out=z)
            tail *= np.exp(-z, out=z)
            # Half of the tail is the share above |x|.
            x *= np.where(x >= 0, 1.0 - 0.5 * tail, 0.5 * tail)
        return state


def _layer(tensors: Mapping[str, Any], where: str, np: Any) -> _Layer:
    names = [f"{where}attention.self.{part}" for part in ("query", "key", "value")]
    attend = np.concatenate([tensors[f"{name}.weight"] for name in names]).T.copy()
    shift = np.concatenate([tensors[f"{name}.bias"] for name in names])
    # Attention divides by the root of a head's size; dividing the queries comes to the same.
    size = attend.shape[0]
    root = np.float32((size // HEADS) ** 0.5)
    attend[:, :size] /= root
    shift[:size] /= root
    return _Layer(
        (attend, shift),
        _turned(tensors, f"{where}attention.output.dense"),
        _pair(tensors, f"{where}attention.output.LayerNorm"),
        _turned(tensors, f"{where}intermediate.dense"),
        _turned(tensors, f"{where}output.dense"),
        _pair(tensors, f"{where}output.LayerNorm"),
    )


def _pair(tensors: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    return tensors[f"{name}.weight"], tensors[f"{name}.bias"]


def _turned(tensors: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    weight, bias = _pair(tensors, name)
    return weight.T.copy(), bias


def _times(state: Any, matrix: tuple[Any, Any]) -> Any:
    """All texts in one product: that is what the processor is quickest at."""
    flat = state.reshape(-1, state.shape[-1]) @ matrix[0]
    flat += matrix[1]
    return flat.reshape(*state.shape[:-1], -1)
