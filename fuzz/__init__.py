"""Importers fed with logs that chance has changed: `make fuzz`, and in short in the tests."""
