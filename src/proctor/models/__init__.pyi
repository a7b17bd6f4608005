# Written by tools/generate.py from EXPORTS in proctor.models.
from proctor.models.anthropic import AnthropicAdapter as AnthropicAdapter
from proctor.models.gemini import GeminiAdapter as GeminiAdapter
from proctor.models.model_calls import aask as aask
from proctor.models.model_calls import ask as ask
from proctor.models.openai import OpenAIAdapter as OpenAIAdapter
from proctor.models.prompts import MarkdownSection as MarkdownSection
from proctor.models.prompts import Prompt as Prompt
from proctor.models.prompts import PromptTemplate as PromptTemplate
from proctor.models.wrappers.cached import Cached as Cached
from proctor.models.wrappers.cached import DiskCache as DiskCache
from proctor.models.wrappers.cassette import RecordingModel as RecordingModel
from proctor.models.wrappers.cassette import ReplayModel as ReplayModel
from proctor.models.wrappers.limits import Budgeted as Budgeted
from proctor.models.wrappers.limits import Paced as Paced
from proctor.ports import Embedder as Embedder
from proctor.ports import ProviderAdapter as ProviderAdapter
from proctor.records.model import ModelRequest as ModelRequest
from proctor.records.model import ModelResponse as ModelResponse
from proctor.records.model import ToolSpec as ToolSpec
from proctor.records.run import Budget as Budget
from proctor.records.session import Usage as Usage

__all__ = [
    "AnthropicAdapter",
    "Budget",
    "Budgeted",
    "Cached",
    "DiskCache",
    "Embedder",
    "GeminiAdapter",
    "MarkdownSection",
    "ModelRequest",
    "ModelResponse",
    "OpenAIAdapter",
    "Paced",
    "Prompt",
    "PromptTemplate",
    "ProviderAdapter",
    "RecordingModel",
    "ReplayModel",
    "ToolSpec",
    "Usage",
    "aask",
    "ask",
]
EXPORTS: dict[str, tuple[str, ...]]
