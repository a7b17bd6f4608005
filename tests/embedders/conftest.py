"""The real local embedders, if their weights can be downloaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.errors import ModelError
from proctor.models import weights
from proctor.models.cross_encoder import CrossEncoder
from proctor.models.embedders.minilm import MiniLM
from proctor.models.embedders.multilingual import Multilingual
from proctor.models.language_id import LanguageModel


def pull_or_skip(name: str) -> Path:
    """Return the weights in the user's cache, downloaded if they are missing."""
    try:
        return weights.pull(name)
    except ModelError as error:
        pytest.skip(f"the weights cannot be downloaded: {error.what}")


@pytest.fixture(scope="session")
def minilm_path() -> Path:
    return pull_or_skip("minilm")


@pytest.fixture(scope="session")
def minilm(minilm_path: Path) -> MiniLM:
    """One model for all tests."""
    return MiniLM(minilm_path)


@pytest.fixture(scope="session")
def multilingual_path() -> Path:
    return pull_or_skip("multilingual")


@pytest.fixture(scope="session")
def multilingual(multilingual_path: Path) -> Multilingual:
    """One model for all tests."""
    return Multilingual(multilingual_path)


@pytest.fixture(scope="session")
def cross_encoder() -> CrossEncoder:
    """One model for all tests."""
    return CrossEncoder(pull_or_skip("ms-marco"))


@pytest.fixture(scope="session")
def language_model() -> LanguageModel:
    """One model for all tests."""
    return LanguageModel(pull_or_skip("languages"))
