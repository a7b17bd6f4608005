"""Models: provider adapters, wrappers (cache, replay, budget, rate), prompts and embeddings."""

from __future__ import annotations

from proctor.core.lazy import lazy_names

# Module -> the public names that it defines.
EXPORTS = {
    "models.anthropic": ("AnthropicAdapter",),
    "models.model_calls": ("aask", "ask"),
    "models.gemini": ("GeminiAdapter",),
    "models.openai": ("OpenAIAdapter",),
    "models.prompts": ("MarkdownSection", "Prompt", "PromptTemplate"),
    "models.wrappers.cached": ("Cached", "DiskCache"),
    "models.wrappers.cassette": ("RecordingModel", "ReplayModel"),
    "models.wrappers.limits": ("Budgeted", "Paced"),
    "ports": ("Embedder", "ProviderAdapter"),
    "records.model": ("ModelRequest", "ModelResponse", "ToolSpec"),
    "records.run": ("Budget",),
    "records.session": ("Usage",),
}

__getattr__, __dir__ = lazy_names("proctor.models", EXPORTS)
__all__ = __dir__()
