"""`local:ms-marco`: how well a passage answers a question, by a cross-encoder on this machine, with numpy only."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from proctor.core import optional as extras
from proctor.core.threads import compute
from proctor.errors import ModelError
from proctor.models import weights
from proctor.models.embedders.minilm import Bert, WordPiece
from proctor.models.protobuf import read_fields, read_varint

NAME = "ms-marco"
MAX_QUESTION_PIECES, MAX_PIECES = 128, 512
# Tokens in one batch: enough to be fast, and little memory.
BATCH_TOKENS = 2048
# Numbers of fields in ONNX messages.
_GRAPH = 7
_NODES, _TENSORS = 1, 5
_NODE_INPUT, _NODE_NAME, _NODE_TYPE = 1, 3, 4
_SHAPE, _TYPE, _FLOATS, _INTEGERS, _TENSOR_NAME, _CONTENT = 1, 2, 4, 5, 8, 9
_TYPES = {1: "<f4", 2: "u1", 3: "i1"}
_QUANTIZED, _SCALE, _ZERO_POINT = "_quantized", "_scale", "_zero_point"


class _Node(NamedTuple):
    name: str
    type: str
    inputs: list[str]


def read_tensors(path: Path, np: Any) -> dict[str, Any]:
    """Read the weights of a quantized BERT model as 32-bit numbers, with the names of published BERT models."""
    try:
        nodes, tensors = _read_graph(path.read_bytes(), np)
        return _name_tensors(nodes, tensors)
    except (IndexError, KeyError, ValueError, TypeError):
        raise ModelError("it is not an ONNX file of a quantized BERT model", where=str(path)) from None


def _read_graph(data: bytes, np: Any) -> tuple[list[_Node], dict[str, Any]]:
    (graph,) = (value for number, value in read_fields(memoryview(data)) if number == _GRAPH)
    nodes: list[_Node] = []
    tensors: dict[str, Any] = {}
    for number, message in read_fields(graph):  # type: ignore[arg-type]
        if number == _NODES:
            nodes.append(_read_node(message))
        elif number == _TENSORS:
            name, tensor = _read_tensor(message, np)
            tensors[name] = tensor
    return nodes, tensors


def _read_node(message: Any) -> _Node:
    fields = [(number, value) for number, value in read_fields(message) if number in (1, 3, 4)]
    texts = [(number, bytes(value).decode()) for number, value in fields]
    single = dict(texts)
    inputs = [text for number, text in texts if number == _NODE_INPUT]
    return _Node(single.get(_NODE_NAME, ""), single.get(_NODE_TYPE, ""), inputs)


def _read_tensor(message: Any, np: Any) -> tuple[str, Any]:
    fields: dict[int, Any] = {}
    shape: list[int] = []
    for number, value in read_fields(message):
        if number == _SHAPE:
            shape.extend([value] if isinstance(value, int) else _read_packed(value))
        else:
            fields[number] = value
    kind = np.dtype(_TYPES.get(fields[_TYPE], "V1"))
    if _CONTENT in fields:
        content = np.frombuffer(fields[_CONTENT], dtype=kind)
    elif _FLOATS in fields:
        content = np.frombuffer(fields[_FLOATS], dtype="<f4")
    else:
        stored = fields.get(_INTEGERS, b"")
        content = np.array([stored] if isinstance(stored, int) else _read_packed(stored), dtype=np.int64).astype(kind)
    return bytes(fields[_TENSOR_NAME]).decode(), content.reshape(shape)


def _read_packed(data: Any) -> list[int]:
    numbers, position = [], 0
    while position < len(data):
        number, position = read_varint(data, position)
        numbers.append(number)
    return numbers


def _name_tensors(nodes: Sequence[_Node], tensors: Mapping[str, Any]) -> dict[str, Any]:
    """Name the matrices, which have numbers in the file, by the nodes that use them."""
    named = {
        name.removeprefix("bert."): tensor
        for name, tensor in tensors.items()
        if name.startswith(("bert.", "classifier.")) and not name.endswith((_QUANTIZED, _SCALE, _ZERO_POINT))
    }
    for name in tensors:
        if name.startswith("bert.embeddings.") and name.endswith(_QUANTIZED):
            full = name.removesuffix(_QUANTIZED)
            named[full.removeprefix("bert.")] = _dequantize(full, tensors)
    for node in nodes:
        if node.type == "MatMulInteger":
            layer = node.name.strip("/").rpartition("/")[0].replace("/", ".").removeprefix("bert.")
            # ONNX stores matrices for multiplication from the right, BERT for multiplication from the left.
            named[f"{layer}.weight"] = _dequantize(node.inputs[1].removesuffix(_QUANTIZED), tensors).T
    if "classifier.weight" not in named:
        raise ValueError("not a classifier")
    return named


def _dequantize(name: str, tensors: Mapping[str, Any]) -> Any:
    quantized, zero = tensors[name + _QUANTIZED], tensors[name + _ZERO_POINT]
    return (quantized.astype("<f4") - zero.astype("<f4")) * tensors[name + _SCALE]


def connect() -> CrossEncoder:
    """Connect the local cross-encoder; run `proctor models pull ms-marco` first."""
    path = weights.path(NAME)
    extras.require("numpy", extra="local", why="the local cross-encoder")
    return CrossEncoder(path)


class CrossEncoder:
    """Scores pairs of a question and a passage by ms-marco-MiniLM-L-12-v2: above 0 if the passage answers it.

    `path` is the file of the weights, in the folder of the vocabulary; both are loaded on first use.
    """

    name = f"local:{NAME}"
    languages = ("en",)

    def __init__(self, path: Path) -> None:
        self._path = path
        # One computes at a time, to limit memory; the tokenizer needs no lock.
        self._compute_lock, self._load_lock = threading.Lock(), threading.Lock()
        self._loaded: tuple[WordPiece, Bert, Mapping[str, Any], Any] | None = None

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the score of each pair of a question and a passage."""
        scores: list[float] = await compute(self.scores, pairs)
        return scores

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        with self._compute_lock:
            tokenizer, *_ = self._load()
            tokens = [_join_pair(tokenizer, *pair) for pair in pairs]
            # Pairs of the same length share one matrix product in the attention.
            order = sorted(range(len(pairs)), key=lambda index: -len(tokens[index][0]))
            scores = [0.0] * len(pairs)
            while order:
                count = max(1, BATCH_TOKENS // len(tokens[order[0]][0]))
                batch, order = order[:count], order[count:]
                for index, score in zip(batch, self._score_batch([tokens[index] for index in batch]), strict=True):
                    scores[index] = score
            return scores

    def _score_batch(self, batch: Sequence[tuple[list[int], int]]) -> list[float]:
        _, model, tensors, np = self._load()
        pooled = np.tanh(model.first_states(batch) @ tensors["pooler.dense.weight"].T + tensors["pooler.dense.bias"])
        logits = pooled @ tensors["classifier.weight"].T + tensors["classifier.bias"]
        return [float(logit) for logit in logits[:, 0]]

    def _load(self) -> tuple[WordPiece, Bert, Mapping[str, Any], Any]:
        with self._load_lock:
            if self._loaded is None:
                np = extras.require("numpy", extra="local", why="the local cross-encoder")
                tensors = read_tensors(self._path, np)
                tokenizer = WordPiece.load(self._path.with_name("vocab.txt"))
                self._loaded = tokenizer, Bert(tensors, np), tensors, np
            return self._loaded


def _join_pair(tokenizer: WordPiece, question: str, passage: str) -> tuple[list[int], int]:
    """Return the tokens of a pair, and how many belong to the question."""
    first = tokenizer.token_ids(question, MAX_QUESTION_PIECES)
    return first + tokenizer.token_ids(passage, MAX_PIECES - len(first) + 1)[1:], len(first)
