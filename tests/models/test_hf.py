"""`hf:` models: embedders, classifiers, NLI models and cross-encoders in ONNX format."""

from __future__ import annotations

import asyncio
import hashlib
import http.server
import json
import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import ModelError
from proctor.models import connect, hf
from tests.models.tiny_models import save_model


def embed(address: str, *texts: str) -> list[list[float]]:
    vectors = asyncio.run(connect.embedder(address).embed(texts))
    return [[round(float(number), 6) for number in vector] for vector in vectors]


def test_an_embedder_returns_the_normalized_mean_of_the_tokens(tmp_path: Path) -> None:
    """[CLS] good cat [SEP] has the sum (1, 1), so its direction is (√½, √½)."""
    folder = save_model(tmp_path / "m")
    half = round(math.sqrt(0.5), 6)
    assert embed(f"hf:{folder}", "good cat", "bad", "") == [[half, half], [-1.0, 0.0], [0.0, 0.0]]


def test_an_embedder_uses_the_first_token_if_its_pooling_says_so(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", file="onnx/model.onnx")
    (folder / "1_Pooling").mkdir()
    pooling = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling/config.json").write_text(json.dumps(pooling))
    assert embed(f"hf:{folder}", "good") == [[0.0, 0.0]]


def test_the_name_of_a_local_model_contains_a_hash_of_its_weights(tmp_path: Path) -> None:
    """Other weights in the same folder are another embedder, with other vectors."""
    folder = save_model(tmp_path / "m")
    name = connect.embedder(f"hf:{folder}").name
    assert name == f"hf:m@{hashlib.sha256((folder / 'model.onnx').read_bytes()).hexdigest()[:12]}"
    save_model(folder, weights=[[1.0], [0.0]])
    assert connect.embedder(f"hf:{folder}").name != name


def test_a_classifier_returns_the_probability_of_each_label(tmp_path: Path) -> None:
    """The logits of "good good" are (2, 0): softmax gives e²/(e² + 1)."""
    config = {"id2label": {"0": "fine", "1": "toxic"}}
    folder = save_model(tmp_path / "m", weights=[[1, 0], [0, 1]], config=config)
    (scores,) = asyncio.run(hf.classifier(f"hf:{folder}").classify(["good good"]))
    expected = math.exp(2) / (math.exp(2) + 1)
    assert scores == pytest.approx({"fine": expected, "toxic": 1 - expected})


def test_the_labels_of_a_multi_label_classifier_are_independent(tmp_path: Path) -> None:
    config = {"id2label": {"0": "insult", "1": "threat"}, "problem_type": "multi_label_classification"}
    folder = save_model(tmp_path / "m", weights=[[1, 0], [0, 1]], config=config)
    (scores,) = asyncio.run(hf.classifier(f"hf:{folder}").classify(["bad car"]))
    assert scores == pytest.approx({"insult": 1 / (1 + math.e), "threat": 1 / (1 + math.e)})


def test_an_nli_model_classifies_pairs(tmp_path: Path) -> None:
    config = {"id2label": {"0": "contradiction", "1": "entailment"}}
    folder = save_model(tmp_path / "m", weights=[[-1, 1], [0, 0]], config=config)
    texts = [("good", "good"), ("bad", "bad")]
    first, second = asyncio.run(hf.classifier(f"hf:{folder}").classify(texts))
    assert first["entailment"] > 0.9 > 0.1 > second["entailment"]


def test_a_cross_encoder_returns_the_logit_of_each_pair(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "m", weights=[[3], [1]], config={"id2label": {"0": "LABEL_0"}})
    scores = asyncio.run(hf.cross_encoder(f"hf:{folder}").score([("good", "cat"), ("bad", "car"), ("dog", "dog")]))
    assert scores == [4.0, -4.0, 1.0]


def test_a_classifier_is_no_cross_encoder(tmp_path: Path) -> None:
    config = {"id2label": {"0": "a", "1": "b"}}
    folder = save_model(tmp_path / "m", weights=[[1, 0], [0, 1]], config=config)
    with pytest.raises(ModelError, match="not a cross-encoder: it has the labels a, b"):
        hf.cross_encoder(f"hf:{folder}")
    with pytest.raises(ModelError, match="not an embedder: its outputs are logits"):
        embed(f"hf:{folder}", "good")


def test_texts_of_any_number_and_length_keep_their_order(tmp_path: Path) -> None:
    """Texts are sorted by length for the computation, and longer ones are truncated."""
    folder = save_model(tmp_path / "m")
    texts = ["bad", "good " * 100, "cat", "", "dog car", *["good"] * 500]
    expected = [[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, -1.0], *[[1.0, 0.0]] * 500]
    assert embed(f"hf:{folder}", *texts) == expected


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("hf:./missing", "no folder and no model of the Hugging Face Hub"),
        ("hf:", "no folder and no model"),
        ("hf:just-a-name", "no folder and no model"),
    ],
)
def test_an_address_that_names_nothing_has_a_fix(address: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        connect.embedder(address)
    assert "hf:owner/name" in (caught.value.fix or "")


def test_a_folder_without_onnx_files_says_how_to_export_them(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the model has no ONNX file") as caught:
        connect.embedder(f"hf:{tmp_path}")
    assert "optimum-cli export onnx" in (caught.value.fix or "")


def _git_hash(path: Path) -> str:
    data = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class _Hub(http.server.BaseHTTPRequestHandler):
    """The requests of a download: the commit of a model, the list of its files, and each file."""

    folder: Path
    commit = "0123456789abcdef0123456789abcdef01234567"
    requests: list[str]

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _answer(self, *, with_body: bool) -> None:
        self.requests.append(self.path)
        files = {str(path.relative_to(self.folder)): path for path in self.folder.rglob("*") if path.is_file()}
        parts = self.path.partition("?")[0].strip("/").split("/")
        headers: dict[str, str] = {}
        if parts[:5] == ["api", "models", "owner", "tiny", "tree"]:
            listed = [
                {"type": "file", "path": name, "size": path.stat().st_size, "oid": _git_hash(path)}
                for name, path in files.items()
            ]
            body = json.dumps(listed).encode()
        elif parts[:4] == ["api", "models", "owner", "tiny"]:
            siblings = [{"rfilename": name} for name in files]
            body = json.dumps({"id": "owner/tiny", "sha": self.commit, "siblings": siblings}).encode()
        elif parts[:3] == ["owner", "tiny", "resolve"] and "/".join(parts[4:]) in files:
            body = files["/".join(parts[4:])].read_bytes()
            headers = {"ETag": f'"{_git_hash(files["/".join(parts[4:])])}"', "X-Repo-Commit": self.commit}
        else:
            self.send_error(404)
            return
        self.send_response(200)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.wfile.write(body)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Hub]]:
    """A hub on this machine with the model owner/tiny."""
    constants = pytest.importorskip("huggingface_hub.constants", reason="the extra hf is not installed")
    handler = type("Hub", (_Hub,), {"folder": save_model(tmp_path / "hub"), "requests": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    yield handler
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_model_is_downloaded_once_and_named_by_its_commit(hub: type[_Hub]) -> None:
    (hub.folder / "README.md").write_text("Not needed to run the model.")
    folder, name = hf.find_folder("hf:owner/tiny")
    assert name == "hf:owner/tiny@0123456789ab"
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.onnx", "tokenizer.json"]
    assert embed("hf:owner/tiny", "bad") == [[-1.0, 0.0]]
    assert sum(request.endswith("model.onnx") for request in hub.requests if "resolve" in request) <= 2


def test_a_model_that_the_hub_does_not_have_is_an_error(hub: type[_Hub]) -> None:
    with pytest.raises(ModelError, match="the model cannot be downloaded") as caught:
        hf.find_folder("hf:owner/unknown")
    assert "hf:./folder" in (caught.value.fix or "")
