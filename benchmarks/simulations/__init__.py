"""Whether the statistics hold what they promise, by simulation."""
