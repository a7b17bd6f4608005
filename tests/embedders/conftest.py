"""The real MiniLM, where its weights can be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.errors import ModelError
from proctor.models import weights
from proctor.models.embedders.minilm import MiniLM


@pytest.fixture(scope="session")
def minilm_path() -> Path:
    """The weights in the user's cache, pulled if they are not there."""
    try:
        return weights.pull("minilm")
    except ModelError as error:
        pytest.skip(f"the weights cannot be pulled: {error.what}")


@pytest.fixture(scope="session")
def minilm(minilm_path: Path) -> MiniLM:
    """One model for all tests."""
    return MiniLM(minilm_path)
