"""Choose the embedder of each pair of texts by their language."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Any

from proctor.evaluators.embeddings import LEXICAL, TextEmbedder
from proctor.evaluators.language import JUDGE_HINT
from proctor.evaluators.readable_languages import ENGLISH, identify_language
from proctor.models import weights
from proctor.models.embedders.multilingual import Multilingual

MULTILINGUAL = Multilingual.name
PULL_MULTILINGUAL = "run proctor models pull multilingual"


class EmbedderChoice:
    """The named embedder, or a local one by language: `local:minilm` for English, `local:multilingual` for others."""

    def __init__(self, embedder: Any, evaluator: str) -> None:
        self._is_named, self._evaluator = embedder is not None, evaluator
        self._multilingual: TextEmbedder | None = None
        self.default = TextEmbedder(embedder, evaluator)
        if not self._is_named and self.default.method == LEXICAL:
            self.default = self._connect_multilingual() or self.default

    def select(self, outputs: Iterable[str], references: Iterable[str]) -> TextEmbedder:
        """Return the embedder that reads the outputs and at least one of the references."""
        if self._is_named or self.default.embedder.name == MULTILINGUAL:
            return self.default
        # A right answer is often listed in several languages, and one that the output's embedder reads is enough.
        is_foreign = any(identify_language(text) in _OTHERS for text in outputs) or (
            (languages := {identify_language(text) for text in references}) & _OTHERS and ENGLISH not in languages
        )
        return (is_foreign and self._connect_multilingual()) or self.default

    def explain_unreadable(self, embedder: TextEmbedder, texts: Iterable[str]) -> str:
        """Return why an embedder cannot read one of the texts, and what to do; "" if it can read all."""
        texts = list(texts)
        problem = embedder.explain_unreadable(texts, by_letters=self._is_named)
        is_installable = problem and not self._is_named and self._connect_multilingual() is None
        if is_installable and any(identify_language(text) in _OTHERS for text in texts):
            reason = problem.partition(";")[0]
            return f"{reason}; {PULL_MULTILINGUAL}, or {JUDGE_HINT}"
        return problem

    def _connect_multilingual(self) -> TextEmbedder | None:
        if self._multilingual is None:
            is_installed = weights.find("multilingual") is not None and importlib.util.find_spec("numpy") is not None
            self._multilingual = TextEmbedder(MULTILINGUAL, self._evaluator) if is_installed else None
        return self._multilingual


_OTHERS = frozenset(Multilingual.languages) - {ENGLISH}
