"""The three adapters against the model server, with short delays, for the tests of faults."""

from __future__ import annotations

from typing import Any

from proctor.models.anthropic import AnthropicAdapter
from proctor.models.gemini import GeminiAdapter
from proctor.models.openai import OpenAIAdapter
from proctor.ports import ProviderAdapter

KEY = "sk-only-for-tests-8f2a61c0"
WIRES = ("openai", "anthropic", "gemini")


def adapter_for(wire: str, url: str, **options: Any) -> ProviderAdapter:
    """An adapter that tries at most three times, with pauses of a hundredth of a second."""
    options = {"retries": 2, "retry_delay": 0.01, "timeout": 5.0, "api_key": KEY, **options}
    if wire == "openai":
        return OpenAIAdapter("model-x", base_url=f"{url}/v1", **options)
    if wire == "anthropic":
        return AnthropicAdapter("model-x", base_url=url, **options)
    return GeminiAdapter("model-x", base_url=url, **options)
