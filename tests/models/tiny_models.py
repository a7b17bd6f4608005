"""Tiny models in ONNX format, made and saved by the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the extra hf is not installed")
onnx = pytest.importorskip("onnx", reason="the package onnx makes the models of these tests")
tokenizers = pytest.importorskip("tokenizers", reason="the extra hf is not installed")
pytest.importorskip("onnxruntime", reason="the extra hf is not installed")

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "good", "bad", "cat", "dog", "car")
# The vector of each word; the marks have zeros, so that a mean over tokens is easy to work out.
VECTORS = np.array([[0, 0], [0, 0], [0, 0], [0, 0], [1, 0], [-1, 0], [0, 1], [0, 0.5], [0, -1]], dtype=np.float32)


def save_model(folder: Path, *, weights: Any = None, file: str = "model.onnx", config: Mapping[str, Any] = {}) -> Path:
    """Save a model that looks up a vector per token; with `weights`, it multiplies their sum to logits."""
    helper, types = onnx.helper, onnx.TensorProto
    inputs = [
        helper.make_tensor_value_info(name, types.INT64, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])]
    tensors = [onnx.numpy_helper.from_array(VECTORS, "table")]
    if weights is None:
        outputs = [helper.make_tensor_value_info("last_hidden_state", types.FLOAT, ["batch", "tokens", 2])]
    else:
        matrix = np.array(weights, dtype=np.float32)
        tensors += [onnx.numpy_helper.from_array(np.array([1], dtype=np.int64), "axes")]
        tensors += [onnx.numpy_helper.from_array(matrix, "weights")]
        nodes += [helper.make_node("ReduceSum", ["last_hidden_state", "axes"], ["sum"], keepdims=0)]
        nodes += [helper.make_node("MatMul", ["sum", "weights"], ["logits"])]
        outputs = [helper.make_tensor_value_info("logits", types.FLOAT, ["batch", matrix.shape[1]])]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path)
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 16, **config}))
    save_tokenizer(folder / "tokenizer.json")
    return folder


def save_tokenizer(path: Path) -> None:
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(path))
