"""Fields of a trial: paths, and the context that evaluators receive."""
