"""Measurements: what Proctor costs, and how good its evaluators are."""
