"""Evaluate LLM programs and agents."""

__version__ = "0.1.0"
