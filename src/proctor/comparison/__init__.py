"""Compare and rank runs and configurations."""
