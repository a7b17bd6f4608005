"""`hf:` models in ONNX format, from the Hugging Face Hub or a local folder.

`hf:owner/name` (with `@revision` for a fixed version) is downloaded once; `hf:./folder` is read as it is. Embedders,
cross-encoders, NLI models and text classifiers need `model.onnx`, `config.json` and `tokenizer.json`.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

from proctor.core import optional as extras
from proctor.core.threads import compute, run_in_thread
from proctor.errors import ModelError
from proctor.models.embedding_cache import LOCAL_BATCH_CHARACTERS, CachedEmbedder, shared_embedder

SCHEME = "hf:"
ONNX_FILES = ("onnx/model.onnx", "model.onnx", "onnx/model_quantized.onnx", "model_quantized.onnx")
CONFIG, TOKENIZER, POOLING, MODULES = "config.json", "tokenizer.json", "1_Pooling/config.json", "modules.json"
DOWNLOADED_FILES = (*ONNX_FILES, "onnx/model.onnx_data", "model.onnx_data", CONFIG, TOKENIZER, POOLING, MODULES)
DEFAULT_MAX_TOKENS = 512
# Tokens in one batch: enough to be fast, and little memory.
BATCH_TOKENS = 4096
_REPOSITORY = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
# The modules of sentence-transformers that the embedder can apply.
_KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")

Text = str | tuple[str, str]
LabelScores = dict[str, float]


class ModelConfig(msgspec.Struct, frozen=True):
    """The part of a model's `config.json` that is used here."""

    id2label: dict[str, str] = {}
    problem_type: str | None = None
    max_position_embeddings: int | None = None

    @property
    def labels(self) -> list[str]:
        return [self.id2label[key] for key in sorted(self.id2label, key=int)]


class _Pooling(msgspec.Struct, frozen=True):
    pooling_mode_cls_token: bool = False
    pooling_mode_mean_tokens: bool = True


class _Module(msgspec.Struct, frozen=True):
    type: str


def is_hf_address(model: Any) -> TypeGuard[str]:
    """True for a string that starts with `hf:`."""
    return isinstance(model, str) and model.startswith(SCHEME)


