"""Prompts as objects: templates with strict placeholders, typed parameters and a version."""

from proctor.prompts.prompt import Prompt
from proctor.prompts.template import MarkdownSection, PromptTemplate

__all__ = ["MarkdownSection", "Prompt", "PromptTemplate"]
