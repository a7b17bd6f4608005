"""Fields of a trial: paths to them, and the context that evaluators receive."""
