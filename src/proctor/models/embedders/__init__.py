"""Embedders: local models, comparison by spelling, and Python objects."""
