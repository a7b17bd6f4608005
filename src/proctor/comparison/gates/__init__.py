"""Gates: check a run against thresholds and a baseline."""