class OnnxModel:
    """A transformer with its tokenizer; both are loaded on first use.

    `name` identifies the weights: the address, and the revision or a hash of the file.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self.name = folder, name
        self.config = _read_json(folder / CONFIG, ModelConfig)
        self._path = _find_onnx_file(folder, name)
        self._lock = threading.Lock()

    @functools.cached_property
    def _session(self) -> Any:
        runtime = extras.require("onnxruntime", extra="hf", why=f"the model {self.name}")
        options = runtime.SessionOptions()
        # Errors are raised; warnings about the format help nobody.
        options.log_severity_level = 3
        try:
            return runtime.InferenceSession(str(self._path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise ModelError(f"the model cannot be loaded: {error}", where=str(self._path)) from None

    @functools.cached_property
    def _tokenizer(self) -> Any:
        tokenizers = extras.require("tokenizers", extra="hf", why=f"the model {self.name}")
        path = self._folder / TOKENIZER
        if not path.is_file():
            raise ModelError(f"the folder has no {TOKENIZER}", where=self.name, fix=_EXPORT_FIX)
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
        tokenizer.enable_truncation(max_length=self.max_tokens)
        tokenizer.no_padding()
        return tokenizer

    @property
    def max_tokens(self) -> int:
        positions = self.config.max_position_embeddings or DEFAULT_MAX_TOKENS
        return min(positions, DEFAULT_MAX_TOKENS)

    def run(self, texts: Sequence[Text]) -> list[tuple[dict[str, Any], Any]]:
        """Return the outputs of the model for each text or pair of texts, and the mask of its tokens."""
        np = extras.require("numpy", extra="hf", why=f"the model {self.name}")
        with self._lock:
            encodings = self._tokenizer.encode_batch(list(texts))
            # Batches of similar length need little padding.
            order = sorted(range(len(texts)), key=lambda index: -len(encodings[index].ids))
            results: list[Any] = [None] * len(texts)
            while order:
                count = max(1, BATCH_TOKENS // max(1, len(encodings[order[0]].ids)))
                batch, order = order[:count], order[count:]
                outputs, mask = self._run_batch([encodings[index] for index in batch], np)
                for row, index in enumerate(batch):
                    results[index] = {name: values[row] for name, values in outputs.items()}, mask[row]
            return results

    def _run_batch(self, encodings: Sequence[Any], np: Any) -> tuple[dict[str, Any], Any]:
        width = max(1, *(len(encoding.ids) for encoding in encodings))
        columns = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
        inputs = {name: np.zeros((len(encodings), width), dtype=np.int64) for name in columns}
        for row, encoding in enumerate(encodings):
            for name, attribute in columns.items():
                values = getattr(encoding, attribute)
                inputs[name][row, : len(values)] = values
        input_names = {node.name for node in self._session.get_inputs()}
        unknown = input_names - inputs.keys()
        if unknown:
            raise ModelError(f"the model needs inputs that are not text: {', '.join(sorted(unknown))}", where=self.name)
        names = [node.name for node in self._session.get_outputs()]
        values = self._session.run(names, {name: inputs[name] for name in input_names})
        return dict(zip(names, values, strict=True)), inputs["attention_mask"]


class HfEmbedder:
    """Sentence embeddings of a Hugging Face model, normalized to length 1."""

    method = "embeddings"

    def __init__(self, model: OnnxModel, pooling: _Pooling) -> None:
        self.name = model.name
        self._model, self._pooling = model, pooling

    async def embed(self, texts: Sequence[str]) -> list[Sequence[float]]:
        vectors: list[Sequence[float]] = await run_in_thread(self.vectors, texts)
        return vectors

    def vectors(self, texts: Sequence[str]) -> list[Sequence[float]]:
        return [self._pool(outputs, mask) for outputs, mask in self._model.run(texts)]

    def _pool(self, outputs: dict[str, Any], mask: Any) -> Any:
        vector = outputs.get("sentence_embedding")
        if vector is None:
            states = outputs.get("last_hidden_state", outputs.get("token_embeddings"))
            if states is None:
                listed = ", ".join(outputs)
                raise ModelError(f"the model is not an embedder: its outputs are {listed}", where=self.name)
            weights = mask[: len(states)].astype(states.dtype)
            is_first = self._pooling.pooling_mode_cls_token
            vector = states[0] if is_first else weights @ states / max(1, weights.sum())
        return vector / (math.sqrt(float(vector @ vector)) or 1.0)


class HfClassifier:
    """A text classifier: the probability of each label for a text, or for a pair of texts (NLI)."""

    def __init__(self, model: OnnxModel) -> None:
        self.name = model.name
        self._model = model
        self.labels = model.config.labels

    async def classify(self, texts: Sequence[Text]) -> list[LabelScores]:
        """Return the probability of each label."""
        scores: list[LabelScores] = await compute(self.classify_all, texts)
        return scores

    def classify_all(self, texts: Sequence[Text]) -> list[LabelScores]:
        return [self._to_probabilities(self._logits(outputs)) for outputs, _ in self._model.run(texts)]

    def _logits(self, outputs: dict[str, Any]) -> list[float]:
        logits = outputs.get("logits")
        if logits is None or len(logits) != len(self.labels):
            description = (
                ", ".join(outputs) if logits is None else f"{len(logits)} logits for {len(self.labels)} labels"
            )
            raise ModelError(f"the model is not a classifier: its outputs are {description}", where=self.name)
        return [float(logit) for logit in logits]

    def _to_probabilities(self, logits: list[float]) -> LabelScores:
        if self._model.config.problem_type == "multi_label_classification" or len(logits) == 1:
            return dict(zip(self.labels, map(_sigmoid, logits), strict=True))
        highest = max(logits)
        weights = [math.exp(logit - highest) for logit in logits]
        return {label: weight / sum(weights) for label, weight in zip(self.labels, weights, strict=True)}


class HfCrossEncoder:
    """Scores how well the second text of a pair answers the first: above 0 if it does."""

    def __init__(self, model: OnnxModel) -> None:
        if len(model.config.labels) > 1:
            listed = ", ".join(model.config.labels)
            raise ModelError(f"the model is not a cross-encoder: it has the labels {listed}", where=model.name)
        self.name = model.name
        self._model = model

    async def score(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the score of each pair of a question and a passage."""
        scores: list[float] = await compute(self.scores, pairs)
        return scores

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        return [float(outputs["logits"][0]) for outputs, _ in self._model.run(pairs)]


