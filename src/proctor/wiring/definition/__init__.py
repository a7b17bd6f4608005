"""Definitions: which fields of a result are looked at, by which evaluators, and what is kept."""
