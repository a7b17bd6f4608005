"""Tests of runs as files."""
