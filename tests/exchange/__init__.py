"""Tests of the export and import of runs."""
