"""Readers of other evaluation tools' files, one module per format; `interop/formats.py` lists them."""
