"""Grounding: whether what a text says stands in a context, sentence by sentence."""
