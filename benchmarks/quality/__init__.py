"""The quality of the evaluators, measured on public data and compared with reference figures."""
