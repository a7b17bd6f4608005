"""Whether results can be trusted: human labels and judge cards."""
