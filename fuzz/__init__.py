"""Fuzzing of the importers with randomly changed logs: `make fuzz`, and a short form in the tests."""
