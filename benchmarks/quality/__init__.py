"""How good the evaluators' methods are: measured on public data, against reference figures."""
