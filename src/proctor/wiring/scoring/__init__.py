"""Sessions against rubrics: what a scoring runs, and rubrics learned from known scores."""
