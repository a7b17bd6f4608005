"""Prompts: templates with strict placeholders, typed parameters and a version."""

from proctor.models.prompts.prompt import Prompt
from proctor.models.prompts.template import MarkdownSection, PromptTemplate

__all__ = ["MarkdownSection", "Prompt", "PromptTemplate"]