def connect(address: str) -> CachedEmbedder:
    """Connect an embedder: `hf:owner/name`, `hf:owner/name@revision` or `hf:./folder`."""
    folder, name = find_folder(address)
    modules = _read_json(folder / MODULES, list[_Module]) if (folder / MODULES).is_file() else []
    unknown = [module.type for module in modules if module.type.rpartition(".")[2] not in _KNOWN_MODULES]
    if unknown:
        fix = "load the model with sentence-transformers, and pass the object as embedder"
        raise ModelError(f"the model needs the modules {', '.join(unknown)}", where=name, fix=fix)
    pooling = _read_json(folder / POOLING, _Pooling) if (folder / POOLING).is_file() else _Pooling()
    return shared_embedder(
        ("hf", name),
        lambda: CachedEmbedder(HfEmbedder(OnnxModel(folder, name), pooling), batch_characters=LOCAL_BATCH_CHARACTERS),
    )


def classifier(address: str) -> HfClassifier:
    """Connect a text classifier or an NLI model."""
    return HfClassifier(_load(address))


def cross_encoder(address: str) -> HfCrossEncoder:
    """Connect a cross-encoder."""
    return HfCrossEncoder(_load(address))


@functools.lru_cache(maxsize=8)
def _load(address: str) -> OnnxModel:
    return OnnxModel(*find_folder(address))


def find_folder(address: str) -> tuple[Path, str]:
    """Return the folder of a model, and the name of its exact version; download the model if necessary."""
    location = address.removeprefix(SCHEME)
    folder = Path(location).expanduser()
    if location and folder.is_dir():
        digest = hashlib.sha256(_find_onnx_file(folder, address).read_bytes()).hexdigest()[:12]
        return folder, f"{SCHEME}{folder.name}@{digest}"
    match = _REPOSITORY.fullmatch(location)
    if match is None or location.startswith((".", "/", "~")):
        raise ModelError(
            f"no folder and no model of the Hugging Face Hub: {location!r}",
            where=address,
            fix="write hf:owner/name, hf:owner/name@revision or hf:./folder",
        )
    return _download(match["name"], match["revision"], address)


def _download(repository: str, revision: str | None, address: str) -> tuple[Path, str]:
    hub = extras.require("huggingface_hub", extra="hf", why=f"the model {address}")
    try:
        path = Path(hub.snapshot_download(repository, revision=revision, allow_patterns=list(DOWNLOADED_FILES)))
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelError(
            f"the model cannot be downloaded: {reason}",
            where=address,
            fix="check the name, the network and HF_TOKEN, or download the model and write hf:./folder",
        ) from None
    # The folder of a snapshot has the name of its commit.
    return path, f"{SCHEME}{repository}@{path.name[:12]}"


_EXPORT_FIX = "choose a model that has ONNX files, or export it: optimum-cli export onnx --model NAME FOLDER"


def _find_onnx_file(folder: Path, name: str) -> Path:
    for file in ONNX_FILES:
        if (folder / file).is_file():
            return folder / file
    raise ModelError(f"the model has no ONNX file (looked for {', '.join(ONNX_FILES)})", where=name, fix=_EXPORT_FIX)


def _read_json(path: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError:
        raise ModelError(f"file not found: {path}", fix=_EXPORT_FIX) from None
    except msgspec.DecodeError as error:
        raise ModelError(f"the file cannot be read: {error}", where=str(path)) from None


def _sigmoid(value: float) -> float:
    return 1.0 / (1.0 + math.exp(-value)) if value >= 0 else math.exp(value) / (1.0 + math.exp(value))
