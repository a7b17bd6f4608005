"""Immutable records: samples, scores, sessions, trials, results and runs."""
