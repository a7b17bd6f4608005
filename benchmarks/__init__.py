"""Benchmarks: the overhead of Proctor, and the quality of its evaluators."""
