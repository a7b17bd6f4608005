"""Embedders: texts become vectors, on this machine, at an endpoint, or by what the user holds."""
