"""Generate the word data of toxicity and bias from the wheels that publish it.

Usage: python tools/toxicity_words.py alt_profanity_check-….whl vaderSentiment-….whl

The wheels are read as data: nothing of them is installed, imported or run. The linear model is in
pickles; of what they name, only numbers, texts, lists and mappings are built, and every class is
an empty stand-in. The sha256 of both wheels is printed for the NOTICE files next to the data.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
import sys
import zipfile
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

EVALUATORS = Path(__file__).parent.parent / "src/proctor/evaluators"
NUMBERS = {
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy._core.multiarray", "scalar"): lambda dtype, raw: np.frombuffer(raw, dtype)[0],
}


class Empty:
    """A stand-in for every class: it stores its state and does nothing."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        vars(self).update(state if isinstance(state, dict) else {"state": state})


class Reader(pickle._Unpickler):
    """Reads a pickle in which arrays follow their description as raw bytes."""

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]

    def __init__(self, content: bytes) -> None:
        self.content = io.BytesIO(content)
        super().__init__(self.content)

    def find_class(self, module: str, name: str) -> Any:
        return NUMBERS.get((module, name)) or type(name, (Empty,), {})

    def load_build(self) -> None:
        pickle._Unpickler.load_build(self)  # type: ignore[attr-defined]
        top = self.stack[-1]
        if type(top).__name__ == "NumpyArrayWrapper":
            self.stack[-1] = self._array(top)

    def _array(self, header: Any) -> Any:
        if header.dtype.hasobject:
            raise SystemExit("an array of objects is not read")
        if getattr(header, "numpy_array_alignment_bytes", None):
            self.content.read(self.content.read(1)[0])
        size = int(np.prod(header.shape, dtype=int)) * header.dtype.itemsize
        return np.frombuffer(self.content.read(size), header.dtype).reshape(header.shape)

    dispatch[pickle.BUILD[0]] = load_build


def main(linear: Path, valence: Path) -> None:
    words = model_of(zipfile.ZipFile(linear))
    _write(EVALUATORS / "toxicity/words.json", words)
    _write(EVALUATORS / "bias/valence.json", valence_of(zipfile.ZipFile(valence)))
    for wheel in (linear, valence):
        print(hashlib.sha256(wheel.read_bytes()).hexdigest(), wheel.name)


def model_of(wheel: zipfile.ZipFile) -> dict[str, Any]:
    """Return the vocabulary, and the means of the calibrated linear models that were fitted to it."""
    model = Reader(wheel.read("profanity_check/data/model.joblib")).load()
    vectors = Reader(wheel.read("profanity_check/data/vectorizer.joblib")).load()
    fits = model.calibrated_classifiers_
    weights = np.mean([fit.estimator.coef_[0] for fit in fits], axis=0)
    idf = np.asarray(_idf(vectors))
    sigmoids = [fit.calibrators[0] for fit in fits]
    return {
        "intercept": round(float(np.mean([fit.estimator.intercept_[0] for fit in fits])), 4),
        "slope": round(-float(np.mean([sigmoid.a_ for sigmoid in sigmoids])), 4),
        "offset": round(-float(np.mean([sigmoid.b_ for sigmoid in sigmoids])), 4),
        "words": {
            word: [round(float(idf[place]), 3), round(float(weights[place]), 3)]
            for word, place in sorted(vectors.vocabulary_.items())
        },
    }


def _idf(vectors: Any) -> Any:
    inner = vectors._tfidf
    return inner.idf_ if hasattr(inner, "idf_") else inner._idf_diag.data


def valence_of(wheel: zipfile.ZipFile) -> dict[str, float]:
    """Return words with their ratings by people, from -4 to 4."""
    lines = wheel.read("vaderSentiment/vader_lexicon.txt").decode().splitlines()
    rated = (line.split("\t") for line in lines)
    return {word: float(value) for word, value, *_ in rated if re.fullmatch("[a-z]{2,}(-[a-z]+)*", word)}


def _write(path: Path, data: dict[str, Any]) -> None:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # One word a line, so that a change can be read.
    path.write_text(re.sub(r'(?<=[]0-9]),(?=")', ",\n", text) + "\n", encoding="utf-8")
    print(f"{path.stat().st_size:,} bytes, {len(data.get('words', data)):,} words: {path.name}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
