"""Readers of other tools' files, one module per tool."""
