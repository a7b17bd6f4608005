"""Embedders: local models, letters, and Python objects."""
