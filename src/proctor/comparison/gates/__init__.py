"""Gates: what a run must reach, and when that is decided."""
