"""Inputs that are built to hang or exhaust a run: bounded cost, or a clear refusal."""
