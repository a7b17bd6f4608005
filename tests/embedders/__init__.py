"""Tests of the embedders room."""
